/* expand_windows.c — rewrites convolutions and poolings as sliding windows (mdot.Windows) and a computation on each.
 *
 *   Conv, one group     channels last; windows are the rows of an mdot.Linear
 *   Conv by channel     channels last; Σ windows · weights, a reduction
 *   Conv of groups      one of the first kind per group
 *   Conv, few channels  the same reduction over channels and taps, with all dimensions in their place
 *   pooling             the maximum or the mean of each window
 *
 * Linear kernels read windows in place (pl_windows in plan/plan.h), so that nothing is copied. Behind the matmul,
 * channels return to the front; sink_transposes.c cancels this order against the one before it.
 */
#include "ir/ops.h"
#include "ir/ops/geometry.h"
#include "ir/passes/pass_rules.h"

#include <math.h>

typedef struct sliding {
    const ir_node *node;
    ir_window window;
    int spatial;                       /* number of spatial dimensions */
    ir_dim batch, out[IR_MAX_SPATIAL]; /* extents of the result */
} sliding;

/* False: inference has failed or fails here; the builder records the error. */
static bool read_sliding(ir_builder *b, const ir_node *node, const int64_t *kernel, sliding *s)
{
    const ir_type *x = &node->inputs[0]->type;
    ir_operands args = ir_operands_of_graph(b->graph, node, b->err);
    *s = (sliding){.node = node, .spatial = x->rank - 2, .batch = x->dim[0]};
    b->status = ir_window_read(&args, s->spatial, kernel, &s->window);
    if (b->status == MDOT_OK) b->status = ir_window_slide(&args, &s->window, x->dim + 2, s->out);
    return b->status == MDOT_OK;
}

/* Pads the spatial dimensions of x from `begin` to `end` - 1, whose axes begin with `first`, with `value`. */
static ir_value *padded_part(ir_builder *b, const sliding *s, ir_value *x, int first, int begin, int end, double value)
{
    ir_dim pads[2 * MDOT_MAX_RANK] = {{0}};
    bool any = false;
    if (x == NULL) return NULL;
    for (int i = begin; i < end; i++) {
        pads[first + i - begin] = s->window.before[i];
        pads[x->type.rank + first + i - begin] = s->window.after[i];
        any = any || !ir_dim_is(s->window.before[i], 0) || !ir_dim_is(s->window.after[i], 0);
    }
    if (!any) return x;
    ir_value *widths = ir_build_dims(b, pads, 2 * x->type.rank);
    return ir_build_op3(b, IR_OP_Pad, x, widths, ir_build_scalar(b, value));
}

static ir_value *padded(ir_builder *b, const sliding *s, ir_value *x, int first, double value)
{
    return padded_part(b, s, x, first, 0, s->spatial, value);
}

/* The first `count` elements along an axis. */
static ir_value *leading(ir_builder *b, ir_value *x, int axis, ir_dim count)
{
    if (x == NULL || ir_dim_equal(x->type.dim[axis], count)) return x;
    ir_value *inputs[] = {x, ir_build_integers(b, &(int64_t){0}, 1), ir_build_dims(b, &count, 1),
                          ir_build_integers(b, &(int64_t){axis}, 1)};
    return ir_build_with(b, IR_OP_Slice, inputs, 4, IR_NO_ATTRS);
}

/* The windows along spatial dimension `i`, axis `axis` of x. */
static ir_value *along(ir_builder *b, const sliding *s, int i, ir_value *x, int axis)
{
    const ir_window *w = &s->window;
    if (w->kernel[i] == 1 && w->stride[i] == 1) return ir_build_unit_axis(b, x, axis + 1);
    x = ir_build_with(b, IR_OP_Windows, &x, 1,
                      IR_ATTRS(IR_INT("axis", axis), IR_INT("size", w->kernel[i]), IR_INT("stride", w->stride[i]),
                               IR_INT("dilation", w->dilation[i])));
    return leading(b, x, axis, s->out[i]);
}

/* Forms windows over the spatial dimensions and orders the axes: leading dimensions, windows, taps, trailing
 * dimensions. */
static ir_value *windows(ir_builder *b, const sliding *s, ir_value *x, int first)
{
    int64_t perm[MDOT_MAX_RANK];
    int rank = 0;
    for (int i = s->spatial - 1; i >= 0; i--) x = along(b, s, i, x, first + i);
    if (x == NULL) return NULL;
    for (int d = 0; d < first; d++) perm[rank++] = d;
    for (int i = 0; i < s->spatial; i++) perm[rank++] = first + 2 * i;
    for (int i = 0; i < s->spatial; i++) perm[rank++] = first + 2 * i + 1;
    for (int d = first + 2 * s->spatial; d < x->type.rank; d++) perm[rank++] = d;
    return ir_build_transpose(b, x, perm);
}

