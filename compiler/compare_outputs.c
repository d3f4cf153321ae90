/* compare_outputs.c — run compiled code on tensors and compare the results; used by check and verify. */
#include "compiler/compiler.h"

#include <math.h>

mdot_status co_create_tensors(const mdot_predictor *predictor, size_t entry, int64_t length, bool are_inputs,
                              size_t count, ir_arena *arena, co_tensor *out_tensors, mdot_error *err)
{
    for (size_t i = 0; i < count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        BS_TRY(are_inputs ? mdot_predictor_get_input(predictor, entry, i, &info)
                          : mdot_predictor_get_output(predictor, entry, i, &info));
        co_tensor tensor = {.name = info.name, .dtype = info.dtype, .rank = info.rank};
        for (int d = 0; d < info.rank; d++) tensor.dims[d] = mdot_tensor_extent(&info, d, length);
        tensor.count = ir_count_elements(tensor.rank, tensor.dims);
        size_t size = mdot_dtype_size_bytes(tensor.dtype);
        if (tensor.count >= 0) tensor.data = ir_arena_alloc(arena, (size_t)tensor.count + MDOT_ABI_ALIGNMENT, size);
        if (tensor.data == NULL) return BS_OUT_OF_MEMORY(err, "tensor \"%s\"", info.name);
        out_tensors[i] = tensor;
    }
    return MDOT_OK;
}

mdot_status co_run(mdot_context *context, size_t entry, const co_tensor *inputs, size_t input_count, co_tensor *outputs,
                   size_t output_count, ir_arena *arena, mdot_error *err)
{
    mdot_input *input = IR_NEW_ARRAY(arena, mdot_input, input_count + 1);
    mdot_output *out = IR_NEW_ARRAY(arena, mdot_output, output_count + 1);
    if (input == NULL || out == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < input_count; i++)
        input[i] = (mdot_input){inputs[i].name, inputs[i].dtype, inputs[i].rank, inputs[i].dims, inputs[i].data};
    for (size_t i = 0; i < output_count; i++)
        out[i] = (mdot_output){outputs[i].name, outputs[i].data,
                               (size_t)outputs[i].count * mdot_dtype_size_bytes(outputs[i].dtype)};
    return mdot_run(context, entry, input, input_count, out, output_count, err);
}

double co_distance(double actual, double expected)
{
    if (actual == expected || (isnan(actual) && isnan(expected))) return 0;
    double difference = fabs(actual - expected);
    return isnan(difference) ? INFINITY : difference;
}

static void compare_float(const ir_wide *actual, const ir_wide *expected, double relative, double absolute,
                          co_difference *d)
{
    for (int64_t i = 0; i < expected->count; i++) {
        double reference = expected->f[i], difference = co_distance(actual->f[i], reference);
        double size = isfinite(reference) ? fabs(reference) : 0;
        double excess = difference / (absolute + relative * size);
        d->absolute = fmax(d->absolute, difference);
        d->relative = fmax(d->relative, difference / fmax(1, size));
        if (excess > d->excess) d->excess = excess, d->index = i;
    }
}

mdot_status co_compare(const co_tensor *actual, const ir_wide *expected, double relative_tolerance,
                       double absolute_tolerance, co_difference *out_difference, mdot_error *err)
{
    const co_difference different = {INFINITY, INFINITY, INFINITY, 0};
    *out_difference = different;
    if (actual->dtype != expected->dtype || actual->count != expected->count || actual->rank != expected->rank)
        return MDOT_OK;
    for (int i = 0; i < actual->rank; i++)
        if (actual->dims[i] != expected->dims[i]) return MDOT_OK;

    ir_tensor stored = {.dtype = actual->dtype, .rank = actual->rank, .count = actual->count, .data = actual->data};
    for (int i = 0; i < actual->rank; i++) stored.dims[i] = actual->dims[i];
    ir_arena *arena = ir_arena_create(0);
    ir_wide *wide = arena != NULL ? ir_wide_from_tensor(arena, &stored) : NULL;
    co_difference d = {0};
    if (wide != NULL && ir_dtype_is_float(expected->dtype)) {
        compare_float(wide, expected, relative_tolerance, absolute_tolerance, &d);
    } else if (wide != NULL) {
        for (int64_t i = 0; i < expected->count; i++) {
            if (wide->i[i] == expected->i[i]) continue;
            d = different;
            d.index = i;
            break;
        }
    }
    ir_arena_destroy(arena);
    *out_difference = d;
    if (wide == NULL) return BS_OUT_OF_MEMORY(err, "the comparison of output \"%s\"", actual->name);
    return MDOT_OK;
}
