/* csv.h — tables as traces have them: comma-separated, a header line that names columns, every fault with its line.
 *
 * Fields may stand in double quotes (RFC 4180), but not reach over a line's end. Empty lines count for nothing.
 */
#ifndef SC_CSV_H
#define SC_CSV_H

#include "mdot/mdot_base.h"

enum { SC_CSV_MAX_FIELDS = 64, SC_CSV_ABSENT = -1 };

typedef struct sc_csv {
    const char *path;
    char *text, *at;
    size_t line; /* of the row that was read last, from 1 */
    char *header[SC_CSV_MAX_FIELDS], *field[SC_CSV_MAX_FIELDS];
    int header_count, field_count;
} sc_csv;

/* Reads the file and its header line; `header` is the one of a file that has none, its columns with commas, where its
 * first line does not begin with that one's first column. NULL: the file has one. */
mdot_status sc_csv_open(const char *path, const char *header, sc_csv *out_csv, mdot_error *err);
void sc_csv_close(sc_csv *csv);

/* The next row; *out_is_row is false behind the last. MALFORMED where it has not as many fields as the header. */
mdot_status sc_csv_next(sc_csv *csv, bool *out_is_row, mdot_error *err);

/* Index of a column, or SC_CSV_ABSENT. */
int sc_csv_find(const sc_csv *csv, const char *column);
/* The same, MALFORMED where there is none, or two columns of the header are called alike. */
mdot_status sc_csv_need(const sc_csv *csv, const char *column, int *out_index, mdot_error *err);

/* The row's number in a column, from `least` to `most`. */
mdot_status sc_csv_number(const sc_csv *csv, int column, double least, double most, double *out_value, mdot_error *err);
mdot_status sc_csv_whole(const sc_csv *csv, int column, int least, int most, int *out_value, mdot_error *err);

/* MALFORMED with the file and the row's line before the message. */
__attribute__((format(printf, 3, 4))) mdot_status sc_csv_fail(const sc_csv *csv, mdot_error *err, const char *format,
                                                              ...);

#endif
