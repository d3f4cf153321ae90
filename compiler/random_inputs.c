/* random_inputs.c — see compiler.h. */
#include "compiler/compiler.h"
#include "ir/ops.h"

#include <math.h>

uint64_t co_next_random(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

static double next_uniform(uint64_t *state) { return (double)(co_next_random(state) >> 11) * 0x1p-53; }

static double next_normal(uint64_t *state) /* Box-Muller transform */
{
    double radius = sqrt(-2 * log(1 - next_uniform(state)));
    return radius * cos(2 * 3.14159265358979323846 * next_uniform(state));
}

enum { MAX_DEPTH = 8 }; /* most operators between an input and the tensor that it indexes */

static int64_t extent(const ir_value *value, int64_t axis, int64_t length)
{
    if (axis < 0) axis += value->type.rank;
    return axis >= 0 && axis < value->type.rank ? ir_dim_at(value->type.dim[axis], length) : INT64_MAX;
}

/* Returns the shortest dimension addressed by rows of indices. */
static int64_t shortest_extent(const ir_node *node, int64_t first, int64_t length)
{
    const ir_type *indices = &node->inputs[1]->type;
    int64_t minimum = INT64_MAX, count = indices->rank > 0 ? indices->dim[indices->rank - 1].offset : 0;
    for (int64_t i = first; i < first + count; i++) {
        int64_t found = extent(node->inputs[0], i, length);
        if (found < minimum) minimum = found;
    }
    return minimum;
}

static int64_t bound_of(const ir_value *value, int64_t length, int depth);

static int64_t operand_bound(const ir_node *node, int i, int64_t length, int depth);

/* Does arithmetic lead from the value to a Mod, as in a hash, and nothing else limit it? Then any range of the value
 * reaches all results. */
static bool is_hashed(const ir_value *value, int64_t length, int depth)
{
    bool found = false;
    for (const ir_use *use = depth < MAX_DEPTH ? value->uses : NULL; use != NULL; use = use->next) {
        if (use->node == NULL) continue; /* an output */
        ir_opcode opcode = ir_node_opcode(use->node);
        bool is_arithmetic = opcode == IR_OP_Add || opcode == IR_OP_Sub || opcode == IR_OP_Mul || opcode == IR_OP_Pow ||
                             opcode == IR_OP_Neg;
        bool leads = opcode == IR_OP_Mod ? use->index == 0
                                         : is_arithmetic && is_hashed(use->node->outputs[0], length, depth + 1);
        if (!leads && operand_bound(use->node, use->index, length, depth + 1) != INT64_MAX) return false;
        found = found || leads;
    }
    return found;
}

/* Returns the exclusive upper bound of operand `i` of the node; INT64_MAX if it is unlimited. */
static int64_t operand_bound(const ir_node *node, int i, int64_t length, int depth)
{
    double number;
    if (ir_node_opcode(node) != IR_OP_Mod && is_hashed(node->inputs[i], length, depth))
        return bound_of(node->outputs[0], length, depth + 1);
    switch (ir_node_opcode(node)) {
    case IR_OP_Gather:
    case IR_OP_GatherElements:
    case IR_OP_ScatterElements:
        return i == 1 ? extent(node->inputs[0], ir_node_int(node, "axis", 0), length) : INT64_MAX;
    case IR_OP_GatherND: return i == 1 ? shortest_extent(node, ir_node_int(node, "batch_dims", 0), length) : INT64_MAX;
    case IR_OP_ScatterND: return i == 1 ? shortest_extent(node, 0, length) : INT64_MAX;
    case IR_OP_OneHot: return i == 0 ? extent(node->outputs[0], ir_node_int(node, "axis", -1), length) : INT64_MAX;
    case IR_OP_Add:
    case IR_OP_Sub: { /* positions begin after the padding's */
        if (!ir_value_scalar(node->inputs[1 - i], &number) || (ir_node_opcode(node) == IR_OP_Sub && i == 1))
            return INT64_MAX;
        int64_t bound = bound_of(node->outputs[0], length, depth + 1);
        double shift = ir_node_opcode(node) == IR_OP_Add ? -number : number;
        double below = fmax(1, (double)bound + shift);
        return bound == INT64_MAX || below >= 0x1p63 ? INT64_MAX : (int64_t)below;
    }
    case IR_OP_Mul:
    case IR_OP_Div: {
        if (i != 0 || !ir_value_scalar(node->inputs[1], &number) || number < 1) return INT64_MAX;
        int64_t bound = bound_of(node->outputs[0], length, depth + 1);
        if (ir_node_opcode(node) == IR_OP_Div) number = 1 / number;
        double scaled = fmax(1, ceil((double)bound / number));
        return bound == INT64_MAX || scaled >= 0x1p63 ? INT64_MAX : (int64_t)scaled;
    }
    case IR_OP_Mod: /* twice the range shows the operator, too */
    case IR_OP_Min:
        if (node->input_count != 2 || !ir_value_scalar(node->inputs[1], &number)) return INT64_MAX;
        return i == 0 && number >= 1 && number < 0x1p31 && bound_of(node->outputs[0], length, depth + 1) != INT64_MAX
                   ? 2 * (int64_t)number
                   : INT64_MAX;
    case IR_OP_Concat: return bound_of(node->outputs[0], length, depth + 1);
    default:
        if (i != 0 ||
            !IR_IS_ONE_OF(node, IR_OP_Abs, IR_OP_Cast, IR_OP_Identity, IR_OP_Reshape, IR_OP_Flatten, IR_OP_Unsqueeze,
                          IR_OP_Squeeze, IR_OP_Transpose, IR_OP_Expand, IR_OP_Tile, IR_OP_Slice))
            return INT64_MAX;
        return bound_of(node->outputs[0], length, depth + 1);
    }
}

static int64_t bound_of(const ir_value *value, int64_t length, int depth)
{
    int64_t bound = INT64_MAX;
    for (const ir_use *use = depth < MAX_DEPTH ? value->uses : NULL; use != NULL; use = use->next) {
        int64_t found = use->node != NULL ? operand_bound(use->node, use->index, length, depth) : INT64_MAX;
        if (found < bound) bound = found;
    }
    return bound;
}

int64_t co_index_bound(const ir_graph *typed, int input, int64_t length)
{
    const ir_value *value = typed->inputs[input];
    if (ir_dtype_is_float(value->type.dtype) || value->type.dtype == MDOT_DTYPE_BOOL) return INT64_MAX;
    int64_t bound = bound_of(value, length, 0);
    return bound >= 1 ? bound : INT64_MAX;
}

static double draw_float(co_style style, uint64_t *state)
{
    double normal = next_normal(state);
    switch (style) {
    case CO_POSITIVE: return (float)exp(normal);
    case CO_ABOVE: return (float)(3 + exp(normal));
    case CO_BELOW: return (float)(-3 - exp(normal));
    case CO_UNIT: return (float)fmin(fmax(next_uniform(state), 1e-3), 1 - 1e-3);
    case CO_WIDE: return (float)(8 * normal);
    case CO_NARROW: return (float)(normal / 16);
    default: return (float)normal;
    }
}

/* A scattered mask: a fifth is off, but each row's first element is on, because a mean over nothing is undefined. */
static void draw_mask(ir_wide *wide, const co_tensor *shape, co_style style, uint64_t *state)
{
    int64_t row = shape->rank > 0 ? shape->dims[shape->rank - 1] : 1;
    for (int64_t i = 0; i < wide->count; i++) wide->i[i] = i % row == 0 || next_uniform(state) < 0.8;
    for (int64_t i = 0; style == CO_MASKED && i < row; i++) wide->i[i] = 0;
}

/* Integers of any size up to 2^20, of both signs if the type has them. */
static int64_t draw_vast(mdot_dtype dtype, uint64_t *state)
{
    uint64_t random = co_next_random(state), size = random % 21;
    int64_t value = (int64_t)(random >> 8 & ((UINT64_C(1) << size) - 1));
    return ir_wrap_integer(dtype, random >> 63 && !ir_dtype_is_unsigned(dtype) ? -value : value);
}

static int64_t common_divisor(int64_t a, int64_t b) { return b == 0 ? a : common_divisor(b, a % b); }

/* Steps through the range by a stride without a common divisor, so that neighbours differ. */
static void draw_indices(ir_wide *wide, int64_t bound, int64_t *cursor)
{
    int64_t stride = (int64_t)(0.618 * (double)bound) | 1;
    while (common_divisor(bound, stride) != 1) stride += 2;
    for (int64_t i = 0; i < wide->count; i++, ++*cursor)
        wide->i[i] = (int64_t)((unsigned __int128)(uint64_t)*cursor * (uint64_t)stride % (uint64_t)bound);
}

ir_wide *co_random_input(const ir_graph *typed, int input, int64_t length, const co_tensor *shape, co_style style,
                         int64_t *cursor, uint64_t *state, ir_arena *arena)
{
    ir_wide *wide = ir_wide_create(arena, shape->dtype, shape->rank, shape->dims);
    if (wide == NULL || wide->count == 0) return wide;
    int64_t bound = co_index_bound(typed, input, length);
    if (ir_dtype_is_float(shape->dtype))
        for (int64_t i = 0; i < wide->count; i++) wide->f[i] = draw_float(style, state);
    else if (bound != INT64_MAX)
        draw_indices(wide, bound, cursor);
    else if (style == CO_VAST && shape->dtype != MDOT_DTYPE_BOOL)
        for (int64_t i = 0; i < wide->count; i++) wide->i[i] = draw_vast(shape->dtype, state);
    else if ((style == CO_WIDE || style == CO_NARROW) && shape->dtype != MDOT_DTYPE_BOOL)
        for (int64_t i = 0; i < wide->count; i++) wide->i[i] = (int64_t)(co_next_random(state) % 10);
    else
        draw_mask(wide, shape, style, state);
    return wide;
}
