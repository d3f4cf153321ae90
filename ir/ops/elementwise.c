/* elementwise.c — shape and cost rules of the elementwise family. The functions are in elementwise_math.c, the
 * evaluators in elementwise_eval.c, and compile-time content in elementwise_known.c. */
#include "ir/ops/elementwise.h"

/* The result has the first input's type. Norms and softmax use this rule too; the checks apply only to this family. */
mdot_status ir_shape_like(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const ir_type *type = &node->inputs[0]->type;
    const ir_unary_rule *rule = ir_unary_rule_of(node);
    if (rule != NULL) BS_TRY(ir_check_accepts(node, rule->accepts, type->dtype, err));
    ir_set_type(node, 0, type->dtype, type->rank, type->dim);
    return ir_elementwise_known(graph, node, err);
}

mdot_status ir_shape_like_bool(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const ir_type *type = &node->inputs[0]->type;
    BS_TRY(ir_check_accepts(node, ir_unary_rule_of(node)->accepts, type->dtype, err));
    ir_set_type(node, 0, MDOT_DTYPE_BOOL, type->rank, type->dim);
    return MDOT_OK;
}

/* com.microsoft: GELU of x plus an optional bias, which broadcasts to x. */
mdot_status ir_shape_bias_gelu(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const ir_type *type = &node->inputs[0]->type;
    const ir_value *bias = ir_node_input(node, 1);
    mdot_status status = ir_shape_like(graph, node, err);
    if (status != MDOT_OK || bias == NULL) return status;
    ir_type sum = {.dtype = bias->type.dtype};
    status = ir_broadcast_dims(node, type->dim, type->rank, bias->type.dim, bias->type.rank, sum.dim, &sum.rank, err);
    if (status != MDOT_OK || ir_type_equal(&sum, type)) return status;
    return ir_fail(node, err, MDOT_MALFORMED,
                   "the bias must have the element type of its input and at most as many elements");
}

mdot_status ir_cast_target(const ir_node *node, mdot_dtype like, mdot_dtype *out_dtype, mdot_error *err)
{
    int64_t target = like != MDOT_DTYPE_NONE ? (int64_t)like : ir_node_int(node, "to", MDOT_DTYPE_NONE);
    /* ONNX numbers element types as mdot_dtype does. Types that it lacks (strings, floats of 8 bits and less, complex
     * numbers) have size zero. */
    bool in_range = target > MDOT_DTYPE_NONE && target <= MDOT_DTYPE_BF16;
    if (!in_range || mdot_dtype_size_bytes((mdot_dtype)target) == 0)
        return ir_fail(node, err, MDOT_UNSUPPORTED,
                       "conversion to ONNX element type %lld is unsupported; use f16 or i8", (long long)target);
    *out_dtype = (mdot_dtype)target;
    return MDOT_OK;
}

mdot_status ir_shape_cast(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const ir_type *type = &node->inputs[0]->type;
    const ir_value *like = ir_node_input(node, 1);
    mdot_dtype target_dtype = MDOT_DTYPE_NONE;
    BS_TRY(ir_cast_target(node, like != NULL ? like->type.dtype : MDOT_DTYPE_NONE, &target_dtype, err));
    if (type->dtype == MDOT_DTYPE_STRING)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "conversion from strings is unsupported");
    ir_set_type(node, 0, target_dtype, type->rank, type->dim);
    return ir_elementwise_known(graph, node, err);
}

/* Does the value have one element at every length? */
static bool is_scalar(const ir_value *value)
{
    return ir_dim_products_equal(value->type.dim, value->type.rank, NULL, 0);
}

