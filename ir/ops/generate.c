/* generate.c — operators whose output comes from shapes, attributes and a few numbers: Shape, Size, Constant,
 * ConstantOfShape, EyeLike, Range.
 *
 * Shape arithmetic begins here: their output is known element by element.
 */
#include "ir/ops/operands.h"

#include <math.h>
#include <string.h>

/* The dimensions that Shape lists: from `start` up to `end`. Negative values count from the end; all are clamped. */
static void shape_range(const ir_node *node, int rank, int *out_first, int *out_count)
{
    int64_t bound[2] = {ir_node_int(node, "start", 0), ir_node_int(node, "end", rank)};
    for (int i = 0; i < 2; i++) {
        if (bound[i] < 0) bound[i] += rank;
        if (bound[i] < 0) bound[i] = 0;
        if (bound[i] > rank) bound[i] = rank;
    }
    *out_first = (int)bound[0];
    *out_count = bound[1] > bound[0] ? (int)(bound[1] - bound[0]) : 0;
}

mdot_status ir_shape_shape(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const ir_type *input = &node->inputs[0]->type;
    int first, count;
    shape_range(node, input->rank, &first, &count);
    ir_set_type(node, 0, MDOT_DTYPE_I64, 1, (ir_dim[]){ir_dim_number(count)});
    return ir_set_known(graph, node, 0, input->dim + first, count, err);
}

mdot_status ir_eval_shape(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int first, count;
    shape_range(node, input[0]->rank, &first, &count);
    BS_TRY(ir_make_wide(arena, node, MDOT_DTYPE_I64, 1, (int64_t[]){count}, &out[0], err));
    memcpy(out[0]->i, input[0]->dims + first, (size_t)count * sizeof *out[0]->i);
    return MDOT_OK;
}

mdot_status ir_shape_size(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const ir_type *input = &node->inputs[0]->type;
    ir_dim count;
    ir_set_type(node, 0, MDOT_DTYPE_I64, 0, NULL);
    /* the count is a polynomial of higher degree */
    if (!ir_dim_quotient(input->dim, input->rank, NULL, 0, &count)) return MDOT_OK;
    return ir_set_known(graph, node, 0, &count, 1, err);
}

mdot_status ir_eval_size(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err)
{
    mdot_status status = ir_make_wide(arena, node, MDOT_DTYPE_I64, 0, NULL, &out[0], err);
    if (status == MDOT_OK) out[0]->i[0] = in[0]->count;
    return status;
}

/* A Constant's content, from the one attribute. value_float and similar attributes are short forms. */
typedef struct constant_content {
    mdot_dtype dtype;
    int rank;
    int64_t count;
    const ir_tensor *tensor; /* NULL: one of the following arrays */
    const double *floats;
    const int64_t *ints;
} constant_content;

static mdot_status read_constant(const ir_node *node, constant_content *out, mdot_error *err)
{
    const ir_attr *attr = node->attr_count == 1 ? &node->attrs[0] : NULL;
    if (attr == NULL) return ir_fail(node, err, MDOT_MALFORMED, "%d attributes instead of one", node->attr_count);
    if (strcmp(attr->name, "sparse_value") == 0)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "sparse tensors are unsupported");
    switch (attr->kind) {
    case IR_ATTR_TENSOR:
        *out = (constant_content){attr->tensor->dtype, attr->tensor->rank, attr->tensor->count, attr->tensor, 0, 0};
        return MDOT_OK;
    case IR_ATTR_FLOAT: *out = (constant_content){MDOT_DTYPE_F32, 0, 1, NULL, &attr->f, NULL}; return MDOT_OK;
    case IR_ATTR_FLOATS:
        *out = (constant_content){MDOT_DTYPE_F32, 1, attr->count, NULL, attr->floats, NULL};
        return MDOT_OK;
    case IR_ATTR_INT: *out = (constant_content){MDOT_DTYPE_I64, 0, 1, NULL, NULL, &attr->i}; return MDOT_OK;
    case IR_ATTR_INTS:
        *out = (constant_content){MDOT_DTYPE_I64, 1, attr->count, NULL, NULL, attr->ints};
        return MDOT_OK;
    default: return ir_fail(node, err, MDOT_UNSUPPORTED, "attribute %s is unsupported", attr->name);
    }
}

