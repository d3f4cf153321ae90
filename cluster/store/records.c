/* records.c — see records.h. */
#include "store/records.h"

#include <string.h>

#define LETTER_T "T"
#define LETTER_I "I"
#define LETTER_R "R"
#define LETTER_B "B"
#define LETTER(name, type) LETTER_##type

/* "?1" is the id, and the last number is the seal's. */
static const char row_insert[] = "INSERT INTO rows (id, " ST_ROW_COLUMNS(
    ST_COLUMN_NAME) "seal) VALUES "
                    "(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16) ON CONFLICT (uid) DO NOTHING";
static const char job_insert[] = "INSERT INTO jobs (id, " ST_JOB_COLUMNS(
    ST_COLUMN_NAME) "seal) VALUES (?1,?2,?3,?4,?5,?6,?7,?8) "
                    "ON CONFLICT (digest) DO UPDATE SET name = excluded.name, operator_count = "
                    "excluded.operator_count, "
                    "parameters = excluded.parameters, added_at = excluded.added_at, bytes = excluded.bytes, seal = "
                    "excluded.seal WHERE length(excluded.bytes) > length(bytes)";
/* A finished outcome stays finished. */
#define OUTCOME_UPDATE                                                                                                 \
    "INSERT INTO outcomes (id, " ST_OUTCOME_COLUMNS(                                                                   \
        ST_COLUMN_NAME) "seal) VALUES "                                                                                \
                        "(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19,?20) ON CONFLICT "        \
                        "(cluster, "                                                                                   \
                        "job_id, submitted_at) DO UPDATE SET name = excluded.name, user = excluded.user, account = "   \
                        "excluded.account, partition = excluded.partition, state = excluded.state, digest = "          \
                        "excluded.digest, "                                                                            \
                        "gpu = excluded.gpu, gpu_count = excluded.gpu_count, node_count = excluded.node_count, "       \
                        "started_at = "                                                                                \
                        "excluded.started_at, ended_at = excluded.ended_at, elapsed_s = excluded.elapsed_s, limit_s "  \
                        "= "                                                                                           \
                        "excluded.limit_s, exit_code = excluded.exit_code, outcome = excluded.outcome, seal = "        \
                        "excluded.seal "
static const char outcome_insert[] =
    OUTCOME_UPDATE "WHERE seal <> excluded.seal AND (excluded.outcome <> 0 OR outcome = 0)";
static const char outcome_salvage[] = OUTCOME_UPDATE "WHERE outcome = 0 AND excluded.outcome <> 0";

const st_table st_tables[ST_TABLES] = {
    [ST_ROWS] = {.name = "rows",
                 .types = ST_ROW_COLUMNS(LETTER),
                 .select = ST_SELECT_ROW " FROM rows",
                 .insert = row_insert,
                 .salvage = row_insert,
                 .width = ST_ROW_WIDTH,
                 .seed = UINT64_C(0x6d646f74726f7773)},
    [ST_JOBS] = {.name = "jobs",
                 .types = ST_JOB_COLUMNS(LETTER),
                 .select = "SELECT id, " ST_JOB_COLUMNS(ST_COLUMN_NAME) "seal FROM jobs",
                 .insert = job_insert,
                 .salvage = job_insert,
                 .width = ST_JOB_WIDTH,
                 .seed = UINT64_C(0x6d646f746a6f6273)},
    [ST_OUTCOMES] = {.name = "outcomes",
                     .types = ST_OUTCOME_COLUMNS(LETTER),
                     .select = "SELECT id, " ST_OUTCOME_COLUMNS(ST_COLUMN_NAME) "seal FROM outcomes",
                     .insert = outcome_insert,
                     .salvage = outcome_salvage,
                     .width = ST_OUTCOME_WIDTH,
                     .seed = UINT64_C(0x6d646f74656e6473)},
};
_Static_assert((int)ST_ROW_WIDTH < (int)ST_MAX_WIDTH && (int)ST_JOB_WIDTH < (int)ST_MAX_WIDTH &&
                   (int)ST_OUTCOME_WIDTH < (int)ST_MAX_WIDTH,
               "a buffer for the widest table");

