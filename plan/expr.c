/* expr.c — expression builders, with the simplifications that keep index arithmetic readable, and queries on
 * expressions.
 *
 * Index expressions are built in Horner form, (i0 * d1 + i1) * d2 + i2. Therefore flattening an unflattened index
 * matches the pattern (a / d) * d + a % d, which folds back to `a`.
 */
#include "plan/expr.h"

#include <math.h>

static pl_expr *create(ir_arena *arena, pl_expr_op op, mdot_dtype dtype)
{
    pl_expr *expr = IR_NEW(arena, pl_expr);
    if (expr == NULL) return NULL;
    expr->op = op;
    expr->dtype = dtype;
    return expr;
}

static const pl_expr *constant(ir_arena *arena, mdot_dtype dtype, pl_scalar value)
{
    pl_expr *expr = create(arena, PL_CONST, dtype);
    if (expr == NULL) return NULL;
    value = pl_scalar_round(value, dtype);
    if (ir_dtype_is_float(dtype))
        expr->f = value.f;
    else
        expr->n = value.n;
    return expr;
}

const pl_expr *pl_const_f(ir_arena *arena, mdot_dtype dtype, double value)
{
    return constant(arena, dtype, pl_scalar_cast((pl_scalar){.f = value}, MDOT_DTYPE_F64, dtype));
}

const pl_expr *pl_const_i(ir_arena *arena, mdot_dtype dtype, int64_t value)
{
    return constant(arena, dtype, pl_scalar_cast((pl_scalar){.n = value}, MDOT_DTYPE_I64, dtype));
}

const pl_expr *pl_index(ir_arena *arena, int loop)
{
    pl_expr *expr = create(arena, PL_INDEX, MDOT_DTYPE_I64);
    if (expr != NULL) expr->i = loop;
    return expr;
}

const pl_expr *pl_step(ir_arena *arena) { return create(arena, PL_STEP, MDOT_DTYPE_I64); }

static const pl_expr *affine(ir_arena *arena, const pl_expr *e, int64_t scale, int64_t offset)
{
    const pl_expr *product = pl_binary(arena, PL_MUL, e, pl_const_i(arena, MDOT_DTYPE_I64, scale));
    return pl_binary(arena, PL_ADD, product, pl_const_i(arena, MDOT_DTYPE_I64, offset));
}

const pl_expr *pl_dim(ir_arena *arena, ir_dim dim)
{
    const pl_expr *length = create(arena, PL_LENGTH, MDOT_DTYPE_I64);
    if (ir_dim_is_number(dim)) return pl_const_i(arena, MDOT_DTYPE_I64, dim.offset);
    const pl_expr *sum = affine(arena, length, dim.scale, dim.offset);
    if (ir_dim_is_affine(dim)) return sum;
    const pl_expr *divisor = pl_const_i(arena, MDOT_DTYPE_I64, dim.divisor);
    const pl_expr *floor = pl_binary(arena, PL_FLOORDIV, affine(arena, length, dim.step, dim.start), divisor);
    return pl_binary(arena, PL_ADD, affine(arena, floor, dim.times, 0), sum);
}

const pl_expr *pl_load(ir_arena *arena, int buffer, mdot_dtype dtype, const pl_expr *offset)
{
    pl_expr *expr = offset != NULL ? create(arena, PL_LOAD, dtype) : NULL;
    if (expr == NULL) return NULL;
    expr->i = buffer;
    expr->arg[0] = offset;
    return expr;
}

const pl_expr *pl_acc(ir_arena *arena, int number, mdot_dtype dtype)
{
    pl_expr *expr = create(arena, PL_ACC, dtype);
    if (expr != NULL) expr->i = number;
    return expr;
}

static bool is_integer(const pl_expr *expr, int64_t value)
{
    return expr->op == PL_CONST && !ir_dtype_is_float(expr->dtype) && expr->n == value;
}