/* Moves the channel dimension to the end, or back to its place. */
static ir_value *channels_last(ir_builder *b, const sliding *s, ir_value *x)
{
    int64_t perm[MDOT_MAX_RANK] = {0};
    for (int i = 0; i < s->spatial; i++) perm[1 + i] = 2 + i;
    perm[1 + s->spatial] = 1;
    return ir_build_transpose(b, x, perm);
}

static ir_value *channels_first(ir_builder *b, const sliding *s, ir_value *x)
{
    int64_t perm[MDOT_MAX_RANK] = {0, 1 + s->spatial};
    for (int i = 0; i < s->spatial; i++) perm[2 + i] = 1 + i;
    return ir_build_transpose(b, x, perm);
}

/* x [batch, windows …] with `count` more dimensions. */
static ir_value *reshaped(ir_builder *b, const sliding *s, ir_value *x, const int64_t *dims, int count)
{
    ir_dim total[MDOT_MAX_RANK] = {s->batch};
    for (int i = 0; i < s->spatial; i++) total[1 + i] = s->out[i];
    for (int i = 0; i < count; i++) total[1 + s->spatial + i] = ir_dim_number(dims[i]);
    return ir_build_reshape(b, x, total, 1 + s->spatial + count);
}

typedef struct convolution {
    sliding s;
    int64_t groups, channels, filters, taps; /* channels and filters per group; taps of a kernel */
} convolution;

/* [M, channels, taps …] → [taps …, channels, M] */
static ir_value *weights_last(ir_builder *b, const convolution *c, ir_value *weights)
{
    int64_t perm[MDOT_MAX_RANK];
    for (int i = 0; i < c->s.spatial; i++) perm[i] = 2 + i;
    perm[c->s.spatial] = 1;
    perm[c->s.spatial + 1] = 0;
    return ir_build_transpose(b, weights, perm);
}

static ir_value *linear(ir_builder *b, const convolution *c, ir_value *x, ir_value *weights, ir_value *bias)
{
    int64_t inner = c->taps * c->channels;
    ir_dim dims[] = {ir_dim_number(inner), ir_dim_number(c->filters)};
    ir_value *operands[] = {reshaped(b, &c->s, windows(b, &c->s, x, 1), &inner, 1),
                            ir_build_reshape(b, weights_last(b, c, weights), dims, 2), bias};
    return ir_build_with(b, IR_OP_Linear, operands, 3, IR_NO_ATTRS);
}

static ir_value *each_group(ir_builder *b, const convolution *c, ir_value *x, ir_value *weights, ir_value *bias)
{
    ir_value **parts = ir_build_alloc(b, c->groups, sizeof *parts);
    for (int64_t g = 0; parts != NULL && g < c->groups; g++) {
        int64_t input = g * c->channels, out = g * c->filters;
        ir_value *own_value = ir_build_slice(b, weights, 0, out, out + c->filters);
        ir_value *added = bias != NULL ? ir_build_slice(b, bias, 0, out, out + c->filters) : NULL;
        parts[g] = linear(b, c, ir_build_slice(b, x, 1 + c->s.spatial, input, input + c->channels), own_value, added);
    }
    return parts != NULL ? ir_build_concat(b, 1 + c->s.spatial, parts, (int)c->groups) : NULL;
}

/* Convolves every channel separately, giving `filters` results: [batch, windows …, taps …, channel, filter], summed
 * over taps. */
static ir_value *each_channel(ir_builder *b, const convolution *c, ir_value *x, ir_value *weights, ir_value *bias)
{
    int64_t perm[MDOT_MAX_RANK], taps[IR_MAX_SPATIAL], last_index = c->groups * c->filters;
    ir_dim dims[MDOT_MAX_RANK] = {ir_dim_number(c->groups), ir_dim_number(c->filters)};
    int spatial = c->s.spatial;
    for (int i = 0; i < spatial; i++) {
        perm[i] = 2 + i;
        dims[2 + i] = ir_dim_number(c->s.window.kernel[i]);
        taps[i] = 1 + spatial + i;
    }
    perm[spatial] = 0;
    perm[spatial + 1] = 1;
    weights = ir_build_transpose(b, ir_build_reshape(b, weights, dims, 2 + spatial), perm);
    x = windows(b, &c->s, x, 1);
    if (x == NULL) return NULL;
    ir_value *products = ir_build_mul(b, ir_build_unit_axis(b, x, x->type.rank), weights);
    ir_value *sum = products != NULL ? ir_build_reduce(b, IR_OP_ReduceSum, products, taps, spatial) : NULL;
    sum = reshaped(b, &c->s, sum, &last_index, 1);
    return bias != NULL ? ir_build_add(b, sum, bias) : sum;
}

