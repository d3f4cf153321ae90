/* operands.h — the operands of a node, as an operator's rules read them through one interface.
 *
 * A shape rule knows types and some integer content, both dimensions (ir_dim); an evaluation knows everything. Most
 * operators have one geometry (the axis, the number of rows, the cuts) that both need. It is derived once, from an
 * ir_operands, which can be built from either. In an evaluation all dimensions are numbers and all content is known.
 *
 * All errors name the node.
 */
#ifndef IR_OPS_OPERANDS_H
#define IR_OPS_OPERANDS_H

#include "ir/ops/families.h"

typedef struct ir_operands {
    const ir_node *node;
    const ir_wide *const *tensors; /* tensors of an evaluation; NULL: use the types and known content of the graph's
                                    * values */
    const ir_graph *graph;         /* gives the range of L */
    mdot_error *err;
} ir_operands;

ir_operands ir_operands_of_graph(const ir_graph *graph, const ir_node *node, mdot_error *err);
ir_operands ir_operands_of_tensors(const ir_node *node, const ir_wide *const *tensors, mdot_error *err);

bool ir_operand_given(const ir_operands *from, int i);
/* Type of an operand that must be present. */
ir_type ir_operand_type(const ir_operands *from, int i);
/* Type of an operand. MALFORMED, naming it as `what`, if it is absent or its rank differs from `rank` (-1: any). */
mdot_status ir_operand_need(const ir_operands *from, int i, const char *what, int rank, ir_type *out_type);

/* MALFORMED if a present operand is not of a floating type; the second function requires an integer type. */
mdot_status ir_operand_need_floats(const ir_operands *from, int i, const char *what);
mdot_status ir_operand_need_integers(const ir_operands *from, int i, const char *what);
/* MALFORMED if operand i is present and its element type differs from that of operand `like`. */
mdot_status ir_operand_need_same(const ir_operands *from, int i, int like);

/* MALFORMED if a present operand has more than one element. */
mdot_status ir_operand_need_one(const ir_operands *from, int i, const char *what);

/* Content of operand i, up to IR_MAX_KNOWN elements, all of them integers. False: absent or unknown. */
bool ir_operand_known(const ir_operands *from, int i, ir_dim out[static IR_MAX_KNOWN], int *out_count);
/* Content of integer type that is required for typing the output. UNSUPPORTED reports that the shape depends on data.
 * `what` is a plural. */
mdot_status ir_operand_dims(const ir_operands *from, int i, const char *what, ir_dim out[static IR_MAX_KNOWN],
                            int *out_count);
/* Does the same, but every element must be a number. */
mdot_status ir_operand_ints(const ir_operands *from, int i, const char *what, int64_t out[static IR_MAX_KNOWN],
                            int *out_count);

/* Checks operand i, of indices into a dimension of `extent`: every `stride`-th element from `first` on. Elements that
 * are known must be in [-extent, extent) at every length; others are clamped at run time. UNSUPPORTED if it depends on
 * the length, otherwise OUT_OF_RANGE. An evaluation checks each index itself. */
mdot_status ir_operand_need_indices(const ir_operands *from, int i, int64_t first, int64_t stride, ir_dim extent);

/* The axis in attribute `name`, as 0 … rank - 1. */
mdot_status ir_operand_axis(const ir_operands *from, const char *name, int64_t fallback, int rank, int *out_axis);

/* Makes an output tensor of an evaluation; the type's dimensions are numbers. */
mdot_status ir_make_typed(ir_arena *arena, const ir_node *node, const ir_type *type, ir_wide **out, mdot_error *err);

/* Is the output present? */
static inline bool ir_node_wants(const ir_node *node, int output)
{
    return output < node->output_count && node->outputs[output] != NULL;
}

/* Input i of an evaluation. NULL: absent. */
static inline const ir_wide *ir_tensor_input(const ir_node *node, const ir_wide *const *in, int i)
{
    return i < node->input_count ? in[i] : NULL;
}

/* Computes the type of an output from the operands: the rule of an operator with a single output and its own
 * geometry. */
typedef mdot_status (*ir_result_fn)(const ir_operands *from, ir_type *out_type);

/* Shape rule: types output 0 by `result`. */
mdot_status ir_shape_by(ir_graph *graph, ir_node *node, ir_result_fn result, mdot_error *err);

/* Evaluation: allocates the node's only output, typed by `result`. */
mdot_status ir_make_by(ir_arena *arena, const ir_node *node, const ir_wide *const *in, ir_result_fn result,
                       ir_wide **out, mdot_error *err);

/* Records the known content of the outputs of a node that only moves elements. Bit i of `moved` means that input i's
 * elements are moved; the others steer. Content that depends on L moves like any other, by evaluating the node on
 * the elements' numbers. Does nothing if some content is unknown. Passes on an error of the evaluation. */
mdot_status ir_move_known(ir_graph *graph, ir_node *node, unsigned moved, mdot_error *err);
/* Shape rule of an operator with one output that only moves elements: both ir_shape_by and ir_move_known. */
mdot_status ir_shape_by_move(ir_graph *graph, ir_node *node, ir_result_fn result, unsigned moved, mdot_error *err);

/* "[L, 4, 32]" for messages, truncated if it does not fit. Returns `out`. */
enum { IR_SHAPE_TEXT_BYTES = 192 };
const char *ir_shape_text(const ir_operands *from, int rank, const ir_dim *dims, char *out);
/* MALFORMED if all dimensions are numbers; UNSUPPORTED if only some lengths cause the error. */
mdot_status ir_dims_fault(int rank, const ir_dim *dims);

#endif