/* -0 differs from 0, because 1 / x distinguishes them. All NaN are equal. */
static bool is_same_real(double a, double b) { return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b); }

bool pl_expr_equal(const pl_expr *a, const pl_expr *b)
{
    if (a == b) return true;
    if (a->op != b->op || a->dtype != b->dtype || a->i != b->i) return false;
    if (a->op == PL_CONST && (a->n != b->n || !is_same_real(a->f, b->f))) return false;
    for (int k = 0; k < pl_expr_operand_count(a->op); k++)
        if (!pl_expr_equal(a->arg[k], b->arg[k])) return false;
    return true;
}

static mdot_dtype result_type(pl_expr_op op, const pl_expr *a)
{
    return op == PL_EQ || op == PL_LT || op == PL_LE || op == PL_ISNAN || op == PL_ISINF ? MDOT_DTYPE_BOOL : a->dtype;
}

static pl_scalar value_of(const pl_expr *expr)
{
    return ir_dtype_is_float(expr->dtype) ? (pl_scalar){.f = expr->f} : (pl_scalar){.n = expr->n};
}

/* Applies an operator to the operands; the result is a constant if they all are. */
static const pl_expr *apply(ir_arena *arena, pl_expr_op op, mdot_dtype dtype, const pl_expr *const *arg)
{
    int count = pl_expr_operand_count(op);
    pl_scalar value[3];
    bool known = true;
    for (int k = 0; k < count; k++) {
        if (arg[k] == NULL) return NULL;
        known = known && arg[k]->op == PL_CONST;
        if (known) value[k] = value_of(arg[k]);
    }
    if (known) {
        mdot_dtype source_dtype = arg[op == PL_SELECT ? 1 : 0]->dtype;
        return constant(arena, dtype, pl_scalar_apply(op, dtype, source_dtype, value));
    }
    pl_expr *expr = create(arena, op, dtype);
    if (expr == NULL) return NULL;
    for (int k = 0; k < count; k++) expr->arg[k] = arg[k];
    return expr;
}

const pl_expr *pl_unary(ir_arena *arena, pl_expr_op op, const pl_expr *a)
{
    return a != NULL ? apply(arena, op, result_type(op, a), &a) : NULL;
}

const pl_expr *pl_cast(ir_arena *arena, const pl_expr *a, mdot_dtype dtype)
{
    return a == NULL || a->dtype == dtype ? a : apply(arena, PL_CAST, dtype, &a);
}

const pl_expr *pl_select(ir_arena *arena, const pl_expr *cond, const pl_expr *yes, const pl_expr *no)
{
    if (cond == NULL || yes == NULL || no == NULL) return NULL;
    if (cond->op == PL_CONST) return cond->n ? yes : no;
    return apply(arena, PL_SELECT, yes->dtype, (const pl_expr *[]){cond, yes, no});
}

/* (x ∘ c1) ∘ c2 = x ∘ (c1 ∘ c2) for a constant c2 and ∘ one of + and × on integers, which wrap and are therefore
 * associative. */
static const pl_expr *reassociate(ir_arena *arena, pl_expr_op op, const pl_expr *a, const pl_expr *b)
{
    if (b->op != PL_CONST || a->op != op || a->arg[1]->op != PL_CONST) return NULL;
    return pl_binary(arena, op, a->arg[0], pl_binary(arena, op, a->arg[1], b));
}

/* (x / d) * d + x % d = x */
static const pl_expr *rejoin(const pl_expr *a, const pl_expr *b)
{
    bool pattern = a->op == PL_MUL && a->arg[0]->op == PL_FLOORDIV && b->op == PL_PYMOD;
    if (!pattern || !pl_expr_equal(a->arg[1], b->arg[1]) || !pl_expr_equal(a->arg[0]->arg[1], b->arg[1])) return NULL;
    return pl_expr_equal(a->arg[0]->arg[0], b->arg[0]) ? b->arg[0] : NULL;
}

