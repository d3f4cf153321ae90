/* accounting.h — reads Slurm's accounting, the output of `sacct -P`, for all programs of the companion.
 *
 *     sacct -a -X -P --format=JobID,User,Account,Submit,Elapsed,Timelimit,State,AllocTRES,JobName
 *
 * Columns may stand in any order; JobID and State are required. sacct writes "|" between fields and does not
 * quote. Surplus cells therefore belong to the field that users choose freely, such as JobName, if the table has a
 * single one. */
#ifndef AC_ACCOUNTING_H
#define AC_ACCOUNTING_H

#include "mdot/mdot_store.h"

#include <stdbool.h>

/* Fields that are read. A field that ends in Raw is the same in seconds or minutes, and precedes the other. */
#define AC_FIELDS(X)                                                                                                   \
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
    X(AllocGRES)                                                                                                       \
    X(NNodes)                                                                                                          \
    X(AllocNodes)                                                                                                      \
    X(ExitCode)
#define AC_FIELD_ENUM(name) AC_##name,
typedef enum ac_field { AC_FIELDS(AC_FIELD_ENUM) AC_FIELD_COUNT } ac_field;
#undef AC_FIELD_ENUM

enum { AC_MAX_CELLS = 256, AC_ABSENT = -1 };

typedef struct ac_table {
    char *next, *end; /* unread text */
    size_t line;      /* number of the last line, from 1 */
    size_t column_count;
    int column_of[AC_FIELD_COUNT]; /* AC_ABSENT: the table lacks the field */
    int free_column;               /* the only free field; AC_ABSENT if there is none, or more than one */
    char *cell[AC_MAX_CELLS];
    size_t cell_count;
    char gpu[128];    /* type of the last job's GPUs */
    char reason[300]; /* why the last line was not understood */
} ac_table;

/* Returns whether the text's first line is a header of sacct: it has "|" and JobID, but no comma. */
bool ac_is_accounting(const char *text);

/* Reads the header. The text must end in a NUL behind `size_bytes`; lines are split in place. MALFORMED names the
 * required fields. */
mdot_status ac_table_open(const char *name, char *text, size_t size_bytes, ac_table *out_table, mdot_error *err);

typedef enum ac_item {
    AC_END,
    AC_JOB,
    AC_STEP, /* a step such as 12.batch, or 12_[4-9]: waiting tasks; each gets a line later */
    AC_FAULT /* a line that is not understood: table->reason */
} ac_item;

/* Reads the next line. The job's texts are valid until the text is freed, its GPU type until the next call. */
ac_item ac_table_next(ac_table *table, mdot_store_outcome *out_job);

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

/* Each reader returns false for malformed text. An empty text is unknown. */

/* "COMPLETED", "CANCELLED by 1000", "CA" or "RUNNING+" (a state that sacct cut). */
bool ac_read_state(const char *text, mdot_outcome *out);
/* "[DAYS-]HH:MM:SS", "MM:SS", with a fraction; seconds. -1: unknown. */
bool ac_read_duration(const char *text, int64_t *out_seconds);
/* The same, and UNLIMITED (-1), Partition_Limit and INVALID (0). "60", a number alone, counts minutes. */
bool ac_read_limit(const char *text, int64_t *out_seconds);
/* "2026-11-24T10:00:00", "2026-11-24", or seconds since 1970. 0: unknown. A zone may follow: Z, +01:00 or +0100. A time
 * without a zone is local time (the variable TZ), as Slurm prints it. */
bool ac_read_time(const char *text, int64_t *out_seconds);
bool ac_has_zone(const char *text);
/* GPUs in "billing=4,cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=32G". *out_type points to the type's name within the text. */
bool ac_read_gpus(const char *text, int64_t *out_count, const char **out_type, size_t *out_type_length);
/* The same in "gpu:a100:2(S:0-1),gpu:1" (AllocGRES of older versions). */
bool ac_read_gres(const char *text, int64_t *out_count, const char **out_type, size_t *out_type_length);
/* "12" or "12K"; 0: unknown. */
bool ac_read_count(const char *text, int64_t *out_count);
/* "1:0", the exit code and the signal, which counts as 128 + signal. -1: unknown. */
bool ac_read_exit(const char *text, int64_t *out_code);

#endif
