/* sacct.c — Slurm's accounting, as `sacct -P` prints it, becomes outcomes. docs/reference/formats/store.md lists the
 * fields.
 *
 * sacct writes "|" between fields and does not quote. Surplus cells therefore belong to the field that users choose
 * freely, such as JobName, if the table has a single one.
 */
#include "base/out_of_memory.h"
#include "base/struct_version.h"
#include "store/records.h"
#include "store/sacct_fields.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const bs_struct_version accounting_type = BS_SIZED(mdot_store_accounting, user);
static const bs_struct_version import_type = BS_SIZED(mdot_store_import, malformed_count);

enum { MAX_FIELDS = 256, ABSENT = -1 };

/* Fields that are read. A field that ends in Raw is the same in seconds or minutes, and precedes the other. */
#define FIELDS(X)                                                                                                      \
    X(JobID)                                                                                                           \
    X(State)                                                                                                           \
    X(JobName)                                                                                                         \
    X(User)                                                                                                            \
    X(Account)                                                                                                         \
    X(Partition)                                                                                                       \
    X(Cluster)                                                                                                         \
    X(Submit)                                                                                                          \
    X(Start)                                                                                                           \
    X(End)                                                                                                             \
    X(Elapsed)                                                                                                         \
    X(ElapsedRaw)                                                                                                      \
    X(Timelimit)                                                                                                       \
    X(TimelimitRaw)                                                                                                    \
    X(ReqTRES)                                                                                                         \
    X(AllocTRES)                                                                                                       \
    X(NNodes)                                                                                                          \
    X(AllocNodes)                                                                                                      \
    X(ExitCode)
#define FIELD_ENUM(name) FIELD_##name,
enum { FIELDS(FIELD_ENUM) FIELD_COUNT };
#undef FIELD_ENUM

static const char *const field_names[FIELD_COUNT] = {
#define FIELD_NAME(name) #name,
    FIELDS(FIELD_NAME)
#undef FIELD_NAME
};

/* Fields whose text users choose, and that may contain "|". */
static const char *const free_fields[] = {"JobName", "Comment", "AdminComment", "SystemComment", "SubmitLine",
                                          "WorkDir", NULL};

typedef struct accounting {
    const mdot_store *store;
    mdot_store_accounting options;
    sqlite3_stmt *insert;
    size_t line;
    size_t column_count;
    int column_of[FIELD_COUNT]; /* ABSENT where the table lacks the field */
    int free_column;            /* the only free field; ABSENT if there is none, or more than one */
    char *cell[MAX_FIELDS];
    size_t cell_count;
    mdot_store_import counts;
    mdot_error *err;
} accounting;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
report(accounting *a, const char *format, ...)
{
    char reason[300];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    a->counts.malformed_count++;
    if (a->options.malformed != NULL) a->options.malformed(a->options.user, a->line, reason);
}

/* ---- Lines ------------------------------------------------------------------------------------------------------- */

static bool split(accounting *a, char *line)
{
    a->cell_count = 0;
    for (char *at = line;;) {
        if (a->cell_count == MAX_FIELDS) return false;
        a->cell[a->cell_count++] = at;
        at = strchr(at, '|');
        if (at == NULL) return true;
        *at++ = '\0';
    }
}

/* Puts the separators back between the cells of the free field. */
static void join_surplus(accounting *a)
{
    size_t surplus = a->cell_count - a->column_count, at = (size_t)a->free_column;
    for (size_t i = 0; i < surplus; i++) a->cell[at + i + 1][-1] = '|';
    memmove(&a->cell[at + 1], &a->cell[at + 1 + surplus], (a->column_count - at - 1) * sizeof *a->cell);
    a->cell_count = a->column_count;
}

