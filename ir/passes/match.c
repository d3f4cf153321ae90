/* match.c — matches patterns (match.h) by a depth-first search over a list of goals.
 *
 * A goal is a pattern that must match a value. Solving the first goal may add goals before the rest. Because the rest
 * is always available, an early choice (for example, the order of operands) is undone if a later goal fails. Goals live
 * on the C stack. Patterns have about a dozen nodes, so the depth is small. */
#include "ir/passes/match.h"

#include <math.h>

typedef struct goal {
    const ir_pattern *pattern;
    ir_value *value;
    const struct goal *next;
} goal;

static bool solve(ir_match *match, const goal *first);

/* The relative tolerance between a constant and the number in the formula: the rounding of the type or of the type that
 * it was cast from, and for f32 the precision of typed digits (1.4142135, 0.797885). */
static double rounding(const ir_value *value)
{
    switch (value->rounded != MDOT_DTYPE_NONE ? value->rounded : value->type.dtype) {
    case MDOT_DTYPE_F16: return 1e-3;
    case MDOT_DTYPE_BF16: return 8e-3;
    default: return 2e-6;
    }
}

bool ir_value_is_filled(const ir_value *value, double number, double tolerance)
{
    const ir_tensor *whole = value->constant;
    if (whole == NULL || whole->data == NULL || whole->count < 1) return false;
    size_t size = mdot_dtype_size_bytes(whole->dtype);
    for (int64_t i = 0; i < whole->count; i++) {
        ir_tensor one = {.dtype = whole->dtype, .count = 1, .data = (const char *)whole->data + (size_t)i * size};
        double element;
        if (!ir_value_scalar(&(ir_value){.constant = &one}, &element)) return false;
        if (element != number && !(fabs(element - number) <= tolerance * fabs(number))) return false;
    }
    return true;
}

/* Binds the slot to the value while solving the goals of `rest`, and frees it if they fail. */
static bool bind(ir_match *match, int slot, ir_value *value, const goal *rest)
{
    if (match->slot[slot] != NULL) return match->slot[slot] == value && solve(match, rest);
    match->slot[slot] = value;
    if (solve(match, rest)) return true;
    match->slot[slot] = NULL;
    return false;
}

static bool solve_operands(ir_match *match, const ir_pattern *pattern, ir_node *node, bool swapped, const goal *rest)
{
    goal goals[IR_PATTERN_ARGS];
    for (int i = IR_PATTERN_ARGS - 1; i >= 0; i--) {
        if (pattern->arg[i] == NULL) continue;
        ir_value *operand = ir_node_input(node, swapped ? 1 - i : i);
        if (operand == NULL) return false;
        goals[i] = (goal){pattern->arg[i], operand, rest};
        rest = &goals[i];
    }
    return solve(match, rest);
}

static bool solve_op(ir_match *match, const ir_pattern *pattern, ir_value *value, const goal *rest)
{
    ir_node *node = value->def;
    if (node == NULL || node->op != &ir_ops[pattern->op] || value->output != 0) return false;
    if (solve_operands(match, pattern, node, false, rest)) return true;
    bool swappable = (node->op->traits & IR_COMMUTATIVE) && node->input_count == 2 && pattern->arg[1] != NULL;
    return swappable && solve_operands(match, pattern, node, true, rest);
}

/* Matches one factor with either operand of a Mul, and the product of the other factors with the other operand. */
static bool solve_product(ir_match *match, const ir_pattern *pattern, ir_value *value, const goal *rest)
{
    ir_node *node = value->def;
    if (node == NULL || node->op != &ir_ops[IR_OP_Mul]) return false;
    int count = 0;
    while (count < IR_PATTERN_ARGS && pattern->arg[count] != NULL) count++;
    for (int one = 0; one < count; one++) {
        ir_pattern others = {.kind = IR_PATTERN_MATMUL};
        for (int i = 0, n = 0; i < count; i++)
            if (i != one) others.arg[n++] = pattern->arg[i];
        const ir_pattern *remainder = count == 2 ? others.arg[0] : &others;
        for (int side = 0; side < 2; side++) {
            goal other_item = {remainder, node->inputs[1 - side], rest};
            goal factor = {pattern->arg[one], node->inputs[side], &other_item};
            if (solve(match, &factor)) return true;
        }
    }
    return false;
}

static bool solve(ir_match *match, const goal *first)
{
    if (first == NULL) return true;
    const ir_pattern *pattern = first->pattern;
    ir_value *value = first->value;
    double scalar;
    switch (pattern->kind) {
    case IR_PATTERN_ANY: return bind(match, pattern->slot, value, first->next);
    case IR_PATTERN_NUMBER:
        return ir_value_is_filled(value, pattern->number, rounding(value)) && solve(match, first->next);
    case IR_PATTERN_SCALAR: return ir_value_scalar(value, &scalar) && bind(match, pattern->slot, value, first->next);
    case IR_PATTERN_OP: return solve_op(match, pattern, value, first->next);
    case IR_PATTERN_MATMUL: return solve_product(match, pattern, value, first->next);
    case IR_PATTERN_EITHER:
        for (int i = 0; i < IR_PATTERN_ARGS && pattern->arg[i] != NULL; i++)
            if (solve(match, &(goal){pattern->arg[i], value, first->next})) return true;
        return false;
    case IR_PATTERN_LET: return bind(match, pattern->slot, value, &(goal){pattern->arg[0], value, first->next});
    }
    return false;
}

bool ir_match_value(const ir_pattern *pattern, ir_value *value, ir_match *out_match)
{
    *out_match = (ir_match){{NULL}};
    return solve(out_match, &(goal){pattern, value, NULL});
}

double ir_match_scalar(const ir_match *match, int slot)
{
    double scalar = 0;
    return match->slot[slot] != NULL && ir_value_scalar(match->slot[slot], &scalar) ? scalar : 0;
}
