/* number.c — see text.h. A library must not set the locale, even briefly and for one thread only. */
#include "base/text.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The C locale as an object. Creation always succeeds in glibc and musl; if it fails, reading finds no number. */
static locale_t begin(void) { return newlocale(LC_ALL_MASK, "C", (locale_t)0); }

/* Returns where the 0 of a hexadecimal number ends, otherwise NULL. */
static const char *end_of_zero(const char *text)
{
    text += strspn(text, " \t\n\v\f\r");
    text += *text == '-' || *text == '+';
    return text[0] == '0' && (text[1] == 'x' || text[1] == 'X') ? text + 1 : NULL;
}

double bs_number_read(const char *text, const char **out_end)
{
    if ((*out_end = end_of_zero(text)) != NULL) return 0;
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
    if ((*out_end = end_of_zero(text)) != NULL) return 0;
    locale_t c = begin();
    char *end;
    *out_end = text;
    if (c == (locale_t)0) return 0;
    float value = strtof_l(text, &end, c);
    freelocale(c);
    *out_end = end;
    return value;
}

/* Prints 0, and a number that needs no exponent, like "%.*g" with up to 15 digits, in a tenth of its time. False for
 * any other number, and close to a tie, where 64 bits of precision cannot tell the nearer decimal. */
static bool print_decimal(double value, int digits, char *out)
{
    enum { MOST_DIGITS = 15 };
    static const long double powers[] = {1,     1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L, 1e9L,
                                         1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L};
    if (value == 0 && !signbit(value)) return strcpy(out, "0"), true;
    if (digits < 1 || digits > MOST_DIGITS || !(value >= 1e-4 && value < (double)powers[digits])) return false;
    int exponent = 0;
    while (value >= powers[exponent + 1]) exponent++;
    for (long double rest = value; rest < 1; rest *= 10) exponent--;
    long double scaled = value * powers[digits - 1 - exponent];
    uint64_t whole = (uint64_t)scaled;
    long double part = scaled - (long double)whole;
    if (scaled < powers[digits - 1] || fabsl(part - 0.5L) < 1e-3L) return false;
    whole += part > 0.5L;
    if (whole >= (uint64_t)powers[digits]) return false;
    char text[MOST_DIGITS];
    int count = digits;
    for (int i = digits; i-- > 0; whole /= 10) text[i] = (char)('0' + whole % 10);
    while (count > 1 && count > exponent + 1 && text[count - 1] == '0') count--;
    if (exponent < 0) {
        out += sprintf(out, "0.%.*s", -1 - exponent, "000");
        memcpy(out, text, (size_t)count);
        out[count] = '\0';
        return true;
    }
    int before = exponent + 1, behind = count - before;
    memcpy(out, text, (size_t)before);
    if (behind > 0) out[before] = '.';
    if (behind > 0) memcpy(out + before + 1, text + before, (size_t)behind);
    out[before + (behind > 0 ? behind + 1 : 0)] = '\0';
    return true;
}

/* snprintf lacks a variant with a locale argument. Therefore the decimal point is found in its output: the bytes (one
 * or several) behind the first digits, except digits and an exponent's letter. */
const char *bs_number_print(double value, int digits, char out[BS_NUMBER_BYTES])
{
    if (print_decimal(value, digits, out)) return out;
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
