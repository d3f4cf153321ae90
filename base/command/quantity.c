/* quantity.c — see quantity.h. */
#include "base/command/quantity.h"
#include "base/text.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

enum { MAX_DIGITS = 63 };

static const char *skip_blanks(const char *text) { return text + strspn(text, " \t\r"); }

/* Reads a finite decimal number that begins at `text`. Underscores may separate digits. Returns the end, or NULL. */
static const char *read_decimal(const char *text, double *out)
{
    char digits[MAX_DIGITS + 1];
    size_t length = 0;
    const char *cursor = text;
    for (; *cursor != '\0' && length < MAX_DIGITS; cursor++) {
        bool is_digit = *cursor >= '0' && *cursor <= '9';
        bool after_digit = length > 0 && cursor[-1] >= '0' && cursor[-1] <= '9';
        if (*cursor == '_' && after_digit && cursor[1] >= '0' && cursor[1] <= '9') continue;
        size_t sign = cursor[1] == '+' || cursor[1] == '-';
        bool is_exponent =
            (*cursor == 'e' || *cursor == 'E') && after_digit && cursor[1 + sign] >= '0' && cursor[1 + sign] <= '9';
        bool is_sign = (*cursor == '+' || *cursor == '-') && (length == 0 || digits[length - 1] == 'e');
        if (!is_digit && !is_exponent && !is_sign && *cursor != '.') break;
        digits[length++] = is_exponent ? 'e' : *cursor;
    }
    digits[length] = '\0';
    const char *end;
    double value = bs_number_read(digits, &end);
    if (length == 0 || *end != '\0' || !isfinite(value)) return NULL;
    *out = value;
    return cursor;
}

/* Returns the power of a prefix's letter: 1 for k to 4 for t; 0 for other letters. */
static int prefix_of(char letter)
{
    static const char letters[] = "kmgt";
    const char *found = letter != '\0' ? strchr(letters, letter | 0x20) : NULL;
    return found != NULL ? (int)(found - letters) + 1 : 0;
}

const char *cli_read_count(const char *text, int suffixes, int64_t minimum, int64_t maximum, int64_t *out)
{
    static const char not_whole[] = "it must be a whole number, for example 100000, 100_000 or 1e5",
                      with_suffix[] = "it must be a whole number, for example 100000, 100_000, 1e5 or 100k";
    double value;
    const char *end = read_decimal(text, &value);
    if (end != NULL && suffixes != 0 && (*end | 0x20) == 'b') /* a billion */
        value *= 1e9, end++;
    else if (end != NULL && suffixes != 0 && prefix_of(*end) > 0)
        value *= pow(1000, prefix_of(*end++));
    if (end == NULL || *end != '\0' || value != floor(value)) return suffixes != 0 ? with_suffix : not_whole;
    if (value < (double)minimum || value > (double)maximum || fabs(value) >= 0x1p53) return "it is out of range";
    *out = (int64_t)value;
    return NULL;
}

const char *cli_read_rate(const char *text, double *out_gbps)
{
    static const char unit[] = "the units are GB/s (bytes) and Gb/s or Gbps (bits), also with K, M or T in place of G";
    double value;
    const char *cursor = read_decimal(skip_blanks(text), &value);
    if (cursor == NULL || value <= 0) return "it must be a number above 0, for example 12.5, 12.5GB/s or 100Gb/s";
    cursor = skip_blanks(cursor);
    if (*cursor == '\0') {
        *out_gbps = value;
        return NULL;
    }
    int power = prefix_of(*cursor);
    if (power == 0) return unit;
    bool is_binary = cursor[1] == 'i' && (cursor[2] == 'B' || cursor[2] == 'b');
    cursor += is_binary ? 2 : 1;
    static const struct {
        const char *name;
        double bytes;
        bool any_case;
    } units[] = {{"bits", 0.125, true}, {"bit", 0.125, true}, {"bytes", 1, true},
                 {"byte", 1, true},     {"B", 1, false},      {"b", 0.125, false}};
    double bytes = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units && bytes == 0; i++) {
        size_t length = strlen(units[i].name);
        int differs =
            units[i].any_case ? strncasecmp(cursor, units[i].name, length) : strncmp(cursor, units[i].name, length);
        if (differs != 0) continue;
        bytes = units[i].bytes;
        cursor += length;
    }
    bool per_second = strcasecmp(cursor, "/s") == 0 || strcasecmp(cursor, "ps") == 0 || strcasecmp(cursor, "/sec") == 0;
    if (bytes == 0 || !per_second) return unit;
    *out_gbps = value * bytes * pow(is_binary ? 1024 : 1000, power) / 1e9;
    return NULL;
}

/* Skips a currency, a sign or a code of three letters, and stores its name. */
static const char *skip_currency(const char *text, const char **io_name)
{
    static const char *const names[] = {"US$", "$",   "€",   "£",   "¥",   "₹",   "USD", "EUR",
                                        "GBP", "JPY", "CNY", "INR", "CHF", "CAD", "AUD", "SEK"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncasecmp(text, names[i], strlen(names[i])) == 0) return text + strlen(*io_name = names[i]);
    return text;
}

const char *cli_read_price(const char *text, double *out_an_hour, const char **out_currency)
{
    static const char form[] = "it must be a price per hour, for example 2.5, 2.5/h, $2.5/h or \"2.5 USD/h\"";
    static const char *const hours[] = {"", "/h", "/hr", "/hour", "per hour", "an hour"};
    const char *currency = "";
    double value;
    const char *cursor = read_decimal(skip_blanks(skip_currency(skip_blanks(text), &currency)), &value);
    if (cursor == NULL) return form;
    cursor = skip_blanks(skip_currency(skip_blanks(cursor), &currency));
    bool is_hour = false;
    for (size_t i = 0; i < sizeof hours / sizeof *hours; i++) {
        size_t length = strlen(hours[i]);
        is_hour = is_hour || (strncasecmp(cursor, hours[i], length) == 0 && *skip_blanks(cursor + length) == '\0');
    }
    if (!is_hour) return *cursor == '/' ? "the price must be that of an hour (/h)" : form;
    if (value <= 0) return "the price must be above 0";
    *out_an_hour = value;
    *out_currency = currency;
    return NULL;
}

const char *cli_read_duration(const char *text, double *out_hours)
{
    static const struct {
        const char *name;
        double hours;
    } units[] = {{"w", 168}, {"weeks", 168}, {"d", 24},         {"days", 24},
                 {"h", 1},   {"hours", 1},   {"min", 1.0 / 60}, {"s", 1.0 / 3600}};
    double value;
    const char *cursor = read_decimal(skip_blanks(text), &value);
    if (cursor == NULL || value <= 0) return "it must be a number above 0 with a unit, for example 7d, 36h or 90min";
    cursor = skip_blanks(cursor);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(cursor, units[i].name) != 0) continue;
        *out_hours = value * units[i].hours;
        return NULL;
    }
    return "it needs a unit: w, d, h, min or s, for example 7d";
}
