/* operands.c — a node's operands, as an operator's rules read them; see operands.h. */
#include "ir/ops/operands.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

ir_operands ir_operands_of_graph(const ir_graph *graph, const ir_node *node, mdot_error *err)
{
    return (ir_operands){node, NULL, graph, err};
}

ir_operands ir_operands_of_tensors(const ir_node *node, ir_inputs tensors, mdot_error *err)
{
    static const ir_graph concrete = {.max_length = 1}; /* all dimensions are independent of L */
    return (ir_operands){node, tensors, &concrete, err};
}

bool ir_operand_given(const ir_operands *args, int i)
{
    if (i >= args->node->input_count) return false;
    return args->tensors != NULL ? args->tensors[i] != NULL : args->node->inputs[i] != NULL;
}

ir_type ir_operand_type(const ir_operands *args, int i)
{
    if (args->tensors == NULL) return args->node->inputs[i]->type;
    const ir_wide *wide = args->tensors[i];
    ir_type type = {wide->dtype, wide->rank, {{0}}};
    for (int k = 0; k < wide->rank; k++) type.dim[k] = ir_dim_number(wide->dims[k]);
    return type;
}

mdot_status ir_operand_need(const ir_operands *args, int i, const char *what, int rank, ir_type *out_type)
{
    if (!ir_operand_given(args, i)) return ir_malformed(args, "input %d, the %s, is missing", i, what);
    ir_type type = ir_operand_type(args, i);
    if (rank >= 0 && type.rank != rank)
        return ir_malformed(args, "the %s has %d dimensions instead of %d", what, type.rank, rank);
    *out_type = type;
    return MDOT_OK;
}

mdot_status ir_operand_need_floats(const ir_operands *args, int i, const char *what)
{
    if (!ir_operand_given(args, i)) return MDOT_OK;
    mdot_dtype dtype = ir_operand_type(args, i).dtype;
    if (ir_dtype_is_float(dtype)) return MDOT_OK;
    return ir_malformed(args, "the %s is of type %s instead of a floating type", what, mdot_dtype_name(dtype));
}

mdot_status ir_operand_need_integers(const ir_operands *args, int i, const char *what)
{
    if (!ir_operand_given(args, i)) return MDOT_OK;
    mdot_dtype dtype = ir_operand_type(args, i).dtype;
    if (!ir_dtype_is_float(dtype) && dtype != MDOT_DTYPE_STRING) return MDOT_OK;
    return ir_malformed(args, "the %s is of type %s instead of an integer type", what, mdot_dtype_name(dtype));
}

mdot_status ir_operand_need_same(const ir_operands *args, int i, int like)
{
    if (!ir_operand_given(args, i)) return MDOT_OK;
    mdot_dtype dtype = ir_operand_type(args, i).dtype, wanted = ir_operand_type(args, like).dtype;
    if (dtype == wanted) return MDOT_OK;
    return ir_malformed(args, "input %d is of type %s, but input %d of type %s", i, mdot_dtype_name(dtype), like,
                        mdot_dtype_name(wanted));
}

mdot_status ir_operand_need_one(const ir_operands *args, int i, const char *what)
{
    if (!ir_operand_given(args, i)) return MDOT_OK;
    ir_type type = ir_operand_type(args, i);
    bool is_one = type.rank >= 0;
    for (int d = 0; d < type.rank; d++) is_one = is_one && ir_dim_is(type.dim[d], 1);
    if (is_one) return MDOT_OK;
    return ir_malformed(args, "the %s must have one element", what);
}

/* Reads constants like ir_value_known: floating numbers are known if they are integers. */
static bool known_element(const ir_wide *wide, int64_t index, ir_dim *out)
{
    if (wide->f != NULL && !(fabs(wide->f[index]) <= 0x1p53 && wide->f[index] == floor(wide->f[index]))) return false;
    *out = ir_dim_number(wide->f != NULL ? (int64_t)wide->f[index] : wide->i[index]);
    return true;
}

