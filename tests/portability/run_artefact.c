/* run_artefact.c — runs every entry of an artefact with libmdot at several lengths, on the same pseudo-random inputs on
 * every machine, and prints the ISA level and the outputs' first elements. aarch64.sh compares machines by these lines.
 *
 *     run_artefact PREDICTOR.mdot
 */
#include "mdot/mdot.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TENSORS = 32, MOST_PRINTED = 64 };

static uint32_t state = 1;

static double next_random(void) /* in [-1, 1); constants from Numerical Recipes */
{
    state = state * UINT32_C(1664525) + UINT32_C(1013904223);
    return (double)(int32_t)state * 0x1p-31;
}

static size_t elements_at(const mdot_tensor_info *info, int64_t length, int64_t *dims)
{
    size_t count = 1;
    for (int d = 0; d < info->rank; d++) {
        dims[d] = mdot_tensor_extent(info, d, length);
        count *= (size_t)dims[d];
    }
    return count;
}

static void fill(void *data, mdot_dtype dtype, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        double value = next_random();
        switch (dtype) {
        case MDOT_DTYPE_F32: ((float *)data)[i] = (float)value; break;
        case MDOT_DTYPE_I64: ((int64_t *)data)[i] = value > 0; break;
        case MDOT_DTYPE_I32: ((int32_t *)data)[i] = value > 0; break;
        default: /* BOOL and others of one byte; wider ones get zeros */
            if (mdot_dtype_size_bytes(dtype) == 1) ((unsigned char *)data)[i] = value > -0.5;
        }
    }
}

static void *create(size_t bytes)
{
    void *data = calloc(bytes + 1, 1);
    if (data == NULL) exit(1);
    return data;
}

static mdot_status run(mdot_predictor *predictor, mdot_context *context, size_t index, int64_t length, mdot_error *err)
{
    static int64_t dims[2][MAX_TENSORS][MDOT_MAX_RANK];
    mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
    mdot_input inputs[MAX_TENSORS] = {0};
    mdot_output outputs[MAX_TENSORS] = {0};
    mdot_status status = mdot_predictor_get_entry(predictor, index, &entry);
    if (status != MDOT_OK) return status;
    if (entry.input_count > MAX_TENSORS || entry.output_count > MAX_TENSORS)
        return mdot_fail(err, MDOT_UNSUPPORTED, "%s has more than %d inputs or outputs", entry.name, MAX_TENSORS);
    for (size_t i = 0; status == MDOT_OK && i < entry.input_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        status = mdot_predictor_get_input(predictor, index, i, &info);
        size_t count = elements_at(&info, length, dims[0][i]);
        void *data = create(count * mdot_dtype_size_bytes(info.dtype));
        fill(data, info.dtype, count);
        inputs[i] = (mdot_input){info.name, info.dtype, info.rank, dims[0][i], data};
    }
    for (size_t i = 0; status == MDOT_OK && i < entry.output_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        status = mdot_predictor_get_output(predictor, index, i, &info);
        size_t bytes = elements_at(&info, length, dims[1][i]) * mdot_dtype_size_bytes(info.dtype);
        outputs[i] = (mdot_output){info.name, create(bytes), bytes};
    }
    if (status == MDOT_OK)
        status = mdot_run(context, index, inputs, entry.input_count, outputs, entry.output_count, err);
    for (size_t i = 0; status == MDOT_OK && i < entry.output_count; i++)
        for (size_t k = 0; k < MOST_PRINTED && k < outputs[i].size_bytes / sizeof(float); k++)
            printf("%s %lld %s %zu %.9g\n", entry.name, (long long)length, outputs[i].name, k,
                   ((float *)outputs[i].data)[k]);
    for (size_t i = 0; i < MAX_TENSORS; i++) {
        free((void *)inputs[i].data);
        free(outputs[i].data);
    }
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 2) return fprintf(stderr, "usage: run_artefact PREDICTOR.mdot\n"), 2;
    static const int64_t lengths[] = {1, 7, 32, 61, 128};
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_error err = {0};
    mdot_status status = mdot_predictor_open(argv[1], NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_predictor_get_info(predictor, &info);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    if (status == MDOT_OK) printf("%s %s\n", info.cpu_isa, info.kernel_precision);
    for (size_t e = 0; status == MDOT_OK && e < info.entry_count; e++)
        for (size_t l = 0; status == MDOT_OK && l < sizeof lengths / sizeof lengths[0]; l++)
            status = run(predictor, context, e, lengths[l], &err);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    return status == MDOT_OK ? 0 : 1;
}
