/* resize.c — Resize and GridSample: feature maps sampled at other positions. GridSample has shape and cost only.
 *
 * Resize follows ONNX's reference implementation, also where ONNX Runtime differs: with align_corners the length that
 * corners are aligned to is scale · extent, which need not be whole.
 */
#include "ir/ops/geometry.h"

#include "ir/ops/operands.h"

#include <math.h>
#include <string.h>

enum { REGION = 1, SCALES = 2, SIZES = 3 }; /* inputs */

static bool is_given(const ir_operands *args, int input)
{
    if (!ir_operand_given(args, input)) return false;
    ir_type type = ir_operand_type(args, input);
    return ir_type_count_at(&type, 1) != 0; /* an absent input used to be an empty tensor */
}

/* A constant input's floats: one for each of `count`. */
static mdot_status read_floats(const ir_operands *args, int input, const char *what, int count, double *out)
{
    const ir_tensor *constant = args->tensors == NULL ? args->node->inputs[input]->constant : NULL;
    const ir_wide *wide = args->tensors != NULL ? args->tensors[input] : NULL;
    if (wide == NULL && (constant == NULL || constant->data == NULL))
        return ir_unsupported(args, "the %s depend on data", what);
    bool is_float = ir_dtype_is_float(wide != NULL ? wide->dtype : constant->dtype);
    int64_t found = wide != NULL ? wide->count : constant->count;
    if (!is_float || found != count)
        return ir_malformed(args, "%lld %s for %d dimensions", (long long)found, what, count);
    for (int i = 0; i < count; i++) out[i] = wide != NULL ? wide->f[i] : ir_tensor_real(constant, i);
    return MDOT_OK;
}

/* Scales are f32, and 1/3 is not exact there. */
int64_t ir_resize_divisor(const ir_resize_axis *a)
{
    double divisor = a->scale > 0 && a->scale < 1 ? nearbyint(1 / a->scale) : 0;
    return divisor > 0 && (float)(1 / divisor) == (float)a->scale ? (int64_t)divisor : 0;
}

/* A length scaled by 1/k must leave an element, and two if a single one would have another position. */
static mdot_status need_elements(const ir_operands *args, const ir_resize *r, ir_dim out)
{
    int minimum = r->position == IR_RESIZE_PYTORCH_HALF_PIXEL ? 2 : 1;
    char text[IR_DIM_TEXT_BYTES];
    if (ir_dim_always_le(args->graph, ir_dim_number(minimum), out)) return MDOT_OK;
    return ir_unsupported(args, "the result has %s elements, of which it needs %d%s",
                          ir_dim_text(out, args->graph->symbol, text, sizeof text), minimum,
                          minimum == 2 ? ", because pytorch_half_pixel gives a single one another position" : "");
}

static mdot_status scale_dim(const ir_operands *args, const ir_resize *r, ir_resize_axis *a)
{
    double scale = a->scale;
    int64_t divisor = ir_resize_divisor(a);
    if (!(scale >= 1e-6) || scale > 1e6)
        return ir_malformed(args, "the scale %g is outside of the range from 1e-6 to 1e6", scale);
    if (ir_dim_is_number(a->in)) {
        /* f32 scales such as 0.7 are slightly below the intended value. */
        double extent = floor((double)a->in.offset * scale + 1e-4);
        if (divisor > 0) extent = (double)(a->in.offset / divisor);
        if (extent >= 0x1p63)
            return ir_malformed(args, "%lld elements scaled by %g overflow", (long long)a->in.offset, scale);
        a->out = ir_dim_number((int64_t)extent);
        return MDOT_OK;
    }
    if (scale == floor(scale) && ir_dim_mul(a->in, ir_dim_number((int64_t)scale), &a->out)) return MDOT_OK;
    if (divisor > 0 && ir_dim_div_floor(args->graph, a->in, divisor, &a->out)) return need_elements(args, r, a->out);
    return ir_unsupported(args, "a symbolic dimension is scaled by %g; supported are whole numbers k and 1/k", scale);
}

/* The factor between two extents; 0 if it depends on the length. */
static double scale_between(ir_dim input, ir_dim out)
{
    ir_dim factor;
    if (ir_dim_equal(input, out)) return 1;
    if (ir_dim_is_number(input) && ir_dim_is_number(out)) return (double)out.offset / (double)input.offset;
    return ir_dim_div_exact(out, input, &factor) && ir_dim_is_number(factor) ? (double)factor.offset : 0;
}

