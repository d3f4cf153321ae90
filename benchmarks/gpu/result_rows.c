/* result_rows.c — see result_rows.h. */
#include "benchmarks/gpu/result_rows.h"

#include <math.h>
#include <stdlib.h>

static void print_text(FILE *to, const char *text)
{
    putc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(to, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(to, "\\u%04x", *c);
        else
            putc(*c, to);
    }
    putc('"', to);
}

void row_begin(FILE *to, const char *section)
{
    fputs("{\"section\": ", to);
    print_text(to, section);
}

void row_text(FILE *to, const char *key, const char *value)
{
    fprintf(to, ", \"%s\": ", key);
    print_text(to, value);
}

void row_number(FILE *to, const char *key, double value)
{
    if (isfinite(value))
        fprintf(to, ", \"%s\": %.9g", key, value);
    else
        fprintf(to, ", \"%s\": null", key);
}

void row_bool(FILE *to, const char *key, bool value)
{
    fprintf(to, ", \"%s\": %s", key, value ? "true" : "false");
}

void row_end(FILE *to)
{
    fputs("}\n", to);
    fflush(to);
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

void row_samples(FILE *to, samples *s)
{
    row_number(to, "count", (double)s->count);
    if (s->count == 0) return;
    row_number(to, "p50_us", samples_percentile(s, 0.5));
    row_number(to, "p99_us", samples_percentile(s, 0.99));
    row_number(to, "p999_us", samples_percentile(s, 0.999));
}
