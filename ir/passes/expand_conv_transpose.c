/* expand_conv_transpose.c — rewrites a transposed convolution as a convolution that computes all phases of its stride.
 *
 * Element s·j + r of the result, with stride s and 0 ≤ r < s, is the sum over q of x[j - q] · w[s·q + r]: a convolution
 * whose kernel has every s-th tap of w, reversed. Thus the s phases are s times as many filters of one convolution over
 * x, padded by its kernel less one on both sides. Then the phases are interleaved, and the padding of the node is cut
 * off. The convolution is expanded in turn (expand_windows.c), so that no product with an inserted zero is computed.
 * Dilated kernels are first filled with zeros.
 */
#include "ir/ops.h"
#include "ir/ops/window_geometry.h"
#include "ir/passes/expand.h"

typedef struct transposed {
    int spatial; /* number of spatial dimensions */
    int64_t groups, filters, taps[IR_MAX_SPATIAL], phases;
    ir_window window;
    ir_dim batch, out[IR_MAX_SPATIAL];
} transposed;

static int64_t reach(const ir_window *w, int i)
{
    return w->dilation[i] * (w->kernel[i] - 1) + 1;
}

/* Appends zeros behind the elements of one axis. */
static ir_value *lengthened(ir_builder *b, ir_value *x, int axis, int64_t count)
{
    int64_t widths[2 * MDOT_MAX_RANK] = {0};
    if (x == NULL || count == 0) return x;
    widths[x->type.rank + axis] = count;
    ir_value *pads = ir_build_integers(b, widths, 2 * x->type.rank);
    return ir_build_op3(b, IR_OP_Pad, x, pads, ir_build_scalar(b, 0));
}

/* Splits axis `axis` of fixed extent into two. */
static ir_value *split_axis(ir_builder *b, ir_value *x, int axis, int64_t outer, int64_t inner)
{
    ir_dim dims[MDOT_MAX_RANK];
    if (x == NULL) return NULL;
    for (int d = 0; d < x->type.rank; d++) dims[d < axis ? d : d + 1] = x->type.dim[d];
    dims[axis] = ir_dim_number(outer);
    dims[axis + 1] = ir_dim_number(inner);
    return ir_build_reshape(b, x, dims, x->type.rank + 1);
}

/* Sets the taps of a dilated axis apart: w0, w1 becomes w0, 0, w1 with a dilation of 2. */
static ir_value *dense(ir_builder *b, ir_value *w, int axis, int64_t kernel, int64_t dilation)
{
    ir_dim dims[MDOT_MAX_RANK];
    if (w == NULL || dilation == 1) return w;
    ir_value *apart = lengthened(b, split_axis(b, w, axis, kernel, 1), axis + 1, dilation - 1);
    for (int d = 0; d < w->type.rank; d++) dims[d] = w->type.dim[d];
    dims[axis] = ir_dim_number(kernel * dilation);
    apart = apart != NULL ? ir_build_reshape(b, apart, dims, w->type.rank) : NULL;
    return apart != NULL ? ir_build_slice(b, apart, axis, 0, dilation * (kernel - 1) + 1) : NULL;
}

static ir_value *reversed(ir_builder *b, ir_value *w, int axis, int64_t count)
{
    if (w == NULL || count == 1) return w;
    int64_t *order = ir_build_alloc(b, count, sizeof *order);
    for (int64_t i = 0; order != NULL && i < count; i++) order[i] = count - 1 - i;
    ir_value *inputs[] = {w, order != NULL ? ir_build_integers(b, order, (int)count) : NULL};
    if (inputs[1] == NULL) return NULL;
    ir_node *node = ir_build_node(b, IR_OP_Gather, inputs, 2, 1);
    ir_build_set_int(b, node, "axis", axis);
    return ir_build_infer(b, node);
}

/* [C, M / groups, kernel …] → [groups · M / groups, C / groups, kernel …] */
static ir_value *filters_first(ir_builder *b, const transposed *t, ir_value *w)
{
    int64_t perm[MDOT_MAX_RANK] = {0, 2, 1};
    ir_dim dims[MDOT_MAX_RANK];
    if (w == NULL) return NULL;
    int64_t channels = w->type.dim[0].offset / t->groups;
    for (int i = 0; i < t->spatial; i++) {
        perm[3 + i] = 3 + i;
        dims[2 + i] = w->type.dim[2 + i];
    }
    dims[0] = ir_dim_number(t->groups * t->filters);
    dims[1] = ir_dim_number(channels);
    w = ir_build_transpose(b, split_axis(b, w, 0, t->groups, channels), perm);
    return w != NULL ? ir_build_reshape(b, w, dims, 2 + t->spatial) : NULL;
}

/* The weights of the convolution: [filters · phases, C / groups, taps …]. */
static ir_value *phase_weights(ir_builder *b, const transposed *t, ir_value *w)
{
    const ir_window *window = &t->window;
    int64_t perm[MDOT_MAX_RANK] = {0};
    ir_dim dims[MDOT_MAX_RANK];
    for (int i = 0; i < t->spatial; i++) {
        w = dense(b, w, 2 + i, window->kernel[i], window->dilation[i]);
        w = lengthened(b, w, 2 + i, t->taps[i] * window->stride[i] - reach(window, i));
    }
    w = filters_first(b, t, w);
    for (int i = 0; i < t->spatial; i++) {
        w = split_axis(b, w, 2 + 2 * i, t->taps[i], window->stride[i]);
        w = reversed(b, w, 2 + 2 * i, t->taps[i]);
    }
    if (w == NULL) return NULL;
    perm[1 + t->spatial] = 1;
    dims[0] = ir_dim_number(w->type.dim[0].offset * t->phases);
    dims[1] = w->type.dim[1];
    for (int i = 0; i < t->spatial; i++) {
        perm[1 + i] = 3 + 2 * i;
        perm[2 + t->spatial + i] = 2 + 2 * i;
        dims[2 + i] = ir_dim_number(t->taps[i]);
    }
    w = ir_build_transpose(b, w, perm);
    return w != NULL ? ir_build_reshape(b, w, dims, 2 + t->spatial) : NULL;
}

