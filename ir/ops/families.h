/* families.h — declarations that the operator families share: the rules that ops.def names, and helpers for writing
 * them.
 *
 * Internal to ir/. The name cost_move in a row of ops.def means the function ir_cost_move, and likewise for evaluators,
 * because the table's macro adds the prefix.
 */
#pragma once

#include "ir/ops.h"

typedef struct ir_operands ir_operands; /* operands.h */

/* Declares every function of the table. Names that serve several rows are declared several times, which C allows. A
 * shape rule is RULE(name), an ir_shape_fn; RESULT(name), the type of the only output; OUTPUTS(name), the type of each
 * output; or MOVES(name), RESULT for an operator that moves the elements of its first input, or, if it is variadic, of
 * all inputs. */
#define IR_DECLARE_RULE(name) mdot_status ir_shape_##name(ir_graph *graph, ir_node *node, mdot_error *err)
#define IR_DECLARE_RESULT(name) mdot_status ir_result_##name(const ir_operands *args, ir_type *out_type)
#define IR_DECLARE_OUTPUTS(name) mdot_status ir_outputs_##name(const ir_operands *args, int output, ir_type *out_type)
#define IR_DECLARE_MOVES(name) IR_DECLARE_RESULT(name)
#define OP(id, name, domain, least_in, most_in, least_out, most_out, traits, shape, cost, eval, slope, lowering, ...)  \
    IR_DECLARE_##shape;                                                                                                \
    void ir_##cost(const ir_node *node, int64_t length, ir_cost *out_cost);                                            \
    mdot_status ir_##eval(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err);
#include "ir/ops.def"

/* ---- Errors (ir/ops/helpers.c) --------------------------------------------------------------------------------- */

