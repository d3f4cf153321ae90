/* number.c — see text.h. A library must not set the locale, even briefly and for one thread only. */
#include "base/text.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C locale as an object. Creation always succeeds in glibc and musl; if it fails, reading finds no number. */
static locale_t begin(void) { return newlocale(LC_ALL_MASK, "C", (locale_t)0); }

double bs_number_read(const char *text, const char **out_end)
{
    locale_t c = begin();
    char *end;
    *out_end = text;
    if (c == (locale_t)0) return 0;
    double value = strtod_l(text, &end, c);
    freelocale(c);
    *out_end = end;
    return value;
}

float bs_number_read_f32(const char *text, const char **out_end)
{
    locale_t c = begin();
    char *end;
    *out_end = text;
    if (c == (locale_t)0) return 0;
    float value = strtof_l(text, &end, c);
    freelocale(c);
    *out_end = end;
    return value;
}

/* snprintf lacks a variant with a locale argument. Therefore the decimal point is found in its output: the bytes (one
 * or several) behind the first digits, except digits and an exponent's letter. */
const char *bs_number_print(double value, int digits, char out[BS_NUMBER_BYTES])
{
    snprintf(out, BS_NUMBER_BYTES, "%.*g", digits, value);
    static const char decimal_digits[] = "0123456789";
    char *point = out + (*out == '-');
    size_t before = strspn(point, decimal_digits);
    point += before;
    size_t bytes = strcspn(point, "0123456789e");
    if (before == 0 || bytes == 0) return out; /* inf, nan, or a number that has no point */
    *point = '.';
    memmove(point + 1, point + bytes, strlen(point + bytes) + 1);
    return out;
}