static mdot_status read_header(accounting *a, char *line)
{
    const char *name = a->options.name;
    int free_count = 0;
    if (!split(a, line)) return mdot_fail(a->err, MDOT_MALFORMED, "%s: more than %d fields", name, MAX_FIELDS);
    a->column_count = a->cell_count; /* the empty cell at the end of `sacct -p` counts, in each line */
    for (int f = 0; f < FIELD_COUNT; f++) {
        a->column_of[f] = ABSENT;
        for (size_t i = 0; i < a->cell_count; i++)
            if (strcasecmp(a->cell[i], field_names[f]) == 0) a->column_of[f] = (int)i;
    }
    a->free_column = ABSENT;
    for (size_t i = 0; i < a->cell_count; i++)
        for (const char *const *at = free_fields; *at != NULL; at++)
            if (strcasecmp(a->cell[i], *at) == 0 && free_count++ == 0) a->free_column = (int)i;
    if (free_count != 1) a->free_column = ABSENT;
    if (a->column_of[FIELD_JobID] == ABSENT || a->column_of[FIELD_State] == ABSENT)
        return mdot_fail(a->err, MDOT_MALFORMED,
                         "%s:%zu: the first line names no fields JobID and State between \"|\"; use sacct -P "
                         "--format=JobID,JobName,User,Account,Partition,Cluster,State,Submit,Start,End,Elapsed,"
                         "Timelimit,ReqTRES,AllocTRES,NNodes,ExitCode",
                         name, a->line);
    return MDOT_OK;
}

static const char *field(const accounting *a, int f)
{
    return a->column_of[f] != ABSENT ? a->cell[a->column_of[f]] : "";
}

/* Returns whether the value was read, and reports the line otherwise. */
static bool accept(accounting *a, bool is_read, int f)
{
    if (!is_read) report(a, "%s is \"%.60s\", which is not understood", field_names[f], field(a, f));
    return is_read;
}

/* ---- Jobs -------------------------------------------------------------------------------------------------------- */

static bool read_times(accounting *a, mdot_store_outcome *o)
{
    bool has_raw = *field(a, FIELD_ElapsedRaw) != '\0';
    int elapsed = has_raw ? FIELD_ElapsedRaw : FIELD_Elapsed;
    int limit = *field(a, FIELD_TimelimitRaw) != '\0' ? FIELD_TimelimitRaw : FIELD_Timelimit;
    return accept(a, st_read_slurm_time(field(a, FIELD_Submit), &o->submitted_at), FIELD_Submit) &&
           accept(a, st_read_slurm_time(field(a, FIELD_Start), &o->started_at), FIELD_Start) &&
           accept(a, st_read_slurm_time(field(a, FIELD_End), &o->ended_at), FIELD_End) &&
           accept(a, st_read_slurm_duration(field(a, elapsed), &o->elapsed_s), elapsed) &&
           accept(a, st_read_slurm_limit(field(a, limit), &o->limit_s), limit);
}

static bool read_resources(accounting *a, mdot_store_outcome *o, char *gpu, size_t size)
{
    const char *type, *requested_type;
    size_t length, requested_length;
    int64_t requested;
    int nodes = *field(a, FIELD_AllocNodes) != '\0' ? FIELD_AllocNodes : FIELD_NNodes;
    if (!accept(a, st_read_slurm_gpus(field(a, FIELD_AllocTRES), &o->gpu_count, &type, &length), FIELD_AllocTRES) ||
        !accept(a, st_read_slurm_gpus(field(a, FIELD_ReqTRES), &requested, &requested_type, &requested_length),
                FIELD_ReqTRES) ||
        !accept(a, st_read_slurm_count(field(a, nodes), &o->node_count), nodes))
        return false;
    if (o->gpu_count == 0) o->gpu_count = requested;
    if (type == NULL) type = requested_type, length = requested_length;
    snprintf(gpu, size, "%.*s", (int)length, type != NULL ? type : "");
    o->gpu = gpu;
    return true;
}

/* Digits, and a task of an array ("12_3") or a part of a heterogeneous job ("12+1"). */
static bool is_job_id(const char *text)
{
    size_t digits = strspn(text, "0123456789");
    const char *rest = text + digits;
    if (digits == 0) return false;
    if (*rest == '\0') return true;
    if (*rest == '+') return rest[1] != '\0' && rest[1 + strspn(rest + 1, "0123456789")] == '\0';
    if (*rest != '_') return false;
    rest++;
    return *rest != '\0' && rest[strspn(rest, "0123456789")] == '\0';
}

