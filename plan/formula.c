/* formula.c — expressions from text, by recursive descent, and the functions that expr.h lacks.
 *
 * The relative error of these functions is as small as that of log, exp and division, even where the textbook form
 * cancels.
 */
#include "base/text.h"
#include "plan/plan_builder.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

enum { MOST_SYMBOLS = 12, MOST_ARGUMENTS = 2 };

static const struct {
    const char *name, *formula; /* of x and y */
} functions[] = {
    /* An odd function, given its value for |x|. A zero keeps its sign, and NaN stays NaN. */
    {"odd", "x < 0 ? -y : 0 < x ? y : x"},

    /* log(1 + x) = log(u) x / (u - 1) with u = fl(1 + x): the rounding error of u cancels in the quotient (Kahan;
     * Higham, "Accuracy and Stability of Numerical Algorithms", section 1.14.1). */
    {"log1p", "u = x + 1; tiny = u == 1; log = log(u);"
              "tiny ? x : isinf(u) ? log : log * (x / (tiny ? 1 : u - 1))"},

    /* e^x - 1 = (u - 1) x / log(u) with u = fl(e^x), by the same argument. Outside [-1, 1] the plain form is exact
     * enough, because nothing cancels. */
    {"expm1", "u = exp(x); tiny = u == 1; plain = u - 1;"
              "tiny ? x : abs(x) <= 1 ? plain * (x / (tiny ? 1 : log(u))) : plain"},

    /* |x| is reduced below tan(π/8) by atan x = π/2 + atan(-1/x) and atan x = π/4 + atan((x - 1) / (x + 1)). Divisors
     * are replaced in the branch that is not taken, so that 0 / 0 never occurs. The polynomial interpolates
     * atan(√z) / √z at the Chebyshev nodes of [0, tan²(π/8)]; relative error 1.8e-15. */
    {"atan",
     "a = abs(x); steep = 2.4142135623730949 < a; slanted = 0.41421356237309515 < a;"
     "t = steep ? -1 / (steep ? a : 1) : slanted ? (a - 1) / (a + 1) : a;"
     "base = steep ? 1.5707963267948966 : slanted ? 0.78539816339744828 : 0; z = t * t;"
     "odd(x, base + t * (((((((((-0.025345761550124305 * z + 0.05030155788624033) * z + -0.06508854136539335) * z"
     "+ 0.07674261106926131) * z + -0.0908963078261168) * z + 0.1111105687380593) * z + -0.14285713018650445) * z"
     "+ 0.19999999986479677) * z + -0.3333333333329467) * z + 1))"},

    /* `y` for x up to 40. Beyond, sinh and cosh are e^x / 2 to the last bit, as a product of two roots, because e^x
     * overflows before its half does. */
    {"half_exponential", "root = exp(x * 0.5); 40 < x ? root * 0.5 * root : y"},

    /* log(1 + e^x) */
    {"softplus", "max(x, 0) + log1p(exp(-abs(x)))"},
};

typedef struct symbol {
    const char *name;
    size_t length;
    const pl_expr *value;
} symbol;

typedef struct parser {
    ir_arena *arena;
    const char *position;
    mdot_dtype dtype; /* of numbers */
    symbol symbols[MOST_SYMBOLS];
    int count;
} parser;

static bool accept(parser *p, const char *token)
{
    while (*p->position == ' ') p->position++;
    size_t length = strlen(token);
    if (strncmp(p->position, token, length) != 0) return false;
    p->position += length;
    return true;
}

static bool equals(const char *text, size_t length, const char *name)
{
    return strncmp(text, name, length) == 0 && name[length] == '\0';
}

static void add_symbol(parser *p, const char *name, size_t length, const pl_expr *value)
{
    assert(p->count < MOST_SYMBOLS);
    p->symbols[p->count++] = (symbol){name, length, value};
}

static const pl_expr *choice(parser *p);