/* One scale for all axes: the least or the largest of those that the sizes ask for. */
static mdot_status keep_aspect_ratio(const ir_operands *args, ir_resize *r, bool is_larger)
{
    double scale = is_larger ? 0 : INFINITY;
    for (int i = 0; i < r->count; i++) {
        const ir_resize_axis *a = &r->axes[i];
        if (!ir_dim_is_number(a->in) || !ir_dim_is_number(a->out) || a->in.offset == 0)
            return ir_unsupported(args, "sizes that keep the aspect ratio must be fixed, as the resized dimensions");
        scale = is_larger ? fmax(scale, a->scale) : fmin(scale, a->scale);
    }
    for (int i = 0; i < r->count; i++) {
        r->axes[i].scale = scale;
        r->axes[i].out =
            ir_dim_number(ir_float_to_integer(MDOT_DTYPE_I64, floor(scale * (double)r->axes[i].in.offset + .5)));
    }
    return MDOT_OK;
}

static mdot_status read_sizes(const ir_operands *args, ir_resize *r)
{
    ir_dim sizes[IR_MAX_KNOWN];
    int count;
    const char *policy = ir_node_string(args->node, "keep_aspect_ratio_policy", "stretch");
    bool is_larger = strcmp(policy, "not_smaller") == 0, keeps = is_larger || strcmp(policy, "not_larger") == 0;
    BS_TRY(ir_operand_dims(args, SIZES, "sizes", sizes, &count));
    if (count != r->count) return ir_malformed(args, "%d sizes for %d dimensions", count, r->count);
    if (!keeps && strcmp(policy, "stretch") != 0)
        return ir_malformed(args, "the keep_aspect_ratio_policy \"%s\" is unknown", policy);
    for (int i = 0; i < count; i++) {
        r->axes[i].out = sizes[i];
        r->axes[i].scale = scale_between(r->axes[i].in, sizes[i]);
    }
    return keeps ? keep_aspect_ratio(args, r, is_larger) : MDOT_OK;
}

static mdot_status read_scales(const ir_operands *args, ir_resize *r)
{
    double scales[MDOT_MAX_RANK];
    mdot_status status = read_floats(args, SCALES, "scales", r->count, scales);
    for (int i = 0; i < r->count && status == MDOT_OK; i++) {
        r->axes[i].scale = scales[i];
        status = scale_dim(args, r, &r->axes[i]);
    }
    return status;
}

static mdot_status read_region(const ir_operands *args, ir_resize *r)
{
    double region[2 * MDOT_MAX_RANK];
    for (int i = 0; i < r->count; i++) r->axes[i].end = 1;
    if (r->position != IR_RESIZE_CROP) return MDOT_OK;
    if (!is_given(args, REGION)) return ir_malformed(args, "tf_crop_and_resize requires a region");
    mdot_status status = read_floats(args, REGION, "bounds of the region", 2 * r->count, region);
    for (int i = 0; i < r->count && status == MDOT_OK; i++) {
        r->axes[i].start = region[i];
        r->axes[i].end = region[r->count + i];
    }
    return status;
}

static mdot_status read_attributes(const ir_operands *args, ir_resize *r)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const positions[] = {"half_pixel", "pytorch_half_pixel", "half_pixel_symmetric", "align_corners",
                                            "asymmetric", "tf_crop_and_resize", "tf_half_pixel_for_nn"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
    int mode = 0, position = 0, rounding = 0;
    mdot_status status = ir_operand_choice(args, "mode", modes, 3, &mode);
    if (status == MDOT_OK) status = ir_operand_choice(args, "coordinate_transformation_mode", positions, 7, &position);
    if (status == MDOT_OK) status = ir_operand_choice(args, "nearest_mode", roundings, 4, &rounding);
    r->mode = (ir_resize_mode)mode;
    r->position = (ir_resize_position)position;
    r->rounding = (ir_resize_rounding)rounding;
    r->cubic_a = ir_node_float(args->node, "cubic_coeff_a", -0.75);
    r->extrapolation = ir_node_float(args->node, "extrapolation_value", 0);
    r->exclude_outside = ir_node_int(args->node, "exclude_outside", 0) != 0 && mode != IR_RESIZE_NEAREST;
    r->antialias = ir_node_int(args->node, "antialias", 0) != 0 && mode != IR_RESIZE_NEAREST;
    return status;
}

/* Everything but the region, which leaves the shape as it is. */
static mdot_status read_shape(const ir_operands *args, ir_resize *out_resize, ir_type *out_type)
{
    ir_resize r = {0};
    ir_type type = ir_operand_type(args, 0);
    const ir_attr *attr = ir_node_ints(args->node, "axes");
    BS_TRY(read_attributes(args, &r));
    r.count = attr != NULL && attr->count <= type.rank ? attr->count : type.rank;
    for (int i = 0; i < r.count; i++) {
        r.axes[i].axis = i;
        if (r.count != type.rank || attr != NULL)
            BS_TRY(ir_normalize_axis(args->node, attr->ints[i], type.rank, &r.axes[i].axis, args->err));
        r.axes[i].in = type.dim[r.axes[i].axis];
    }
    if (!is_given(args, SIZES) && !is_given(args, SCALES)) return ir_malformed(args, "scales or sizes are required");
    BS_TRY(is_given(args, SIZES) ? read_sizes(args, &r) : read_scales(args, &r));
    for (int i = 0; i < r.count; i++) type.dim[r.axes[i].axis] = r.axes[i].out;
    *out_resize = r;
    *out_type = type;
    return MDOT_OK;
}