bool ir_operand_known(const ir_operands *args, int i, ir_dim out[static IR_MAX_KNOWN], int *out_count)
{
    if (!ir_operand_given(args, i)) return false;
    if (args->tensors == NULL) return ir_value_known(args->node->inputs[i], out, out_count);
    const ir_wide *wide = args->tensors[i];
    if (wide->count > IR_MAX_KNOWN) return false;
    for (int64_t k = 0; k < wide->count; k++)
        if (!known_element(wide, k, &out[k])) return false;
    *out_count = (int)wide->count;
    return true;
}

mdot_status ir_operand_dims(const ir_operands *args, int i, const char *what, ir_dim out[static IR_MAX_KNOWN],
                            int *out_count)
{
    ir_type type = {.rank = -1};
    BS_TRY(ir_operand_need(args, i, what, -1, &type));
    const char *name = args->node->inputs[i]->name;
    if (ir_dtype_is_float(type.dtype))
        return ir_malformed(args, "the %s, \"%s\", have type %s instead of integers", what, name,
                            mdot_dtype_name(type.dtype));
    if (ir_operand_known(args, i, out, out_count)) return MDOT_OK;
    return ir_unsupported(args, "the shape of \"%s\" depends on data: the %s, \"%s\", are unknown at compile time",
                          args->node->outputs[0] != NULL ? args->node->outputs[0]->name : "its output", what, name);
}

mdot_status ir_operand_ints(const ir_operands *args, int i, const char *what, int64_t out[static IR_MAX_KNOWN],
                            int *out_count)
{
    ir_dim element[IR_MAX_KNOWN];
    int count;
    BS_TRY(ir_operand_dims(args, i, what, element, &count));
    for (int k = 0; k < count; k++)
        if (!ir_dim_is_number(element[k]))
            return ir_unsupported(args, "the %s, \"%s\", depend on the symbolic dimension", what,
                                  args->node->inputs[i]->name);
    for (int k = 0; k < count; k++) out[k] = element[k].offset;
    *out_count = count;
    return MDOT_OK;
}

mdot_status ir_operand_axis(const ir_operands *args, const char *name, int64_t fallback, int rank, int *out_axis)
{
    return ir_normalize_axis(args->node, ir_node_int(args->node, name, fallback), rank, out_axis, args->err);
}

mdot_status ir_make_typed(ir_arena *arena, const ir_node *node, const ir_type *type, ir_wide **out, mdot_error *err)
{
    int64_t dims[MDOT_MAX_RANK];
    for (int i = 0; i < type->rank; i++) dims[i] = type->dim[i].offset;
    return ir_make_wide(arena, node, type->dtype, type->rank, dims, out, err);
}

mdot_status ir_operand_choice(const ir_operands *args, const char *attr, const char *const *names, int count,
                              int *out_choice)
{
    const char *text = ir_node_string(args->node, attr, names[0]);
    char known[192];
    bs_join list;
    bs_join_begin(&list, known, sizeof known);
    for (int i = 0; i < count; i++) {
        bs_join_add(&list, "%s", names[i]);
        if (strcmp(names[i], text) != 0) continue;
        *out_choice = i;
        return MDOT_OK;
    }
    return ir_unsupported(args, "the %s \"%s\" is unknown; known are %s", attr, text, known);
}

static mdot_status check_index(const ir_operands *args, ir_dim index, ir_dim extent)
{
    ir_dim minimum;
    char text[IR_DIM_TEXT_BYTES], extent_text[IR_DIM_TEXT_BYTES];
    bool fits = ir_dim_always_lt(args->graph, index, extent) && ir_dim_sub(ir_dim_number(0), extent, &minimum) &&
                ir_dim_always_le(args->graph, minimum, index);
    if (fits) return MDOT_OK;
    if (ir_dim_is_number(index) && ir_dim_is_number(extent))
        return ir_refuse(args, MDOT_OUT_OF_RANGE, "index %lld is outside of a dimension of %lld",
                         (long long)index.offset, (long long)extent.offset);
    return ir_unsupported(args, "index %s must be within a dimension of %s at every length",
                          ir_dim_text(index, args->graph->symbol, text, sizeof text),
                          ir_dim_text(extent, args->graph->symbol, extent_text, sizeof extent_text));
}

