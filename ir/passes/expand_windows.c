/* expand_windows.c — rewrites convolutions and poolings as sliding windows (mdot.Windows) and a computation on each.
 *
 *   Conv, one group     channels last; adjacent windows are the rows of an mdot.Linear
 *   Conv of images      the sum of one mdot.Linear per row of the kernel (see "Convolution along one long row")
 *   Conv by channel     Σ windows · weights, a reduction
 *   Conv of groups      one of the first kind per group
 *   pooling             the maximum or the mean of each window
 *
 * The rows of linears are overlapping parts of the padded input, so that nothing is copied, except where strides or
 * short rows forbid it. Behind the matmul, channels return to the front; sink_transposes.c cancels this order against
 * the one before it.
 */
#include "ir/ops.h"
#include "ir/ops/window_geometry.h"
#include "ir/passes/expand.h"

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
    ir_operands from = ir_operands_of_graph(b->graph, node, b->err);
    *s = (sliding){.node = node, .spatial = x->rank - 2, .batch = x->dim[0]};
    b->status = ir_window_read(&from, s->spatial, kernel, &s->window);
    if (b->status == MDOT_OK) b->status = ir_window_slide(&from, &s->window, x->dim + 2, s->out);
    return b->status == MDOT_OK;
}

/* Pads the spatial dimensions of x, which begin at `first`, with `value`. */
static ir_value *padded(ir_builder *b, const sliding *s, ir_value *x, int first, double value)
{
    ir_dim pads[2 * MDOT_MAX_RANK] = {{0}};
    bool any = false;
    if (x == NULL) return NULL;
    for (int i = 0; i < s->spatial; i++) {
        pads[first + i] = s->window.before[i];
        pads[x->type.rank + first + i] = s->window.after[i];
        any = any || !ir_dim_is(s->window.before[i], 0) || !ir_dim_is(s->window.after[i], 0);
    }
    if (!any) return x;
    ir_value *widths = ir_build_dims(b, pads, 2 * x->type.rank);
    return ir_build_op3(b, IR_OP_Pad, x, widths, ir_build_scalar(b, value));
}

/* Elements from … from + count along an axis. */
static ir_value *part(ir_builder *b, ir_value *x, int axis, ir_dim from, ir_dim count)
{
    ir_dim end;
    if (x == NULL || !ir_dim_add(from, count, &end)) return NULL;
    if (ir_dim_is(from, 0) && ir_dim_equal(x->type.dim[axis], count)) return x;
    ir_value *inputs[] = {x, NULL, NULL, ir_build_integers(b, &(int64_t){axis}, 1)};
    inputs[1] = ir_build_dims(b, &from, 1);
    inputs[2] = ir_build_dims(b, &end, 1);
    for (int i = 1; i < 4; i++)
        if (inputs[i] == NULL) return NULL;
    return ir_build_infer(b, ir_build_node(b, IR_OP_Slice, inputs, 4, 1));
}

static ir_value *leading(ir_builder *b, ir_value *x, int axis, ir_dim count)
{
    return part(b, x, axis, ir_dim_number(0), count);
}

/* The windows along spatial dimension `i`, which is `axis` of x. */
static ir_value *along(ir_builder *b, const sliding *s, int i, ir_value *x, int axis)
{
    const ir_window *w = &s->window;
    ir_dim dims[MDOT_MAX_RANK];
    if (x == NULL) return NULL;
    if (w->kernel[i] == 1 && w->stride[i] == 1) {
        for (int d = 0; d < x->type.rank; d++) dims[d <= axis ? d : d + 1] = x->type.dim[d];
        dims[axis + 1] = ir_dim_number(1);
        return ir_build_reshape(b, x, dims, x->type.rank + 1);
    }
    ir_node *node = ir_build_node(b, IR_OP_Windows, &x, 1, 1);
    ir_build_set_int(b, node, "axis", axis);
    ir_build_set_int(b, node, "size", w->kernel[i]);
    ir_build_set_int(b, node, "stride", w->stride[i]);
    ir_build_set_int(b, node, "dilation", w->dilation[i]);
    return leading(b, ir_build_infer(b, node), axis, s->out[i]);
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
    ir_dim all[MDOT_MAX_RANK] = {s->batch};
    for (int i = 0; i < s->spatial; i++) all[1 + i] = s->out[i];
    for (int i = 0; i < count; i++) all[1 + s->spatial + i] = ir_dim_number(dims[i]);
    return ir_build_reshape(b, x, all, 1 + s->spatial + count);
}

/* ---- Convolution ------------------------------------------------------------------------------------------------- */

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
    if (operands[0] == NULL || operands[1] == NULL) return NULL;
    return ir_build_infer(b, ir_build_node(b, IR_OP_Linear, operands, bias != NULL ? 3 : 2, 1));
}