mdot_status ir_shape_dropout(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const ir_type *type = &node->inputs[0]->type;
    const ir_value *ratio = ir_node_input(node, 1), *training = ir_node_input(node, 2);
    if (ratio != NULL && !(is_scalar(ratio) && ir_dtype_is_float(ratio->type.dtype)))
        return ir_fail(node, err, MDOT_MALFORMED, "the ratio must be one floating-point number");
    if (training != NULL && !(is_scalar(training) && training->type.dtype == MDOT_DTYPE_BOOL))
        return ir_fail(node, err, MDOT_MALFORMED, "training_mode must be one bool");
    ir_set_type(node, 0, type->dtype, type->rank, type->dim);
    ir_set_type(node, 1, MDOT_DTYPE_BOOL, type->rank, type->dim);
    return MDOT_OK;
}

mdot_status ir_shape_clip(ir_graph *graph, ir_node *node, mdot_error *err)
{
    for (int i = 1; i < node->input_count; i++) {
        const ir_value *limit = node->inputs[i];
        if (limit != NULL && !is_scalar(limit))
            return ir_fail(node, err, MDOT_MALFORMED, "limit %d, \"%s\", must be a scalar", i, limit->name);
    }
    return ir_shape_like(graph, node, err);
}

/* Checks that every input from `first` on is accepted and, except for Pow, has the same type. */
static mdot_status check_operands(const ir_node *node, int first, unsigned accepts, mdot_error *err)
{
    mdot_dtype dtype = node->inputs[first]->type.dtype;
    for (int i = first; i < node->input_count; i++) {
        mdot_dtype other_dtype = node->inputs[i]->type.dtype;
        BS_TRY(ir_check_accepts(node, accepts, other_dtype, err));
        if (other_dtype != dtype && ir_node_opcode(node) != IR_OP_Pow)
            return ir_fail(node, err, MDOT_MALFORMED, "input %d is of type %s, but input %d of type %s", i,
                           mdot_dtype_name(other_dtype), first, mdot_dtype_name(dtype));
    }
    return MDOT_OK;
}

static mdot_status shape_broadcast_as(ir_graph *graph, ir_node *node, mdot_dtype dtype, mdot_error *err)
{
    ir_dim dims[MDOT_MAX_RANK];
    int rank = 0;
    BS_TRY(ir_broadcast_inputs(node, 0, dims, &rank, err));
    ir_set_type(node, 0, dtype, rank, dims);
    return ir_elementwise_known(graph, node, err);
}

mdot_status ir_shape_broadcast(ir_graph *graph, ir_node *node, mdot_error *err)
{
    BS_TRY(check_operands(node, 0, ir_binary_rule_of(node)->accepts, err));
    return shape_broadcast_as(graph, node, node->inputs[0]->type.dtype, err);
}

mdot_status ir_shape_compare(ir_graph *graph, ir_node *node, mdot_error *err)
{
    BS_TRY(check_operands(node, 0, ir_binary_rule_of(node)->accepts, err));
    return shape_broadcast_as(graph, node, MDOT_DTYPE_BOOL, err);
}

mdot_status ir_shape_where(ir_graph *graph, ir_node *node, mdot_error *err)
{
    if (node->inputs[0]->type.dtype != MDOT_DTYPE_BOOL)
        return ir_fail(node, err, MDOT_MALFORMED, "the condition is %s, not bool",
                       mdot_dtype_name(node->inputs[0]->type.dtype));
    BS_TRY(check_operands(node, 1, IR_ON_FLOAT | IR_ON_INTEGER | IR_ON_BOOL, err));
    return shape_broadcast_as(graph, node, node->inputs[1]->type.dtype, err);
}

void ir_cost_none(const ir_node *node, int64_t length, ir_cost *out_cost) { *out_cost = (ir_cost){0}; }

/* One operation per element unless a table states otherwise. A fold of n operands takes n - 1, and a mean one more. */
void ir_cost_pointwise(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    const ir_unary_rule *unary = ir_unary_rule_of(node);
    const ir_binary_rule *binary = ir_binary_rule_of(node);
    double part = unary != NULL ? unary->flops : binary != NULL ? binary->flops : 1;
    if (node->op->traits & IR_VARIADIC) part *= node->input_count - (ir_node_opcode(node) == IR_OP_Mean ? 0 : 1);
    out_cost->flops = part * ir_value_elements(node->outputs[0], length);
}
