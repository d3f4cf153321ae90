/* result_rows.h — writes measurements at once, one JSON line per row, so that an interrupted run keeps results.
 * gpu_report.py makes a table from the rows. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A row is begun, filled and ended; `section` is its kind. Text is escaped. */
void row_begin(FILE *to, const char *section);
void row_text(FILE *to, const char *key, const char *value);
void row_number(FILE *to, const char *key, double value); /* null for infinite values and NaN */
void row_bool(FILE *to, const char *key, bool value);
void row_end(FILE *to);

/* Times of single events. */
typedef struct samples {
    double *us;
    size_t count, capacity;
} samples;

bool samples_reserve(samples *s, size_t capacity);
static inline void samples_add(samples *s, double us)
{
    if (s->count < s->capacity) s->us[s->count++] = us;
}
void samples_free(samples *s);
/* Sorts the samples and returns the least value with at least a fraction `quantile` of the values at or below it. There
 * must be a sample. */
double samples_percentile(samples *s, double quantile);
/* Writes count, p50_us, p99_us and p999_us. */
void row_samples(FILE *to, samples *s);