/* Calls mdot_fail with the prefix `node "name" (Type): `. ir_infer_node and ir_evaluate add the file. */
mdot_status ir_fail(const ir_node *node, mdot_error *err, mdot_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
mdot_status ir_fail_memory(const ir_node *node, mdot_error *err);
/* Prefixes the message in *err with the graph's file (ir/infer.c). Returns `status`. */
mdot_status ir_fail_in_file(const ir_graph *graph, mdot_status status, mdot_error *err);
/* MALFORMED unless the numbers of inputs and outputs match the table and required inputs are present (ir/infer.c). */
mdot_status ir_check_arity(const ir_node *node, mdot_error *err);
/* MALFORMED, with the types in question, unless the typed inputs have element types that the operator accepts
 * (ir/types.c). */
mdot_status ir_check_types(const ir_node *node, mdot_error *err);

/* ---- Dimensions (ir/dims.c) --------------------------------------------------------------------------------------
 *
 * L ranges over [1, graph->max_length]. If the result has no form with one floor (ir_dim), depends on L within the
 * range, or overflows, functions return false and leave *out unchanged. All are exact for every L in the range.
 */

/* Minimum and maximum over the range, saturated at the ends of int64. */
void ir_dim_bounds(const ir_graph *graph, ir_dim d, int64_t *out_min, int64_t *out_max);
bool ir_dim_always_le(const ir_graph *graph, ir_dim a, ir_dim b); /* a <= b for every L */
bool ir_dim_always_lt(const ir_graph *graph, ir_dim a, ir_dim b);
/* False: the answer depends on L. */
bool ir_dim_decide_equal(const ir_graph *graph, ir_dim a, ir_dim b, bool *out);
bool ir_dim_decide_less(const ir_graph *graph, ir_dim a, ir_dim b, bool *out);

bool ir_dim_add(ir_dim a, ir_dim b, ir_dim *out);
bool ir_dim_sub(ir_dim a, ir_dim b, ir_dim *out);
bool ir_dim_mul(ir_dim a, ir_dim b, ir_dim *out);                                     /* one factor must be a number */
bool ir_dim_div_exact(ir_dim a, ir_dim b, ir_dim *out);                               /* divides evenly for every L */
bool ir_dim_div_floor(const ir_graph *graph, ir_dim a, int64_t divisor, ir_dim *out); /* divisor > 0 */
/* The same without regard to the range of L, over which the quotient might be constant. */
bool ir_dim_quotient_form(ir_dim a, int64_t divisor, ir_dim *out);
bool ir_dim_div_ceil(const ir_graph *graph, ir_dim a, int64_t divisor, ir_dim *out);  /* divisor > 0 */
bool ir_dim_mod_floor(const ir_graph *graph, ir_dim a, int64_t divisor, ir_dim *out); /* divisor > 0; 0 <= result */
bool ir_dim_min(const ir_graph *graph, ir_dim a, ir_dim b, ir_dim *out);
bool ir_dim_max(const ir_graph *graph, ir_dim a, ir_dim b, ir_dim *out);

/* The dim d with product(over) = product(under) * d for every L, as for the -1 of Reshape. Products are polynomials
 * in L, and equal factors cancel. The empty product is 1. */
bool ir_dim_quotient(const ir_dim *over, int over_count, const ir_dim *under, int under_count, ir_dim *out);
/* Are two products the same polynomial? Then the element counts are equal. */
bool ir_dim_products_equal(const ir_dim *a, int a_count, const ir_dim *b, int b_count);

/* "3", "L", "2L+1", "(L+1)/2", "2*(L/2)-1"; quotients are rounded down. `symbol` names L (NULL: "L"). Writes at most
 * `size` bytes and returns `out`. */
enum { IR_DIM_TEXT_BYTES = 128 };
const char *ir_dim_text(ir_dim d, const char *symbol, char *out, size_t size);

/* ---- Types (ir/ops/helpers.c) ---------------------------------------------------------------------------------- */

/* Sets the type of output `index`. Does nothing if that output is absent or beyond the node's outputs. */
void ir_set_type(ir_node *node, int index, mdot_dtype dtype, int rank, const ir_dim *dims);
/* Records the content of output `index`. `elements` is copied. More than IR_MAX_KNOWN elements, or an absent output,
 * are ignored. */
mdot_status ir_set_known(ir_graph *graph, ir_node *node, int index, const ir_dim *elements, int count, mdot_error *err);

/* Combines two shapes by ONNX's multidirectional broadcasting: they are aligned at the end, and dims are equal or one
 * of them is 1. Two different numbers are MALFORMED; L against a dim other than 1 is UNSUPPORTED. `out` may be `a` or
 * `b`. */
mdot_status ir_broadcast_dims(const ir_node *node, const ir_dim *a, int a_rank, const ir_dim *b, int b_rank,
                              ir_dim *out, int *out_rank, mdot_error *err);
/* Broadcasts all present inputs from `first` on together. */
mdot_status ir_broadcast_inputs(const ir_node *node, int first, ir_dim *out, int *out_rank, mdot_error *err);

/* Maps -rank … rank-1 to 0 … rank-1. MALFORMED, naming the node, if out of range. */
mdot_status ir_normalize_axis(const ir_node *node, int64_t axis, int rank, int *out_axis, mdot_error *err);
/* Converts a list of axes to a bit mask. An axis that occurs twice is MALFORMED. */
mdot_status ir_axes_mask(const ir_node *node, const int64_t *axes, int count, int rank, unsigned *out_mask,
                         mdot_error *err);
/* The numbers in input `index` of a shape rule (axes, repeats, a shape without L …). UNSUPPORTED if they are computed
 * at run time. `out` holds up to IR_MAX_KNOWN. An absent input gives a count of 0; check ir_node_input first if that
 * matters. */
mdot_status ir_input_ints(const ir_node *node, int index, int64_t out[static IR_MAX_KNOWN], int *out_count,
                          mdot_error *err);

/* ---- Concrete shapes, for evaluators (ir/ops/helpers.c) ---------------------------------------------------------- */

/* Runs the node's evaluator. Allocates the output that the operator's `result` types. */
mdot_status ir_eval_node(ir_arena *arena, const ir_node *node, ir_inputs in, ir_wide **out, mdot_error *err);
/* Allocates a result tensor. MALFORMED naming the node for a negative dimension, else OUT_OF_MEMORY. dims may be NULL
 * if rank is 0. */
mdot_status ir_make_wide(ir_arena *arena, const ir_node *node, mdot_dtype dtype, int rank, const int64_t *dims,
                         ir_wide **out, mdot_error *err);
/* MALFORMED naming the node if the shapes are incompatible. `out` may be `a` or `b`. */
mdot_status ir_broadcast_shapes(const ir_node *node, const int64_t *a, int a_rank, const int64_t *b, int b_rank,
                                int64_t *out, int *out_rank, mdot_error *err);
/* Row-major strides in elements. */
void ir_strides(int rank, const int64_t *dims, int64_t *out_strides);
/* Strides for reading a tensor of shape `dims` at the indices of a broadcast shape of rank `out_rank`; 0 for repeated
 * dimensions. */
void ir_broadcast_strides(int rank, const int64_t *dims, int out_rank, int64_t *out_strides);
/* Advances to the next index in row-major order. False after the last one, which leaves zeros. Start from zeros; the
 * shape must be non-empty. */
bool ir_next_index(int rank, const int64_t *dims, int64_t *index);
int64_t ir_dot_index(int rank, const int64_t *index, const int64_t *strides);
/* Copies element `from` of one tensor to element `to` of another with the same dtype. */
static inline void ir_copy_element(ir_wide *target, int64_t to, const ir_wide *source, int64_t from)
{
    if (target->f != NULL)
        target->f[to] = source->f[from];
    else
        target->i[to] = source->i[from];
}

/* ---- Element arithmetic, for evaluators (ir/ops/elementwise_math.c) ---------------------------------------------- */

/* Rounds to the nearest value of f16 or bf16. f32 and f64 stay as they are, because the oracle computes in double. */
double ir_round_float(mdot_dtype dtype, double value);
/* Rounds to the nearest value of any floating dtype, including f32: the value that memory holds. */
double ir_nearest_float(mdot_dtype dtype, double value);

/* ---- Costs (ir/ops/helpers.c) ------------------------------------------------------------------------------------ */

double ir_value_elements(const ir_value *value, int64_t length); /* 0 for NULL or for an unknown shape */
double ir_value_bytes(const ir_value *value, int64_t length);

/* ---- RotaryEmbedding of com.microsoft (ir/ops/contrib_variants.c) ------------------------------------------------ */

/* Head count of an input of three dimensions; 0 if it has four, or if the number is unstated. UNSUPPORTED for variants
 * that ONNX's operator lacks. */
mdot_status ir_contrib_rotary_heads(const ir_node *node, const ir_type *x, const ir_type *cache, int64_t *out_heads,
                                    mdot_error *err);

/* ---- FusedGemm (ir/ops/gemm_fused.c) ---------------------------------------------------------------------------- */

enum { IR_GEMM_PARAMETERS = 3 };

typedef struct ir_activation {
    ir_opcode opcode; /* IR_OP_COUNT: absent */
    int attr_count;
    ir_attr attrs[IR_GEMM_PARAMETERS]; /* with the names that the activation itself uses */
} ir_activation;

/* Reads the activation behind the matmul of a FusedGemm node. UNSUPPORTED for an unknown name. */
mdot_status ir_fused_gemm_activation(const ir_node *node, ir_activation *out, mdot_error *err);

/* Attribute of a node while the graph is evaluated in f32, for evaluators of fused operators with sums inside. */
#define IR_EVALUATED_IN_F32 "mdot.f32"       /* not 0: seed of the noise */
#define IR_EVALUATED_WITH_NOISE "mdot.noise" /* units in the last place; 0: none */
/* Returns a number between -1 and 1. */
double ir_next_noise(uint64_t *state);

/* Adds noise of up to `units` in the last place to a result of `node` that correct implementations round in different
 * ways; evaluation_noise.c. */
void ir_add_noise(const ir_node *node, const ir_wide *const *input, double units, ir_wide *wide, ir_arena *scratch,
                  uint64_t *state);
