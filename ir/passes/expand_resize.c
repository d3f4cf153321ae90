/* expand_resize.c — rewrites Resize as one weighted sum along each resized axis.
 *
 *   fixed extents          up to four taps: a Gather for each, times constant weights
 *                          more taps (antialias): a matmul with a constant matrix
 *   the length, times s    element s·i + r takes elements i + k(r), with weights that depend on r alone: slices of the
 *                          input, extended at its edges, are added for each r and interleaved
 *   the length, over k     element i takes elements k·i + first … with the same weights: slices with steps of k of the
 *                          extended input are added
 */
#include "ir/ops/geometry.h"
#include "ir/passes/pass_rules.h"

#include <math.h>
#include <string.h>

enum { MOST_GATHERED = 4, MOST_PHASES = 64, MOST_STRIDED = 64 };

static ir_value *add_numbers(ir_builder *b, const int64_t *dims, int rank, const double *values)
{
    ir_wide *wide = ir_wide_create(b->graph->arena, b->dtype, rank, dims);
    for (int64_t i = 0; wide != NULL && i < wide->count; i++) wide->f[i] = values[i];
    const ir_tensor *tensor = wide != NULL ? ir_tensor_from_wide(b->graph->arena, wide) : NULL;
    if (tensor != NULL) return ir_build_constant(b, b->dtype, dims, rank, tensor->data);
    b->status = BS_OUT_OF_MEMORY(b->err, "%s", b->graph->name);
    return NULL;
}

/* For each result element: the source elements, their weights, and a number to add. */
typedef struct axis_rows {
    int64_t count, taps;
    int64_t *index; /* [tap][element] */
    double *weight; /* [tap][element] */
    double *added;
    bool adds;
} axis_rows;

static bool make_rows(ir_builder *b, const ir_resize *r, const ir_resize_axis *a, axis_rows *out)
{
    int64_t count = a->out.offset, taps = ir_resize_taps(r, a), first;
    axis_rows made = {.count = count, .taps = taps};
    double *own_values = ir_build_alloc(b, taps, sizeof *own_values);
    made.index = ir_build_alloc(b, taps * count, sizeof *made.index);
    made.weight = ir_build_alloc(b, taps * count, sizeof *made.weight);
    made.added = ir_build_alloc(b, count, sizeof *made.added);
    if (own_values == NULL || made.index == NULL || made.weight == NULL || made.added == NULL) return false;
    for (int64_t offset = 0; offset < count; offset++) {
        double position = 0;
        bool inside = ir_resize_position_of(r, a, offset, &position);
        if (inside) ir_resize_weights(r, a, position, &first, own_values);
        made.added[offset] = inside ? 0 : r->extrapolation;
        made.adds = made.adds || !inside;
        for (int64_t t = 0; t < taps; t++) {
            int64_t k = inside ? first + t : 0, last_index = a->in.offset - 1;
            made.index[t * count + offset] = k < 0 ? 0 : k < last_index ? k : last_index;
            made.weight[t * count + offset] = inside ? own_values[t] : 0;
        }
    }
    *out = made;
    return true;
}

/* A vector along `axis`, in this rank. */
static ir_value *along(ir_builder *b, const double *values, int64_t count, int axis, int rank)
{
    int64_t dims[MDOT_MAX_RANK];
    for (int d = 0; d < rank - axis; d++) dims[d] = 1;
    dims[0] = count;
    return add_numbers(b, dims, rank - axis, values);
}

static ir_value *sum_of_gathers(ir_builder *b, const axis_rows *rows, ir_value *x, int axis)
{
    ir_value *sum = NULL;
    int rank = x->type.rank;
    for (int64_t t = 0; t < rows->taps; t++) {
        ir_value *part = ir_build_gather(b, x, rows->index + t * rows->count, rows->count, axis);
        if (rows->taps > 1 || rows->adds)
            part = ir_build_mul(b, part, along(b, rows->weight + t * rows->count, rows->count, axis, rank));
        sum = t == 0 ? part : ir_build_add(b, sum, part);
    }
    return rows->adds ? ir_build_add(b, sum, along(b, rows->added, rows->count, axis, rank)) : sum;
}

static ir_value *product(ir_builder *b, const axis_rows *rows, ir_value *x, int axis)
{
    int64_t perm[MDOT_MAX_RANK], dims[] = {x->type.dim[axis].offset, rows->count};
    int rank = x->type.rank;
    double *matrix = ir_build_alloc(b, dims[0] * dims[1], sizeof *matrix);
    if (matrix == NULL) return NULL;
    memset(matrix, 0, (size_t)(dims[0] * dims[1]) * sizeof *matrix);
    for (int64_t i = 0; i < rows->taps * rows->count; i++)
        matrix[rows->index[i] * rows->count + i % rows->count] += rows->weight[i];
    for (int d = 0; d < rank; d++) perm[d] = d;
    perm[axis] = rank - 1;
    perm[rank - 1] = axis;
    x = ir_build_transpose(b, x, perm);
    x = ir_build_mat_mul(b, x, add_numbers(b, dims, 2, matrix));
    if (rows->adds) x = ir_build_add(b, x, along(b, rows->added, rows->count, rank - 1, rank));
    return ir_build_transpose(b, x, perm);
}