mdot_status ir_resize_read(const ir_operands *args, ir_resize *out_resize, ir_type *out_type)
{
    BS_TRY(read_shape(args, out_resize, out_type));
    return read_region(args, out_resize);
}

mdot_status ir_result_resize(const ir_operands *args, ir_type *out_type)
{
    ir_resize r;
    return read_shape(args, &r, out_type);
}

bool ir_resize_keeps(const ir_resize *r, const ir_resize_axis *a)
{
    bool whole = r->position != IR_RESIZE_CROP || (a->start == 0 && a->end == 1);
    return whole && ir_dim_equal(a->in, a->out) && a->scale == 1;
}

static double shrinking(const ir_resize *r, const ir_resize_axis *a)
{
    return r->antialias && a->scale < 1 ? a->scale : 1;
}

int64_t ir_resize_taps(const ir_resize *r, const ir_resize_axis *a)
{
    int reach = r->mode == IR_RESIZE_CUBIC ? 2 : 1;
    return r->mode == IR_RESIZE_NEAREST ? 1 : 2 * -(int64_t)floor(-reach / shrinking(r, a));
}

/* In f32, as ONNX Runtime does, because scales are f32: 3.5 / 0.7 is 5 there, and a little more in f64. A scale of 1/k
 * multiplies by k, so positions have the same fraction everywhere. */
bool ir_resize_position_of(const ir_resize *r, const ir_resize_axis *a, int64_t offset, double *out_position)
{
    float x = (float)offset, input = (float)a->in.offset, scale = (float)a->scale, length = scale * input;
    float divisor = (float)ir_resize_divisor(a), times = x * divisor, half_times = (x + .5F) * divisor;
    if (divisor == 0) {
        times = x / scale;
        half_times = (x + .5F) / scale;
    }
    float half = half_times - .5F, position = half, part = (float)(a->end - a->start) * (input - 1);
    float shift = input / 2 * (1 - (float)a->out.offset / length); /* added first: the sum may be a whole number */
    switch (r->position) {
    case IR_RESIZE_ALIGN_CORNERS: position = length == 1 ? 0 : x * (input - 1) / (length - 1); break;
    case IR_RESIZE_ASYMMETRIC: position = times; break;
    case IR_RESIZE_HALF_PIXEL_OF_TF: position = half_times; break;
    case IR_RESIZE_PYTORCH_HALF_PIXEL: position = length == 1 ? -.5F : half; break;
    case IR_RESIZE_HALF_PIXEL_SYMMETRIC: position = shift + half_times - .5F; break;
    case IR_RESIZE_CROP:
        position = (length == 1 ? part / 2 : x * part / (length - 1)) + (float)a->start * (input - 1);
        break;
    default: break;
    }
    *out_position = (double)position;
    return r->position != IR_RESIZE_CROP || (position >= 0 && position <= input - 1);
}

static int64_t nearest_of(const ir_resize *r, double position)
{
    double below = floor(position), ratio = position - below;
    bool up = r->rounding == IR_RESIZE_CEIL          ? ratio > 0
              : r->rounding == IR_RESIZE_FLOOR       ? false
              : r->rounding == IR_RESIZE_PREFER_CEIL ? ratio >= .5
                                                     : ratio > .5;
    return (int64_t)below + up;
}

