/* elementwise_known.c — propagates content known at compile time through elementwise operators on small integers.
 * Floating types count if they hold the integers exactly, because exporters compute lengths in them (Cast, Min, Cast).
 *
 * Shape arithmetic in exported models (Shape → Gather → Mul → Concat → Reshape and the like) is evaluated here. An
 * element is a dimension (ir_dim). If a result has no such form, or could wrap in the type for some L, the output's
 * content is unknown. */
#include "ir/ops/elementwise.h"

/* The functions return false if the result is unknown. */
typedef bool (*known_fn)(const ir_graph *graph, const ir_dim *a, ir_dim *out);

#define KNOWN(name, is_known)                                                                                          \
    static bool name(const ir_graph *graph, const ir_dim *a, ir_dim *out) { return is_known; }

static bool both_numbers(const ir_dim *a) { return ir_dim_is_number(a[0]) && ir_dim_is_number(a[1]); }

KNOWN(known_add, ir_dim_add(a[0], a[1], out))
KNOWN(known_sub, ir_dim_sub(a[0], a[1], out))
KNOWN(known_mul, ir_dim_mul(a[0], a[1], out))

/* Integer division truncates, which equals rounding down for a non-negative dividend. */
static bool known_div(const ir_graph *graph, const ir_dim *a, ir_dim *out)
{
    if (both_numbers(a)) {
        if (a[1].offset == 0 || a[1].offset == -1) return false;
        *out = ir_dim_number(a[0].offset / a[1].offset);
        return true;
    }
    if (ir_dim_div_exact(a[0], a[1], out)) return true;
    if (!ir_dim_is_number(a[1]) || a[1].offset <= 0) return false;
    return ir_dim_always_le(graph, ir_dim_number(0), a[0]) && ir_dim_div_floor(graph, a[0], a[1].offset, out);
}

/* ONNX's Mod has the divisor's sign, fmod the dividend's. They are equal if both are non-negative. */
static bool known_mod(const ir_graph *graph, const ir_dim *a, ir_dim *out)
{
    if (!ir_dim_is_number(a[1]) || a[1].offset <= 0 || !ir_dim_always_le(graph, ir_dim_number(0), a[0])) return false;
    return ir_dim_mod_floor(graph, a[0], a[1].offset, out);
}

/* A remainder stays in a floating type. */
KNOWN(known_quotient, ir_dim_div_exact(a[0], a[1], out))
KNOWN(known_min, ir_dim_min(graph, a[0], a[1], out))
KNOWN(known_max, ir_dim_max(graph, a[0], a[1], out))

static bool known_truth(bool decided, bool truth, ir_dim *out)
{
    if (decided) *out = ir_dim_number(truth);
    return decided;
}

static bool known_equal(const ir_graph *graph, const ir_dim *a, ir_dim *out)
{
    bool truth = false;
    bool decided = ir_dim_decide_equal(graph, a[0], a[1], &truth);
    return known_truth(decided, truth, out);
}

static bool known_less(const ir_graph *graph, const ir_dim *a, ir_dim *out)
{
    bool truth = false;
    bool decided = ir_dim_decide_less(graph, a[0], a[1], &truth);
    return known_truth(decided, truth, out);
}

static bool known_greater(const ir_graph *graph, const ir_dim *a, ir_dim *out)
{
    return known_less(graph, (const ir_dim[]){a[1], a[0]}, out);
}

static bool known_not(const ir_graph *graph, const ir_dim *a, ir_dim *out)
{
    return known_equal(graph, (const ir_dim[]){a[0], ir_dim_number(0)}, out);
}

KNOWN(known_less_or_equal, known_greater(graph, a, out) && known_not(graph, out, out))
KNOWN(known_greater_or_equal, known_less(graph, a, out) && known_not(graph, out, out))

static bool known_and(const ir_graph *graph, const ir_dim *a, ir_dim *out)
{
    if (both_numbers(a)) *out = ir_dim_number(a[0].offset & a[1].offset);
    return both_numbers(a);
}