/* A tensor's integer content, read like a constant value's. */
static bool known_tensor(const ir_tensor *tensor, ir_dim out[static IR_MAX_KNOWN], int *out_count)
{
    ir_value value = {.constant = tensor};
    return ir_value_known(&value, out, out_count);
}

mdot_status ir_shape_constant(ir_graph *graph, ir_node *node, mdot_error *err)
{
    constant_content content = {.dtype = MDOT_DTYPE_NONE};
    BS_TRY(read_constant(node, &content, err));
    ir_dim dims[MDOT_MAX_RANK] = {{0}}, element[IR_MAX_KNOWN];
    for (int i = 0; i < content.rank; i++)
        dims[i] = ir_dim_number(content.tensor != NULL ? content.tensor->dims[i] : content.count);
    ir_set_type(node, 0, content.dtype, content.rank, dims);
    int count = 0;
    if (content.tensor != NULL) {
        if (!known_tensor(content.tensor, element, &count)) return MDOT_OK;
    } else {
        if (content.ints == NULL || content.count > IR_MAX_KNOWN) return MDOT_OK;
        for (; count < content.count; count++) element[count] = ir_dim_number(content.ints[count]);
    }
    return ir_set_known(graph, node, 0, element, count, err);
}

/* The wide form of a tensor attribute. */
static mdot_status widen(ir_arena *arena, const ir_node *node, const ir_tensor *tensor, ir_wide **out, mdot_error *err)
{
    if (tensor->data == NULL || tensor->dtype == MDOT_DTYPE_STRING)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "its tensor has the non-numeric type %s",
                       mdot_dtype_name(tensor->dtype));
    ir_wide *wide = ir_wide_from_tensor(arena, tensor);
    if (wide == NULL) return ir_fail_memory(node, err);
    *out = wide;
    return MDOT_OK;
}

mdot_status ir_eval_constant(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err)
{
    constant_content content = {.dtype = MDOT_DTYPE_NONE};
    BS_TRY(read_constant(node, &content, err));
    if (content.tensor != NULL) return widen(arena, node, content.tensor, &out[0], err);
    mdot_status status = ir_make_wide(arena, node, content.dtype, content.rank, &content.count, &out[0], err);
    for (int64_t i = 0; i < content.count && status == MDOT_OK; i++) {
        if (content.floats != NULL)
            out[0]->f[i] = content.floats[i];
        else
            out[0]->i[i] = content.ints[i];
    }
    return status;
}

/* The attribute `value`, a tensor of one element. NULL: absent, which means 0 in f32. */
static mdot_status fill_value(const ir_operands *args, const ir_tensor **out)
{
    const ir_attr *attr = ir_node_attr(args->node, "value");
    const ir_tensor *tensor = attr != NULL && attr->kind == IR_ATTR_TENSOR ? attr->tensor : NULL;
    if (tensor != NULL && tensor->count != 1)
        return ir_malformed(args, "the value has %lld elements instead of 1", (long long)tensor->count);
    *out = tensor;
    return MDOT_OK;
}

static mdot_status constant_of_shape_result(const ir_operands *args, ir_type *out_type)
{
    ir_dim dims[IR_MAX_KNOWN];
    int rank;
    const ir_tensor *value = NULL;
    BS_TRY(fill_value(args, &value));
    BS_TRY(ir_operand_dims(args, 0, "dimensions", dims, &rank));
    if (rank > MDOT_MAX_RANK) return ir_unsupported(args, "%d dimensions, more than %d", rank, MDOT_MAX_RANK);
    *out_type = (ir_type){value != NULL ? value->dtype : MDOT_DTYPE_F32, rank, {{0}}};
    for (int i = 0; i < rank; i++) {
        int64_t minimum, maximum;
        ir_dim_bounds(args->graph, dims[i], &minimum, &maximum);
        if (minimum < 0) return ir_malformed(args, "dimension %d is negative", i);
        out_type->dim[i] = dims[i];
    }
    return MDOT_OK;
}

