/* rows.h — measured steps in the database. */
#ifndef ST_ROWS_H
#define ST_ROWS_H

#include "store/records.h"

/* The name of a GPU model in mdot's table, or `gpu` itself. The buffer holds the name. */
const char *st_gpu_name(const char *gpu, char *buffer, size_t size);

/* Like mdot_store_add_rows, in the transaction of the caller, for one row of this library's form. `name` and `line`
 * begin messages unless the name is NULL. */
mdot_status st_add_row(const mdot_store *store, sqlite3_stmt *insert, const mdot_store_row *row, const char *name,
                       size_t line, bool *out_added, mdot_error *err);

/* Reads the library's form of a filter; NULL selects all rows. */
mdot_status st_read_filter(const mdot_store_filter *filter, mdot_store_filter *out, mdot_error *err);

#endif
