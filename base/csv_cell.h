/* csv_cell.h — cells of CSV tables that programs of this project write. */
#ifndef BS_CSV_CELL_H
#define BS_CSV_CELL_H

#include <stddef.h>
#include <stdio.h>

/* Writes a cell as in RFC 4180: in quotes if it has a comma or a quote, and also if a reader that ignores blanks around
 * cells and lines that begin with "#" would change it. Control characters become blanks, because readers take each line
 * as a row. */
void bs_csv_write(FILE *stream, const char *text, size_t length);
/* The same for a text that ends with NUL. */
void bs_csv_write_text(FILE *stream, const char *text);

#endif
