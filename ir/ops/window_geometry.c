/* window_geometry.c — geometry of convolutions and poolings: reads and checks attributes, computes extents and padding.
 *
 * Sources: ONNX Conv-22, ConvTranspose-22, MaxPool-22, AveragePool-22.
 */
#include "ir/ops/geometry.h"

#include <string.h>

enum { MAX_ATTRIBUTE = 1 << 24 }; /* keeps every product below in range; feature maps are narrower */

static mdot_status read_list(const ir_operands *args, const char *name, int count, int64_t minimum, int64_t fallback,
                             int64_t *out)
{
    const ir_attr *attr = ir_node_attr(args->node, name);
    for (int i = 0; i < count; i++) out[i] = fallback;
    if (attr == NULL || attr->kind != IR_ATTR_INTS || attr->count == 0) return MDOT_OK;
    if (attr->count != count) return ir_malformed(args, "%s has %d elements instead of %d", name, attr->count, count);
    for (int i = 0; i < count; i++) {
        if (attr->ints[i] < minimum || attr->ints[i] > MAX_ATTRIBUTE)
            return ir_malformed(args, "%s has an element of %lld", name, (long long)attr->ints[i]);
        out[i] = attr->ints[i];
    }
    return MDOT_OK;
}

static mdot_status read_kernel(const ir_operands *args, int rank, const int64_t *kernel, ir_window *w)
{
    BS_TRY(read_list(args, "kernel_shape", rank, 1, 0, w->kernel));
    for (int i = 0; i < rank; i++) {
        if (kernel != NULL && w->kernel[i] && w->kernel[i] != kernel[i])
            return ir_malformed(args, "kernel_shape is %lld, but the weights are %lld wide", (long long)w->kernel[i],
                                (long long)kernel[i]);
        if (kernel != NULL) w->kernel[i] = kernel[i];
        if (w->kernel[i] < 1 || w->kernel[i] > MAX_ATTRIBUTE)
            return ir_malformed(args, "a kernel is %lld wide", (long long)w->kernel[i]);
    }
    return MDOT_OK;
}

mdot_status ir_window_read(const ir_operands *args, int rank, const int64_t *kernel, ir_window *out_window)
{
    ir_window w = {.rank = rank};
    int64_t pads[2 * IR_MAX_SPATIAL];
    if (rank < 1 || rank > IR_MAX_SPATIAL)
        return ir_malformed(args, "an input of %d dimensions lacks spatial dimensions", rank + 2);
    BS_TRY(read_kernel(args, rank, kernel, &w));
    BS_TRY(read_list(args, "strides", rank, 1, 1, w.stride));
    BS_TRY(read_list(args, "dilations", rank, 1, 1, w.dilation));
    BS_TRY(read_list(args, "pads", 2 * rank, -MAX_ATTRIBUTE, 0, pads));
    for (int i = 0; i < rank; i++) {
        w.before[i] = ir_dim_number(pads[i]);
        w.after[i] = ir_dim_number(pads[rank + i]);
    }
    *out_window = w;
    return MDOT_OK;
}

static int64_t reach(const ir_window *w, int i) { return w->dilation[i] * (w->kernel[i] - 1) + 1; }

static mdot_status no_extent(const ir_operands *args, int axis, ir_dim input)
{
    char text[IR_DIM_TEXT_BYTES];
    return ir_refuse(
        args, MDOT_UNSUPPORTED,
        "the extent of spatial dimension %d, formed from %s elements, is not a sum of a multiple of the length "
        "and one rounded quotient of it; bind the length with --dim",
        axis, ir_dim_text(input, args->graph->symbol, text, sizeof text));
}

/* Splits padding over both sides. The odd element goes behind (UPPER) or before. */
static bool split_padding(const ir_operands *args, ir_window *w, int i, ir_dim total, bool upper)
{
    ir_dim half, rest;
    if (!ir_dim_div_floor(args->graph, total, 2, &half) || !ir_dim_sub(total, half, &rest)) return false;
    w->before[i] = upper ? half : rest;
    w->after[i] = upper ? rest : half;
    return true;
}

/* SAME pads so that a window starts at every stride: the last one begins (out - 1) * stride elements behind the
 * first. */
static mdot_status slide_same(const ir_operands *args, ir_window *w, int i, ir_dim input, bool upper, ir_dim *out)
{
    ir_dim total;
    if (!ir_dim_div_ceil(args->graph, input, w->stride[i], out)) return no_extent(args, i, input);
    if (!ir_dim_mul(*out, ir_dim_number(w->stride[i]), &total) ||
        !ir_dim_add(total, ir_dim_number(reach(w, i) - w->stride[i]), &total) || !ir_dim_sub(total, input, &total))
        return no_extent(args, i, input);
    if (ir_dim_max(args->graph, total, ir_dim_number(0), &total) && split_padding(args, w, i, total, upper))
        return MDOT_OK;
    return ir_refuse(
        args, MDOT_UNSUPPORTED,
        "auto_pad %s with the stride %lld along the length pads by another amount at every remainder of the "
        "length; pad explicitly before the node, or bind the length with --dim",
        ir_node_string(args->node, "auto_pad", ""), (long long)w->stride[i]);
}

