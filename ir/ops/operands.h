/* operands.h — a node's operands, as an operator's rules read them through one interface.
 *
 * A shape rule knows types and some integer content, both dimensions (ir_dim); an evaluation knows everything. Most
 * operators have one geometry (the axis, the row count, the cuts) that both need. It is derived once, from an
 * ir_operands, which can be built from either. In an evaluation all dimensions are numbers and all content is known.
 *
 * All errors name the node. */
#pragma once

#include "ir/graph.h"
#include "ir/ops/families.h"

struct ir_operands {
    const ir_node *node;
    ir_inputs tensors;     /* tensors of an evaluation; NULL: use the types and known content of the graph's
                                    * values */
    const ir_graph *graph; /* gives the range of L */
    mdot_error *err;
};

ir_operands ir_operands_of_graph(const ir_graph *graph, const ir_node *node, mdot_error *err);
ir_operands ir_operands_of_tensors(const ir_node *node, ir_inputs tensors, mdot_error *err);

/* ir_fail for the operands' node. */
#define ir_refuse(args, ...) ir_fail((args)->node, (args)->err, __VA_ARGS__)
#define ir_malformed(args, ...) ir_refuse(args, MDOT_MALFORMED, __VA_ARGS__)
#define ir_unsupported(args, ...) ir_refuse(args, MDOT_UNSUPPORTED, __VA_ARGS__)

bool ir_operand_given(const ir_operands *args, int i);
/* A required operand's type. */
ir_type ir_operand_type(const ir_operands *args, int i);
/* An operand's type. MALFORMED, with the name `what`, if the operand is absent or has another rank than `rank` (-1:
 * any). */
mdot_status ir_operand_need(const ir_operands *args, int i, const char *what, int rank, ir_type *out_type);

/* MALFORMED if a present operand is not of a floating type; the second function requires an integer type. */
mdot_status ir_operand_need_floats(const ir_operands *args, int i, const char *what);
mdot_status ir_operand_need_integers(const ir_operands *args, int i, const char *what);
/* MALFORMED if operand i is present with another element type than operand `like`. */
mdot_status ir_operand_need_same(const ir_operands *args, int i, int like);

/* MALFORMED if a present operand has more than one element. */
mdot_status ir_operand_need_one(const ir_operands *args, int i, const char *what);

/* Content of operand i, up to IR_MAX_KNOWN elements, all of them integers. False: absent or unknown. */
bool ir_operand_known(const ir_operands *args, int i, ir_dim out[static IR_MAX_KNOWN], int *out_count);
/* Integer content required for typing the output. UNSUPPORTED: the shape depends on data. `what` is a plural. */
mdot_status ir_operand_dims(const ir_operands *args, int i, const char *what, ir_dim out[static IR_MAX_KNOWN],
                            int *out_count);
/* Does the same, but every element must be a number. */
mdot_status ir_operand_ints(const ir_operands *args, int i, const char *what, int64_t out[static IR_MAX_KNOWN],
                            int *out_count);

/* Checks operand i, of indices into a dimension of `extent`: every `stride`-th element from `first` on. Elements that
 * are known must be in [-extent, extent) at every length; others are clamped at run time. UNSUPPORTED if it depends on
 * the length, otherwise OUT_OF_RANGE. An evaluation checks each index itself. */
mdot_status ir_operand_need_indices(const ir_operands *args, int i, int64_t first, int64_t stride, ir_dim extent);

/* The number of a text attribute among its names; the first is the default. UNSUPPORTED for other texts. */
mdot_status ir_operand_choice(const ir_operands *args, const char *attr, const char *const *names, int count,
                              int *out_choice);

/* The axis in attribute `name`, as 0 … rank - 1. */
mdot_status ir_operand_axis(const ir_operands *args, const char *name, int64_t fallback, int rank, int *out_axis);

/* Makes an output tensor of an evaluation; the type's dimensions are numbers. */
mdot_status ir_make_typed(ir_arena *arena, const ir_node *node, const ir_type *type, ir_wide **out, mdot_error *err);

/* Output i of an evaluation by `outputs`, or if the node lacks it, a tensor of its type. */
mdot_status ir_make_output(ir_arena *arena, const ir_operands *args, int i, ir_wide **out, ir_wide **out_tensor);

/* Is the output present? */
static inline bool ir_node_wants(const ir_node *node, int output)
{
    return output < node->output_count && node->outputs[output] != NULL;
}