/* FNV-1a with a final shift in each step, so a product's high bits reach the low ones. */
uint64_t st_hash(uint64_t hash, const void *bytes, size_t size_bytes)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size_bytes; i++) {
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
        hash ^= hash >> 29;
    }
    return hash;
}

int64_t st_seal(const st_table *table, const st_value *values)
{
    uint64_t hash = table->seed;
    for (int i = 0; i < table->width; i++) {
        const st_value *v = &values[i];
        if (table->types[i] == 'I') {
            hash = st_hash(hash, &v->whole, sizeof v->whole);
        } else if (table->types[i] == 'R') {
            hash = st_hash(hash, &v->real, sizeof v->real);
        } else {
            uint64_t size = v->size_bytes;
            hash = st_hash(st_hash(hash, &size, sizeof size), v->bytes, v->size_bytes);
        }
    }
    return (int64_t)hash;
}

mdot_status st_insert(const mdot_store *store, const st_table *table, sqlite3_stmt *insert, int64_t id,
                      const st_value *values, const char *action, bool *out_changed, mdot_error *err)
{
    if (id != 0)
        sqlite3_bind_int64(insert, 1, id);
    else
        sqlite3_bind_null(insert, 1);
    for (int i = 0; i < table->width; i++) {
        const st_value *v = &values[i];
        int index = i + 2;
        switch (table->types[i]) {
        case 'I': sqlite3_bind_int64(insert, index, v->whole); break;
        case 'R': sqlite3_bind_double(insert, index, v->real); break;
        case 'B': sqlite3_bind_blob64(insert, index, v->bytes, v->size_bytes, SQLITE_STATIC); break;
        default: sqlite3_bind_text64(insert, index, v->bytes, v->size_bytes, SQLITE_STATIC, SQLITE_UTF8);
        }
    }
    sqlite3_bind_int64(insert, table->width + 2, st_seal(table, values));
    mdot_status status = st_run(store, insert, action, NULL, err);
    if (status == MDOT_OK && out_changed != NULL) *out_changed = sqlite3_changes(store->db) > 0;
    return status;
}

bool st_read_sealed(const st_table *table, sqlite3_stmt *row, st_value *out_values)
{
    for (int i = 0; i < table->width; i++) {
        st_value *v = &out_values[i];
        int index = i + 1;
        *v = (st_value){.bytes = ""};
        switch (table->types[i]) {
        case 'I': v->whole = sqlite3_column_int64(row, index); break;
        case 'R': v->real = sqlite3_column_double(row, index); break;
        case 'B':
            v->bytes = sqlite3_column_blob(row, index);
            v->size_bytes = (size_t)sqlite3_column_bytes(row, index);
            break;
        default: v->bytes = st_column_text(row, index); v->size_bytes = (size_t)sqlite3_column_bytes(row, index);
        }
    }
    return st_seal(table, out_values) == sqlite3_column_int64(row, table->width + 1);
}

mdot_status st_read(const mdot_store *store, const st_table *table, sqlite3_stmt *row, st_value *out_values,
                    mdot_error *err)
{
    if (st_read_sealed(table, row, out_values)) return MDOT_OK;
    return mdot_fail(err, MDOT_CORRUPT,
                     "%s: the checksum of record %lld of %s differs: the store is damaged; `mdot-store recover %s NEW` "
                     "copies all intact records",
                     store->path, (long long)sqlite3_column_int64(row, 0), table->name, store->path);
}

bool st_next(const mdot_store *store, const st_table *table, sqlite3_stmt *select, const char *action,
             st_value *out_values, mdot_status *io_status, mdot_error *err)
{
    int code = *io_status == MDOT_OK ? sqlite3_step(select) : SQLITE_DONE;
    if (code == SQLITE_DONE) return false;
    if (code != SQLITE_ROW) return *io_status = st_fail(store, code, action, err), false;
    if (table != NULL) *io_status = st_read(store, table, select, out_values, err);
    return *io_status == MDOT_OK;
}