static bool known_or(const ir_graph *graph, const ir_dim *a, ir_dim *out)
{
    if (both_numbers(a)) *out = ir_dim_number(a[0].offset | a[1].offset);
    return both_numbers(a);
}

KNOWN(known_neg, ir_dim_mul(a[0], ir_dim_number(-1), out))

static bool known_abs(const ir_graph *graph, const ir_dim *a, ir_dim *out)
{
    if (ir_dim_always_le(graph, a[0], ir_dim_number(0))) return known_neg(graph, a, out);
    *out = a[0];
    return ir_dim_always_le(graph, ir_dim_number(0), a[0]);
}

KNOWN(known_same, ir_dim_add(a[0], ir_dim_number(0), out))

static bool known_where(const ir_graph *graph, const ir_dim *a, ir_dim *out)
{
    *out = a[0].offset ? a[1] : a[2];
    return ir_dim_is_number(a[0]) || ir_dim_equal(a[1], a[2]);
}

typedef struct known_rule {
    int operands; /* operand count; variadic operators fold the function */
    known_fn apply;
} known_rule;

static const known_rule rules[IR_OP_COUNT] = {
    [IR_OP_Add] = {2, known_add},         [IR_OP_Sub] = {2, known_sub},
    [IR_OP_Mul] = {2, known_mul},         [IR_OP_Div] = {2, known_div},
    [IR_OP_Mod] = {2, known_mod},         [IR_OP_Min] = {2, known_min},
    [IR_OP_Max] = {2, known_max},         [IR_OP_Equal] = {2, known_equal},
    [IR_OP_Less] = {2, known_less},       [IR_OP_LessOrEqual] = {2, known_less_or_equal},
    [IR_OP_Greater] = {2, known_greater}, [IR_OP_GreaterOrEqual] = {2, known_greater_or_equal},
    [IR_OP_And] = {2, known_and},         [IR_OP_Or] = {2, known_or},
    [IR_OP_Not] = {1, known_not},         [IR_OP_Neg] = {1, known_neg},
    [IR_OP_Abs] = {1, known_abs},         [IR_OP_Identity] = {1, known_same},
    [IR_OP_Cast] = {1, known_same},       [IR_OP_CastLike] = {1, known_same},
    [IR_OP_Where] = {3, known_where},     [IR_OP_Ceil] = {1, known_same},
    [IR_OP_Floor] = {1, known_same},      [IR_OP_Round] = {1, known_same},
};
static const known_rule quotient = {2, known_quotient};

enum { MAX_OPERANDS = 3 }; /* shape arithmetic has shorter folds only */

/* The known content of one input, read at the output's indices. */
typedef struct operand {
    ir_dim element[IR_MAX_KNOWN];
    int64_t strides[MDOT_MAX_RANK];
} operand;

static bool load_operand(const ir_value *value, int out_rank, operand *out)
{
    int64_t dims[MDOT_MAX_RANK];
    int count;
    if (!ir_value_known(value, out->element, &count)) return false;
    for (int i = 0; i < value->type.rank; i++) dims[i] = value->type.dim[i].offset;
    if (ir_count_elements(value->type.rank, dims) != count) return false;
    ir_broadcast_strides(value->type.rank, dims, out_rank, out->strides);
    return true;
}

/* The limit up to which a floating type holds every integer: 2 to the number of significand bits. */
static int64_t exact_integers(mdot_dtype dtype)
{
    switch (dtype) {
    case MDOT_DTYPE_F64: return INT64_C(1) << 53;
    case MDOT_DTYPE_F32: return INT64_C(1) << 24;
    case MDOT_DTYPE_F16: return INT64_C(1) << 11;
    default: return INT64_C(1) << 8; /* bf16 */
    }
}

