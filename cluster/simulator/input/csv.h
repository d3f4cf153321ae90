/* csv.h — tables in the form of traces: comma-separated, with a header line that names the columns. Messages name the
 * line of a fault.
 *
 * Fields may be in double quotes (RFC 4180), but must end on the same line. Empty lines are skipped, and so are
 * lines before the header that begin with #, which give sources and licences.
 *
 * The tables of Slurm's sacct are separated by "|" and quote nothing, so that their last field may contain more "|".
 */
#ifndef SC_CSV_H
#define SC_CSV_H

#include "mdot/mdot_base.h"

enum { SC_CSV_MAX_FIELDS = 64, SC_CSV_ABSENT = -1 };

typedef struct sc_csv {
    const char *path;
    char *text, *at;
    char separator; /* a comma, or "|" if the header has that one */
    size_t line;    /* line of the row that was read last, from 1 */
    char *header[SC_CSV_MAX_FIELDS], *field[SC_CSV_MAX_FIELDS];
    int header_count, field_count;
} sc_csv;

/* Reads the file and its header line. `header` is for files that lack one: its columns, with commas, are used if the
 * first line does not begin with the first of them. NULL: the file must have a header. */
mdot_status sc_csv_open(const char *path, const char *header, sc_csv *out_csv, mdot_error *err);
void sc_csv_close(sc_csv *csv);

/* Reads the next row; *out_is_row is false behind the last. MALFORMED if its number of fields differs from the
 * header's. */
mdot_status sc_csv_next(sc_csv *csv, bool *out_is_row, mdot_error *err);

/* Returns a copy of the row's text in a column, or NULL if it is empty or the column is SC_CSV_ABSENT. *out_is_missing
 * becomes true if memory ran out. */
char *sc_csv_copy(const sc_csv *csv, int column, bool *out_is_missing);

/* Returns the index of a column, or SC_CSV_ABSENT. */
int sc_csv_find(const sc_csv *csv, const char *column);
/* Like sc_csv_find; MALFORMED if the column is absent, or if the header has two of that name. */
mdot_status sc_csv_need(const sc_csv *csv, const char *column, int *out_index, mdot_error *err);

/* Read the row's number in a column, from `least` to `most`. */
mdot_status sc_csv_number(const sc_csv *csv, int column, double least, double most, double *out_value, mdot_error *err);
mdot_status sc_csv_integer(const sc_csv *csv, int column, int least, int most, int *out_value, mdot_error *err);

/* Returns MALFORMED, with the file and the row's line before the message. */
__attribute__((format(printf, 3, 4))) mdot_status sc_csv_fail(const sc_csv *csv, mdot_error *err, const char *format,
                                                              ...);

#endif