/* ---- Convolution along one long row ------------------------------------------------------------------------------ */

/* Windows overlap in memory only within a row and without dilation. To read others in place, too, the rows of the
 * padded image follow each other as one long row, whose windows include some that begin in one row and end in the next:
 *
 *     0 a b c 0 d e f 0              rows abc and def, padded by 1 on both sides; one zero serves two rows
 *     [0 a b] [a b c] [b c 0] [c 0 d] [0 d e] …      the fourth window is computed and cut off
 *
 * Each run of taps that are adjacent in memory (a row of the kernel or, with dilation, a single tap) then is an
 * mdot.Linear over windows of this long row, from the run's place in it on. Its sum continues that of the run before,
 * as in one long linear. The images of a batch follow each other in the same way, with rows of zeros between them. A
 * convolution of one dimension is one of images with a single row. */
typedef struct long_row {
    int64_t kernel[2], dilation[2], run; /* taps and their distances along height and width; taps of a run */
    ir_dim image[4], pads[8], padded[4]; /* [batch, height, width, channels], and the same with zeros */
    ir_dim positions;                    /* of the padded images: batch * height * width */
    ir_dim out[4];                       /* [batch, height, width, filters] with the windows that are cut off */
    ir_dim windows;                      /* batch * height * width of these */
} long_row;

/* The choice must be the same in every bucket, because the bits of the result depend on it. It assumes one length for
 * the costs, and the shortest one for the number of zeros. */
enum { TYPICAL_LENGTH = 32, SHORTEST_LENGTH = 1 };

/* A window that is cut off is multiplied with all filters. By measurement, copying windows costs as much as an eighth
 * of their products, and as eight more filters. */
static bool saves_time(const convolution *c, const long_row *r)
{
    enum { PRODUCTS_PER_COPY = 8, FILTERS_PER_COPY = 8 };
    double useful = (double)ir_dim_at(c->s.batch, TYPICAL_LENGTH), filters = (double)c->filters;
    for (int i = 0; i < c->s.spatial; i++) useful *= (double)ir_dim_at(c->s.out[i], TYPICAL_LENGTH);
    double surplus = (double)ir_dim_at(r->windows, TYPICAL_LENGTH) - useful;
    return surplus * filters <= useful * (filters / PRODUCTS_PER_COPY + FILTERS_PER_COPY);
}

static bool multiply(const ir_dim *dims, int count, ir_dim *out)
{
    *out = ir_dim_number(1);
    for (int i = 0; i < count; i++)
        if (!ir_dim_mul(*out, dims[i], out)) return false;
    return true;
}

static int64_t quotient_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static bool pad(long_row *r, int axis, int64_t before, int64_t after)
{
    r->pads[axis] = ir_dim_number(before);
    r->pads[4 + axis] = ir_dim_number(after);
    return ir_dim_add(r->image[axis], ir_dim_number(before + after), &r->padded[axis]);
}

/* Pads an axis by zeros that serve the end of one row or image and the start of the next. */
static bool pad_between(long_row *r, int axis, int64_t before, int64_t after)
{
    return pad(r, axis, before, after > before ? after - before : 0);
}

/* Reads the geometry as that of images. False: the windows are strided, or in place already. */
static bool read_images(const convolution *c, const ir_value *x, long_row *r, int64_t *out_before, int64_t *out_after)
{
    const ir_window *w = &c->s.window;
    if (c->s.spatial > 2) return false;
    *r = (long_row){.kernel = {1, 1}, .dilation = {1, 1}};
    for (int i = 0; i < 2; i++) {
        int d = i - 2 + c->s.spatial;
        r->image[1 + i] = r->out[1 + i] = ir_dim_number(1);
        out_before[i] = out_after[i] = 0;
        if (d < 0) continue;
        if (w->stride[d] != 1 || !ir_dim_is_number(w->before[d]) || !ir_dim_is_number(w->after[d])) return false;
        r->kernel[i] = w->kernel[d];
        r->dilation[i] = w->dilation[d];
        r->image[1 + i] = x->type.dim[1 + d];
        r->out[1 + i] = c->s.out[d];
        out_before[i] = w->before[d].offset;
        out_after[i] = w->after[d].offset;
        int64_t reach = (w->kernel[d] - 1) * w->dilation[d]; /* wider padding has windows of zeros alone */
        if (out_before[i] < 0 || out_after[i] < 0 || reach < out_before[i] || reach < out_after[i]) return false;
    }
    r->image[0] = r->out[0] = c->s.batch;
    r->image[3] = r->padded[3] = x->type.dim[c->s.spatial + 1];
    r->out[3] = ir_dim_number(c->filters);
    r->run = r->dilation[1] == 1 ? r->kernel[1] : 1;
    bool one_row = ir_dim_is(c->s.batch, 1) && ir_dim_is(r->out[1], 1) && r->kernel[0] == 1;
    return c->taps > 1 && !(one_row && r->run == r->kernel[1]);
}

