/* csv.h — tables of comma-separated values, as in RFC 4180, with one difference: each row is one line.
 *
 *   columns     A header names the columns. Every row has as many fields as the header.
 *   quotes      Quoted fields may contain commas and, doubled, quotes. They end on the line on which they begin.
 *   blanks      Spaces around fields and empty lines are ignored.
 *   comments    Lines that begin with "#" are ignored.
 *   line ends   LF or CR LF; the last line may lack one.
 *   encoding    UTF-8, with or without a byte-order mark. A zero byte is MALFORMED.
 *   separators  A header without commas, but with ";" or a tab, selects that character. With "|" it selects the form of
 *               Slurm's `sacct -P`: no quotes, comments before the header only, and "|" may stand in the last field.
 *
 * Messages name the table and the line: "steps.csv:3: there are 4 fields, but 5 columns".
 */
#pragma once

#include "base/status.h"

#include <stdbool.h>
#include <stdio.h>

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

enum { BS_CSV_MAX_FIELDS = 96, BS_CSV_ABSENT = -1 };

typedef struct bs_csv {
    const char *path; /* name of the table in messages; borrowed */
    char *text, *position;
    char *header_text; /* NULL if the text has the header */
    size_t line;       /* line number of the last row, from 1; 0 for a header without a line */
    size_t line_count; /* lines of the whole text, an upper bound of the number of rows */
    char separator;    /* ',', '|', ';' or a tab */
    int header_count, field_count;
    char *header[BS_CSV_MAX_FIELDS]; /* names of the columns */
    char *field[BS_CSV_MAX_FIELDS];  /* the last row; valid until the next one is read */
} bs_csv;

/* Reads a file with at most max_bytes and its header. `header` names the columns of a file without a header, separated
 * by commas; it is used unless the first line begins with the first name. It may be NULL. MALFORMED for an empty table,
 * a zero byte, or more than BS_CSV_MAX_FIELDS columns, and the errors of bs_read_file_within. */
mdot_status bs_csv_open(const char *path, uint64_t max_bytes, const char *header, bs_csv *out_csv, mdot_error *err);
/* Like bs_csv_open, for text in memory, which is copied. */
mdot_status bs_csv_begin(const char *path, const char *text, size_t size_bytes, const char *header, bs_csv *out_csv,
                         mdot_error *err);
/* Frees the text; accepts a struct of zeros. */
void bs_csv_close(bs_csv *csv);

/* Reads the next row; *out_is_row is false behind the last one. MALFORMED for an open quote or for another number of
 * fields than columns. */
mdot_status bs_csv_next(bs_csv *csv, bool *out_is_row, mdot_error *err);

/* Returns the index of a column, or BS_CSV_ABSENT. */
int bs_csv_find(const bs_csv *csv, const char *column);
/* Like bs_csv_find; MALFORMED if the column is absent, or if two columns have equal names. */
mdot_status bs_csv_need(const bs_csv *csv, const char *column, int *out_index, mdot_error *err);

/* Reads a number of the row, at least `minimum` and at most `maximum`. MALFORMED for other text, and for "inf" and
 * "nan". Underscores may group digits: 1_000. */
mdot_status bs_csv_number(const bs_csv *csv, int column, double minimum, double maximum, double *out_value,
                          mdot_error *err);
mdot_status bs_csv_integer(const bs_csv *csv, int column, int minimum, int maximum, int *out_value, mdot_error *err);

/* Returns `status`, with the table and the line of the last row before the message. Without a line, only the table is
 * named. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
mdot_status
bs_csv_fail(const bs_csv *csv, mdot_error *err, mdot_status status, const char *format, ...);

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* Writes a field, in quotes if the reader above would otherwise change it. Control characters become spaces, because
 * each line is a row. */
void bs_csv_write(FILE *stream, const char *text, size_t length);
/* The same for a text that ends with NUL. */
void bs_csv_write_text(FILE *stream, const char *text);