static mdot_status read_job(accounting *a)
{
    char gpu[128];
    const char *id = field(a, FIELD_JobID), *cluster = field(a, FIELD_Cluster);
    /* 12.batch, 12.extern and 12.0 are steps. 12_[4-9] stands for tasks that still wait, each of which gets a line
     * later. */
    if (strpbrk(id, ".[") != NULL) {
        a->counts.step_count++;
        return MDOT_OK;
    }
    mdot_store_outcome o = {.cluster = *cluster != '\0' ? cluster : a->options.cluster,
                            .job_id = id,
                            .name = field(a, FIELD_JobName),
                            .user = field(a, FIELD_User),
                            .account = field(a, FIELD_Account),
                            .partition = field(a, FIELD_Partition),
                            .state = field(a, FIELD_State)};
    if (!accept(a, is_job_id(id), FIELD_JobID) || !accept(a, st_read_slurm_state(o.state, &o.outcome), FIELD_State) ||
        !read_times(a, &o) || !read_resources(a, &o, gpu, sizeof gpu) ||
        !accept(a, st_read_slurm_exit(field(a, FIELD_ExitCode), &o.exit_code), FIELD_ExitCode))
        return MDOT_OK;
    return st_add_outcome(a->store, a->insert, &o, &a->counts, a->err);
}

static mdot_status read_line(accounting *a, char *line)
{
    if (*line == '\0') return MDOT_OK;
    if (a->column_count == 0) return read_header(a, line);
    if (!split(a, line)) {
        report(a, "more than %d fields", MAX_FIELDS);
        return MDOT_OK;
    }
    if (a->cell_count > a->column_count && a->free_column != ABSENT) join_surplus(a);
    if (a->cell_count != a->column_count) {
        report(a, "%zu fields where the first line names %zu", a->cell_count, a->column_count);
        return MDOT_OK;
    }
    return read_job(a);
}

static mdot_status read_lines(accounting *a, char *text, size_t size)
{
    mdot_status status = MDOT_OK;
    for (char *line = text; status == MDOT_OK && line < text + size;) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        if (end == NULL) end = text + size;
        bool has_zero = memchr(line, '\0', (size_t)(end - line)) != NULL;
        *end = '\0';
        if (end > line && end[-1] == '\r') end[-1] = '\0';
        a->line++;
        if (has_zero)
            report(a, "the line has a zero byte");
        else
            status = read_line(a, line);
        line = end + 1;
    }
    if (status == MDOT_OK && a->column_count == 0)
        status = mdot_fail(a->err, MDOT_MALFORMED, "%s: no accounting: it is empty", a->options.name);
    return status;
}

mdot_status mdot_store_import_sacct(mdot_store *store, const char *text, size_t size_bytes,
                                    const mdot_store_accounting *options, mdot_store_import *out_import,
                                    mdot_error *err)
{
    if (store == NULL || (text == NULL && size_bytes > 0))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a store or its accounting is missing");
    accounting a = {.store = store, .counts = {.struct_size = sizeof a.counts}, .err = err};
    mdot_status status = options != NULL ? bs_read_struct(&accounting_type, options, &a.options, err) : MDOT_OK;
    if (status == MDOT_OK && out_import != NULL) status = bs_check_struct(&import_type, out_import, err);
    if (status != MDOT_OK) return status;
    if (a.options.name == NULL) a.options.name = "sacct";
    char *copy = malloc(size_bytes + 1); /* lines are split in place */
    if (copy == NULL) return BS_OUT_OF_MEMORY(err, "%s", a.options.name);
    if (size_bytes > 0) memcpy(copy, text, size_bytes);
    copy[size_bytes] = '\0';
    status = st_begin(store, "add outcomes", err);
    if (status == MDOT_OK) {
        status = st_prepare(store, st_tables[ST_OUTCOMES].insert, &a.insert, err);
        if (status == MDOT_OK) status = read_lines(&a, copy, size_bytes);
        sqlite3_finalize(a.insert);
        status = st_end(store, status, "add outcomes", err);
    }
    free(copy);
    if (status == MDOT_OK && out_import != NULL)
        bs_write_struct(&import_type, &a.counts, out_import, bs_struct_bytes(out_import));
    return status;
}