mdot_status ir_operand_need_indices(const ir_operands *args, int i, int64_t first, int64_t stride, ir_dim extent)
{
    ir_dim element[IR_MAX_KNOWN];
    int count;
    if (args->tensors != NULL) return MDOT_OK;
    const ir_value *value = args->node->inputs[i];
    const ir_tensor *constant = value->constant != NULL && value->constant->data != NULL ? value->constant : NULL;
    mdot_status status = MDOT_OK;
    if (constant != NULL && !ir_dtype_is_float(constant->dtype)) {
        for (int64_t k = first; k < constant->count && status == MDOT_OK; k += stride)
            status = check_index(args, ir_dim_number(ir_tensor_integer(constant, k)), extent);
    } else if (ir_operand_known(args, i, element, &count)) {
        for (int64_t k = first; k < count && status == MDOT_OK; k += stride)
            status = check_index(args, element[k], extent);
    }
    return status;
}

mdot_status ir_shape_by(ir_graph *graph, ir_node *node, ir_result_fn result, mdot_error *err)
{
    ir_operands args = ir_operands_of_graph(graph, node, err);
    ir_type type;
    BS_TRY(result(&args, &type));
    ir_set_type(node, 0, type.dtype, type.rank, type.dim);
    return MDOT_OK;
}

mdot_status ir_make_by(ir_arena *arena, const ir_node *node, ir_inputs input, ir_result_fn result, ir_wide **out,
                       mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    ir_type type;
    mdot_status status = result(&args, &type);
    return status != MDOT_OK ? status : ir_make_typed(arena, node, &type, out, err);
}

mdot_status ir_make_output(ir_arena *arena, const ir_operands *args, int i, ir_wide **out, ir_wide **out_tensor)
{
    ir_type type;
    *out_tensor = i < args->node->output_count ? out[i] : NULL;
    if (*out_tensor != NULL) return MDOT_OK;
    BS_TRY(args->node->op->outputs(args, i, &type));
    return ir_make_typed(arena, args->node, &type, out_tensor, args->err);
}

mdot_status ir_eval_node(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    if (node->op->result != NULL) BS_TRY(ir_make_by(arena, node, input, node->op->result, &out[0], err));
    for (int i = 0; node->op->outputs != NULL && i < node->output_count; i++) {
        out[i] = NULL;
        if (i == 0 || ir_node_wants(node, i)) BS_TRY(ir_make_output(arena, &args, i, out, &out[i]));
    }
    return node->op->eval(arena, node, input, out, err);
}

/* Element count of a type; -1 if it is large or has symbolic dimensions. */
static int known_size(const ir_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (!ir_dim_is_number(type->dim[i])) return -1;
    int64_t count = ir_type_count_at(type, 1);
    return count >= 0 && count <= IR_MAX_KNOWN ? (int)count : -1;
}

/* A pool of known elements, referred to by tensors of numbers. Entry 0 is the number 0, which moves may fill in. */
typedef struct element_pool {
    int count;
    ir_dim element[IR_MAX_KNOWN];
} element_pool;

/* Input `value` as a tensor of integers: the indices of the elements in the pool if `moved`, else its elements. NULL:
 * unknown, the pool is full, or out of memory. */
static ir_wide *pooled_input(ir_arena *arena, const ir_value *value, bool moved, element_pool *pool)
{
    ir_dim element[IR_MAX_KNOWN];
    int count;
    int size = known_size(&value->type);
    if (size < 0 || !ir_value_known(value, element, &count) || count != size) return NULL;
    if (moved && pool->count + count > IR_MAX_KNOWN) return NULL;
    int64_t dims[MDOT_MAX_RANK];
    for (int i = 0; i < value->type.rank; i++) dims[i] = value->type.dim[i].offset;
    ir_wide *wide = ir_wide_create(arena, MDOT_DTYPE_I64, value->type.rank, dims);
    if (wide == NULL) return NULL;
    for (int i = 0; i < count; i++) {
        if (!moved && !ir_dim_is_number(element[i])) return NULL;
        wide->i[i] = moved ? pool->count : element[i].offset;
        if (moved) pool->element[pool->count++] = element[i];
    }
    return wide;
}

