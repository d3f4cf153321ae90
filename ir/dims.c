/* dims.c — arithmetic on dimensions that depend on the bucket symbol L (declared in ops/families.h).
 *
 * An affine function on the range [first, max_length] takes its extremes at the ends, so every question about all L
 * is answered by examining two values. A dimension with a floor is affine on each residue class of L modulo the
 * divisor, so its extremes are among the first and the last `divisor` lengths. Values are computed in 128 bits, where
 * they cannot overflow.
 *
 * Dimensions with one floor are closed under sums with affine dimensions, products with numbers, and rounded quotients
 * if they have no factor besides the floor, because floors nest: floor((floor(x / c) + n) / r) = floor((x + c * n) /
 * (c * r)). A sum of two different floors, such as L/2 + L/3, has no form.
 */
#include "ir/ops/families.h"

#include <stdio.h>

__extension__ typedef __int128 wide_int;

/* Greatest divisor: bounds the search over residue classes, and keeps step * L in range. */
enum { MAX_DIVISOR = 1 << 16 };

static wide_int floor_divide(wide_int a, wide_int divisor)
{
    wide_int quotient = a / divisor;
    return a % divisor < 0 ? quotient - 1 : quotient;
}

static wide_int value_at(ir_dim d, int64_t length)
{
    wide_int affine = (wide_int)d.scale * length + d.offset;
    if (d.times == 0) return affine;
    return affine + d.times * floor_divide((wide_int)d.step * length + d.start, d.divisor);
}

static int64_t saturate(wide_int value)
{
    if (value > INT64_MAX) return INT64_MAX;
    if (value < INT64_MIN) return INT64_MIN;
    return (int64_t)value;
}