/* A call, behind the parenthesis. */
static const pl_expr *call(parser *p, const char *name, size_t length)
{
    pl_symbol arguments[MOST_ARGUMENTS] = {{.name = "x"}, {.name = "y"}};
    int count = 0;
    do {
        assert(count < MOST_ARGUMENTS);
        arguments[count++].value = choice(p);
    } while (accept(p, ","));
    accept(p, ")");
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (equals(name, length, functions[i].name))
            return pl_formula(p->arena, functions[i].formula, arguments, count);
    for (int op = 0; op < PL_EXPR_OP_COUNT; op++) {
        if (!equals(name, length, pl_expr_op_name((pl_expr_op)op))) continue;
        return count == 1 ? pl_unary(p->arena, (pl_expr_op)op, arguments[0].value)
                          : pl_binary(p->arena, (pl_expr_op)op, arguments[0].value, arguments[1].value);
    }
    assert(false); /* the formula calls an unknown function */
    return NULL;
}

static size_t name_length(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') length++;
    return length;
}

static const pl_expr *factor(parser *p)
{
    if (accept(p, "-")) return pl_unary(p->arena, PL_NEG, factor(p));
    if (accept(p, "(")) {
        const pl_expr *inside = choice(p);
        accept(p, ")");
        return inside;
    }
    const char *text = p->position;
    if (isdigit((unsigned char)*text)) return pl_const_f(p->arena, p->dtype, bs_number_read(text, &p->position));
    size_t length = name_length(text);
    p->position += length;
    if (accept(p, "(")) return call(p, text, length);
    for (int i = p->count; i-- > 0;)
        if (p->symbols[i].length == length && strncmp(p->symbols[i].name, text, length) == 0)
            return p->symbols[i].value;
    assert(false); /* the formula has an unknown name */
    return NULL;
}

/* Operators of a level and those that bind more tightly. */
static const pl_expr *operation(parser *p, int level)
{
    static const struct {
        const char *token;
        pl_expr_op op;
        int level;
    } operators[] = {{"<=", PL_LE, 0}, {"<", PL_LT, 0},  {"==", PL_EQ, 0}, {"+", PL_ADD, 1},
                     {"-", PL_SUB, 1}, {"*", PL_MUL, 2}, {"/", PL_DIV, 2}};
    enum { OPERATORS = sizeof operators / sizeof *operators, LEVELS = 3 };
    if (level == LEVELS) return factor(p);
    const pl_expr *left = operation(p, level + 1);
    for (int i = 0; i < OPERATORS;) {
        bool is_next = operators[i].level == level && accept(p, operators[i].token);
        if (is_next) left = pl_binary(p->arena, operators[i].op, left, operation(p, level + 1));
        i = is_next ? 0 : i + 1;
    }
    return left;
}

static const pl_expr *choice(parser *p)
{
    const pl_expr *condition = operation(p, 0);
    if (!accept(p, "?")) return condition;
    const pl_expr *yes = choice(p);
    accept(p, ":");
    const pl_expr *no = choice(p);
    return pl_select(p->arena, condition, yes, no);
}

const pl_expr *pl_formula(ir_arena *arena, const char *text, const pl_symbol *symbols, int count)
{
    if (symbols[0].value == NULL) return NULL;
    parser p = {.arena = arena, .position = text, .dtype = symbols[0].value->dtype};
    for (int i = 0; i < count; i++) add_symbol(&p, symbols[i].name, strlen(symbols[i].name), symbols[i].value);
    for (;;) {
        accept(&p, "");
        const char *start = p.position;
        size_t length = name_length(start);
        p.position += length;
        if (accept(&p, "==") || !accept(&p, "=")) { /* the result, no definition */
            p.position = start;
            const pl_expr *result = choice(&p);
            assert(*p.position == '\0');
            return result;
        }
        const pl_expr *value = choice(&p);
        accept(&p, ";");
        add_symbol(&p, start, length, value);
    }
}
