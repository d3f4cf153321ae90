/* graph_scanner.c — words, numbers and types of the text form of graphs; see graph_scanner.h. */
#include "tests/support/graph_scanner.h"

#include "ir/ops/families.h"

#include "base/text.h"
#include "ir/graph_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool ir_scan_ok(const ir_scanner *s) { return s->status == MDOT_OK; }

bool ir_scan_fail(ir_scanner *s, const char *reason)
{
    if (ir_scan_ok(s)) s->status = mdot_fail(s->err, MDOT_MALFORMED, "graph text, line %d: %s", s->line, reason);
    return false;
}

bool ir_scan_fail_memory(ir_scanner *s)
{
    if (ir_scan_ok(s)) s->status = mdot_fail(s->err, MDOT_OUT_OF_MEMORY, NULL);
    return false;
}

void *ir_scan_allocate(ir_scanner *s, size_t count, size_t size)
{
    void *memory = ir_scan_ok(s) ? ir_arena_alloc(s->arena, count, size) : NULL;
    if (memory == NULL) ir_scan_fail_memory(s);
    return memory;
}

static void skip_space(ir_scanner *s)
{
    for (; isspace((unsigned char)*s->at); s->at++) s->line += *s->at == '\n';
}

char ir_scan_peek(ir_scanner *s)
{
    skip_space(s);
    return *s->at;
}

bool ir_scan_take(ir_scanner *s, const char *token)
{
    size_t length = strlen(token);
    if (!ir_scan_ok(s)) return false;
    skip_space(s);
    if (strncmp(s->at, token, length) != 0) return false;
    if (ir_text_is_word_char(token[0]) && ir_text_is_word_char(s->at[length])) return false;
    s->at += length;
    return true;
}