/* [N, filters · phases, extents …] → [N, filters, extents · stride …] */
static ir_value *interleaved(ir_builder *b, const transposed *t, ir_value *x)
{
    int64_t perm[MDOT_MAX_RANK] = {0, 1};
    ir_dim dims[MDOT_MAX_RANK], merged[MDOT_MAX_RANK];
    if (x == NULL) return NULL;
    dims[0] = merged[0] = t->batch;
    dims[1] = merged[1] = ir_dim_number(t->groups * t->filters);
    for (int i = 0; i < t->spatial; i++) {
        ir_dim stride = ir_dim_number(t->window.stride[i]);
        perm[2 + 2 * i] = 2 + t->spatial + i;
        perm[3 + 2 * i] = 2 + i;
        dims[2 + i] = stride;
        dims[2 + t->spatial + i] = x->type.dim[2 + i];
        if (!ir_dim_mul(x->type.dim[2 + i], stride, &merged[2 + i])) return NULL;
    }
    x = ir_build_transpose(b, ir_build_reshape(b, x, dims, 2 + 2 * t->spatial), perm);
    return x != NULL ? ir_build_reshape(b, x, merged, 2 + t->spatial) : NULL;
}

/* Cuts off the padding of every spatial dimension. Zeros are appended where the node's result reaches further. */
static ir_value *cut(ir_builder *b, const transposed *t, ir_value *x)
{
    for (int i = 0; i < t->spatial && x != NULL; i++) {
        int64_t before = t->window.before[i].offset, widths[2 * MDOT_MAX_RANK] = {0};
        ir_dim behind;
        if (!ir_dim_sub(x->type.dim[2 + i], t->out[i], &behind) || !ir_dim_is_number(behind)) return NULL;
        int64_t after = behind.offset - before;
        if (before > 0 || after > 0)
            x = ir_build_slice(b, x, 2 + i, before > 0 ? before : 0, after > 0 ? -after : INT64_MAX);
        if (x == NULL || (before >= 0 && after >= 0)) continue;
        widths[2 + i] = before < 0 ? -before : 0;
        widths[x->type.rank + 2 + i] = after < 0 ? -after : 0;
        ir_value *pads = ir_build_integers(b, widths, 2 * x->type.rank);
        x = ir_build_op3(b, IR_OP_Pad, x, pads, ir_build_scalar(b, 0));
    }
    return x;
}

/* False: inference has failed or fails here, or a dimension is empty. */
static bool read_transposed(ir_builder *b, const ir_node *node, transposed *t)
{
    const ir_type *x = &node->inputs[0]->type, *w = &node->inputs[1]->type;
    ir_operands from = ir_operands_of_graph(b->graph, node, b->err);
    int64_t kernel[IR_MAX_SPATIAL];
    *t = (transposed){.spatial = x->rank - 2, .groups = ir_node_int(node, "group", 1), .batch = x->dim[0], .phases = 1};
    t->filters = w->dim[1].offset;
    for (int i = 0; i < t->spatial; i++) kernel[i] = w->dim[2 + i].offset;
    b->status = ir_window_read(&from, t->spatial, kernel, &t->window);
    if (b->status == MDOT_OK) b->status = ir_window_unslide(&from, &t->window, x->dim + 2, t->out);
    if (b->status != MDOT_OK || w->dim[0].offset == 0 || t->filters == 0) return false;
    for (int i = 0; i < t->spatial; i++) {
        int64_t stride = t->window.stride[i];
        t->taps[i] = (reach(&t->window, i) + stride - 1) / stride;
        t->phases *= stride;
    }
    return true;
}

void ir_expand_conv_transpose(ir_builder *b, ir_node *node)
{
    transposed t;
    int64_t pads[2 * IR_MAX_SPATIAL];
    if (!read_transposed(b, node, &t)) return;
    if (2 + 2 * t.spatial > MDOT_MAX_RANK) {
        b->status = ir_fail(node, b->err, MDOT_UNSUPPORTED,
                            "a transposed convolution in %d dimensions is unsupported; supported are up to %d",
                            t.spatial, MDOT_MAX_RANK / 2 - 1);
        return;
    }
    ir_value *inputs[] = {node->inputs[0], phase_weights(b, &t, node->inputs[1])}, *bias = ir_node_input(node, 2);
    if (inputs[1] == NULL) return;
    for (int i = 0; i < t.spatial; i++) pads[i] = pads[t.spatial + i] = t.taps[i] - 1;
    ir_node *convolution = ir_build_node(b, IR_OP_Conv, inputs, 2, 1);
    ir_build_set_int(b, convolution, "group", t.groups);
    ir_build_set_ints(b, convolution, "pads", pads, 2 * t.spatial);
    ir_value *result = cut(b, &t, interleaved(b, &t, ir_build_infer(b, convolution)));
    if (bias != NULL && result != NULL) {
        ir_dim dims[MDOT_MAX_RANK] = {bias->type.dim[0]};
        for (int i = 0; i < t.spatial; i++) dims[1 + i] = ir_dim_number(1);
        result = ir_build_add(b, result, ir_build_reshape(b, bias, dims, 1 + t.spatial));
    }
    ir_replace(b, node->outputs[0], result);
}
