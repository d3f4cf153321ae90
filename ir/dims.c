/* dims.c — arithmetic on dimensions that are affine in the bucket symbol L (declared in ops/families.h).
 *
 * An affine function on the range [first, max_length] takes its extremes at the ends, so every question about all L
 * is answered by examining two values. They are computed in 128 bits, where scale * L + offset cannot overflow.
 */
#include "ir/ops/families.h"

#include <stdio.h>

__extension__ typedef __int128 wide_int;

static wide_int value_at(ir_dim d, int64_t length)
{
    return (wide_int)d.scale * length + d.offset;
}

static int64_t saturate(wide_int value)
{
    if (value > INT64_MAX) return INT64_MAX;
    if (value < INT64_MIN) return INT64_MIN;
    return (int64_t)value;
}

void ir_dim_bounds(const ir_graph *graph, ir_dim d, int64_t *out_min, int64_t *out_max)
{
    wide_int first = value_at(d, ir_first_length(graph)), last = value_at(d, graph->max_length);
    *out_min = saturate(first < last ? first : last);
    *out_max = saturate(first < last ? last : first);
}

bool ir_dim_always_le(const ir_graph *graph, ir_dim a, ir_dim b)
{
    int64_t first = ir_first_length(graph), last = graph->max_length;
    return value_at(a, first) <= value_at(b, first) && value_at(a, last) <= value_at(b, last);
}

bool ir_dim_always_lt(const ir_graph *graph, ir_dim a, ir_dim b)
{
    int64_t first = ir_first_length(graph), last = graph->max_length;
    return value_at(a, first) < value_at(b, first) && value_at(a, last) < value_at(b, last);
}

bool ir_dim_decide_equal(const ir_graph *graph, ir_dim a, ir_dim b, bool *out)
{
    if (ir_dim_always_le(graph, a, b) && ir_dim_always_le(graph, b, a)) {
        *out = true;
        return true;
    }
    if (ir_dim_always_lt(graph, a, b) || ir_dim_always_lt(graph, b, a)) {
        *out = false;
        return true;
    }
    return false;
}

bool ir_dim_decide_less(const ir_graph *graph, ir_dim a, ir_dim b, bool *out)
{
    bool less = ir_dim_always_lt(graph, a, b);
    if (!less && !ir_dim_always_le(graph, b, a)) return false;
    *out = less;
    return true;
}

bool ir_dim_add(ir_dim a, ir_dim b, ir_dim *out)
{
    ir_dim sum;
    if (__builtin_add_overflow(a.scale, b.scale, &sum.scale)) return false;
    if (__builtin_add_overflow(a.offset, b.offset, &sum.offset)) return false;
    *out = sum;
    return true;
}

bool ir_dim_sub(ir_dim a, ir_dim b, ir_dim *out)
{
    ir_dim difference;
    if (__builtin_sub_overflow(a.scale, b.scale, &difference.scale)) return false;
    if (__builtin_sub_overflow(a.offset, b.offset, &difference.offset)) return false;
    *out = difference;
    return true;
}

bool ir_dim_mul(ir_dim a, ir_dim b, ir_dim *out)
{
    if (!ir_dim_is_number(a) && !ir_dim_is_number(b)) return false;
    int64_t factor = ir_dim_is_number(a) ? a.offset : b.offset;
    ir_dim other = ir_dim_is_number(a) ? b : a;
    ir_dim product;
    if (__builtin_mul_overflow(other.scale, factor, &product.scale)) return false;
    if (__builtin_mul_overflow(other.offset, factor, &product.offset)) return false;
    *out = product;
    return true;
}

/* Quotient of numbers. False: the division leaves a remainder. */
static bool divide_number(int64_t a, int64_t b, int64_t *out)
{
    if (b == 0 || (a == INT64_MIN && b == -1) || a % b != 0) return false;
    *out = a / b;
    return true;
}

bool ir_dim_div_exact(ir_dim a, ir_dim b, ir_dim *out)
{
    ir_dim quotient = {0, 0};
    if (ir_dim_is_number(b)) {
        if (!divide_number(a.scale, b.offset, &quotient.scale)) return false;
        if (!divide_number(a.offset, b.offset, &quotient.offset)) return false;
        *out = quotient;
        return true;
    }
    ir_dim back; /* the result is affine only if a is a whole multiple of b */
    if (!divide_number(a.scale, b.scale, &quotient.offset)) return false;
    if (!ir_dim_mul(b, quotient, &back) || !ir_dim_equal(a, back)) return false;
    *out = quotient;
    return true;
}

static wide_int floor_divide(wide_int a, int64_t divisor)
{
    wide_int quotient = a / divisor;
    return a % divisor < 0 ? quotient - 1 : quotient;
}