/* Checks that a result fits the output's type. False: it would wrap, or round, for some L. */
static bool fit(const ir_graph *graph, mdot_dtype dtype, ir_dim *d)
{
    if (dtype == MDOT_DTYPE_BOOL) {
        bool zero = false, decided = ir_dim_decide_equal(graph, *d, ir_dim_number(0), &zero);
        return known_truth(decided, !zero, d);
    }
    if (ir_dtype_is_float(dtype)) {
        enum { LONGEST_BUCKET = 1 << 20 }; /* of compiled models, where the length is open */
        int64_t minimum, maximum, limit = exact_integers(dtype);
        ir_graph range = {.min_length = graph->min_length, .max_length = graph->max_length};
        if (range.max_length == INT64_MAX) range.max_length = LONGEST_BUCKET;
        ir_dim_bounds(&range, *d, &minimum, &maximum);
        return minimum >= -limit && maximum <= limit;
    }
    if (ir_dim_is_number(*d))
        return ir_wrap_integer(dtype, d->offset) == d->offset && !(dtype == MDOT_DTYPE_U64 && d->offset < 0);
    int64_t min, max;
    ir_dim_bounds(graph, *d, &min, &max);
    /* Before a bucket is bound the maximum length is unlimited, but lengths fit 64 bits. */
    if (dtype == MDOT_DTYPE_I64) return true;
    return ir_wrap_integer(dtype, min) == min && ir_wrap_integer(dtype, max) == max &&
           !(dtype == MDOT_DTYPE_U64 && min < 0);
}

/* One output element: the rule on the elements at `index`, folded over the operands of a variadic operator. */
static bool compute(const ir_graph *graph, const known_rule *rule, const operand *operands, int count, int rank,
                    const int64_t *index, ir_dim *out)
{
    ir_dim a[MAX_OPERANDS] = {{0}};
    for (int k = 0; k < rule->operands && k < count; k++)
        a[k] = operands[k].element[ir_dot_index(rank, index, operands[k].strides)];
    if (count < rule->operands) { /* a fold of one operand */
        *out = a[0];
        return true;
    }
    if (!rule->apply(graph, a, out)) return false;
    for (int k = rule->operands; k < count; k++) {
        a[0] = *out;
        a[1] = operands[k].element[ir_dot_index(rank, index, operands[k].strides)];
        if (!rule->apply(graph, a, out)) return false;
    }
    return true;
}

mdot_status ir_elementwise_known(ir_graph *graph, ir_node *node, mdot_error *err)
{
    const known_rule *rule = &rules[ir_node_opcode(node)];
    const ir_value *result = node->outputs[0];
    if (rule->apply == NULL || result == NULL) return MDOT_OK;
    bool is_float = ir_dtype_is_float(result->type.dtype);
    if (is_float && ir_node_opcode(node) == IR_OP_Div) rule = &quotient;
    if (is_float && ir_node_opcode(node) == IR_OP_Mod) return MDOT_OK;
    int64_t dims[MDOT_MAX_RANK];
    int rank = result->type.rank;
    for (int i = 0; i < rank; i++) {
        if (!ir_dim_is_number(result->type.dim[i])) return MDOT_OK;
        dims[i] = result->type.dim[i].offset;
    }
    int64_t count = ir_count_elements(rank, dims);
    if (count <= 0 || count > IR_MAX_KNOWN) return MDOT_OK;

    int operand_count = ir_node_opcode(node) == IR_OP_CastLike ? 1 : node->input_count;
    ir_dim out[IR_MAX_KNOWN];
    for (int64_t i = 0; i < count; i++) out[i] = ir_dim_number(0);
    operand operands[MAX_OPERANDS];
    if (operand_count > MAX_OPERANDS) return MDOT_OK;
    for (int k = 0; k < operand_count; k++)
        if (!load_operand(node->inputs[k], rank, &operands[k])) return MDOT_OK;
    int64_t index[MDOT_MAX_RANK] = {0};
    for (int64_t i = 0; i < count; i++) {
        if (!compute(graph, rule, operands, operand_count, rank, index, &out[i])) return MDOT_OK;
        if (!fit(graph, result->type.dtype, &out[i])) return MDOT_OK;
        ir_next_index(rank, dims, index);
    }
    return ir_set_known(graph, node, 0, out, (int)count, err);
}