static mdot_status record(ir_graph *graph, ir_node *node, int output, const ir_wide *wide, const element_pool *pool,
                          mdot_error *err)
{
    ir_dim element[IR_MAX_KNOWN];
    for (int64_t i = 0; i < wide->count; i++) element[i] = pool->element[wide->i[i]];
    return ir_set_known(graph, node, output, element, (int)wide->count, err);
}

static mdot_status move_known(ir_graph *graph, ir_node *node, unsigned moved, ir_arena *scratch, mdot_error *err)
{
    element_pool pool = {1, {{0}}};
    const ir_wide **input = IR_NEW_ARRAY(scratch, const ir_wide *, node->input_count);
    ir_wide **out = IR_NEW_ARRAY(scratch, ir_wide *, node->output_count);
    if (input == NULL || out == NULL) return ir_fail_memory(node, err);
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == NULL) continue;
        bool moves = i >= 31 ? moved >> 31 : moved >> i & 1;
        input[i] = pooled_input(scratch, node->inputs[i], moves, &pool);
        if (input[i] == NULL) return ir_arena_failed(scratch) ? ir_fail_memory(node, err) : MDOT_OK;
    }
    BS_TRY(ir_eval_node(scratch, node, input, out, err));
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL) BS_TRY(record(graph, node, i, out[i], &pool, err));
    return MDOT_OK;
}

mdot_status ir_move_known(ir_graph *graph, ir_node *node, unsigned moved, mdot_error *err)
{
    for (int i = 0; i < node->output_count; i++) { /* most tensors are not shapes, so they leave early */
        if (node->outputs[i] != NULL && known_size(&node->outputs[i]->type) < 0) return MDOT_OK;
    }
    ir_arena *scratch = ir_arena_create(0);
    if (scratch == NULL) return ir_fail_memory(node, err);
    mdot_status status = move_known(graph, node, moved, scratch, err);
    ir_arena_destroy(scratch);
    return status;
}

mdot_status ir_shape_by_result(ir_graph *graph, ir_node *node, mdot_error *err)
{
    return ir_shape_by(graph, node, node->op->result, err);
}

mdot_status ir_shape_by_outputs(ir_graph *graph, ir_node *node, mdot_error *err)
{
    ir_operands args = ir_operands_of_graph(graph, node, err);
    for (int i = 0; i < node->output_count; i++) {
        ir_type type;
        BS_TRY(node->op->outputs(&args, i, &type));
        ir_set_type(node, i, type.dtype, type.rank, type.dim);
    }
    return MDOT_OK;
}

mdot_status ir_shape_by_move(ir_graph *graph, ir_node *node, mdot_error *err)
{
    BS_TRY(ir_shape_by_result(graph, node, err));
    return ir_move_known(graph, node, node->op->traits & IR_VARIADIC ? ~0u : 1u << 0, err);
}

const char *ir_shape_text(const ir_operands *args, int rank, const ir_dim *dims, char *out)
{
    char text[IR_DIM_TEXT_BYTES];
    size_t length = 0;
    for (int i = 0; i < rank && length < IR_SHAPE_TEXT_BYTES; i++) {
        ir_dim_text(dims[i], args->graph->symbol, text, sizeof text);
        length += (size_t)snprintf(out + length, IR_SHAPE_TEXT_BYTES - length, "%s%s", i ? ", " : "[", text);
    }
    if (length < IR_SHAPE_TEXT_BYTES) snprintf(out + length, IR_SHAPE_TEXT_BYTES - length, rank ? "]" : "[]");
    return out;
}

mdot_status ir_dims_fault(int rank, const ir_dim *dims)
{
    for (int i = 0; i < rank; i++)
        if (!ir_dim_is_number(dims[i])) return MDOT_UNSUPPORTED;
    return MDOT_MALFORMED;
}
