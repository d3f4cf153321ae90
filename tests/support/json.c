/* json.c — see json.h. A recursive descent over the grammar of RFC 8259. */
#include "tests/support/json.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Each function takes the text at a value and returns the text after it, or NULL if the grammar is violated. */
static const char *skip_value(const char *p);

static const char *skip_blanks(const char *p) { return p + strspn(p, " \t\r\n"); }

static const char *skip_string(const char *p)
{
    if (*p++ != '"') return NULL;
    while (*p != '"') {
        if ((unsigned char)*p < 0x20) return NULL; /* includes the end of the text */
        if (*p == '\\') {
            p++;
            if (*p == 'u') {
                if (strspn(p + 1, "0123456789abcdefABCDEF") < 4) return NULL;
                p += 4;
            } else if (*p == '\0' || strchr("\"\\/bfnrt", *p) == NULL) {
                return NULL;
            }
        }
        p++;
    }
    return p + 1;
}

static const char *skip_digits(const char *p)
{
    size_t count = strspn(p, "0123456789");
    return count == 0 ? NULL : p + count;
}

static const char *skip_number(const char *p)
{
    if (*p == '-') p++;
    if (*p == '0' && p[1] >= '0' && p[1] <= '9') return NULL;
    p = skip_digits(p);
    if (p != NULL && *p == '.') p = skip_digits(p + 1);
    if (p != NULL && (*p == 'e' || *p == 'E')) p = skip_digits(p + 1 + (p[1] == '+' || p[1] == '-'));
    return p;
}

static const char *skip_members(const char *p, char close, bool has_names)
{
    p = skip_blanks(p + 1);
    if (*p == close) return p + 1;
    for (;;) {
        if (has_names) {
            p = skip_string(p);
            if (p == NULL || *(p = skip_blanks(p)) != ':') return NULL;
            p = skip_blanks(p + 1);
        }
        p = skip_value(p);
        if (p == NULL) return NULL;
        p = skip_blanks(p);
        if (*p == close) return p + 1;
        if (*p != ',') return NULL;
        p = skip_blanks(p + 1);
    }
}

static const char *skip_value(const char *p)
{
    static const char *const words[] = {"true", "false", "null"};
    if (*p == '{') return skip_members(p, '}', true);
    if (*p == '[') return skip_members(p, ']', false);
    if (*p == '"') return skip_string(p);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strncmp(p, words[i], strlen(words[i])) == 0) return p + strlen(words[i]);
    return skip_number(p);
}

bool json_is_valid(const char *text)
{
    const char *end = skip_value(skip_blanks(text));
    return end != NULL && *skip_blanks(end) == '\0';
}

size_t json_numbers(const char *text, const char *key, double *out_values, size_t most)
{
    char quoted[64];
    size_t count = 0;
    snprintf(quoted, sizeof quoted, "\"%s\":", key);
    for (const char *p = text; (p = strstr(p, quoted)) != NULL; count++) {
        p = skip_blanks(p + strlen(quoted));
        if (skip_number(p) == NULL) fail_msg("%s is no number: %.40s", key, p);
        if (count < most) out_values[count] = strtod(p, NULL);
    }
    return count;
}