bool ir_scan_expect(ir_scanner *s, const char *token)
{
    char reason[64];
    if (!ir_scan_ok(s)) return false;
    if (ir_scan_take(s, token)) return true;
    snprintf(reason, sizeof reason, "expected `%s`", token);
    return ir_scan_fail(s, reason);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

const char *ir_scan_quoted(ir_scanner *s)
{
    if (!ir_scan_expect(s, "\"")) return NULL;
    const char *end = s->at;
    while (*end && *end != '"') end += *end == '\\' && end[1] ? 2 : 1;
    char *text = ir_scan_allocate(s, (size_t)(end - s->at) + 1, 1), *to = text;
    if (text == NULL) return NULL;
    while (s->at < end) {
        char c = *s->at++;
        s->line += c == '\n';
        if (c == '\\' && *s->at == 'x') {
            int high = hex_digit(s->at[1]), low = high < 0 ? -1 : hex_digit(s->at[2]);
            if (low <= 0 && high <= 0)
                return ir_scan_fail(s, "expected two hexadecimal digits, not zero, after \\x"), NULL;
            if (low < 0) return ir_scan_fail(s, "expected two hexadecimal digits after \\x"), NULL;
            c = (char)(high * 16 + low);
            s->at += 3;
        } else if (c == '\\') {
            c = *s->at++;
        }
        *to++ = c;
    }
    return ir_scan_expect(s, "\"") ? text : NULL;
}

const char *ir_scan_word(ir_scanner *s)
{
    if (!ir_scan_ok(s)) return NULL;
    skip_space(s);
    const char *begin = s->at;
    while (ir_text_is_word_char(*s->at)) s->at++;
    if (s->at == begin) return ir_scan_fail(s, "expected a name"), NULL;
    const char *word = ir_arena_strndup(s->arena, begin, (size_t)(s->at - begin));
    if (word == NULL) ir_scan_fail_memory(s);
    return word;
}

int64_t ir_scan_int(ir_scanner *s)
{
    char *end;
    if (!ir_scan_ok(s)) return 0;
    skip_space(s);
    errno = 0;
    long long value = strtoll(s->at, &end, 10);
    if (end == s->at || errno) return ir_scan_fail(s, "expected a 64-bit integer"), 0;
    s->at = end;
    return value;
}

uint64_t ir_scan_unsigned(ir_scanner *s, int base)
{
    char *end;
    if (!ir_scan_ok(s)) return 0;
    skip_space(s);
    errno = 0;
    unsigned long long value = strtoull(s->at, &end, base);
    if (end == s->at || errno) return ir_scan_fail(s, "expected a 64-bit number"), 0;
    s->at = end;
    return value;
}

double ir_scan_float(ir_scanner *s)
{
    const char *end;
    if (!ir_scan_ok(s)) return 0;
    skip_space(s);
    double value = bs_number_read(s->at, &end);
    if (end == s->at) return ir_scan_fail(s, "expected a number"), 0;
    s->at = end;
    if (*s->at == 'f') {
        s->at++;
        value = (float)value;
    }
    return value;
}

bool ir_scan_at_float(ir_scanner *s)
{
    const char *c = (skip_space(s), s->at);
    c += *c == '-';
    if (*c == 'n' || *c == 'i') return true;
    while (*c >= '0' && *c <= '9') c++;
    return *c == '.' || *c == 'e';
}

/* 3, L, -4L, +L */
static ir_dim parse_term(ir_scanner *s)
{
    const char *at = s->at + (*s->at == '-' || *s->at == '+');
    int64_t number = *s->at == '-' ? -1 : 1;
    if (*at == 'L')
        s->at = at;
    else
        number = ir_scan_int(s);
    if (!ir_scan_ok(s) || *s->at != 'L') return ir_dim_number(number);
    s->at++;
    return ir_dim_affine(number, 0);
}

static ir_dim add_dims(ir_scanner *s, ir_dim a, ir_dim b)
{
    ir_dim sum = {0};
    if (ir_scan_ok(s) && !ir_dim_add(a, b, &sum)) ir_scan_fail(s, "the dimension has no normal form");
    return sum;
}

/* term { ±term } */
static ir_dim parse_terms(ir_scanner *s)
{
    ir_dim sum = parse_term(s);
    while (ir_scan_ok(s) && (*s->at == '+' || *s->at == '-')) sum = add_dims(s, sum, parse_term(s));
    return sum;
}

/* term [/n], or (terms)/n; n is at least 1 */
static ir_dim parse_quotient(ir_scanner *s)
{
    bool inside = *s->at == '(';
    s->at += inside;
    ir_dim d = inside ? parse_terms(s) : parse_term(s);
    if (inside) ir_scan_expect(s, ")");
    if (!ir_scan_ok(s) || *s->at != '/') return d;
    s->at++;
    int64_t divisor = ir_scan_int(s);
    if (ir_scan_ok(s) && (divisor < 1 || !ir_dim_quotient_form(d, divisor, &d)))
        ir_scan_fail(s, "the dimension has no normal form");
    return d;
}

/* 3, L, 2L+1, (L+1)/2, 3L/2-1, 2*((L+1)/4)-L+3; quotients are rounded down */
static ir_dim parse_dim(ir_scanner *s)
{
    if (!ir_scan_ok(s)) return ir_dim_number(0);
    skip_space(s);
    ir_dim d = parse_quotient(s);
    if (ir_scan_ok(s) && *s->at == '*' && ir_dim_is_number(d)) {
        s->at++;
        if (!ir_scan_expect(s, "(")) return d;
        ir_dim factor = parse_quotient(s);
        ir_scan_expect(s, ")");
        if (ir_scan_ok(s) && !ir_dim_mul(d, factor, &d)) ir_scan_fail(s, "the dimension has no normal form");
    }
    while (ir_scan_ok(s) && (*s->at == '+' || *s->at == '-')) d = add_dims(s, d, parse_term(s));
    return d;
}

static mdot_dtype parse_dtype(ir_scanner *s)
{
    if (ir_scan_take(s, "?")) return MDOT_DTYPE_NONE;
    const char *word = ir_scan_word(s);
    for (int i = MDOT_DTYPE_F32; word != NULL && i <= MDOT_DTYPE_BF16; i++) {
        if (strcmp(mdot_dtype_name((mdot_dtype)i), word) == 0) return (mdot_dtype)i;
    }
    ir_scan_fail(s, "expected an element type");
    return MDOT_DTYPE_NONE;
}

ir_type ir_scan_type(ir_scanner *s)
{
    ir_type type = {.dtype = parse_dtype(s), .rank = -1};
    if (!ir_scan_expect(s, "[")) return type;
    if (!ir_scan_take(s, "*")) {
        type.rank = 0;
        while (ir_scan_ok(s) && ir_scan_peek(s) != ']') {
            if (type.rank == MDOT_MAX_RANK) {
                ir_scan_fail(s, "more dimensions than a tensor may have");
                break;
            }
            if (type.rank) ir_scan_expect(s, ",");
            type.dim[type.rank++] = parse_dim(s);
        }
    }
    ir_scan_expect(s, "]");
    return type;
}

const ir_known *ir_scan_known(ir_scanner *s)
{
    ir_dim elements[IR_MAX_KNOWN];
    int count = 0;
    ir_scan_expect(s, "[");
    while (ir_scan_ok(s) && ir_scan_peek(s) != ']') {
        if (count == IR_MAX_KNOWN) return ir_scan_fail(s, "too many known elements"), NULL;
        if (count) ir_scan_expect(s, ",");
        elements[count++] = parse_dim(s);
    }
    ir_scan_expect(s, "]");
    ir_dim *copy = ir_scan_allocate(s, (size_t)count, sizeof *copy);
    ir_known *known = ir_scan_allocate(s, 1, sizeof *known);
    if (copy == NULL || known == NULL) return NULL;
    if (count) memcpy(copy, elements, (size_t)count * sizeof *copy);
    *known = (ir_known){count, copy};
    return known;
}
