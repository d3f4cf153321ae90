/* compare_outputs.c — run compiled code on tensors and compare the results; used by check and verify. */
#include "compiler/compiler.h"

#include <math.h>

mdot_status co_tensor_create(ir_arena *arena, const mdot_tensor_info *info, int64_t length, co_tensor *out_tensor,
                             mdot_error *err)
{
    co_tensor tensor = {.name = info->name, .dtype = info->dtype, .rank = info->rank};
    for (int i = 0; i < info->rank; i++) tensor.dims[i] = info->dim[i].scale * length + info->dim[i].offset;
    tensor.count = ir_count_elements(tensor.rank, tensor.dims);
    size_t size = mdot_dtype_size_bytes(tensor.dtype);
    if (tensor.count >= 0) tensor.data = ir_arena_alloc(arena, (size_t)tensor.count + MDOT_ABI_ALIGNMENT, size);
    if (tensor.data == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for tensor \"%s\"", info->name);
    *out_tensor = tensor;
    return MDOT_OK;
}

mdot_status co_run(mdot_context *context, size_t entry, const co_tensor *inputs, size_t input_count, co_tensor *outputs,
                   size_t output_count, ir_arena *arena, mdot_error *err)
{
    mdot_input *in = IR_NEW_ARRAY(arena, mdot_input, input_count + 1);
    mdot_output *out = IR_NEW_ARRAY(arena, mdot_output, output_count + 1);
    if (in == NULL || out == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    for (size_t i = 0; i < input_count; i++)
        in[i] = (mdot_input){inputs[i].name, inputs[i].dtype, inputs[i].rank, inputs[i].dims, inputs[i].data};
    for (size_t i = 0; i < output_count; i++)
        out[i] = (mdot_output){outputs[i].name, outputs[i].data,
                               (size_t)outputs[i].count * mdot_dtype_size_bytes(outputs[i].dtype)};
    return mdot_run(context, entry, in, input_count, out, output_count, err);
}

/* Returns |got - want|; NaN equals NaN and an infinity equals itself. */
static double distance(double got, double want)
{
    if (got == want || (isnan(got) && isnan(want))) return 0;
    double difference = fabs(got - want);
    return isnan(difference) ? INFINITY : difference;
}

static void compare_float(const ir_wide *got, const ir_wide *want, double relative, double absolute, co_difference *d)
{
    double largest = 0;
    for (int64_t i = 0; i < want->count; i++) {
        double expected = want->f[i], difference = distance(got->f[i], expected);
        double size = isfinite(expected) ? fabs(expected) : 0;
        double excess = difference / (absolute + relative * size);
        if (size > largest) largest = size;
        d->absolute = fmax(d->absolute, difference);
        d->relative = fmax(d->relative, difference / fmax(1, size));
        if (excess > d->excess) d->excess = excess, d->where = i;
    }
    d->scaled = d->absolute / fmax(1e-3, largest);
}

double co_scaled_difference(const ir_wide *got, const ir_wide *want)
{
    co_difference d = {0};
    if (ir_dtype_is_float(want->dtype)) compare_float(got, want, 0, 1, &d);
    return d.scaled;
}

mdot_status co_compare(const co_tensor *got, const ir_wide *want, double relative_tolerance, double absolute_tolerance,
                       co_difference *out_difference, mdot_error *err)
{
    const co_difference different = {INFINITY, INFINITY, INFINITY, INFINITY, 0};
    *out_difference = different;
    if (got->dtype != want->dtype || got->count != want->count || got->rank != want->rank) return MDOT_OK;
    for (int i = 0; i < got->rank; i++)
        if (got->dims[i] != want->dims[i]) return MDOT_OK;

    ir_tensor stored = {.dtype = got->dtype, .rank = got->rank, .count = got->count, .data = got->data};
    for (int i = 0; i < got->rank; i++) stored.dims[i] = got->dims[i];
    ir_arena *arena = ir_arena_create(0);
    ir_wide *wide = arena != NULL ? ir_wide_from_tensor(arena, &stored) : NULL;
    co_difference d = {0};
    if (wide != NULL && ir_dtype_is_float(want->dtype)) {
        compare_float(wide, want, relative_tolerance, absolute_tolerance, &d);
    } else if (wide != NULL) {
        for (int64_t i = 0; i < want->count; i++) {
            if (wide->i[i] == want->i[i]) continue;
            d = different;
            d.where = i;
            break;
        }
    }
    ir_arena_destroy(arena);
    *out_difference = d;
    if (wide == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory to compare output \"%s\"", got->name);
    return MDOT_OK;
}
