/* sacct.c — jobs from Slurm's accounting, as text:
 *
 *     sacct -a -X -P --format=JobID,User,Account,Submit,ElapsedRaw,Timelimit,State,AllocTRES,JobName > site.sacct
 *
 * Columns may stand in any order, but JobName should be the last one, because names may contain the separator "|".
 * JobID, Submit, State, and Elapsed or ElapsedRaw are required. GPUs and their type come from AllocTRES
 * (gres/gpu:TYPE=N), from ReqTRES, or from AllocGRES. The account is the group; the name and user are kept as they are.
 *
 * Jobs without GPUs, job steps, jobs that never ran, and jobs that still run are skipped. A failure of a node and a
 * preemption count as cancelled, because the job is not their cause.
 */
#include "simulator/input/csv.h"
#include "simulator/input/input.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_GPUS = 1 << 20 };
#define MOST_SECONDS 1e12

typedef struct columns {
    int id, name, user, account, submit, elapsed, elapsed_raw, limit, limit_raw, state, resources[3];
} columns;

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

/* Reads [days-][[hours:]minutes:]seconds, or days-hours[:minutes[:seconds]]. */
static bool read_span(const char *text, double *out_s)
{
    double days = 0, parts[3] = {0, 0, 0};
    int count = 0;
    char *end;
    const char *dash = strchr(text, '-');
    if (dash != NULL) {
        days = strtod(text, &end);
        if (end != dash || !(days >= 0)) return false;
        text = dash + 1;
    }
    do {
        if (count == 3 || *text < '0' || *text > '9') return false;
        parts[count++] = strtod(text, &end);
        text = end + 1;
    } while (*end == ':');
    if (*end != '\0') return false;
    double seconds = count == 3   ? 3600 * parts[0] + 60 * parts[1] + parts[2]
                     : count == 2 ? (dash != NULL ? 3600 * parts[0] + 60 * parts[1] : 60 * parts[0] + parts[1])
                                  : (dash != NULL ? 3600 * parts[0] : parts[0]);
    *out_s = 86400 * days + seconds;
    return *out_s <= MOST_SECONDS;
}

/* Reads 2024-05-01T12:00:00, as if it were UTC, or seconds since 1970 (SLURM_TIME_FORMAT=%s). False for "Unknown". */
static bool read_time(const char *text, double *out_s)
{
    struct tm t = {0};
    int used = 0;
    char *end;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%2d%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min, &t.tm_sec,
               &used) == 6 &&
        text[used] == '\0') {
        t.tm_year -= 1900;
        t.tm_mon--;
        *out_s = (double)timegm(&t);
        return *out_s >= 0;
    }
    *out_s = strtod(text, &end);
    return end != text && *end == '\0' && *out_s >= 0 && *out_s <= MOST_SECONDS;
}

/* Reads the GPUs of "billing=8,cpu=8,gres/gpu:a100=4,gres/gpu=4" (TRES) or "gpu:a100:4(S:0-1)" (GRES). */
static double read_gpus(const char *text, char **out_type)
{
    double gpus = 0;
    *out_type = NULL;
    for (const char *at = text; at != NULL; at = strchr(at, ',') == NULL ? NULL : strchr(at, ',') + 1) {
        if (strncmp(at, "gres/", 5) == 0) at += 5;
        if (strncmp(at, "gpu", 3) != 0 || strchr("=:,", at[3]) == NULL) continue;
        const char *item = at + 3, *number = item + strcspn(item, "=,(");
        size_t type_bytes = 0;
        bool is_gres = *number != '=';
        if (is_gres) { /* the number follows the last colon */
            const char *end = number;
            while (number > item && number[-1] != ':') number--;
            if (number == item || number == end) continue;
            if (number - item >= 2) type_bytes = (size_t)(number - item) - 2;
        } else {
            if (number > item) type_bytes = (size_t)(number - item) - 1;
            number++;
        }
        double count = strtod(number, NULL);
        /* TRES has each type, and then the sum of all types. */
        if (type_bytes > 0 && *out_type == NULL) *out_type = strndup(item + 1, type_bytes);
        gpus = is_gres ? gpus + count : fmax(gpus, count);
    }
    return gpus;
}