static ir_value *fixed_axis(ir_builder *b, const ir_resize *r, const ir_resize_axis *a, ir_value *x)
{
    axis_rows rows;
    if (a->in.offset == 0 || !make_rows(b, r, a, &rows)) return NULL;
    return rows.taps <= MOST_GATHERED ? sum_of_gathers(b, &rows, x, a->axis) : product(b, &rows, x, a->axis);
}

typedef struct phase {
    int64_t first;
    double weight[MOST_GATHERED];
} phase;

static ir_value *extended(ir_builder *b, ir_value *x, int axis, int64_t before, int64_t after)
{
    int64_t widths[2 * MDOT_MAX_RANK] = {0};
    if (before == 0 && after == 0) return x;
    widths[axis] = before;
    widths[x->type.rank + axis] = after;
    ir_value *pads = ir_build_integers(b, widths, 2 * x->type.rank);
    return ir_build_with(b, IR_OP_Pad, IR_VALUES(x, pads), IR_ATTRS(IR_STRING("mode", "edge")));
}

static ir_value *interleaved(ir_builder *b, const phase *phases, int64_t count, int64_t taps, ir_value *x, int axis)
{
    int64_t before = 0, after = 0;
    ir_value *parts[MOST_PHASES];
    for (int64_t r = 0; r < count; r++) {
        if (-phases[r].first > before) before = -phases[r].first;
        if (phases[r].first + taps - 1 > after) after = phases[r].first + taps - 1;
    }
    ir_value *wide = extended(b, x, axis, before, after);
    for (int64_t r = 0; r < count; r++) {
        ir_value *sum = NULL;
        for (int64_t t = 0; t < taps; t++) {
            int64_t source = before + phases[r].first + t;
            if (taps > 1 && phases[r].weight[t] == 0) continue;
            int64_t behind = before + after - source; /* elements to leave out */
            ir_value *part = wide;
            if (source != 0 || behind != 0)
                part = ir_build_slice(b, wide, axis, source, behind > 0 ? -behind : INT64_MAX);
            if (phases[r].weight[t] != 1) part = ir_build_mul(b, part, ir_build_scalar(b, phases[r].weight[t]));
            sum = sum == NULL ? part : ir_build_add(b, sum, part);
        }
        parts[r] = ir_build_unit_axis(b, sum, axis + 1);
    }
    return ir_build_concat(b, axis + 1, parts, (int)count);
}

/* Fails with a reason, which follows "is resized". */
static ir_value *refuse(ir_builder *b, const ir_node *node, const char *reason)
{
    b->status =
        ir_fail(node, b->err, MDOT_UNSUPPORTED,
                "a dimension that depends on the length is resized %s, which is unsupported; bind the dimension "
                "with --dim, or resize a fixed dimension",
                reason);
    return NULL;
}

/* Positions relative to element i of a long input. */
static ir_resize_axis long_axis(const ir_resize_axis *a, int64_t input, int64_t out)
{
    ir_resize_axis made = *a;
    made.in = ir_dim_number(input);
    made.out = ir_dim_number(out);
    return made;
}

static ir_value *multiplied_axis(ir_builder *b, const ir_resize *r, const ir_resize_axis *a, ir_value *x)
{
    phase phases[MOST_PHASES];
    int64_t count = (int64_t)a->scale, taps = ir_resize_taps(r, a);
    ir_dim dims[MDOT_MAX_RANK];
    ir_resize_axis relative = long_axis(a, 2, 2 * count);
    bool repeats = true;
    for (int64_t k = 0; k < count; k++) {
        double position;
        (void)ir_resize_position_of(r, &relative, k, &position);
        ir_resize_weights(r, &relative, position, &phases[k].first, phases[k].weight);
        repeats = repeats && r->mode == IR_RESIZE_NEAREST && phases[k].first == 0;
    }
    memcpy(dims, x->type.dim, sizeof dims);
    dims[a->axis] = a->out;
    int rank = x->type.rank;
    ir_value *apart;
    if (repeats) {
        ir_dim total[MDOT_MAX_RANK];
        apart = ir_build_unit_axis(b, x, a->axis + 1);
        if (apart == NULL) return NULL;
        memcpy(total, apart->type.dim, sizeof total);
        total[a->axis + 1] = ir_dim_number(count);
        apart = ir_build_expand(b, apart, total, rank + 1);
    } else {
        apart = interleaved(b, phases, count, taps, x, a->axis);
    }
    return apart != NULL ? ir_build_reshape(b, apart, dims, rank) : NULL;
}

