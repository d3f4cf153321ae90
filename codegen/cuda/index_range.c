/* index_range.c — interval analysis of index expressions (see cuda_stages.h).
 *
 * Every operation treats its operands as independent, which loses little precision. Two results matter: row * width
 * + column must become unit * u plus a range as wide as the unit, and clamped data must bound the index that it
 * forms.
 */
#include "codegen/cuda/cuda_stages.h"

#include "plan/expr.h"

static const cu_range unbounded = {0, INT64_MIN, INT64_MAX};

cu_range cu_range_constant(int64_t n) { return (cu_range){0, n, n}; }

cu_range cu_range_between(int64_t low, int64_t high) { return (cu_range){0, low, high}; }

bool cu_range_is_bounded(cu_range s) { return s.low != INT64_MIN && s.high != INT64_MAX; }

cu_range cu_range_add(cu_range a, cu_range b)
{
    cu_range sum;
    bool overflows =
        !cu_range_is_bounded(a) || !cu_range_is_bounded(b) || __builtin_add_overflow(a.unit, b.unit, &sum.unit) ||
        __builtin_add_overflow(a.low, b.low, &sum.low) || __builtin_add_overflow(a.high, b.high, &sum.high);
    return overflows ? unbounded : sum;
}

cu_range cu_range_scale(cu_range s, int64_t factor)
{
    cu_range product;
    bool overflows = !cu_range_is_bounded(s) || __builtin_mul_overflow(s.unit, factor, &product.unit) ||
                     __builtin_mul_overflow(s.low, factor, &product.low) ||
                     __builtin_mul_overflow(s.high, factor, &product.high);
    if (overflows) return unbounded;
    return factor < 0 ? (cu_range){product.unit, product.high, product.low} : product;
}

cu_range cu_range_whole(const cu_space *space, cu_range s)
{
    if (s.unit == 0) return s;
    int64_t last_index = space->max_length > 0 ? space->max_length - 1 : 0;
    cu_range units = cu_range_scale(cu_range_between(0, last_index), s.unit);
    return cu_range_add(cu_range_between(s.low, s.high), units);
}

static int64_t divide_down(int64_t a, int64_t b) { return a / b - (a % b < 0); }

/* If the divisor is positive and divides the unit, the quotient follows the units, too. */
static cu_range divide(const cu_space *space, cu_range a, cu_range b)
{
    if (b.unit != 0 || b.low != b.high || b.low <= 0) return unbounded;
    if (a.unit % b.low != 0) a = cu_range_whole(space, a);
    if (!cu_range_is_bounded(a)) return unbounded;
    return (cu_range){a.unit / b.low, divide_down(a.low, b.low), divide_down(a.high, b.low)};
}

static cu_range remainder_of(cu_range a, cu_range b)
{
    if (b.unit != 0 || b.low != b.high || b.low <= 0) return unbounded;
    bool is_identity = a.unit % b.low == 0 && cu_range_is_bounded(a) && a.low >= 0 && a.high < b.low;
    return is_identity ? cu_range_between(a.low, a.high) : cu_range_between(0, b.low - 1);
}

static cu_range hull(const cu_space *space, cu_range a, cu_range b)
{
    if (a.unit != b.unit) {
        a = cu_range_whole(space, a);
        b = cu_range_whole(space, b);
    }
    return (cu_range){a.unit, a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
}

static cu_range extreme(const cu_space *space, bool is_least, cu_range a, cu_range b)
{
    if (a.unit != b.unit) {
        a = cu_range_whole(space, a);
        b = cu_range_whole(space, b);
    }
    bool low_of_a = (a.low < b.low) == is_least, high_of_a = (a.high < b.high) == is_least;
    return (cu_range){a.unit, low_of_a ? a.low : b.low, high_of_a ? a.high : b.high};
}

static cu_range product(const cu_space *space, cu_range a, cu_range b)
{
    if (b.unit == 0 && b.low == b.high) return cu_range_scale(a, b.low);
    if (a.unit == 0 && a.low == a.high) return cu_range_scale(b, a.low);
    a = cu_range_whole(space, a);
    b = cu_range_whole(space, b);
    if (!cu_range_is_bounded(a) || !cu_range_is_bounded(b)) return unbounded;
    return hull(space, cu_range_scale(a, b.low), cu_range_scale(a, b.high));
}

static cu_range exact_range(const cu_space *space, const pl_expr *e)
{
    switch (e->op) {
    case PL_CONST: return cu_range_constant(e->n);
    case PL_INDEX: return e->i < space->loop_count ? space->loop[e->i] : unbounded;
    case PL_LENGTH: return cu_range_between(1, space->max_length);
    case PL_STEP: return cu_range_between(0, space->max_steps > 0 ? space->max_steps - 1 : 0);
    case PL_CAST: return ir_dtype_is_float(e->arg[0]->dtype) ? unbounded : cu_range_of(space, e->arg[0]);
    case PL_ADD: return cu_range_add(cu_range_of(space, e->arg[0]), cu_range_of(space, e->arg[1]));
    case PL_SUB: return cu_range_add(cu_range_of(space, e->arg[0]), cu_range_scale(cu_range_of(space, e->arg[1]), -1));
    case PL_NEG: return cu_range_scale(cu_range_of(space, e->arg[0]), -1);
    case PL_MUL: return product(space, cu_range_of(space, e->arg[0]), cu_range_of(space, e->arg[1]));
    case PL_FLOORDIV: return divide(space, cu_range_of(space, e->arg[0]), cu_range_of(space, e->arg[1]));
    case PL_DIV: {
        cu_range a = cu_range_of(space, e->arg[0]);
        return a.low >= 0 && a.unit >= 0 ? divide(space, a, cu_range_of(space, e->arg[1])) : unbounded;
    }
    case PL_PYMOD: return remainder_of(cu_range_of(space, e->arg[0]), cu_range_of(space, e->arg[1]));
    case PL_FMOD: {
        cu_range a = cu_range_of(space, e->arg[0]);
        return a.low >= 0 && a.unit >= 0 ? remainder_of(a, cu_range_of(space, e->arg[1])) : unbounded;
    }
    case PL_MIN:
    case PL_MAX: return extreme(space, e->op == PL_MIN, cu_range_of(space, e->arg[0]), cu_range_of(space, e->arg[1]));
    case PL_SELECT: return hull(space, cu_range_of(space, e->arg[1]), cu_range_of(space, e->arg[2]));
    default: return unbounded;
    }
}

cu_range cu_range_of(const cu_space *space, const pl_expr *e)
{
    if (e->dtype == MDOT_DTYPE_BOOL) return cu_range_between(0, 1);
    if (ir_dtype_is_float(e->dtype)) return unbounded;
    cu_range s = exact_range(space, e), whole = cu_range_whole(space, s);
    bool wraps = e->dtype != MDOT_DTYPE_I64 && (whole.low < INT32_MIN || whole.high > INT32_MAX);
    return wraps ? unbounded : s;
}