mdot_status ir_shape_constant_of_shape(ir_graph *graph, ir_node *node, mdot_error *err)
{
    ir_operands args = ir_operands_of_graph(graph, node, err);
    ir_type type;
    const ir_tensor *value = NULL;
    ir_dim element[IR_MAX_KNOWN], count;
    int one;
    BS_TRY(constant_of_shape_result(&args, &type));
    BS_TRY(fill_value(&args, &value));
    ir_set_type(node, 0, type.dtype, type.rank, type.dim);
    if (value == NULL || !known_tensor(value, element, &one)) return MDOT_OK;
    if (!ir_dim_quotient(type.dim, type.rank, NULL, 0, &count)) return MDOT_OK;
    if (!ir_dim_is_number(count) || count.offset > IR_MAX_KNOWN) return MDOT_OK;
    for (int i = 1; i < count.offset; i++) element[i] = element[0];
    return ir_set_known(graph, node, 0, element, (int)count.offset, err);
}

mdot_status ir_eval_constant_of_shape(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out,
                                      mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    const ir_tensor *value = NULL;
    ir_wide *filler = NULL;
    mdot_status status = ir_make_by(arena, node, input, constant_of_shape_result, &out[0], err);
    if (status == MDOT_OK) status = fill_value(&args, &value);
    if (status != MDOT_OK || value == NULL) return status;
    status = widen(arena, node, value, &filler, err);
    for (int64_t i = 0; i < out[0]->count && status == MDOT_OK; i++) ir_copy_element(out[0], i, filler, 0);
    return status;
}

mdot_status ir_result_eye_like(const ir_operands *args, ir_type *out_type)
{
    ir_type in;
    BS_TRY(ir_operand_need(args, 0, "input", 2, &in));
    int64_t dtype = ir_node_int(args->node, "dtype", in.dtype);
    if (dtype < 0 || dtype > INT32_MAX || mdot_dtype_size_bytes((mdot_dtype)dtype) == 0)
        return ir_unsupported(args, "element type %lld is unsupported", (long long)dtype);
    *out_type = in;
    out_type->dtype = (mdot_dtype)dtype;
    return MDOT_OK;
}

mdot_status ir_eval_eye_like(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    int64_t k = ir_node_int(node, "k", 0), columns = out[0]->dims[1];
    for (int64_t row = 0; row < out[0]->dims[0]; row++) {
        int64_t column;
        if (__builtin_add_overflow(row, k, &column) || column < 0 || column >= columns) continue;
        if (out[0]->f != NULL)
            out[0]->f[row * columns + column] = 1;
        else
            out[0]->i[row * columns + column] = 1;
    }
    return MDOT_OK;
}

typedef struct range { /* start, start + delta, … : `count` numbers */
    mdot_dtype dtype;
    ir_dim count;
    bool integers;
    ir_dim start; /* for integers */
    int64_t step;
    double first, delta; /* for floats */
} range;

static mdot_status read_float_range(const ir_operands *args, range *out)
{
    double bound[3];
    for (int i = 0; i < 3; i++) {
        const ir_wide *tensor = args->tensors != NULL ? args->tensors[i] : NULL;
        if (tensor != NULL ? tensor->count != 1 : !ir_value_scalar(args->node->inputs[i], &bound[i]))
            return ir_unsupported(args, "the shape of its output depends on data: \"%s\" is unknown at compile time",
                                  args->node->inputs[i]->name);
        if (tensor != NULL) bound[i] = ir_wide_get(tensor, 0);
    }
    double count = ceil((bound[1] - bound[0]) / bound[2]); /* NaN or infinite if delta is 0 */
    if (!(count < 0x1p62) || bound[2] == 0)
        return ir_malformed(args, "the range from %g to %g by %g is infinite", bound[0], bound[1], bound[2]);
    out->first = bound[0];
    out->delta = bound[2];
    out->count = ir_dim_number(count > 0 ? (int64_t)count : 0);
    return MDOT_OK;
}

