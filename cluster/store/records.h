/* records.h — the tables of the store that hold primary data, as descriptions. Reading, writing, checksums and recovery
 * share them, so that each column is named once.
 *
 * The last column of each table is `seal`, a checksum of all others except the id. SQLite finds damaged pages only if
 * their structure is broken; the seal finds damaged values. Recovery recognises records by it.
 */
#ifndef ST_RECORDS_H
#define ST_RECORDS_H

#include "store/database.h"

/* name, SQL type, type: T text, I integer, R real, B bytes. Appended columns would need a new schema version. */
#define ST_ROW_COLUMNS(X)                                                                                              \
    X(uid, I)                                                                                                          \
    X(digest, T)                                                                                                       \
    X(job, T)                                                                                                          \
    X(gpu, T)                                                                                                          \
    X(gpu_name, T)                                                                                                     \
    X(batch, I)                                                                                                        \
    X(ms, R)                                                                                                           \
    X(memory_gib, R)                                                                                                   \
    X(settings, T)                                                                                                     \
    X(software, T)                                                                                                     \
    X(host, T)                                                                                                         \
    X(predictor, T)                                                                                                    \
    X(note, T)                                                                                                         \
    X(measured_at, I)
#define ST_JOB_COLUMNS(X)                                                                                              \
    X(digest, T)                                                                                                       \
    X(name, T)                                                                                                         \
    X(operator_count, I)                                                                                               \
    X(parameters, R)                                                                                                   \
    X(added_at, I)                                                                                                     \
    X(bytes, B)
#define ST_OUTCOME_COLUMNS(X)                                                                                          \
    X(cluster, T)                                                                                                      \
    X(job_id, T)                                                                                                       \
    X(submitted_at, I)                                                                                                 \
    X(name, T)                                                                                                         \
    X(user, T)                                                                                                         \
    X(account, T)                                                                                                      \
    X(partition, T)                                                                                                    \
    X(state, T)                                                                                                        \
    X(digest, T)                                                                                                       \
    X(gpu, T)                                                                                                          \
    X(gpu_count, I)                                                                                                    \
    X(node_count, I)                                                                                                   \
    X(started_at, I)                                                                                                   \
    X(ended_at, I)                                                                                                     \
    X(elapsed_s, I)                                                                                                    \
    X(limit_s, I)                                                                                                      \
    X(exit_code, I)                                                                                                    \
    X(outcome, I)

#define ST_COLUMN_INDEX(name, type) ST_AT_##name,
enum { ST_ROW_COLUMNS(ST_COLUMN_INDEX) ST_ROW_WIDTH };
#undef ST_COLUMN_INDEX
#define ST_COLUMN_INDEX(name, type) ST_JOB_AT_##name,
enum { ST_JOB_COLUMNS(ST_COLUMN_INDEX) ST_JOB_WIDTH };
#undef ST_COLUMN_INDEX
#define ST_COLUMN_INDEX(name, type) ST_OUTCOME_AT_##name,
enum { ST_OUTCOME_COLUMNS(ST_COLUMN_INDEX) ST_OUTCOME_WIDTH };
#undef ST_COLUMN_INDEX
enum { ST_MAX_WIDTH = 20 };

#define ST_COLUMN_NAME(name, type) #name ", "
#define ST_SELECT_ROW "SELECT id, " ST_ROW_COLUMNS(ST_COLUMN_NAME) "seal"

typedef struct st_table {
    const char *name;
    const char *types;  /* one letter for each column, without id and seal */
    const char *select; /* "SELECT id, …, seal FROM …" */
    const char
        *insert; /* "INSERT INTO … VALUES (?1, …)" with the id first; a NULL id chooses one. It ends with the rule
                         * for a record that exists */
    const char *salvage; /* the same for records with unknown age; these must not replace newer ones */
    int width;           /* columns, without id and seal */
    uint64_t seed;       /* start of the seal */
} st_table;

enum { ST_ROWS, ST_JOBS, ST_OUTCOMES, ST_TABLES };
extern const st_table st_tables[ST_TABLES];