/* Every second element of a row is two loads and shuffles. Before many filters, a copy of the row for each tap pays. */
static bool copies_taps(const convolution *c)
{
    enum { FEWEST_FILTERS = 16 };
    const ir_window *w = &c->s.window;
    return c->s.spatial == 2 && c->groups == 1 && w->stride[1] == 2 && w->kernel[1] > 1 && c->filters >= FEWEST_FILTERS;
}

/* The windows of x, from rows that padding the other dimension copies: [batch, channel, tap, row, window]. */
static ir_value *tap_rows(ir_builder *b, const convolution *c, ir_value *x)
{
    static const int64_t taps_first[] = {0, 1, 4, 2, 3}, taps_last[] = {0, 1, 3, 5, 4, 2};
    x = along(b, &c->s, 1, padded_part(b, &c->s, x, 3, 1, 2, 0), 3);
    if (x != NULL) x = ir_build_transpose(b, x, taps_first);
    x = along(b, &c->s, 0, padded_part(b, &c->s, x, 3, 0, 1, 0), 3);
    return x != NULL ? ir_build_transpose(b, x, taps_last) : NULL;
}

/* Convolves with all dimensions in their place: [batch, group, filter, windows …, channel, taps …], summed over
 * channels and taps. */
static ir_value *in_place(ir_builder *b, const convolution *c, ir_value *x, ir_value *weights, ir_value *bias)
{
    int spatial = c->s.spatial;
    int64_t summed[1 + IR_MAX_SPATIAL] = {3};
    x = copies_taps(c) ? tap_rows(b, c, x) : windows(b, &c->s, padded(b, &c->s, x, 2, 0), 2);
    if (x == NULL) return NULL;
    ir_dim window[MDOT_MAX_RANK] = {c->s.batch, ir_dim_number(c->groups), ir_dim_number(1), ir_dim_number(c->channels)};
    ir_dim kernel[MDOT_MAX_RANK] = {ir_dim_number(c->groups), ir_dim_number(c->filters), ir_dim_number(c->channels)};
    ir_dim result[MDOT_MAX_RANK] = {c->s.batch, ir_dim_number(c->groups * c->filters)};
    ir_dim added[MDOT_MAX_RANK] = {result[1]};
    for (int i = 0; i < spatial; i++) {
        window[4 + i] = result[2 + i] = c->s.out[i];
        kernel[3 + i] = added[1 + i] = ir_dim_number(1);
        window[4 + spatial + i] = kernel[3 + spatial + i] = ir_dim_number(c->s.window.kernel[i]);
        summed[1 + i] = 4 + spatial + i;
    }
    x = ir_build_reshape(b, x, window, 4 + 2 * spatial);
    ir_value *products = ir_build_mul(b, x, ir_build_reshape(b, weights, kernel, 3 + 2 * spatial));
    ir_value *sum = products != NULL ? ir_build_reduce(b, IR_OP_ReduceSum, products, summed, 1 + spatial) : NULL;
    sum = sum != NULL ? ir_build_reshape(b, sum, result, 2 + spatial) : NULL;
    return bias != NULL ? ir_build_add(b, sum, ir_build_reshape(b, bias, added, 1 + spatial)) : sum;
}

/* Would another transpose undo the one of a convolution with channels last: that of a convolution, or the model's? At
 * most elementwise operators are in between (sink_transposes.c). */
static bool meets_transpose(const ir_value *value, int left, int *readers_left)
{
    for (const ir_use *use = value->uses; use != NULL && *readers_left > 0; use = use->next) {
        const ir_node *node = use->node;
        if (node == NULL || node->op == NULL || node->outputs[0] == NULL) continue;
        --*readers_left;
        if (ir_node_opcode(node) == IR_OP_Conv || ir_node_opcode(node) == IR_OP_Transpose) return true;
        bool goes_on = left > 0 && node->op->lowering == IR_LOWER_POINTWISE;
        if (goes_on && meets_transpose(node->outputs[0], left - 1, readers_left)) return true;
    }
    return false;
}

