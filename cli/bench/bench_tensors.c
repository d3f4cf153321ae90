/* bench_tensors.c — tensors for `mdot bench`: pseudo-random inputs of a length, and memory for the outputs. */
#include "cli/bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { DATA_ALIGNMENT = 64 };

static size_t tensor_bytes(const mdot_tensor_info *info, int64_t length, int64_t *dims)
{
    size_t count = 1;
    for (int i = 0; i < info->rank; i++) {
        int64_t size = mdot_tensor_extent(info, i, length);
        if (dims != NULL) dims[i] = size;
        count *= (size_t)size;
    }
    return count * mdot_dtype_size_bytes(info->dtype);
}

void *bench_allocate(size_t bytes)
{
    size_t rounded = (bytes / DATA_ALIGNMENT + 1) * DATA_ALIGNMENT;
    void *memory = aligned_alloc(DATA_ALIGNMENT, rounded);
    if (memory != NULL) memset(memory, 0, rounded);
    return memory;
}

/* In [-1, 1), the same on every machine. The multiplier is that of Knuth's MMIX generator (TAOCP 2, 3.3.4). */
static double next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (double)(int64_t)*state * 0x1p-63;
}

/* Integers are usually indices, and zero is valid in every table. f16 and bf16 stay zero, too. */
static void fill(const mdot_tensor_info *info, void *data, size_t bytes)
{
    uint64_t state = 1;
    if (info->dtype == MDOT_DTYPE_F32)
        for (size_t i = 0; i < bytes / sizeof(float); i++) ((float *)data)[i] = (float)next_random(&state);
    else if (info->dtype == MDOT_DTYPE_F64)
        for (size_t i = 0; i < bytes / sizeof(double); i++) ((double *)data)[i] = next_random(&state);
    else if (info->dtype == MDOT_DTYPE_BOOL)
        memset(data, 1, bytes);
}

static bool allocate_data(bench_tensors *t, const mdot_predictor *predictor, size_t entry, int64_t length)
{
    mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
    for (size_t i = 0; i < t->input_count; i++) {
        mdot_predictor_get_input(predictor, entry, i, &info);
        size_t bytes = tensor_bytes(&info, length, t->dims[i]);
        void *data = bench_allocate(bytes);
        if (data == NULL) return false;
        fill(&info, data, bytes);
        t->inputs[i] = (mdot_input){info.name, info.dtype, info.rank, t->dims[i], data};
    }
    for (size_t i = 0; i < t->output_count; i++) {
        mdot_predictor_get_output(predictor, entry, i, &info);
        size_t bytes = tensor_bytes(&info, length, NULL);
        void *data = bench_allocate(bytes);
        if (data == NULL) return false;
        t->outputs[i] = (mdot_output){info.name, data, bytes};
    }
    return true;
}

mdot_status bench_make_tensors(const mdot_predictor *predictor, size_t entry, int64_t length,
                               bench_tensors *out_tensors, mdot_error *err)
{
    mdot_entry_info info = MDOT_INIT(mdot_entry_info);
    mdot_predictor_get_entry(predictor, entry, &info);
    bench_tensors t = {.input_count = info.input_count,
                       .output_count = info.output_count,
                       .inputs = calloc(info.input_count + 1, sizeof *t.inputs),
                       .outputs = calloc(info.output_count + 1, sizeof *t.outputs),
                       .dims = calloc(info.input_count + 1, sizeof *t.dims)};
    if (t.inputs == NULL || t.outputs == NULL || t.dims == NULL || !allocate_data(&t, predictor, entry, length)) {
        bench_free_tensors(&t);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    *out_tensors = t;
    return MDOT_OK;
}

void bench_free_tensors(bench_tensors *t)
{
    for (size_t i = 0; t->inputs != NULL && i < t->input_count; i++) free((void *)(uintptr_t)t->inputs[i].data);
    for (size_t i = 0; t->outputs != NULL && i < t->output_count; i++) free(t->outputs[i].data);
    free(t->inputs);
    free(t->outputs);
    free(t->dims);
    *t = (bench_tensors){0};
}
