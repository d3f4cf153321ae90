/* elementwise.h — the computation of elementwise operators on one element, as tables by operator.
 *
 * Internal to the elementwise family. Its shape rules look up the accepted element types, its cost rule the operations
 * per element, and its evaluators the function. Integers are computed exactly, in 64 bits, and wrapped to the type
 * afterwards. All functions are defined for every operand. */
#pragma once

#include "ir/ops/families.h"

enum { IR_ON_FLOAT = 1u << 0, IR_ON_INTEGER = 1u << 1, IR_ON_BOOL = 1u << 2 };

/* FLOPs per element. Elementary functions count as one operation, composed ones as the sum of their parts, so a graph
 * costs the same with GELU in one node or in five. */
typedef struct ir_unary_rule {
    unsigned accepts; /* 0: not a unary elementwise operator */
    int flops;
    double (*on_float)(double x, double alpha, double beta);
    bool makes_bool;
    int64_t (*on_integer)(int64_t x, bool is_unsigned); /* bool operands are 0 and 1 */
    const char *alpha_name;                             /* attributes read as alpha and beta, with defaults */
    double alpha;
    const char *beta_name;
    double beta;
} ir_unary_rule;

typedef struct ir_binary_rule {
    unsigned accepts; /* 0: not a binary or variadic elementwise operator */
    int flops;
    double (*on_float)(double a, double b);
    int64_t (*on_integer)(int64_t a, int64_t b, bool is_unsigned);
    bool makes_bool;
} ir_binary_rule;

/* The rule of the node's operator, depending on the attributes (Gelu's approximation, Mod's fmod, BitShift's
 * direction). NULL: the operator has no such rule. Variadic operators are folds of their binary rule. */
const ir_unary_rule *ir_unary_rule_of(const ir_node *node);
const ir_binary_rule *ir_binary_rule_of(const ir_node *node);
/* The rule with default attributes. */
const ir_binary_rule *ir_binary_default(ir_opcode opcode);

/* MALFORMED if the operator is undefined for `dtype`, UNSUPPORTED for strings. */
mdot_status ir_check_accepts(const ir_node *node, unsigned accepts, mdot_dtype dtype, mdot_error *err);

/* The result type of a Cast, or of a CastLike whose second operand has the type `like`. */
mdot_status ir_cast_target(const ir_node *node, mdot_dtype like, mdot_dtype *out_dtype, mdot_error *err);

/* Sets `known` on output 0 if it follows from the known content of the inputs (ir/ops/elementwise_known.c). */
mdot_status ir_elementwise_known(ir_graph *graph, ir_node *node, mdot_error *err);
