/* value.c — a value at an index, as an expression: a load if it has a placement, its definition if it is inlined. */
#include "plan/plan_builder.h"

#include "plan/expr.h"

#include <string.h>

const pl_expr *pl_flatten(pl_builder *b, int rank, const ir_dim *dims, const pl_expr *const *index)
{
    const pl_expr *flat = b->zero;
    for (int d = 0; d < rank; d++) {
        if (pl_is_unit(dims[d])) continue;
        flat = pl_op2(b, PL_ADD, pl_op2(b, PL_MUL, flat, pl_extent(b, dims[d])), index[d]);
    }
    return flat;
}

bool pl_unflatten(pl_builder *b, const pl_expr *flat, int rank, const ir_dim *dims, const pl_expr **out_index)
{
    int outermost = 0;
    while (outermost < rank && pl_is_unit(dims[outermost])) outermost++;
    for (int d = rank - 1; d >= 0; d--) {
        if (pl_is_unit(dims[d])) {
            out_index[d] = b->zero;
        } else if (d == outermost) {
            out_index[d] = flat;
        } else {
            const pl_expr *extent = pl_extent(b, dims[d]);
            out_index[d] = pl_op2(b, PL_PYMOD, flat, extent);
            flat = pl_op2(b, PL_FLOORDIV, flat, extent);
        }
        if (out_index[d] == NULL) return false;
    }
    return true;
}

static const pl_expr *strided_position(pl_builder *b, const pl_placement *placement, const ir_type *type,
                                       const pl_expr *const *index)
{
    const pl_expr *position = b->zero;
    for (int d = 0; d < type->rank; d++) {
        if (pl_is_unit(type->dim[d])) continue;
        const pl_expr *step = pl_op2(b, PL_MUL, index[d], pl_extent(b, placement->stride[d]));
        position = pl_op2(b, PL_ADD, position, step);
    }
    return pl_op2(b, PL_ADD, position, pl_extent(b, placement->offset));
}

const pl_expr *pl_position(pl_builder *b, const pl_placement *placement, const ir_type *type,
                           const pl_expr *const *index)
{
    return placement->dense ? pl_flatten(b, type->rank, type->dim, index) : strided_position(b, placement, type, index);
}

static bool has_no_elements(const ir_type *type)
{
    for (int d = 0; d < type->rank; d++)
        if (ir_dim_is(type->dim[d], 0)) return true;
    return false;
}

const pl_expr *pl_load_at(pl_builder *b, const pl_placement *placement, const ir_type *type,
                          const pl_expr *const *index)
{
    /* An empty table has no element to which a gather could be clamped. */
    if (has_no_elements(type)) return pl_const_i(b->arena, type->dtype, 0);
    return pl_load(b->arena, placement->buffer, type->dtype, pl_position(b, placement, type, index));
}

/* A constant whose elements are all equal needs no memory. */
static bool is_uniform(const ir_tensor *tensor)
{
    size_t size = mdot_dtype_size_bytes(tensor->dtype);
    const char *bytes = tensor->data;
    for (int64_t k = 1; k < tensor->count; k++)
        if (memcmp(bytes, bytes + (size_t)k * size, size) != 0) return false;
    return tensor->count > 0;
}

const pl_placement *pl_placement_of(pl_builder *b, const ir_value *v)
{
    pl_value *info = pl_info(b, v);
    if (v->constant != NULL && info->state != PL_PLACED) {
        int buffer = pl_constant_buffer(b, v->constant, v->name, PL_ELEMENTS);
        if (buffer < 0) return NULL;
        info->placement = (pl_placement){.buffer = buffer, .dense = true};
        info->state = PL_PLACED;
    }
    return info->state == PL_PLACED ? &info->placement : NULL;
}

static const pl_expr *constant_at(pl_builder *b, const ir_value *v, const pl_expr *const *index)
{
    const ir_tensor *tensor = v->constant;
    pl_value *info = pl_info(b, v);
    if (info->state != PL_PLACED && is_uniform(tensor)) {
        ir_tensor first = {.dtype = tensor->dtype, .count = 1, .data = tensor->data};
        const ir_wide *wide = ir_wide_from_tensor(b->arena, &first);
        if (wide == NULL) return NULL;
        return wide->f != NULL ? pl_const_f(b->arena, tensor->dtype, wide->f[0])
                               : pl_const_i(b->arena, tensor->dtype, wide->i[0]);
    }
    const pl_placement *placement = pl_placement_of(b, v);
    return placement != NULL ? pl_load_at(b, placement, &v->type, index) : NULL;
}

/* Content that follows from the length (a shape, a count, 0 … n-1): its dimensions, selected by the position. */
static const pl_expr *known_at(pl_builder *b, const ir_value *v, const pl_expr *const *index)
{
    const ir_known *known = v->known;
    const pl_expr *position = pl_flatten(b, v->type.rank, v->type.dim, index), *result = NULL;
    for (int k = known->count - 1; k >= 0; k--) {
        const pl_expr *element = pl_cast(b->arena, pl_extent(b, known->element[k]), v->type.dtype);
        const pl_expr *here = pl_op2(b, PL_EQ, position, pl_int(b, k));
        result = result != NULL ? pl_select(b->arena, here, element, result) : element;
    }
    return result;
}