static bool follows_transpose(const ir_value *value, int left)
{
    const ir_node *node = value->def;
    if (node == NULL || node->op == NULL) return false;
    if (ir_node_opcode(node) == IR_OP_Transpose) return true;
    if (left == 0 || node->op->lowering != IR_LOWER_POINTWISE) return false;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL && follows_transpose(node->inputs[i], left - 1)) return true;
    return false;
}

/* A matrix product needs the channels last, and columns for whole vectors. A reduction in place has vectors of adjacent
 * results instead, and needs no transpose, so it is for small groups, few filters, and convolutions whose transposes no
 * other would undo. It is as fast per multiplication where rows fill their vectors and begin at each element. Elsewhere
 * it is slower, which short sums and few channels are worth. Winograd's transform multiplies less. */
static bool is_in_place(const convolution *c)
{
    enum { RGBA = 4, FEW = 8, VECTOR = 16, MOST_CHANNELS = 64, SHORT_SUM = 64, FEWEST_RESULTS = 12, MOST_BETWEEN = 4 };
    int last = c->s.spatial - 1, readers_left = 64;
    const int64_t *stride = c->s.window.stride, width = c->s.out[last].offset;
    if (c->s.spatial > 2 || stride[last] > 2) return false;
    if (c->groups > 1 && c->channels > 1) return c->channels <= FEW;
    bool is_undone_before = follows_transpose(c->s.node->inputs[0], MOST_BETWEEN);
    bool is_undone_behind = meets_transpose(c->s.node->outputs[0], MOST_BETWEEN, &readers_left);
    bool is_number = ir_dim_is_number(c->s.out[last]), is_wide = !is_number || width >= FEWEST_RESULTS;
    bool is_full = !is_number || 8 * width > 7 * ((width + VECTOR - 1) / VECTOR * VECTOR);
    bool has_few = c->filters <= FEW || (c->filters <= VECTOR && c->channels <= FEW);
    if (c->groups > 1) return is_wide && !is_undone_before && !is_undone_behind;
    if (is_wide && has_few && !(is_undone_before && is_undone_behind)) return true;
    bool is_plain = stride[0] == 1 && stride[last] == 1;
    bool is_transformed = is_plain && c->taps == 9 && c->channels > FEW && c->s.spatial == 2;
    bool is_dense = is_plain || c->taps == 1 || c->channels <= RGBA;
    bool is_quick = c->channels * c->taps < SHORT_SUM || (is_dense && is_full && c->channels <= MOST_CHANNELS);
    bool is_fast = (is_plain && c->taps == 1) || (is_wide && is_quick && !is_transformed);
    return is_fast && !is_undone_before && !is_undone_behind;
}

void ir_expand_convolution(ir_builder *b, ir_node *node)
{
    const ir_type *weights = &node->inputs[1]->type;
    int64_t kernel[IR_MAX_SPATIAL];
    convolution c = {.groups = ir_node_int(node, "group", 1), .taps = 1};
    for (int i = 2; i < weights->rank; i++) c.taps *= kernel[i - 2] = weights->dim[i].offset;
    c.channels = weights->dim[1].offset;
    c.filters = weights->dim[0].offset / c.groups;
    if (c.channels == 0 || c.filters == 0 || c.taps == 0 || !read_sliding(b, node, kernel, &c.s)) return;
    ir_value *bias = ir_node_input(node, 2), *result;
    if (is_in_place(&c)) {
        ir_replace(b, node->outputs[0], in_place(b, &c, node->inputs[0], node->inputs[1], bias));
        return;
    }
    ir_value *x = padded(b, &c.s, channels_last(b, &c.s, node->inputs[0]), 1, 0);
    if (c.groups == 1)
        result = linear(b, &c, x, node->inputs[1], bias);
    else if (c.channels == 1)
        result = each_channel(b, &c, x, node->inputs[1], bias);
    else
        result = each_group(b, &c, x, node->inputs[1], bias);
    ir_replace(b, node->outputs[0], channels_first(b, &c.s, result));
}

/* Extends the padding, because the last window may reach beyond it (ceil_mode), by less than a stride. Windows that
 * begin in the extension are cut off. */
