/* expand_conv_transpose.c — rewrites a transposed convolution as convolutions that compute all phases of its stride.
 *
 * Element s·j + r of the result, with stride s and 0 ≤ r < s, is the sum over the taps k with s·q + r = d·k, where d is
 * the dilation, of x[j - q] · w[k]: a convolution whose kernel has every (s / gcd(s, d))-th tap of w, reversed.
 * Neighbouring phases with equally many taps at the same q are filters of one convolution over x. Usually this is one
 * for all phases, because s divides the kernel. Tap counts that differ need several convolutions, because a tap of zero
 * would turn an infinite x into NaN. Then the phases are interleaved, and the padding of the node is cut off. The
 * convolutions are expanded in turn (expand_windows.c).
 */
#include "ir/ops/geometry.h"
#include "ir/passes/pass_rules.h"

typedef struct transposed {
    int spatial;                                    /* number of spatial dimensions */
    int64_t groups, filters, reach[IR_MAX_SPATIAL]; /* reach: inputs from the first to the last that one result reads */
    ir_window window;
    ir_dim batch, out[IR_MAX_SPATIAL];
} transposed;

/* Neighbouring phases of one dimension that one convolution computes. Tap m of phase number p is tap
 * first_tap + p + m · tap_step of the node; it multiplies x[j - delay - m · dilation]. */
typedef struct run {
    int64_t phases, taps, first_tap, tap_step, delay, dilation;
} run;

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

/* The greatest product of strides: each phase may need a separate convolution. */
enum { MAX_PHASES = 4096 };

static int64_t greatest_divisor(int64_t a, int64_t b) { return b == 0 ? a : greatest_divisor(b, a % b); }

/* The phases of dimension `i` computed by one convolution, beginning with `first`. */
static run run_from(const transposed *t, int i, int64_t first)
{
    const int64_t stride = t->window.stride[i], dilation = t->window.dilation[i];
    const int64_t common = greatest_divisor(stride, dilation);
    run whole = {0};
    for (int64_t phase = first; phase < stride; phase++) {
        run one = {.first_tap = 0, .tap_step = stride / common, .dilation = dilation / common};
        while (one.first_tap < one.tap_step && (dilation * one.first_tap - phase) % stride != 0) one.first_tap++;
        if (one.first_tap < one.tap_step && one.first_tap < t->window.kernel[i]) {
            one.taps = (t->window.kernel[i] - 1 - one.first_tap) / one.tap_step + 1;
            one.delay = (dilation * one.first_tap - phase) / stride;
        }
        if (phase == first) whole = one;
        bool follows = one.taps == whole.taps && one.delay == whole.delay &&
                       (one.taps == 0 || one.first_tap == whole.first_tap + phase - first);
        if (!follows) break;
        whole.phases++;
    }
    return whole;
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
    return ir_build_reshape(b, w, dims, 2 + t->spatial);
}

/* A run's taps along a weight axis: the last tap of each phase, then the last but one … */
static ir_value *taps_of(ir_builder *b, const run *r, ir_value *w, int axis)
{
    int64_t count = r->taps * r->phases, *order = ir_build_alloc(b, count, sizeof *order);
    if (order == NULL) return NULL;
    for (int64_t i = 0; i < count; i++)
        order[i] = r->first_tap + i % r->phases + (r->taps - 1 - i / r->phases) * r->tap_step;
    return ir_build_gather(b, w, order, count, axis);
}

/* The convolution's weights for one run per dimension: [filters · phases, C / groups, taps …]. */
static ir_value *run_weights(ir_builder *b, const transposed *t, const run *runs, ir_value *w)
{
    int64_t perm[MDOT_MAX_RANK] = {0}, phases = 1;
    ir_dim dims[MDOT_MAX_RANK];
    for (int i = 0; i < t->spatial; i++) w = taps_of(b, &runs[i], w, 2 + i);
    w = filters_first(b, t, w);
    for (int i = 0; i < t->spatial; i++) w = split_axis(b, w, 2 + 2 * i, runs[i].taps, runs[i].phases);
    if (w == NULL) return NULL;
    perm[1 + t->spatial] = 1;
    for (int i = 0; i < t->spatial; i++) {
        perm[1 + i] = 3 + 2 * i;
        perm[2 + t->spatial + i] = 2 + 2 * i;
        phases *= runs[i].phases;
        dims[2 + i] = ir_dim_number(runs[i].taps);
    }
    dims[0] = ir_dim_number(w->type.dim[0].offset * phases);
    dims[1] = w->type.dim[1];
    w = ir_build_transpose(b, w, perm);
    return w != NULL ? ir_build_reshape(b, w, dims, 2 + t->spatial) : NULL;
}

