/* match.h — patterns over the graph that read like formulas:
 *
 *     static const ir_pattern *const silu = P(Mul, P_ANY(X), P(Sigmoid, P_ANY(X)));
 *
 * A pattern is a constant tree. Matching is a search with backtracking. Operands of commutative operators are tried
 * in both orders, and alternatives in sequence. A slot that occurs twice must match the same value twice. A pattern
 * may omit operands (for example, the axes of a reduction) and attributes; then the rule must check them. P_LET keeps
 * the value it needs.
 */
#pragma once

#include "ir/ops.h"

enum { IR_MATCH_SLOTS = 10, IR_PATTERN_ARGS = 4 };

typedef enum ir_pattern_kind {
    IR_PATTERN_ANY,    /* any value, stored in the slot */
    IR_PATTERN_NUMBER, /* a constant whose elements all equal `number` up to the rounding of the type */
    IR_PATTERN_SCALAR, /* any scalar constant, stored in the slot */
    IR_PATTERN_OP,     /* a node's first output with this operator */
    IR_PATTERN_MATMUL, /* arg[0] * arg[1] * arg[2], in any association and order */
    IR_PATTERN_EITHER, /* the first argument for which the whole pattern matches */
    IR_PATTERN_LET     /* arg[0], whose value is stored in the slot */
} ir_pattern_kind;

typedef struct ir_pattern ir_pattern;
struct ir_pattern {
    ir_pattern_kind kind;
    ir_opcode op;
    int slot;
    double number;
    const ir_pattern *arg[IR_PATTERN_ARGS]; /* terminated by the first NULL */
};

#define P(name, ...) (&(const ir_pattern){.kind = IR_PATTERN_OP, .op = IR_OP_##name, .arg = {__VA_ARGS__}})
#define P_ANY(s) (&(const ir_pattern){.kind = IR_PATTERN_ANY, .slot = (s)})
#define P_NUMBER(x) (&(const ir_pattern){.kind = IR_PATTERN_NUMBER, .number = (x)})
#define P_SCALAR(s) (&(const ir_pattern){.kind = IR_PATTERN_SCALAR, .slot = (s)})
#define P_PRODUCT(...) (&(const ir_pattern){.kind = IR_PATTERN_MATMUL, .arg = {__VA_ARGS__}})
#define P_EITHER(...) (&(const ir_pattern){.kind = IR_PATTERN_EITHER, .arg = {__VA_ARGS__}})
#define P_LET(s, ...) (&(const ir_pattern){.kind = IR_PATTERN_LET, .slot = (s), .arg = {__VA_ARGS__}})
#define P_SQUARE(...) P_EITHER(P(Pow, __VA_ARGS__, P_NUMBER(2)), P(Mul, __VA_ARGS__, __VA_ARGS__))
#define P_ROOT(...) P_EITHER(P(Sqrt, __VA_ARGS__), P(Pow, __VA_ARGS__, P_NUMBER(0.5)))

typedef struct ir_match {
    ir_value *slot[IR_MATCH_SLOTS]; /* NULL: unbound */
} ir_match;

/* If the result is false, *out_match is undefined. */
bool ir_match_value(const ir_pattern *pattern, ir_value *value, ir_match *out_match);

/* The number in a bound scalar slot. */
double ir_match_scalar(const ir_match *match, int slot);

/* Is the value a constant, of any shape except empty, whose elements all equal the number within the relative
 * tolerance? */
bool ir_value_is_filled(const ir_value *value, double number, double tolerance);
