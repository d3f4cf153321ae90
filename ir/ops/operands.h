/* operands.h — what an operator's rules read of a node, through one interface.
 *
 * A shape rule knows types and some integer content, both affine in L; an evaluation knows everything. Most operators
 * have one geometry (which axis, how many rows, what is cut where) that both need. It is worked out once, from an
 * ir_operands, which is made of either: in an evaluation all dimensions are numbers and all content is known.
 *
 * All faults name the node.
 */
#ifndef IR_OPS_OPERANDS_H
#define IR_OPS_OPERANDS_H

#include "ir/ops/families.h"

typedef struct ir_operands {
    const ir_node *node;
    const ir_wide *const *tensors; /* of an evaluation; NULL: the types and the known content of the graph's values */
    const ir_graph *graph;         /* the range of L */
    mdot_error *err;
} ir_operands;

ir_operands ir_operands_of_graph(const ir_graph *graph, const ir_node *node, mdot_error *err);
ir_operands ir_operands_of_tensors(const ir_node *node, const ir_wide *const *tensors, mdot_error *err);

bool ir_operand_given(const ir_operands *from, int i);
/* Of an operand that is given. */
ir_type ir_operand_type(const ir_operands *from, int i);
/* Type of an operand; MALFORMED, naming it as `what`, where it is absent or has another rank than `rank` (-1: any). */
mdot_status ir_operand_need(const ir_operands *from, int i, const char *what, int rank, ir_type *out_type);

/* MALFORMED where an operand that is given holds no floating numbers, or no integers. */
mdot_status ir_operand_need_floats(const ir_operands *from, int i, const char *what);
mdot_status ir_operand_need_integers(const ir_operands *from, int i, const char *what);
/* MALFORMED where operand i is given and of another element type than operand `like`. */
mdot_status ir_operand_need_same(const ir_operands *from, int i, int like);

/* MALFORMED where an operand that is given is no scalar, nor one element in more dimensions. */
mdot_status ir_operand_need_one(const ir_operands *from, int i, const char *what);

/* Content of operand i, up to IR_MAX_KNOWN elements, all of them integers; false: absent or not known. */
bool ir_operand_known(const ir_operands *from, int i, ir_dim *out, int *out_count);
/* The same of an integer type where the output cannot be typed without it: UNSUPPORTED says that the shape depends on
 * data. `what` is a plural. */
mdot_status ir_operand_dims(const ir_operands *from, int i, const char *what, ir_dim *out, int *out_count);
/* The same where every element must be a number. */
mdot_status ir_operand_ints(const ir_operands *from, int i, const char *what, int64_t *out, int *out_count);

/* The axis in attribute `name`, as 0 … rank - 1. */
mdot_status ir_operand_axis(const ir_operands *from, const char *name, int64_t fallback, int rank, int *out_axis);

/* Makes an output tensor of an evaluation; the type's dimensions are numbers. */
mdot_status ir_make_typed(ir_arena *arena, const ir_node *node, const ir_type *type, ir_wide **out, mdot_error *err);

/* Whether an output is there to be made. */
static inline bool ir_node_wants(const ir_node *node, int output)
{
    return output < node->output_count && node->outputs[output] != NULL;
}

/* Input i of an evaluation; NULL when absent. */
static inline const ir_wide *ir_tensor_input(const ir_node *node, const ir_wide *const *in, int i)
{
    return i < node->input_count ? in[i] : NULL;
}

/* The type of an output, from the operands. The rule of an operator whose only output has a geometry of its own. */
typedef mdot_status (*ir_result_fn)(const ir_operands *from, ir_type *out_type);

/* Shape rule: types output 0 by `result`. */
mdot_status ir_shape_by(ir_graph *graph, ir_node *node, ir_result_fn result, mdot_error *err);

/* Evaluation: makes the node's only output, typed by `result`. */
mdot_status ir_make_by(ir_arena *arena, const ir_node *node, const ir_wide *const *in, ir_result_fn result,
                       ir_wide **out, mdot_error *err);

/* Records the content of the outputs of a node that only moves elements: bit i of `moved` says that input i's elements
 * are moved, the others steer. Content that is affine in L moves like any other, by evaluating the node on the
 * elements' numbers. Does nothing where something is not known; passes on a fault of the evaluation. */
mdot_status ir_move_known(ir_graph *graph, ir_node *node, unsigned moved, mdot_error *err);
/* Shape rule of an operator with one output that only moves elements: both of the above. */
mdot_status ir_shape_by_move(ir_graph *graph, ir_node *node, ir_result_fn result, unsigned moved, mdot_error *err);

/* "[L, 4, 32]" for messages; cut where it does not fit. Returns `out`. */
enum { IR_SHAPE_TEXT_BYTES = 192 };
const char *ir_shape_text(const ir_operands *from, int rank, const ir_dim *dims, char *out);
/* MALFORMED where all dimensions are numbers; a fault that only some lengths have is UNSUPPORTED. */
mdot_status ir_dims_fault(int rank, const ir_dim *dims);

#endif