/* Applies integer identities. NULL: none applies. */
static const pl_expr *simplify(ir_arena *arena, pl_expr_op op, const pl_expr *a, const pl_expr *b)
{
    const pl_expr *found;
    switch (op) {
    case PL_ADD:
        if (is_integer(b, 0)) return a;
        if (is_integer(a, 0)) return b;
        return (found = rejoin(a, b)) != NULL ? found : reassociate(arena, op, a, b);
    case PL_SUB:
        if (is_integer(b, 0)) return a;
        return b->op == PL_CONST ? pl_binary(arena, PL_ADD, a, pl_unary(arena, PL_NEG, b)) : NULL;
    case PL_MUL:
        if (is_integer(a, 0) || is_integer(b, 1)) return a;
        if (is_integer(b, 0) || is_integer(a, 1)) return b;
        return reassociate(arena, op, a, b);
    case PL_DIV:
    case PL_FLOORDIV: return is_integer(b, 1) ? a : NULL;
    case PL_PYMOD: return is_integer(b, 1) ? pl_const_i(arena, b->dtype, 0) : NULL;
    case PL_MIN:
    case PL_MAX: return pl_expr_equal(a, b) ? a : NULL;
    default: return NULL;
    }
}

const pl_expr *pl_binary(ir_arena *arena, pl_expr_op op, const pl_expr *a, const pl_expr *b)
{
    if (a == NULL || b == NULL) return NULL;
    bool commutes = op == PL_ADD || op == PL_MUL;
    if (!ir_dtype_is_float(a->dtype) && a->dtype != MDOT_DTYPE_BOOL && (a->op != PL_CONST || b->op != PL_CONST)) {
        if (commutes && a->op == PL_CONST) return pl_binary(arena, op, b, a);
        const pl_expr *simple = simplify(arena, op, a, b);
        if (simple != NULL) return simple;
    }
    return apply(arena, op, result_type(op, a), (const pl_expr *[]){a, b});
}

bool pl_expr_uses_index(const pl_expr *expr, int loop)
{
    if (expr->op == PL_INDEX) return expr->i == loop;
    for (int k = 0; k < pl_expr_operand_count(expr->op); k++)
        if (pl_expr_uses_index(expr->arg[k], loop)) return true;
    return false;
}

const pl_expr *pl_with_operands(ir_arena *arena, const pl_expr *e, const pl_expr *const arg[3])
{
    pl_expr copy = *e;
    bool changed = false;
    for (int k = 0; k < pl_expr_operand_count(e->op); changed = changed || arg[k] != e->arg[k], k++)
        if ((copy.arg[k] = arg[k]) == NULL) return NULL;
    pl_expr *result = changed ? IR_NEW(arena, pl_expr) : NULL;
    if (result != NULL) *result = copy;
    return changed ? result : e;
}

bool pl_expr_stride(const pl_expr *index, int loop, int64_t *out_stride)
{
    int64_t a, b;
    switch (index->op) {
    case PL_INDEX: *out_stride = index->i == loop; return true;
    case PL_ADD:
    case PL_SUB:
        if (!pl_expr_stride(index->arg[0], loop, &a) || !pl_expr_stride(index->arg[1], loop, &b)) return false;
        return index->op == PL_ADD ? !__builtin_add_overflow(a, b, out_stride)
                                   : !__builtin_sub_overflow(a, b, out_stride);
    case PL_MUL:
        if (!pl_expr_stride(index->arg[0], loop, &a) || !pl_expr_stride(index->arg[1], loop, &b)) return false;
        *out_stride = 0;
        if (a == 0 && b == 0) return true;
        if (index->arg[1]->op == PL_CONST) return !__builtin_mul_overflow(a, index->arg[1]->n, out_stride);
        if (index->arg[0]->op == PL_CONST) return !__builtin_mul_overflow(b, index->arg[0]->n, out_stride);
        return false;
    default: *out_stride = 0; return !pl_expr_uses_index(index, loop);
    }
}