/* A value of a record. Texts and bytes are borrowed. */
typedef struct st_value {
    int64_t whole;
    double real;
    const void *bytes; /* of a text or of bytes */
    size_t size_bytes;
} st_value;

static inline st_value st_text(const char *text)
{
    if (text == NULL) text = "";
    size_t size = 0;
    while (text[size] != '\0') size++;
    return (st_value){.bytes = text, .size_bytes = size};
}
static inline st_value st_whole(int64_t whole) { return (st_value){.whole = whole}; }
static inline st_value st_real(double real) { return (st_value){.real = real}; }

/* Mixes bytes into a 64-bit hash. */
uint64_t st_hash(uint64_t hash, const void *bytes, size_t size_bytes);

int64_t st_seal(const st_table *table, const st_value *values);
/* Runs the prepared `insert` for a record; id 0 chooses one. Texts must stay valid. *out_changed (may be NULL): whether
 * the record was new or changed. */
mdot_status st_insert(const mdot_store *store, const st_table *table, sqlite3_stmt *insert, int64_t id,
                      const st_value *values, const char *action, bool *out_changed, mdot_error *err);
/* Reads a record from a row of results whose columns begin as `select` does. CORRUPT if the seal differs. */
mdot_status st_read(const mdot_store *store, const st_table *table, sqlite3_stmt *row, st_value *out_values,
                    mdot_error *err);
/* Steps to the next row of results, and reads it unless `table` is NULL. False at the end, and after a fault, which
 * *io_status gets. */
bool st_next(const mdot_store *store, const st_table *table, sqlite3_stmt *select, const char *action,
             st_value *out_values, mdot_status *io_status, mdot_error *err);
/* Like st_read; false if the seal differs. */
bool st_read_sealed(const st_table *table, sqlite3_stmt *row, st_value *out_values);

/* ---- Measured steps (rows.c) ------------------------------------------------------------------------------------- */

/* The name of a GPU model in mdot's table, or `gpu` itself. The buffer holds the name. */
const char *st_gpu_name(const char *gpu, char *buffer, size_t size);

/* Like mdot_store_add_rows, in the transaction of the caller, for one row of this library's form. `name` and `line`
 * begin messages unless the name is NULL. */
mdot_status st_add_row(const mdot_store *store, sqlite3_stmt *insert, const mdot_store_row *row, const char *name,
                       size_t line, bool *out_added, mdot_error *err);

/* Whether a step's time or memory cannot be right, whatever the job. Such rows count nowhere. */
static inline bool st_is_absurd(double ms, double memory_gib)
{
    return ms < MDOT_STORE_SHORTEST_MS || ms > MDOT_STORE_LONGEST_MS || memory_gib > MDOT_STORE_MOST_GIB;
}

/* Reads the library's form of a filter; NULL selects all rows. */
mdot_status st_read_filter(const mdot_store_filter *filter, mdot_store_filter *out, mdot_error *err);

/* ---- Networks (jobs.c) ------------------------------------------------------------------------------------------- */

/* Adds a job under its digest; `insert` is the job table's prepared statement. */
mdot_status st_add_job(mdot_store *store, sqlite3_stmt *insert, const mdot_job *job, const char *name,
                       const char *digest, mdot_error *err);

/* ---- Executions of jobs (outcomes.c) ----------------------------------------------------------------------------- */

/* Adds or updates an outcome in the transaction of the caller, and counts it. */
mdot_status st_add_outcome(const mdot_store *store, sqlite3_stmt *insert, const mdot_store_outcome *outcome,
                           mdot_store_import *counts, mdot_error *err);

/* ---- Records in the bytes of a damaged store (page_scan.c) ------------------------------------------------------- */

/* A record whose seal is right. Values are valid during the call. Returns false to stop. */
typedef bool (*st_take_record)(void *user, const st_table *table, int64_t id, const st_value *values);

/* Looks for records at every byte of every page of the file, and of committed pages in the write-ahead log. A record
 * may be found repeatedly, also in an older form. */
mdot_status st_scan_pages(const char *path, st_take_record take, void *user, mdot_error *err);

#endif