/* Convolves with one run per dimension: [N, filters, phases …, extents …]. */
static ir_value *convolved(ir_builder *b, const transposed *t, const run *runs, ir_value *x, ir_value *w)
{
    ir_dim dims[MDOT_MAX_RANK] = {t->batch, ir_dim_number(t->groups * t->filters)};
    int64_t pads[2 * IR_MAX_SPATIAL], dilations[IR_MAX_SPATIAL];
    bool has_taps = true;
    for (int i = 0; i < t->spatial; i++) {
        const run *r = &runs[i];
        pads[i] = r->delay + r->dilation * (r->taps - 1);
        pads[t->spatial + i] = t->reach[i] - 1 - r->delay;
        dilations[i] = r->dilation;
        dims[2 + i] = ir_dim_number(r->phases);
        if (!ir_dim_add(x->type.dim[2 + i], ir_dim_number(t->reach[i] - 1), &dims[2 + t->spatial + i])) return NULL;
        has_taps = has_taps && r->taps > 0;
    }
    if (!has_taps) return ir_build_expand(b, ir_build_scalar(b, 0), dims, 2 + 2 * t->spatial);
    ir_value *weights = run_weights(b, t, runs, w);
    ir_value *result = ir_build_with(b, IR_OP_Conv, IR_VALUES(x, weights),
                                     IR_ATTRS(IR_INT("group", t->groups), IR_INTS("pads", pads, 2 * t->spatial),
                                              IR_INTS("dilations", dilations, t->spatial)));
    return result != NULL ? ir_build_reshape(b, result, dims, 2 + 2 * t->spatial) : NULL;
}

/* Convolves with every combination of runs in dimensions `i` and on, given the earlier dimensions' runs. */
static ir_value *all_phases(ir_builder *b, const transposed *t, run *runs, int i, ir_value *x, ir_value *w)
{
    if (i == t->spatial) return convolved(b, t, runs, x, w);
    int64_t stride = t->window.stride[i];
    int count = 0;
    ir_value **parts = ir_build_alloc(b, stride, sizeof(ir_value *));
    for (int64_t phase = 0; parts != NULL && phase < stride; phase += runs[i].phases) {
        runs[i] = run_from(t, i, phase);
        parts[count] = all_phases(b, t, runs, i + 1, x, w);
        if (parts[count++] == NULL) return NULL;
    }
    if (parts == NULL || count == 1) return parts != NULL ? parts[0] : NULL;
    return ir_build_concat(b, 2 + i, parts, count);
}

/* [N, filters, phases …, extents …] → [N, filters, extents · stride …] */
static ir_value *interleaved(ir_builder *b, const transposed *t, ir_value *x)
{
    int64_t perm[MDOT_MAX_RANK] = {0, 1};
    ir_dim merged[MDOT_MAX_RANK] = {t->batch, ir_dim_number(t->groups * t->filters)};
    if (x == NULL) return NULL;
    for (int i = 0; i < t->spatial; i++) {
        ir_dim stride = ir_dim_number(t->window.stride[i]);
        perm[2 + 2 * i] = 2 + t->spatial + i;
        perm[3 + 2 * i] = 2 + i;
        if (!ir_dim_mul(x->type.dim[2 + t->spatial + i], stride, &merged[2 + i])) return NULL;
    }
    x = ir_build_transpose(b, x, perm);
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
    ir_operands args = ir_operands_of_graph(b->graph, node, b->err);
    int64_t kernel[IR_MAX_SPATIAL];
    *t = (transposed){.spatial = x->rank - 2, .groups = ir_node_int(node, "group", 1), .batch = x->dim[0]};
    t->filters = w->dim[1].offset;
    for (int i = 0; i < t->spatial; i++) kernel[i] = w->dim[2 + i].offset;
    b->status = ir_window_read(&args, t->spatial, kernel, &t->window);
    if (b->status == MDOT_OK) b->status = ir_window_unslide(&args, &t->window, x->dim + 2, t->out);
    if (b->status != MDOT_OK || w->dim[0].offset == 0 || t->filters == 0) return false;
    for (int i = 0; i < t->spatial; i++) {
        int64_t last_index = t->window.dilation[i] * (t->window.kernel[i] - 1);
        t->reach[i] = last_index / t->window.stride[i] + 1;
    }
    return true;
}

void ir_expand_conv_transpose(ir_builder *b, ir_node *node)
{
    transposed t;
    if (!read_transposed(b, node, &t)) return;
    if (2 + 2 * t.spatial > MDOT_MAX_RANK) {
        b->status = ir_fail(node, b->err, MDOT_UNSUPPORTED,
                            "a transposed convolution in %d dimensions is unsupported; supported are up to %d",
                            t.spatial, MDOT_MAX_RANK / 2 - 1);
        return;
    }
    int64_t phase_count = 1;
    for (int i = 0; i < t.spatial && phase_count <= MAX_PHASES; i++) phase_count *= t.window.stride[i];
    if (phase_count > MAX_PHASES) {
        b->status = ir_fail(node, b->err, MDOT_UNSUPPORTED,
                            "the strides of a transposed convolution have a product above %d, which is unsupported",
                            MAX_PHASES);
        return;
    }
    run runs[IR_MAX_SPATIAL];
    ir_value *bias = ir_node_input(node, 2), *phases = all_phases(b, &t, runs, 0, node->inputs[0], node->inputs[1]);
    ir_value *result = cut(b, &t, interleaved(b, &t, phases));
    if (bias != NULL && result != NULL) {
        ir_dim dims[MDOT_MAX_RANK] = {bias->type.dim[0]};
        for (int i = 0; i < t.spatial; i++) dims[1 + i] = ir_dim_number(1);
        result = ir_build_add(b, result, ir_build_reshape(b, bias, dims, 1 + t.spatial));
    }
    ir_replace(b, node->outputs[0], result);
}
