/* csv.h — lines of CSV, as `mdot calibrate` reads them: RFC 4180, but a quoted cell stays on one line; blanks around
 * cells are ignored, and so are empty lines and lines that begin with "#". */
#ifndef ST_CSV_H
#define ST_CSV_H

#include <stdbool.h>
#include <stddef.h>

enum { ST_MAX_CELLS = 96 };

typedef struct st_csv {
    const char *at, *end; /* text that remains */
    size_t line;          /* number of the line that was read last */
    char *copy;           /* that line; cells point into it */
    size_t copy_size;
    char *cell[ST_MAX_CELLS];
    size_t count;
    const char *fault; /* reason why the line cannot be split, or NULL */
} st_csv;

st_csv st_csv_begin(const char *text, size_t size_bytes);
/* Reads the next line with cells; false at the end. A line that cannot be split sets `fault`. */
bool st_csv_next(st_csv *csv);
void st_csv_end(st_csv *csv);

#endif