bool ir_dim_div_floor(const ir_graph *graph, ir_dim a, int64_t divisor, ir_dim *out)
{
    if (a.scale % divisor == 0) {
        *out = (ir_dim){a.scale / divisor, (int64_t)floor_divide(a.offset, divisor)};
        return true;
    }
    wide_int first = floor_divide(value_at(a, ir_first_length(graph)), divisor);
    wide_int last = floor_divide(value_at(a, graph->max_length), divisor);
    if (first != last || first != saturate(first)) return false;
    *out = ir_dim_number((int64_t)first);
    return true;
}

bool ir_dim_div_ceil(const ir_graph *graph, ir_dim a, int64_t divisor, ir_dim *out)
{
    ir_dim shifted;
    return ir_dim_add(a, ir_dim_number(divisor - 1), &shifted) && ir_dim_div_floor(graph, shifted, divisor, out);
}

bool ir_dim_mod_floor(const ir_graph *graph, ir_dim a, int64_t divisor, ir_dim *out)
{
    ir_dim quotient, whole;
    return ir_dim_div_floor(graph, a, divisor, &quotient) && ir_dim_mul(quotient, ir_dim_number(divisor), &whole) &&
           ir_dim_sub(a, whole, out);
}

bool ir_dim_min(const ir_graph *graph, ir_dim a, ir_dim b, ir_dim *out)
{
    bool a_first = ir_dim_always_le(graph, a, b);
    if (!a_first && !ir_dim_always_le(graph, b, a)) return false;
    *out = a_first ? a : b;
    return true;
}

bool ir_dim_max(const ir_graph *graph, ir_dim a, ir_dim b, ir_dim *out)
{
    bool b_last = ir_dim_always_le(graph, a, b);
    if (!b_last && !ir_dim_always_le(graph, b, a)) return false;
    *out = b_last ? b : a;
    return true;
}

/* ---- Products -------------------------------------------------------------------------------------------------- */

/* number * factor[0] * factor[1] …, each factor with a positive scale and coprime coefficients. Such factors are prime
 * among the polynomials with integer coefficients (Gauss's lemma), so equal products have equal factors. */
typedef struct product {
    int64_t number;
    int count;
    ir_dim factor[2 * MDOT_MAX_RANK];
} product;

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static bool factorize(const ir_dim *dims, int count, product *out)
{
    *out = (product){.number = 1};
    for (int i = 0; i < count; i++) {
        ir_dim d = dims[i];
        if (d.scale == INT64_MIN || d.offset == INT64_MIN) return false;
        int64_t content = d.offset;
        if (!ir_dim_is_number(d)) {
            content = greatest_common_divisor(d.scale, d.offset);
            if ((content < 0) != (d.scale < 0)) content = -content;
            if (out->count == 2 * MDOT_MAX_RANK) return false;
            out->factor[out->count++] = (ir_dim){d.scale / content, d.offset / content};
        }
        if (__builtin_mul_overflow(out->number, content, &out->number)) return false;
    }
    return true;
}

/* Removes `factor` from the product. False: the product lacks it. */
static bool cancel(product *p, ir_dim factor)
{
    for (int i = 0; i < p->count; i++) {
        if (!ir_dim_equal(p->factor[i], factor)) continue;
        p->factor[i] = p->factor[--p->count];
        return true;
    }
    return false;
}

bool ir_dim_quotient(const ir_dim *over, int over_count, const ir_dim *under, int under_count, ir_dim *out)
{
    product a, b;
    if (!factorize(over, over_count, &a) || !factorize(under, under_count, &b) || b.number == 0) return false;
    if (a.number == 0) {
        *out = ir_dim_number(0);
        return true;
    }
    for (int i = 0; i < b.count; i++) {
        if (!cancel(&a, b.factor[i])) return false;
    }
    int64_t number;
    if (a.count > 1 || !divide_number(a.number, b.number, &number)) return false;
    return ir_dim_mul(a.count ? a.factor[0] : ir_dim_number(1), ir_dim_number(number), out);
}

bool ir_dim_products_equal(const ir_dim *a, int a_count, const ir_dim *b, int b_count)
{
    product left, right;
    if (!factorize(a, a_count, &left) || !factorize(b, b_count, &right)) return false;
    if (left.number != right.number) return false;
    if (left.number == 0) return true;
    for (int i = 0; i < right.count; i++) {
        if (!cancel(&left, right.factor[i])) return false;
    }
    return left.count == 0;
}

const char *ir_dim_text(ir_dim d, const char *symbol, char *out, size_t size)
{
    if (symbol == NULL) symbol = "L";
    if (ir_dim_is_number(d)) {
        snprintf(out, size, "%lld", (long long)d.offset);
        return out;
    }
    char scale[24] = "", offset[24] = "";
    if (d.scale == -1) {
        snprintf(scale, sizeof scale, "-");
    } else if (d.scale != 1) {
        snprintf(scale, sizeof scale, "%lld", (long long)d.scale);
    }
    if (d.offset) snprintf(offset, sizeof offset, "%+lld", (long long)d.offset);
    snprintf(out, size, "%s%s%s", scale, symbol, offset);
    return out;
}
