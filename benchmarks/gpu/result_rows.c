/* result_rows.c — see result_rows.h. */
#include "benchmarks/gpu/result_rows.h"

#include <math.h>
#include <stdlib.h>

static void print_text(FILE *out, const char *text)
{
    putc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(out, "\\u%04x", *c);
        else
            putc(*c, out);
    }
    putc('"', out);
}

void row_begin(FILE *out, const char *section)
{
    fputs("{\"section\": ", out);
    print_text(out, section);
}

void row_text(FILE *out, const char *key, const char *value)
{
    fprintf(out, ", \"%s\": ", key);
    print_text(out, value);
}

void row_number(FILE *out, const char *key, double value)
{
    if (isfinite(value))
        fprintf(out, ", \"%s\": %.9g", key, value);
    else
        fprintf(out, ", \"%s\": null", key);
}

void row_bool(FILE *out, const char *key, bool value) { fprintf(out, ", \"%s\": %s", key, value ? "true" : "false"); }

void row_end(FILE *out)
{
    fputs("}\n", out);
    fflush(out);
}

bool samples_reserve(samples *s, size_t capacity)
{
    s->us = malloc(capacity * sizeof *s->us);
    s->capacity = s->us != NULL ? capacity : 0;
    s->count = 0;
    return s->us != NULL;
}

void samples_free(samples *s)
{
    free(s->us);
    *s = (samples){0};
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double samples_percentile(samples *s, double quantile)
{
    qsort(s->us, s->count, sizeof *s->us, compare);
    size_t rank = (size_t)ceil(quantile * (double)s->count);
    return s->us[rank < 1 ? 0 : rank - 1];
}

void row_samples(FILE *out, samples *s)
{
    row_number(out, "count", (double)s->count);
    if (s->count == 0) return;
    row_number(out, "p50_us", samples_percentile(s, 0.5));
    row_number(out, "p99_us", samples_percentile(s, 0.99));
    row_number(out, "p999_us", samples_percentile(s, 0.999));
}