static wide_int greatest_common_divisor(wide_int a, wide_int b)
{
    while (b) {
        wide_int rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* scale * L + offset + times * floor((step * L + start) / divisor), for any coefficients and divisor > 0 */
typedef struct form {
    wide_int scale, offset, times, step, start, divisor;
} form;

static form form_of(ir_dim d)
{
    return (form){d.scale, d.offset, d.times, d.step, d.start, d.times == 0 ? 1 : d.divisor};
}

/* Moves whole parts out of the floor and cancels the common factor of step and divisor. */
static void reduce(form *f)
{
    wide_int whole = floor_divide(f->step, f->divisor), factor;
    f->scale += f->times * whole;
    f->step -= whole * f->divisor;
    factor = greatest_common_divisor(f->step, f->divisor);
    f->start = floor_divide(f->start, factor);
    f->step /= factor;
    f->divisor /= factor;
    whole = floor_divide(f->start, f->divisor);
    f->offset += f->times * whole;
    f->start -= whole * f->divisor;
    if (f->divisor == 1) f->times = 0;
}

/* A reduced form with the sign of `times` changed: floor(x) = -ceil(-x). */
static form reflect(form f)
{
    f.scale += f.times;
    f.times = -f.times;
    f.step = f.divisor - f.step;
    f.start = f.divisor - 1 - f.start;
    return f;
}

/* False: a coefficient is out of range. */
static bool normalize(form f, ir_dim *out)
{
    if (f.times != 0) reduce(&f);
    if (f.times < 0) f = reflect(f);
    if (f.scale != saturate(f.scale) || f.offset != saturate(f.offset)) return false;
    ir_dim d = ir_dim_affine((int64_t)f.scale, (int64_t)f.offset);
    if (f.times != 0) {
        if (f.times > INT32_MAX || f.divisor > MAX_DIVISOR) return false;
        d.times = (int32_t)f.times;
        d.step = (int32_t)f.step;
        d.start = (int32_t)f.start;
        d.divisor = (int32_t)f.divisor;
    }
    *out = d;
    return true;
}

/* Visits the lengths where a function with this period may be extreme: the first and last lengths of each residue
 * class. */
typedef struct walk {
    int64_t first, last, period, at;
} walk;

static walk begin_walk(int64_t first, int64_t last_index, int64_t period)
{
    return (walk){first, last_index, period, first};
}

/* Moves to the next length; false behind the last one. Period 1 visits only the ends, where a function without a floor
 * has its extremes. */
static bool next_length(walk *w)
{
    if (w->at == w->last || w->last < w->first) return false;
    w->at++;
    bool in_between = w->at - w->first >= w->period && w->at <= w->last - w->period;
    if (in_between) w->at = w->last - w->period + 1;
    return true;
}

/* True if no step of L makes the dimension less, or none makes it greater. Its slopes are `scale` and
 * `scale + times`. */
static bool is_monotone(ir_dim d) { return d.scale >= 0 || d.scale + d.times <= 0; }

static void find_bounds(ir_dim d, int64_t first, int64_t last_index, int64_t *out_min, int64_t *out_max)
{
    walk w = begin_walk(first, last_index, is_monotone(d) ? 1 : d.divisor);
    wide_int minimum = value_at(d, w.first), maximum = minimum;
    while (next_length(&w)) {
        wide_int value = value_at(d, w.at);
        minimum = value < minimum ? value : minimum;
        maximum = value > maximum ? value : maximum;
    }
    *out_min = saturate(minimum);
    *out_max = saturate(maximum);
}

/* Before a bucket is bound, a length is open; even so no dimension reaches the greatest i64, which ends of slices use
 * for "everything". */
static int64_t last_length(const ir_graph *graph)
{
    enum { MAX_OPEN_BITS = 40 };
    int64_t open_maximum = INT64_C(1) << MAX_OPEN_BITS;
    return graph->max_length < open_maximum ? graph->max_length : open_maximum;
}

void ir_dim_bounds(const ir_graph *graph, ir_dim d, int64_t *out_min, int64_t *out_max)
{
    find_bounds(d, ir_first_length(graph), last_length(graph), out_min, out_max);
}

int64_t ir_dim_most(ir_dim d, int64_t first, int64_t last_index)
{
    int64_t minimum, maximum;
    find_bounds(d, first, last_index, &minimum, &maximum);
    return maximum;
}

/* Is a + margin <= b for every L? False if the floors' common period is too long to examine. */
static bool always_below(const ir_graph *graph, ir_dim a, ir_dim b, int margin)
{
    wide_int period = 1;
    if (a.times != 0) period = a.divisor;
    if (b.times != 0) period = period / greatest_common_divisor(period, b.divisor) * b.divisor;
    if (period > MAX_DIVISOR) return false;
    walk w = begin_walk(ir_first_length(graph), last_length(graph), (int64_t)period);
    do {
        if (value_at(a, w.at) + margin > value_at(b, w.at)) return false;
    } while (next_length(&w));
    return true;
}

bool ir_dim_always_le(const ir_graph *graph, ir_dim a, ir_dim b) { return always_below(graph, a, b, 0); }

bool ir_dim_always_lt(const ir_graph *graph, ir_dim a, ir_dim b) { return always_below(graph, a, b, 1); }

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

static bool same_floor(form a, form b) { return a.step == b.step && a.start == b.start && a.divisor == b.divisor; }

static bool add_forms(form a, form b, ir_dim *out)
{
    if (a.times != 0 && b.times != 0 && !same_floor(a, b)) b = reflect(b);
    if (a.times != 0 && b.times != 0 && !same_floor(a, b)) return false;
    form sum = a.times != 0 ? a : b;
    sum.scale = a.scale + b.scale;
    sum.offset = a.offset + b.offset;
    sum.times = a.times + b.times;
    return normalize(sum, out);
}

static form scaled(form f, wide_int factor)
{
    f.scale *= factor;
    f.offset *= factor;
    f.times *= factor;
    return f;
}

bool ir_dim_add(ir_dim a, ir_dim b, ir_dim *out) { return add_forms(form_of(a), form_of(b), out); }

bool ir_dim_sub(ir_dim a, ir_dim b, ir_dim *out) { return add_forms(form_of(a), scaled(form_of(b), -1), out); }

bool ir_dim_mul(ir_dim a, ir_dim b, ir_dim *out)
{
    if (!ir_dim_is_number(a) && !ir_dim_is_number(b)) return false;
    int64_t factor = ir_dim_is_number(a) ? a.offset : b.offset;
    return normalize(scaled(form_of(ir_dim_is_number(a) ? b : a), factor), out);
}

/* Quotient of numbers. False: the division leaves a remainder. */
static bool divide_number(int64_t a, int64_t b, int64_t *out)
{
    if (b == 0 || (a == INT64_MIN && b == -1) || a % b != 0) return false;
    *out = a / b;
    return true;
}

/* A dimension is a multiple of a number at every L only if all its coefficients are, because its value changes by
 * `scale` at some steps of L and by `scale + times` at others. */
static bool divide_by_number(ir_dim a, int64_t b, ir_dim *out)
{
    int64_t scale, offset, times;
    if (!divide_number(a.scale, b, &scale) || !divide_number(a.offset, b, &offset) ||
        !divide_number(a.times, b, &times))
        return false;
    form quotient = form_of(a);
    quotient.scale = scale;
    quotient.offset = offset;
    quotient.times = times;
    return normalize(quotient, out);
}

bool ir_dim_div_exact(ir_dim a, ir_dim b, ir_dim *out)
{
    if (ir_dim_is_number(b)) return divide_by_number(a, b.offset, out);
    ir_dim back, quotient = ir_dim_number(0); /* the result has a form only if a is a whole multiple of b */
    bool by_floor = b.times != 0;
    if (!divide_number(by_floor ? a.times : a.scale, by_floor ? b.times : b.scale, &quotient.offset)) return false;
    if (!ir_dim_mul(b, quotient, &back) || !ir_dim_equal(a, back)) return false;
    *out = quotient;
    return true;
}

/* floor((times * F + scale * L + offset) / divisor) for the floor F of `f`. Cancels the common factor, and separates
 * the multiple of F that the divisor divides. What is left has a form if it has at most one F more, or one less. */
static bool floor_of_form(form f, wide_int divisor, ir_dim *out)
{
    wide_int factor = greatest_common_divisor(greatest_common_divisor(f.times, f.scale), divisor);
    f.times /= factor;
    f.scale /= factor;
    f.offset = floor_divide(f.offset, factor);
    divisor /= factor;
    form whole = f;
    whole.scale = whole.offset = 0;
    whole.times = floor_divide(f.times, divisor);
    f.times -= whole.times * divisor;
    if (f.times > 1 && f.times == divisor - 1) { /* -F is a floor too */
        whole.times += 1;
        f.times = -1;
        f = reflect(f);
    }
    form rest = {.times = 1, .step = f.scale, .start = f.offset, .divisor = divisor};
    if (f.times == 1) {
        rest.step = f.step + f.divisor * f.scale;
        rest.start = f.start + f.divisor * f.offset;
        rest.divisor = f.divisor * divisor;
    } else if (f.times != 0) {
        return false;
    }
    if (rest.divisor > (wide_int)MAX_DIVISOR * MAX_DIVISOR) return false;
    reduce(&rest);
    return add_forms(rest, whole, out);
}

bool ir_dim_div_floor(const ir_graph *graph, ir_dim a, int64_t divisor, ir_dim *out)
{
    if (a.scale % divisor == 0 && ir_dim_is_affine(a)) {
        *out = ir_dim_affine(a.scale / divisor, (int64_t)floor_divide(a.offset, divisor));
        return true;
    }
    int64_t least, maximum;
    ir_dim_bounds(graph, a, &least, &maximum);
    wide_int first = floor_divide(least, divisor), end = floor_divide(maximum, divisor);
    if (first == end && least > INT64_MIN && maximum < INT64_MAX) { /* bounds that saturate may hide values */
        *out = ir_dim_number((int64_t)first);
        return true;
    }
    return ir_dim_quotient_form(a, divisor, out);
}

bool ir_dim_quotient_form(ir_dim a, int64_t divisor, ir_dim *out) { return floor_of_form(form_of(a), divisor, out); }

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

/* number * factor[0] * factor[1] …, each factor with a positive leading coefficient and coprime coefficients. A floor
 * counts as a further variable. Such factors are prime among the polynomials with integer coefficients (Gauss's lemma),
 * so equal products have equal factors. */
typedef struct product {
    int64_t number;
    int count;
    ir_dim factor[2 * MDOT_MAX_RANK];
} product;

static bool factorize(const ir_dim *dims, int count, product *out)
{
    *out = (product){.number = 1};
    for (int i = 0; i < count; i++) {
        ir_dim d = dims[i];
        if (d.scale == INT64_MIN || d.offset == INT64_MIN) return false;
        int64_t content = d.offset;
        if (!ir_dim_is_number(d)) {
            content = (int64_t)greatest_common_divisor(greatest_common_divisor(d.scale, d.offset), d.times);
            if (d.times == 0 && d.scale < 0) content = -content;
            if (out->count == 2 * MDOT_MAX_RANK) return false;
            if (!divide_by_number(d, content, &out->factor[out->count++])) return false;
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
    for (int i = 0; i < b.count; i++)
        if (!cancel(&a, b.factor[i])) return false;
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
    for (int i = 0; i < right.count; i++)
        if (!cancel(&left, right.factor[i])) return false;
    return left.count == 0;
}

/* "2L+1", "-L", "3" */
static void print_affine(int64_t scale, int64_t offset, const char *symbol, char *out, size_t size)
{
    char scale_text[24] = "", offset_text[24] = "";
    if (scale == 0) {
        snprintf(out, size, "%lld", (long long)offset);
        return;
    }
    if (scale == -1)
        snprintf(scale_text, sizeof scale_text, "-");
    else if (scale != 1)
        snprintf(scale_text, sizeof scale_text, "%lld", (long long)scale);
    if (offset) snprintf(offset_text, sizeof offset_text, "%+lld", (long long)offset);
    snprintf(out, size, "%s%s%s", scale_text, symbol, offset_text);
}

const char *ir_dim_text(ir_dim d, const char *symbol, char *out, size_t size)
{
    char inside[IR_DIM_TEXT_BYTES], rest[IR_DIM_TEXT_BYTES] = "", times[16] = "";
    if (symbol == NULL) symbol = "L";
    if (d.times == 0) {
        print_affine(d.scale, d.offset, symbol, out, size);
        return out;
    }
    int64_t step = d.step;
    if (d.scale % d.times == 0 && !__builtin_mul_overflow(d.scale / d.times, d.divisor, &step) &&
        !__builtin_add_overflow(step, d.step, &step))
        d.scale = 0; /* 3L/2 rather than L/2+L */
    else
        step = d.step;
    print_affine(step, d.start, symbol, inside, sizeof inside);
    if (d.scale != 0 || d.offset != 0) print_affine(d.scale, d.offset, symbol, rest, sizeof rest);
    if (d.times != 1) snprintf(times, sizeof times, "%lld*(", (long long)d.times);
    snprintf(out, size, "%s%s%s%s/%d%s%s%s", times, d.start ? "(" : "", inside, d.start ? ")" : "", (int)d.divisor,
             *times ? ")" : "", *rest && *rest != '-' ? "+" : "", rest);
    return out;
}
