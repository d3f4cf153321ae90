/* loop_shapes.c — mdot.LoopBegin and mdot.LoopEnd (ir/ops.h): shapes and costs. ir/evaluate.c runs loops. */
#include "ir/ops.h"

#include "ir/ops/operands.h"

mdot_status ir_shape_loop_begin(ir_graph *graph, ir_node *node, mdot_error *err)
{
    if (node->output_count != node->input_count + 1)
        return ir_fail(node, err, MDOT_MALFORMED, "%d outputs for %d states", node->output_count, node->input_count);
    if (node->outputs[0] == NULL) return ir_fail(node, err, MDOT_MALFORMED, "the number of the step is absent");
    ir_set_type(node, 0, MDOT_DTYPE_I64, 0, NULL);
    for (int k = 0; k < node->input_count; k++) {
        const ir_type *type = &node->inputs[k]->type;
        ir_set_type(node, 1 + k, type->dtype, type->rank, type->dim);
    }
    return MDOT_OK;
}

static mdot_status check_form(const ir_node *node, mdot_error *err)
{
    const ir_node *begin = ir_loop_begin_of(node);
    int64_t states = ir_node_int(node, "states", 0);
    if (begin == NULL) return ir_fail(node, err, MDOT_MALFORMED, "its first input must be the index of a LoopBegin");
    if (states != ir_loop_states(begin) || node->input_count < IR_LOOP_NEXT + states)
        return ir_fail(node, err, MDOT_MALFORMED, "its number of states differs from that of its LoopBegin");
    if (node->output_count > node->input_count - IR_LOOP_NEXT)
        return ir_fail(node, err, MDOT_MALFORMED, "it has more outputs than states and stacks");
    return MDOT_OK;
}

enum { MOST_STEPS = 1 << 24 }; /* 16 times the greatest length. More would look as if the program hung. */

/* The step count, which must be known and at least zero at every length. */
static mdot_status read_steps(const ir_graph *graph, const ir_node *node, ir_dim *out, mdot_error *err)
{
    ir_dim content[IR_MAX_KNOWN];
    int count;
    int64_t minimum, maximum;
    if (node->inputs[IR_LOOP_STEPS]->type.dtype != MDOT_DTYPE_I64)
        return ir_fail(node, err, MDOT_MALFORMED, "the number of steps must be of type i64");
    if (!ir_value_known(node->inputs[IR_LOOP_STEPS], content, &count) || count != 1)
        return ir_fail(node, err, MDOT_UNSUPPORTED,
                       "the number of steps depends on data; a loop must have a constant number of steps, or one that "
                       "is affine in the length");
    ir_dim_bounds(graph, content[0], &minimum, &maximum);
    if (ir_dim_is_number(content[0]) && maximum > MOST_STEPS)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "it has %lld steps; a loop may have at most %d", (long long)maximum,
                       MOST_STEPS);
    if (minimum < 0) {
        if (!ir_dim_is_number(content[0]))
            return ir_fail(node, err, MDOT_UNSUPPORTED, "the number of steps is negative for some lengths");
        content[0] = ir_dim_number(0); /* ONNX: a negative trip count means no steps */
    }
    *out = content[0];
    return MDOT_OK;
}

static mdot_status check_state(const ir_graph *graph, const ir_node *node, const ir_node *begin, int k, mdot_error *err)
{
    const ir_type *before = &begin->inputs[k]->type, *after = &node->inputs[IR_LOOP_NEXT + k]->type;
    if (ir_type_equal(before, after)) return MDOT_OK;
    char first[IR_SHAPE_TEXT_BYTES], then[IR_SHAPE_TEXT_BYTES];
    ir_operands args = ir_operands_of_graph(graph, node, err);
    return ir_fail(node, err, MDOT_UNSUPPORTED,
                   "state %d, \"%s\", is %s%s before the loop and %s%s behind a step; a state must keep its type and "
                   "shape, unless a constant number of steps is small enough to be unrolled",
                   k, begin->inputs[k]->name, mdot_dtype_name(before->dtype),
                   ir_shape_text(&args, before->rank, before->dim, first), mdot_dtype_name(after->dtype),
                   ir_shape_text(&args, after->rank, after->dim, then));
}

static mdot_status type_stack(ir_node *node, int k, ir_dim steps, mdot_error *err)
{
    int states = (int)ir_node_int(node, "states", 0);
    const ir_type *element = &node->inputs[IR_LOOP_NEXT + states + k]->type;
    int axis = ir_loop_axis(node, k, element->rank);
    ir_dim dims[MDOT_MAX_RANK];
    if (element->rank == MDOT_MAX_RANK)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "stack %d has more than %d dimensions", k, MDOT_MAX_RANK);
    if (axis < 0) return ir_fail(node, err, MDOT_MALFORMED, "the axis of stack %d is out of range", k);
    for (int d = 0; d <= element->rank; d++) dims[d] = d == axis ? steps : element->dim[d < axis ? d : d - 1];
    ir_set_type(node, states + k, element->dtype, element->rank + 1, dims);
    return MDOT_OK;
}

mdot_status ir_shape_loop_end(ir_graph *graph, ir_node *node, mdot_error *err)
{
    ir_dim steps;
    mdot_status status = check_form(node, err);
    if (status == MDOT_OK) status = read_steps(graph, node, &steps, err);
    if (status != MDOT_OK) return status;
    const ir_node *begin = ir_loop_begin_of(node);
    int states = ir_loop_states(begin);
    for (int k = 0; k < states && status == MDOT_OK; k++) {
        const ir_type *type = &begin->inputs[k]->type;
        status = check_state(graph, node, begin, k, err);
        ir_set_type(node, k, type->dtype, type->rank, type->dim);
    }
    for (int k = 0; k < ir_loop_elements(node) && status == MDOT_OK; k++) status = type_stack(node, k, steps, err);
    return status;
}
