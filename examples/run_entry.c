/* run_entry.c — the tensor layer of libmdot on one page: open an artefact, run one of its entries ("predict") at a
 * length, and print the outputs.
 *
 *     cc run_entry.c -I../include -L../build/release/runtime -lmdot -ldl -lm -lpthread
 *     ./a.out predictor.mdot 100 [ENTRY]
 */
#include "mdot/mdot.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_TENSORS = 16 };

static size_t size_at(const mdot_tensor_info *info, int64_t length, int64_t *out_dims)
{
    size_t bytes = mdot_dtype_size_bytes(info->dtype);
    for (int i = 0; i < info->rank; i++) {
        out_dims[i] = mdot_tensor_extent(info, i, length);
        bytes *= (size_t)out_dims[i];
    }
    return bytes;
}

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) return fprintf(stderr, "usage: run_entry PREDICTOR.mdot LENGTH [ENTRY]\n"), 2;
    int64_t length = atoll(argv[2]), dims[2][MAX_TENSORS][MDOT_MAX_RANK];
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL; /* create one per thread */
    mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
    mdot_input inputs[MAX_TENSORS] = {0};
    mdot_output outputs[MAX_TENSORS] = {0};
    size_t index = 0;
    mdot_error err = {0};

    mdot_status status = mdot_predictor_open(argv[1], NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_predictor_find_entry(predictor, argc == 4 ? argv[3] : "predict", &index);
    if (status == MDOT_OK) status = mdot_predictor_get_entry(predictor, index, &entry);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    if (status == MDOT_OK && entry.input_count + entry.output_count > MAX_TENSORS)
        status = mdot_fail(&err, MDOT_UNSUPPORTED, "this example supports at most %d tensors", MAX_TENSORS);
    for (size_t i = 0; status == MDOT_OK && i < entry.input_count; i++) { /* all zeros here: fill in your own data */
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        status = mdot_predictor_get_input(predictor, index, i, &info);
        size_t bytes = size_at(&info, length, dims[0][i]);
        inputs[i] = (mdot_input){info.name, info.dtype, info.rank, dims[0][i], calloc(bytes + 1, 1)};
    }
    for (size_t i = 0; status == MDOT_OK && i < entry.output_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        status = mdot_predictor_get_output(predictor, index, i, &info);
        size_t bytes = size_at(&info, length, dims[1][i]);
        outputs[i] = (mdot_output){info.name, calloc(bytes + 1, 1), bytes};
    }
    /* [example: mdot_run] */
    if (status == MDOT_OK)
        status = mdot_run(context, index, inputs, entry.input_count, outputs, entry.output_count, &err);
    for (size_t i = 0; status == MDOT_OK && i < entry.output_count; i++)
        printf("%s: %zu bytes, the first f32 is %g\n", outputs[i].name, outputs[i].size_bytes,
               *(float *)outputs[i].data);
    /* [end of example] */
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    for (int i = 0; i < MAX_TENSORS; i++) {
        free((void *)inputs[i].data);
        free(outputs[i].data);
    }
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return status == MDOT_OK ? 0 : 1;
}