static void pad_behind(sliding *s)
{
    const ir_type *x = &s->node->inputs[0]->type;
    ir_window *w = &s->window;
    for (int i = 0; i < s->spatial && ir_node_int(s->node, "ceil_mode", 0) != 0; i++) {
        ir_dim input = x->dim[2 + i];
        int64_t extra = w->stride[i] - 1;
        if (ir_dim_is_number(input)) {
            int64_t reach = (s->out[i].offset - 1) * w->stride[i] + w->dilation[i] * (w->kernel[i] - 1) + 1;
            int64_t missing = reach - input.offset - w->before[i].offset - w->after[i].offset;
            extra = missing > 0 ? missing : 0;
        }
        w->after[i].offset += extra;
    }
}

/* [batch, channels, windows …], reduced over the taps of each. */
static ir_value *pooled(ir_builder *b, const sliding *s, ir_value *x, ir_opcode op, double padding)
{
    int64_t taps[IR_MAX_SPATIAL];
    ir_dim dims[MDOT_MAX_RANK];
    for (int i = 0; i < s->spatial; i++) taps[i] = 2 + s->spatial + i;
    ir_value *values = windows(b, s, padded(b, s, x, 2, padding), 2);
    ir_value *result = values != NULL ? ir_build_reduce(b, op, values, taps, s->spatial) : NULL;
    if (result == NULL) return NULL;
    for (int d = 0; d < x->type.rank; d++) dims[d] = result->type.dim[d];
    return ir_build_reshape(b, result, dims, x->type.rank);
}

/* Elements per window counted by the mean: the input's, and the padding's if `counted` (NULL: padding does not
 * count). */
static ir_value *counts(ir_builder *b, const sliding *s, const ir_window *counted)
{
    const ir_type *x = &s->node->inputs[0]->type;
    ir_dim dims[MDOT_MAX_RANK] = {ir_dim_number(1), ir_dim_number(1)};
    sliding own_item = *s;
    bool fits = true;
    for (int i = 0; i < s->spatial; i++) {
        dims[2 + i] = x->dim[2 + i];
        if (counted == NULL) continue;
        fits = fits && ir_dim_add(dims[2 + i], counted->before[i], &dims[2 + i]) &&
               ir_dim_add(dims[2 + i], counted->after[i], &dims[2 + i]) &&
               ir_dim_sub(own_item.window.after[i], counted->after[i], &own_item.window.after[i]);
        own_item.window.before[i] = ir_dim_number(0);
    }
    if (!fits) return NULL;
    return pooled(b, &own_item, ir_build_expand(b, ir_build_scalar(b, 1), dims, x->rank), IR_OP_ReduceSum, 0);
}

void ir_expand_max_pool(ir_builder *b, ir_node *node)
{
    sliding s;
    ir_value *x = node->inputs[0];
    if (ir_read_output(node, 1) != NULL || !ir_dtype_is_float(x->type.dtype) || !read_sliding(b, node, NULL, &s))
        return;
    pad_behind(&s);
    ir_replace(b, node->outputs[0], pooled(b, &s, x, IR_OP_ReduceMax, -INFINITY));
}

void ir_expand_average_pool(ir_builder *b, ir_node *node)
{
    sliding s;
    ir_value *x = node->inputs[0];
    double taps = 1;
    if (!read_sliding(b, node, NULL, &s)) return;
    ir_window before = s.window;
    bool counts_padding = ir_node_int(node, "count_include_pad", 0) != 0, pads = false, extended = false;
    pad_behind(&s);
    for (int i = 0; i < s.spatial; i++) {
        taps *= (double)s.window.kernel[i];
        pads = pads || !ir_dim_is(s.window.before[i], 0) || !ir_dim_is(s.window.after[i], 0);
        extended = extended || !ir_dim_equal(s.window.after[i], before.after[i]);
    }
    ir_value *sum = pooled(b, &s, x, IR_OP_ReduceSum, 0);
    if (counts_padding ? extended : pads)
        sum = ir_build_div(b, sum, counts(b, &s, counts_padding ? &before : NULL));
    else
        sum = ir_build_mul(b, sum, ir_build_scalar(b, 1 / taps));
    ir_replace(b, node->outputs[0], sum);
}

void ir_expand_global_pool(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0];
    int64_t axes[MDOT_MAX_RANK];
    bool is_max = ir_node_opcode(node) == IR_OP_GlobalMaxPool;
    for (int d = 2; d < x->type.rank; d++) axes[d - 2] = d;
    ir_replace(b, node->outputs[0],
               ir_build_reduce(b, is_max ? IR_OP_ReduceMax : IR_OP_ReduceMean, x, axes, x->type.rank - 2));
}