/* A window that would start in the padding behind is excluded. */
static bool exclude_beyond(const ir_operands *args, const ir_window *w, int i, ir_dim input, ir_dim *out)
{
    ir_dim last_dim;
    if (ir_dim_is_number(input)) {
        bool beyond = (out->offset - 1) * w->stride[i] >= input.offset + w->before[i].offset;
        if (beyond && out->offset > 1) out->offset--;
        return true;
    }
    return ir_dim_add(input, ir_dim_number(w->before[i].offset - 1), &last_dim) &&
           ir_dim_div_floor(args->graph, last_dim, w->stride[i], &last_dim) &&
           ir_dim_add(last_dim, ir_dim_number(1), &last_dim) && ir_dim_min(args->graph, *out, last_dim, out);
}

static ir_dim plus(ir_dim d, int64_t n)
{
    d.offset += n;
    return d;
}

static mdot_status slide_padded(const ir_operands *args, const ir_window *w, int i, ir_dim in, bool up, ir_dim *out)
{
    ir_dim slack, steps, one = ir_dim_number(1);
    int64_t minimum, maximum;
    int64_t pads = w->before[i].offset + w->after[i].offset;
    if (!ir_dim_add(in, ir_dim_number(pads - reach(w, i)), &slack)) return no_extent(args, i, in);
    ir_dim_bounds(args->graph, slack, &minimum, &maximum);
    if (maximum < 0) {
        char text[IR_DIM_TEXT_BYTES];
        return ir_malformed(args, "a kernel of extent %lld exceeds the padded input of %s elements",
                            (long long)reach(w, i),
                            ir_dim_text(plus(in, pads), args->graph->symbol, text, sizeof text));
    }
    if (minimum < 0 && w->stride[i] > 1) {
        char text[IR_DIM_TEXT_BYTES];
        return ir_unsupported(args, "a kernel of extent %lld exceeds the padded input of %s elements for some lengths",
                              (long long)reach(w, i),
                              ir_dim_text(plus(in, pads), args->graph->symbol, text, sizeof text));
    }
    bool fits = up ? ir_dim_div_ceil(args->graph, slack, w->stride[i], &steps)
                   : ir_dim_div_floor(args->graph, slack, w->stride[i], &steps);
    if (!fits || !ir_dim_add(steps, one, out)) return no_extent(args, i, in);
    return up && !exclude_beyond(args, w, i, in, out) ? no_extent(args, i, in) : MDOT_OK;
}

mdot_status ir_window_slide(const ir_operands *args, ir_window *window, const ir_dim *input, ir_dim *out_extents)
{
    const char *mode = ir_node_string(args->node, "auto_pad", "NOTSET");
    bool up = ir_node_int(args->node, "ceil_mode", 0) != 0, upper = strcmp(mode, "SAME_UPPER") == 0;
    bool is_same = upper || strcmp(mode, "SAME_LOWER") == 0;
    for (int i = 0; i < window->rank; i++) {
        if (strcmp(mode, "VALID") == 0) window->before[i] = window->after[i] = ir_dim_number(0);
        BS_TRY(is_same ? slide_same(args, window, i, input[i], upper, &out_extents[i])
                       : slide_padded(args, window, i, input[i], up, &out_extents[i]));
    }
    return MDOT_OK;
}

/* stride * (in - 1) + output_padding + reach - pads. With output_shape it is that, and with SAME stride * in. */
mdot_status ir_window_unslide(const ir_operands *args, ir_window *w, const ir_dim *input, ir_dim *out_extents)
{
    const char *mode = ir_node_string(args->node, "auto_pad", "NOTSET");
    bool upper = strcmp(mode, "SAME_UPPER") == 0, is_same = upper || strcmp(mode, "SAME_LOWER") == 0;
    int64_t extra[IR_MAX_SPATIAL], wanted[IR_MAX_SPATIAL];
    BS_TRY(read_list(args, "output_padding", w->rank, 0, 0, extra));
    BS_TRY(read_list(args, "output_shape", w->rank, 1, 0, wanted));
    for (int i = 0; i < w->rank; i++) {
        ir_dim full;
        if (strcmp(mode, "VALID") == 0) w->before[i] = w->after[i] = ir_dim_number(0);
        if (!ir_dim_mul(input[i], ir_dim_number(w->stride[i]), &full)) return no_extent(args, i, input[i]);
        ir_dim target = wanted[i] ? ir_dim_number(wanted[i]) : full;
        if (!ir_dim_add(full, ir_dim_number(extra[i] + reach(w, i) - w->stride[i]), &full))
            return no_extent(args, i, input[i]);
        if (wanted[i] || is_same) {
            ir_dim total;
            if (!ir_dim_sub(full, target, &total) || !ir_dim_is_number(total)) return no_extent(args, i, input[i]);
            if (total.offset < 0) total = ir_dim_number(0);
            if (!split_padding(args, w, i, total, upper)) return no_extent(args, i, input[i]);
            out_extents[i] = target;
        } else if (!ir_dim_sub(full, w->before[i], &out_extents[i]) ||
                   !ir_dim_sub(out_extents[i], w->after[i], &out_extents[i])) {
            return no_extent(args, i, input[i]);
        }
        int64_t least, maximum;
        ir_dim_bounds(args->graph, out_extents[i], &least, &maximum);
        if (maximum < 0) return ir_malformed(args, "negative padding removes all of spatial dimension %d", i);
    }
    return MDOT_OK;
}

int64_t ir_window_tap(const ir_window *window, const int64_t *position, const int64_t *tap, const int64_t *dims)
{
    int64_t offset = 0;
    for (int i = 0; i < window->rank; i++) {
        int64_t k = position[i] * window->stride[i] - window->before[i].offset + tap[i] * window->dilation[i];
        if (k < 0 || k >= dims[i]) return -1;
        offset = offset * dims[i] + k;
    }
    return offset;
}