/* Returns false for a job that has not ended. */
static bool read_state(const char *text, mdot_ended *out)
{
    static const struct {
        const char *name;
        mdot_ended outcome;
    } known[] = {{"COMPLETED", MDOT_ENDED_COMPLETED},  {"FAILED", MDOT_ENDED_FAILED},
                 {"OUT_OF_MEMORY", MDOT_ENDED_FAILED}, {"CANCELLED", MDOT_ENDED_CANCELLED},
                 {"DEADLINE", MDOT_ENDED_TIMED_OUT},   {"TIMEOUT", MDOT_ENDED_TIMED_OUT},
                 {"NODE_FAIL", MDOT_ENDED_CANCELLED},  {"BOOT_FAIL", MDOT_ENDED_CANCELLED},
                 {"PREEMPTED", MDOT_ENDED_CANCELLED},  {"REVOKED", MDOT_ENDED_CANCELLED}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t length = strlen(known[i].name);
        if (strncmp(text, known[i].name, length) != 0 || (text[length] != '\0' && text[length] != ' ')) continue;
        *out = known[i].outcome; /* "CANCELLED by 1000" */
        return true;
    }
    return false;
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

static mdot_status find_columns(const sc_csv *csv, columns *out, mdot_error *err)
{
    *out = (columns){
        .name = sc_csv_find(csv, "JobName"),
        .user = sc_csv_find(csv, "User"),
        .account = sc_csv_find(csv, "Account"),
        .elapsed = sc_csv_find(csv, "Elapsed"),
        .elapsed_raw = sc_csv_find(csv, "ElapsedRaw"),
        .limit = sc_csv_find(csv, "Timelimit"),
        .limit_raw = sc_csv_find(csv, "TimelimitRaw"),
        .resources = {sc_csv_find(csv, "AllocTRES"), sc_csv_find(csv, "ReqTRES"), sc_csv_find(csv, "AllocGRES")}};
    mdot_status status = sc_csv_need(csv, "JobID", &out->id, err);
    if (status == MDOT_OK) status = sc_csv_need(csv, "Submit", &out->submit, err);
    if (status == MDOT_OK) status = sc_csv_need(csv, "State", &out->state, err);
    if (status == MDOT_OK && out->elapsed_raw == SC_CSV_ABSENT)
        status = sc_csv_need(csv, "Elapsed", &out->elapsed, err);
    return status;
}

static mdot_status read_elapsed(const sc_csv *csv, const columns *at, double *out_s, mdot_error *err)
{
    if (at->elapsed_raw != SC_CSV_ABSENT) return sc_csv_number(csv, at->elapsed_raw, 0, MOST_SECONDS, out_s, err);
    const char *text = csv->field[at->elapsed];
    return read_span(text, out_s) ? MDOT_OK : sc_csv_fail(csv, err, "Elapsed is \"%.40s\"", text);
}

/* Limits other than a time, for example UNLIMITED, are left out. */
static double read_limit(const sc_csv *csv, const columns *at)
{
    double seconds = 0;
    char *end;
    if (at->limit_raw != SC_CSV_ABSENT) {
        seconds = 60 * strtod(csv->field[at->limit_raw], &end);
        return end != csv->field[at->limit_raw] && seconds > 0 && seconds <= MOST_SECONDS ? seconds : 0;
    }
    return at->limit != SC_CSV_ABSENT && read_span(csv->field[at->limit], &seconds) ? seconds : 0;
}

static mdot_status read_row(const sc_csv *csv, const columns *at, sc_workload *workload, mdot_error *err)
{
    sc_job job = {.deadline_s = INFINITY, .weight = 1, .kind = SC_NONE};
    const char *id = csv->field[at->id];
    double gpus = 0;
    if (id[0] == '\0') return sc_csv_fail(csv, err, "JobID is empty");
    if (strchr(id, '.') != NULL) return MDOT_OK; /* a step of a job */
    if (!read_state(csv->field[at->state], &job.outcome) || !read_time(csv->field[at->submit], &job.submit_s))
        return MDOT_OK;
    mdot_status status = read_elapsed(csv, at, &job.work, err);
    if (status != MDOT_OK || job.work == 0) return status;
    for (size_t i = 0; gpus == 0 && i < 3; i++) {
        if (at->resources[i] == SC_CSV_ABSENT) continue;
        free(job.gpu_type);
        gpus = read_gpus(csv->field[at->resources[i]], &job.gpu_type);
    }
    if (!(gpus >= 1 && gpus <= MOST_GPUS)) {
        free(job.gpu_type);
        return gpus < 1 ? MDOT_OK : sc_csv_fail(csv, err, "the job has %g GPUs, more than %d", gpus, MOST_GPUS);
    }
    bool is_missing = false;
    job.gpus = (int)gpus;
    job.limit_s = read_limit(csv, at);
    job.id = sc_csv_copy(csv, at->id, &is_missing);
    job.user = sc_csv_copy(csv, at->user, &is_missing);
    job.group = sc_csv_copy(csv, at->account, &is_missing);
    job.name = sc_csv_copy(csv, at->name, &is_missing);
    status = sc_workload_add(workload, job, err);
    if (status == MDOT_OK && is_missing) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    return status;
}

mdot_status sc_read_sacct(const char *path, bool *out_is_sacct, sc_workload *out_workload, mdot_error *err)
{
    sc_csv csv;
    columns at;
    mdot_status status = sc_csv_open(path, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    *out_is_sacct = csv.separator == '|' && sc_csv_find(&csv, "JobID") != SC_CSV_ABSENT;
    if (*out_is_sacct) status = find_columns(&csv, &at, err);
    for (bool is_row = *out_is_sacct; status == MDOT_OK && is_row;) {
        status = sc_csv_next(&csv, &is_row, err);
        if (status == MDOT_OK && is_row) status = read_row(&csv, &at, out_workload, err);
    }
    sc_csv_close(&csv);
    return status;
}