/* False: the windows are copied, or need no copy. */
static bool find_long_row(const convolution *c, const ir_value *x, long_row *out)
{
    int64_t before[2], after[2];
    long_row r;
    if (!read_images(c, x, &r, before, after)) return false;
    bool one_image = ir_dim_is(r.out[0], 1), one_row = one_image && ir_dim_is(r.out[1], 1);
    int64_t reach = (r.kernel[0] - 1) * r.dilation[0], aside = (r.kernel[1] - 1) * r.dilation[1];
    bool fits = one_row ? pad(&r, 2, before[1], after[1]) : pad_between(&r, 2, before[1], after[1]);
    int64_t width = fits ? ir_dim_at(r.padded[2], SHORTEST_LENGTH) : 0;
    if (width < 1) return false;
    if (!one_row) r.out[2] = r.padded[2];
    int64_t beyond = one_row ? 0 : quotient_up(aside, width); /* rows of zeros, in which the last windows end */
    r.padded[0] = r.image[0];
    if (one_image) {
        if (!pad(&r, 1, before[0], after[0] + beyond)) return false;
    } else {
        int64_t height = pad_between(&r, 1, before[0], after[0]) ? ir_dim_at(r.padded[1], SHORTEST_LENGTH) : 0;
        if (height < 1 || !pad(&r, 0, 0, quotient_up(reach + beyond, height))) return false;
        r.out[1] = r.padded[1];
    }
    if (!multiply(r.padded, 3, &r.positions) || !multiply(r.out, 3, &r.windows) || !saves_time(c, &r)) return false;
    *out = r;
    return true;
}

/* The windows of a run of taps, from position y of the kernel's height and x of its width on. */
static ir_value *windows_of_run(ir_builder *b, const long_row *r, ir_value *positions, int64_t y, int64_t x)
{
    ir_dim from, count = r->windows, dims[2] = {r->windows};
    count.offset += r->run - 1;
    if (!ir_dim_mul(r->padded[2], ir_dim_number(y * r->dilation[0]), &from) ||
        !ir_dim_mul(r->padded[3], ir_dim_number(r->run), &dims[1]))
        return NULL;
    from.offset += x * r->dilation[1];
    ir_value *run = part(b, positions, 0, from, count);
    if (run == NULL || r->run == 1) return run;
    ir_node *node = ir_build_node(b, IR_OP_Windows, &run, 1, 1);
    ir_build_set_int(b, node, "axis", 0);
    ir_build_set_int(b, node, "size", r->run);
    return ir_build_reshape(b, ir_build_infer(b, node), dims, 2);
}

/* x [batch, spatial dimensions …, channels] → [batch, windows …, filters] */
static ir_value *along_long_row(ir_builder *b, const convolution *c, const long_row *r, ir_value *x, ir_value *weights,
                                ir_value *bias)
{
    int64_t factors = r->run * c->channels, first = 0;
    ir_dim flat[] = {r->positions, r->padded[3]}, dims[] = {ir_dim_number(c->taps * c->channels), r->out[3]};
    ir_value *sum = NULL, *widths = ir_build_dims(b, r->pads, 8);
    x = ir_build_reshape(b, x, r->image, 4);
    x = ir_build_reshape(b, ir_build_op3(b, IR_OP_Pad, x, widths, ir_build_scalar(b, 0)), flat, 2);
    weights = ir_build_reshape(b, weights_last(b, c, weights), dims, 2);
    for (int64_t tap = 0; tap < c->taps; tap += r->run, first += factors) {
        ir_value *operands[] = {windows_of_run(b, r, x, tap / r->kernel[1], tap % r->kernel[1]), NULL, bias};
        operands[1] = ir_build_slice(b, weights, 0, first, first + factors);
        if (operands[0] == NULL || operands[1] == NULL) return NULL;
        int count = tap == 0 && bias != NULL ? 3 : 2;
        ir_value *product = ir_build_infer(b, ir_build_node(b, IR_OP_Linear, operands, count, 1));
        sum = sum != NULL ? ir_build_add(b, sum, product) : product;
    }
    sum = ir_build_reshape(b, sum, r->out, 4);
    int unused = 2 - c->s.spatial;
    for (int i = unused; i < 2; i++) sum = leading(b, sum, 1 + i, c->s.out[i - unused]);
    return reshaped(b, &c->s, sum, &c->filters, 1);
}

/* ---- Convolution of groups --------------------------------------------------------------------------------------- */