/* Input i of an evaluation. NULL: absent. */
static inline const ir_wide *ir_tensor_input(const ir_node *node, ir_inputs in, int i)
{
    return i < node->input_count ? in[i] : NULL;
}

mdot_status ir_shape_by(ir_graph *graph, ir_node *node, ir_result_fn result, mdot_error *err);
/* Shape rules of the table: type output 0 by the operator's result rule, or each output by its rule for outputs. The
 * last one also moves known content. */
mdot_status ir_shape_by_outputs(ir_graph *graph, ir_node *node, mdot_error *err);
mdot_status ir_shape_by_result(ir_graph *graph, ir_node *node, mdot_error *err);
mdot_status ir_shape_by_move(ir_graph *graph, ir_node *node, mdot_error *err);

/* Evaluation: allocates the node's only output, typed by `result`. */
mdot_status ir_make_by(ir_arena *arena, const ir_node *node, ir_inputs in, ir_result_fn result, ir_wide **out,
                       mdot_error *err);

/* Records the known content of the outputs of a node that only moves elements. Bit i of `moved` means that input i's
 * elements are moved; the others steer. Content that depends on L moves like any other, by evaluating the node on
 * the elements' numbers. Does nothing if some content is unknown. Passes on an error of the evaluation. */
mdot_status ir_move_known(ir_graph *graph, ir_node *node, unsigned moved, mdot_error *err);

/* "[L, 4, 32]" for messages, truncated if it does not fit. Returns `out`. */
enum { IR_SHAPE_TEXT_BYTES = 192 };
const char *ir_shape_text(const ir_operands *args, int rank, const ir_dim *dims, char *out);
/* MALFORMED if all dimensions are numbers; UNSUPPORTED if only some lengths cause the error. */
mdot_status ir_dims_fault(int rank, const ir_dim *dims);

/* ---- index.c: concrete tensors viewed around an axis or through strides: helpers that the evaluators of data movement
 * share.
 *
 * The operator families in ir/ops/ use it besides the index helpers of families.h.
 */

/* Product of dims[from] … dims[to - 1]. It is exact if the tensor has elements. For an empty tensor it may wrap, but
 * is then unused. */
static inline int64_t ir_product(const int64_t *dims, int from, int to)
{
    uint64_t product = 1;
    for (int i = from; i < to; i++) product *= (uint64_t)dims[i];
    return (int64_t)product;
}

/* A tensor around one axis: element (outer, k, inner) is at (outer * extent + k) * inner extent + inner. */
typedef struct ir_axis_view {
    int64_t outer, extent, inner;
} ir_axis_view;

ir_axis_view ir_view_axis(const ir_wide *wide, int axis);

/* Normalises an index from data: negative values count from the end. OUT_OF_RANGE, naming the node, beyond `extent`. */
mdot_status ir_wrap_index(const ir_node *node, int64_t index, int64_t extent, int64_t *out_index, mdot_error *err);

/* Copies `count` adjacent elements; both tensors have the same type of storage. */
void ir_copy_elements(ir_wide *target, int64_t to, const ir_wide *source, int64_t from, int64_t count);

/* target[index] = source[base + sum of index[i] * strides[i]] for every index of target. */
void ir_copy_strided(ir_wide *target, const ir_wide *source, int64_t base, const int64_t *strides);

/* ---- norm.c: functions that the normalisations share: norm.c (rows), norm_channels.c (channels), norm_fused.c (ONNX
 * Runtime's). */

/* out = (x - mean) / sqrt(variance + epsilon) of `count` adjacent numbers. Returns the mean and the reciprocal of the
 * divisor. `out` may be `x`. */
void ir_norm_row(const double *x, int64_t count, double epsilon, double *out, double *out_mean, double *out_inverse);

/* Multiply by, and add, a tensor that broadcasts to `out`. */
void ir_norm_multiply(ir_wide *out, const ir_wide *factor);
void ir_norm_add(ir_wide *out, const ir_wide *term);

/* Checks a scale or bias: MALFORMED if operand i is present and does not broadcast to `type`, or holds integers. */
mdot_status ir_norm_need_parameter(const ir_operands *args, int i, const char *what, const ir_type *type);
/* Checks a vector with one number for each of `count`. */
mdot_status ir_norm_need_vector(const ir_operands *args, int i, const char *what, ir_dim count);