const pl_expr *pl_define(pl_builder *b, const ir_value *v, const pl_expr *const *index)
{
    pl_note_origin(b, v->def);
    if (v->known != NULL && v->known->count > 0) return known_at(b, v, index);
    return b->definitions[v->def->op->lowering](b, v->def, v->output, index);
}

/* The last memo of a value in the current kernel. A number from an earlier kernel is recognised because it belongs to
 * another value now, or lies beyond the end. */
static const pl_memo *last_memo(const pl_builder *b, const ir_value *v)
{
    int k = pl_info(b, v)->memo;
    return k < b->memo_count && b->memo[k].value == v ? &b->memo[k] : NULL;
}

/* Finds the expression of the same value at the same index, so backends compute it once. */
static const pl_memo *find_memo(const pl_builder *b, const ir_value *v, const pl_expr *const *index)
{
    size_t bytes = (size_t)v->type.rank * sizeof *index;
    const pl_memo *memo = last_memo(b, v);
    while (memo != NULL && bytes > 0 && memcmp(memo->index, index, bytes) != 0)
        memo = memo->before >= 0 ? &b->memo[memo->before] : NULL;
    return memo;
}

static bool remember(pl_builder *b, const ir_value *v, const pl_expr *const *index, const pl_expr *result)
{
    pl_memo *array = ir_arena_grow(b->arena, b->memo, b->memo_count, &b->memo_capacity, sizeof *b->memo);
    if (array == NULL) return false;
    b->memo = array;
    const pl_memo *before = last_memo(b, v);
    pl_memo *memo = &b->memo[b->memo_count];
    memo->before = before != NULL ? (int)(before - b->memo) : -1;
    pl_info(b, v)->memo = b->memo_count++;
    memo->value = v;
    memo->result = result;
    for (int d = 0; d < v->type.rank; d++) memo->index[d] = index[d];
    return true;
}

const pl_expr *pl_value_at(pl_builder *b, const ir_value *v, const pl_expr *const *index)
{
    if (v == b->acc_value) return b->acc_expr;
    if (v->constant != NULL) return constant_at(b, v, index);
    for (int d = 0; d < v->type.rank; d++)
        if (index[d] == NULL) return NULL;
    const pl_memo *memo = find_memo(b, v, index);
    if (memo != NULL) return memo->result;
    const pl_value *info = pl_info(b, v);
    const pl_expr *result =
        info->state == PL_PLACED ? pl_load_at(b, &info->placement, &v->type, index) : pl_define(b, v, index);
    return result != NULL && remember(b, v, index, result) ? result : NULL;
}

const pl_expr *pl_operand_at(pl_builder *b, const ir_value *v, int rank, const pl_expr *const *index)
{
    const pl_expr *source_index[MDOT_MAX_RANK];
    int missing = rank - v->type.rank;
    for (int d = 0; d < v->type.rank; d++) source_index[d] = pl_is_unit(v->type.dim[d]) ? b->zero : index[missing + d];
    return pl_value_at(b, v, source_index);
}

double pl_elements(const pl_builder *b, const ir_value *v)
{
    double count = 1;
    for (int d = 0; d < v->type.rank; d++) count *= (double)ir_dim_at(v->type.dim[d], b->plan->max_length);
    return count;
}

/* Rough costs in simple vector operations. The essential point is that an addition is cheap and an exponential
 * expensive. */
bool pl_expr_op_is_function(pl_expr_op op) { return (op >= PL_EXP && op <= PL_GELU_TANH) || op == PL_POW; }

static double operator_cost(const pl_expr *expr)
{
    switch (expr->op) {
    case PL_CONST:
    case PL_INDEX:
    case PL_STEP:
    case PL_LENGTH:
    case PL_ACC: return 0;
    case PL_DIV:
    case PL_SQRT:
    case PL_FLOORDIV:
    case PL_PYMOD: return 4;
    case PL_FMOD: return 12;
    case PL_POW: return 30;
    default: return pl_expr_op_is_function(expr->op) ? 12 : 1;
    }
}

/* Sums and products in index arithmetic are free, because they are mostly hoisted out of inner loops. */
static double walk_cost(const pl_expr *expr, bool in_index, int *budget)
{
    if (--*budget < 0) return 0;
    bool is_free = in_index && (expr->op == PL_ADD || expr->op == PL_MUL);
    double cost = is_free ? 0 : operator_cost(expr);
    for (int k = 0; k < pl_expr_operand_count(expr->op); k++)
        cost += walk_cost(expr->arg[k], in_index || expr->op == PL_LOAD, budget);
    return cost;
}

double pl_expr_cost(const pl_expr *expr, int *budget) { return walk_cost(expr, false, budget); }