static ir_value *each_group(ir_builder *b, const convolution *c, ir_value *x, ir_value *weights, ir_value *bias)
{
    ir_value **parts = ir_build_alloc(b, c->groups, sizeof *parts);
    for (int64_t g = 0; parts != NULL && g < c->groups; g++) {
        int64_t in = g * c->channels, out = g * c->filters;
        ir_value *own = ir_build_slice(b, weights, 0, out, out + c->filters);
        ir_value *added = bias != NULL ? ir_build_slice(b, bias, 0, out, out + c->filters) : NULL;
        parts[g] = linear(b, c, ir_build_slice(b, x, 1 + c->s.spatial, in, in + c->channels), own, added);
    }
    return parts != NULL ? ir_build_concat(b, 1 + c->s.spatial, parts, (int)c->groups) : NULL;
}

/* Convolves every channel separately, giving `filters` results: [batch, windows …, taps …, channel, filter], summed
 * over taps. */
static ir_value *each_channel(ir_builder *b, const convolution *c, ir_value *x, ir_value *weights, ir_value *bias)
{
    int64_t perm[MDOT_MAX_RANK], taps[IR_MAX_SPATIAL], last = c->groups * c->filters;
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
    for (int d = 0; d < x->type.rank; d++) dims[d] = x->type.dim[d];
    dims[x->type.rank] = ir_dim_number(1);
    ir_value *products = ir_build_mul(b, ir_build_reshape(b, x, dims, x->type.rank + 1), weights);
    ir_value *sum = products != NULL ? ir_build_reduce(b, IR_OP_ReduceSum, products, taps, spatial) : NULL;
    sum = reshaped(b, &c->s, sum, &last, 1);
    return bias != NULL ? ir_build_add(b, sum, bias) : sum;
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
    ir_value *x = channels_last(b, &c.s, node->inputs[0]), *bias = ir_node_input(node, 2), *result;
    long_row row;
    if (x == NULL) return;
    bool is_linear = c.groups == 1 && node->inputs[1]->constant != NULL && x->type.dtype == MDOT_DTYPE_F32;
    if (is_linear && find_long_row(&c, x, &row)) {
        ir_replace(b, node->outputs[0], channels_first(b, &c.s, along_long_row(b, &c, &row, x, node->inputs[1], bias)));
        return;
    }
    x = padded(b, &c.s, x, 1, 0);
    if (c.groups == 1)
        result = linear(b, &c, x, node->inputs[1], bias);
    else if (c.channels == 1)
        result = each_channel(b, &c, x, node->inputs[1], bias);
    else
        result = each_group(b, &c, x, node->inputs[1], bias);
    ir_replace(b, node->outputs[0], channels_first(b, &c.s, result));
}

/* ---- Pooling ----------------------------------------------------------------------------------------------------- */

/* Extends the padding, because the last window may reach beyond it (ceil_mode), by less than a stride. Windows that
 * begin in the extension are cut off. */
static void pad_behind(sliding *s)
{
    const ir_type *x = &s->node->inputs[0]->type;
    ir_window *w = &s->window;
    for (int i = 0; i < s->spatial && ir_node_int(s->node, "ceil_mode", 0) != 0; i++) {
        ir_dim in = x->dim[2 + i];
        int64_t extra = w->stride[i] - 1;
        if (ir_dim_is_number(in)) {
            int64_t reach = (s->out[i].offset - 1) * w->stride[i] + w->dilation[i] * (w->kernel[i] - 1) + 1;
            int64_t missing = reach - in.offset - w->before[i].offset - w->after[i].offset;
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

/* The number of elements in each window that the mean counts: those of the input, and those of the padding `counted`
 * (NULL: padding does not count). */
static ir_value *counts(ir_builder *b, const sliding *s, const ir_window *counted)
{
    const ir_type *x = &s->node->inputs[0]->type;
    ir_dim dims[MDOT_MAX_RANK] = {ir_dim_number(1), ir_dim_number(1)};
    sliding own = *s;
    bool fits = true;
    for (int i = 0; i < s->spatial; i++) {
        dims[2 + i] = x->dim[2 + i];
        if (counted == NULL) continue;
        fits = fits && ir_dim_add(dims[2 + i], counted->before[i], &dims[2 + i]) &&
               ir_dim_add(dims[2 + i], counted->after[i], &dims[2 + i]) &&
               ir_dim_sub(own.window.after[i], counted->after[i], &own.window.after[i]);
        own.window.before[i] = ir_dim_number(0);
    }
    if (!fits) return NULL;
    return pooled(b, &own, ir_build_expand(b, ir_build_scalar(b, 1), dims, x->rank), IR_OP_ReduceSum, 0);
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
