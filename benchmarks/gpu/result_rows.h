/* result_rows.h — what was measured, written down at once: a line of JSON a row, so that a run that is cut short keeps what it
 * had. report.py makes the table of them.
 */
#ifndef GPU_RESULT_ROWS_H
#define GPU_RESULT_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A row is begun, filled and ended; `section` says what kind it is. Text is escaped. */
void row_begin(FILE *to, const char *section);
void row_text(FILE *to, const char *key, const char *value);
void row_number(FILE *to, const char *key, double value); /* null unless finite */
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
/* The least value that at least `share` of them do not exceed; sorts them. Not of none. */
double samples_percentile(samples *s, double share);
/* count, p50_us, p99_us and p999_us. */
void row_samples(FILE *to, samples *s);

#endif