/* Start, limit and delta if all of them are known integers. */
static bool known_bounds(const ir_operands *args, ir_dim *out_bounds)
{
    ir_dim element[IR_MAX_KNOWN];
    for (int i = 0; i < 3; i++) {
        int count;
        if (!ir_operand_known(args, i, element, &count) || count != 1) return false;
        out_bounds[i] = element[0];
    }
    return true;
}

static mdot_status read_integer_range(const ir_operands *args, const ir_dim *bound, range *out)
{
    ir_dim span;
    int64_t step = bound[2].offset;
    if (!ir_dim_is_number(bound[2]) && ir_dim_equal(bound[1], bound[2]) && ir_dim_is(bound[0], 0)) {
        *out = (range){.dtype = out->dtype, .count = ir_dim_number(1), .integers = true, .step = 1};
        return MDOT_OK; /* from 0 to a length by this length */
    }
    if (!ir_dim_is_number(bound[2]) || step == 0 || step == INT64_MIN)
        return ir_refuse(args, step == 0 ? MDOT_MALFORMED : MDOT_UNSUPPORTED, "delta must be a number other than 0");
    bool has_form = step > 0 ? ir_dim_sub(bound[1], bound[0], &span) : ir_dim_sub(bound[0], bound[1], &span);
    has_form = has_form && ir_dim_max(args->graph, span, ir_dim_number(0), &span) &&
               ir_dim_div_ceil(args->graph, span, step > 0 ? step : -step, &out->count);
    if (!has_form)
        return ir_refuse(
            args, MDOT_UNSUPPORTED,
            "the count of its elements is not a sum of a multiple of the length and one rounded quotient of it");
    out->integers = true;
    out->start = bound[0];
    out->step = step;
    return MDOT_OK;
}

/* Floats that are integers count as integers, because lengths may have passed through them. */
static mdot_status read_range(const ir_operands *args, range *out)
{
    ir_type type;
    ir_dim bounds[3];
    BS_TRY(ir_operand_need(args, 0, "start", -1, &type));
    for (int i = 1; i < 3; i++) BS_TRY(ir_operand_need_same(args, i, 0));
    *out = (range){.dtype = type.dtype};
    if (known_bounds(args, bounds)) return read_integer_range(args, bounds, out);
    return read_float_range(args, out);
}

mdot_status ir_shape_range(ir_graph *graph, ir_node *node, mdot_error *err)
{
    ir_operands args = ir_operands_of_graph(graph, node, err);
    range r;
    BS_TRY(read_range(&args, &r));
    ir_set_type(node, 0, r.dtype, 1, &r.count);
    if (!r.integers || !ir_dim_is_number(r.count) || r.count.offset > IR_MAX_KNOWN) return MDOT_OK;
    ir_dim element[IR_MAX_KNOWN];
    for (int i = 0; i < r.count.offset; i++) {
        /* at most the limit, so it cannot overflow */
        element[i] = r.start;
        element[i].offset += i * r.step;
    }
    return ir_set_known(graph, node, 0, element, (int)r.count.offset, err);
}

mdot_status ir_eval_range(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    range r;
    mdot_status status = read_range(&args, &r);
    if (status == MDOT_OK) status = ir_make_wide(arena, node, r.dtype, 1, &r.count.offset, &out[0], err);
    for (int64_t i = 0; status == MDOT_OK && i < out[0]->count; i++) {
        int64_t integer = r.integers ? r.start.offset + i * r.step : 0;
        if (out[0]->f != NULL)
            out[0]->f[i] = r.integers ? (double)integer : r.first + (double)i * r.delta;
        else
            out[0]->i[i] = integer;
    }
    return status;
}