/* Every k-th element from `source` on, as many as the result has: the last one is before the last k - 1 elements of the
 * axis before it was extended. */
static ir_value *strided(ir_builder *b, ir_value *extended, int axis, int64_t source, int64_t behind, int64_t k)
{
    int64_t along = axis, target = behind > 0 ? -behind : INT64_MAX;
    ir_value *inputs[] = {extended, ir_build_integers(b, &source, 1), ir_build_integers(b, &target, 1),
                          ir_build_integers(b, &along, 1), ir_build_integers(b, &k, 1)};
    return ir_build_with(b, IR_OP_Slice, inputs, 5, IR_NO_ATTRS);
}

static ir_value *divided_axis(ir_builder *b, const ir_resize *r, const ir_resize_axis *a, ir_value *x)
{
    int64_t k = ir_resize_divisor(a), taps = ir_resize_taps(r, a), first;
    double weights[MOST_STRIDED], position;
    ir_resize_axis relative = long_axis(a, 4 * k, 4);
    (void)ir_resize_position_of(r, &relative, 0, &position);
    ir_resize_weights(r, &relative, position, &first, weights);
    while (taps > 1 && weights[taps - 1] == 0) taps--; /* `linear`'s tent ends in the middle of the last taps */
    int64_t before = first < 0 ? -first : 0, after = first + taps > k ? first + taps - k : 0;
    ir_value *wide = extended(b, x, a->axis, before, after), *sum = NULL;
    for (int64_t t = 0; t < taps; t++) {
        if (weights[t] == 0) continue;
        int64_t source = before + first + t;
        ir_value *part = strided(b, wide, a->axis, source, before + after + k - 1 - source, k);
        if (weights[t] != 1) part = ir_build_mul(b, part, ir_build_scalar(b, weights[t]));
        sum = sum == NULL ? part : ir_build_add(b, sum, part);
    }
    return sum;
}

static ir_value *symbolic_axis(ir_builder *b, const ir_node *node, const ir_resize *r, const ir_resize_axis *a,
                               ir_value *x)
{
    int64_t divisor = ir_resize_divisor(a), taps = ir_resize_taps(r, a);
    bool is_multiple = a->scale == floor(a->scale) && a->scale >= 1 && a->scale <= MOST_PHASES;
    bool corners = r->position == IR_RESIZE_ALIGN_CORNERS || r->position == IR_RESIZE_CROP;
    if (!is_multiple && divisor == 0) return refuse(b, node, "by anything but k or 1/k for a whole number k up to 64");
    if (corners) return refuse(b, node, "with align_corners or tf_crop_and_resize");
    if (r->exclude_outside) return refuse(b, node, "with exclude_outside");
    if (divisor > MOST_PHASES || taps > MOST_STRIDED)
        return refuse(b, node, "by 1/k for k above 64, or as a sum of more than 64 elements");
    if (divisor > 0 && r->position == IR_RESIZE_HALF_PIXEL_SYMMETRIC)
        return refuse(b, node, "by 1/k with half_pixel_symmetric, whose positions depend on the remainder");
    if (divisor > 0) return divided_axis(b, r, a, x);
    if (x->type.rank == MDOT_MAX_RANK) return refuse(b, node, "in a tensor of the highest rank");
    return multiplied_axis(b, r, a, x);
}

void ir_expand_resize(ir_builder *b, ir_node *node)
{
    ir_resize r;
    ir_type type;
    ir_value *x = node->inputs[0];
    ir_operands args = ir_operands_of_graph(b->graph, node, b->err);
    b->status = ir_resize_read(&args, &r, &type);
    if (b->status != MDOT_OK) return;
    bool sums = r.mode != IR_RESIZE_NEAREST || r.position == IR_RESIZE_CROP;
    if (sums && !ir_dtype_is_float(x->type.dtype)) {
        b->status = ir_fail(node, b->err, MDOT_UNSUPPORTED,
                            "integers can be resized in mode nearest only; cast them to floats first");
        return;
    }
    for (int i = 0; i < r.count && x != NULL; i++) {
        const ir_resize_axis *a = &r.axes[i];
        if (ir_resize_keeps(&r, a)) continue;
        bool fixed = ir_dim_is_number(a->in) && ir_dim_is_number(a->out);
        x = fixed ? fixed_axis(b, &r, a, x) : symbolic_axis(b, node, &r, a, x);
    }
    ir_replace(b, node->outputs[0], x);
}