/* An element's weight at this distance. The cubic kernel is Keys's (1981). */
static double kernel(const ir_resize *r, double distance)
{
    double x = fabs(distance), a = r->cubic_a;
    if (r->mode == IR_RESIZE_LINEAR) return fmax(0, 1 - x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

void ir_resize_weights(const ir_resize *r, const ir_resize_axis *a, double position, int64_t *out_first,
                       double *out_weights)
{
    int64_t taps = ir_resize_taps(r, a);
    double sum = 0, narrow = shrinking(r, a);
    if (r->mode == IR_RESIZE_NEAREST) {
        *out_first = nearest_of(r, position);
        out_weights[0] = 1;
        return;
    }
    *out_first = (int64_t)ceil(position) - taps / 2;
    for (int64_t t = 0; t < taps; t++) {
        int64_t offset = *out_first + t;
        bool outside = r->exclude_outside && (offset < 0 || offset >= a->in.offset);
        out_weights[t] = outside ? 0 : kernel(r, ((double)offset - position) * narrow);
        sum += out_weights[t];
    }
    bool normalises = (r->exclude_outside || r->antialias) && sum != 0;
    for (int64_t t = 0; t < taps && normalises; t++) out_weights[t] /= sum;
}

static int64_t clamped(int64_t offset, int64_t extent)
{
    return offset < 0 ? 0 : offset < extent ? offset : extent - 1;
}

static mdot_status resize_axis(ir_arena *arena, const ir_node *node, const ir_resize *r, const ir_resize_axis *a,
                               const ir_wide **x, mdot_error *err)
{
    int64_t dims[MDOT_MAX_RANK], taps = ir_resize_taps(r, a), first;
    memcpy(dims, (*x)->dims, sizeof dims);
    dims[a->axis] = a->out.offset;
    ir_wide *y = ir_wide_create(arena, (*x)->dtype, (*x)->rank, dims);
    double *weights = IR_NEW_ARRAY(arena, double, taps);
    if (y == NULL || weights == NULL) return ir_fail_memory(node, err);
    ir_axis_view to = ir_view_axis(y, a->axis), owner = ir_view_axis(*x, a->axis);
    if (y->count > 0 && owner.extent == 0)
        return ir_fail(node, err, MDOT_MALFORMED, "an axis without elements cannot be resized");
    for (int64_t offset = 0; offset < to.extent; offset++) {
        double position;
        bool is_inside = ir_resize_position_of(r, a, offset, &position);
        if (is_inside) ir_resize_weights(r, a, position, &first, weights);
        for (int64_t k = 0; k < to.outer * to.inner; k++) {
            int64_t target = (k / to.inner * to.extent + offset) * to.inner + k % to.inner;
            double sum = is_inside ? 0 : r->extrapolation;
            for (int64_t t = 0; t < taps && is_inside; t++) {
                int64_t source =
                    (k / to.inner * owner.extent + clamped(first + t, owner.extent)) * owner.inner + k % owner.inner;
                if (y->f == NULL) y->i[target] = (*x)->i[source]; /* nearest */
                if (y->f != NULL && weights[t] != 0) sum += weights[t] * (*x)->f[source];
            }
            if (y->f != NULL) y->f[target] = sum;
            if (y->f == NULL && !is_inside) y->i[target] = ir_float_to_integer(y->dtype, sum);
        }
    }
    *x = y;
    return MDOT_OK;
}

mdot_status ir_eval_resize(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_resize r;
    ir_type type;
    const ir_wide *x = input[0];
    ir_operands args = ir_operands_of_tensors(node, input, err);
    BS_TRY(ir_resize_read(&args, &r, &type));
    if (x->f == NULL && r.mode != IR_RESIZE_NEAREST)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "integers can be resized in mode nearest only");
    for (int i = 0; i < r.count; i++)
        if (!ir_resize_keeps(&r, &r.axes[i])) BS_TRY(resize_axis(arena, node, &r, &r.axes[i], &x, err));
    ir_copy_elements(out[0], 0, x, 0, x->count);
    return MDOT_OK;
}

/* Multiply-adds for the neighbours of each element of the result: two (linear) or four (cubic) in a resized
 * dimension. */
void ir_cost_resize(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    const char *mode = ir_node_string(node, "mode", "nearest");
    double along = strcmp(mode, "linear") == 0 ? 2 : strcmp(mode, "cubic") == 0 ? 4 : 0, taps = along > 0;
    const ir_type *input = &node->inputs[0]->type, *out = &node->outputs[0]->type;
    for (int i = 0; i < input->rank && along > 0; i++)
        if (ir_dim_at(input->dim[i], length) != ir_dim_at(out->dim[i], length)) taps *= along;
    out_cost->flops = 2 * taps * ir_value_elements(node->outputs[0], length);
}

/* X [N, C, D1 …], grid [N, E1 …, rank - 2] → [N, C, E1 …] */
mdot_status ir_result_grid_sample(const ir_operands *args, ir_type *out_type)
{
    ir_type grid;
    BS_TRY(ir_operand_need(args, 0, "input", -1, out_type));
    BS_TRY(ir_operand_need(args, 1, "grid", out_type->rank, &grid));
    if (out_type->rank < 3 || !ir_dim_is(grid.dim[grid.rank - 1], out_type->rank - 2))
        return ir_malformed(args, "the grid must have one coordinate for each spatial dimension of the input");
    for (int i = 2; i < out_type->rank; i++) out_type->dim[i] = grid.dim[i - 1];
    return MDOT_OK;
}

void ir_cost_grid_sample(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    const char *mode = ir_node_string(node, "mode", "linear");
    double along = strcmp(mode, "nearest") == 0 ? 1 : strcmp(mode, "cubic") == 0 ? 4 : 2;
    out_cost->flops = 2 * pow(along, node->inputs[0]->type.rank - 2) * ir_value_elements(node->outputs[0], length);
}
