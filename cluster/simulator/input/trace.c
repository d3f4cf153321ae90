/* trace.c — mdot's own form of traces, and the detection of a file's form.
 *
 *     job_id,submit_s,gpus,duration_s        seconds on so many GPUs
 *     job_id,submit_s,gpus,job_type,steps    steps of a kind whose speed is in a table
 *
 * The column gpus may also be called scale_factor. Optional columns for policies or estimates: deadline_s (on the clock
 * of submit_s), weight, group, spread, rack_spread, user, name, gpu_type, outcome, limit_s, planned_part, min_gpus,
 * max_gpus, scaling, batch, clock_share, loader_cpus, cpus,
 * memory_gb, online.
 */
#include "simulator/input/input.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_GPUS = 1 << 20 };
#define MAX_SPREAD 1e3
#define MAX_SECONDS 1e12 /* whole seconds are exact far beyond, even in sums */

/* Optional numbers of a job, in the order of other_names. */
static const struct {
    double least, most;
    size_t at;
} numbers[] = {
    {1e-6, 1e6, offsetof(sc_job, weight)},
    {1, MAX_SPREAD, offsetof(sc_job, spread)},
    {1, MAX_SPREAD, offsetof(sc_job, rack_spread)},
    {0, MAX_SECONDS, offsetof(sc_job, limit_s)},
    {1, 1e9, offsetof(sc_job, batch)},
    {0, 1, offsetof(sc_job, clock_share)},
    {0, 1e6, offsetof(sc_job, loader_cpus)},
    {0, 1e6, offsetof(sc_job, cpus)},
    {0, 1e6, offsetof(sc_job, memory_gb)},
};

/* The columns behind gpus (or scale_factor) and the amount, which is steps or the duration. */
static const char other_names[] =
    "job_type?,deadline_s?,group?,user?,name?,gpu_type?,outcome?,planned_part?,min_gpus?,max_gpus?,scaling?,online?,"
    "weight?,spread?,rack_spread?,limit_s?,batch?,clock_share?,loader_cpus?,cpus?,memory_gb?";

enum { ID, SUBMIT, GPUS, AMOUNT, TYPE, DEADLINE, GROUP, USER, NAME };
enum { GPU_TYPE = NAME + 1, OUTCOME, PLANNED, LEAST_GPUS, MOST_GPUS, SCALING, ONLINE, NUMBERS };

/* Reads the columns for elastic jobs and services. Bounds go around `gpus`. */
static mdot_status read_elastic_columns(const bs_csv *csv, const int *at, sc_job *job, mdot_error *err)
{
    double online = 0;
    if (sc_csv_has(csv, at[LEAST_GPUS]) || sc_csv_has(csv, at[MOST_GPUS])) {
        job->least_gpus = job->most_gpus = job->gpus;
        job->scaling = 1;
    }
    if (sc_csv_has(csv, at[LEAST_GPUS]))
        BS_TRY(bs_csv_integer(csv, at[LEAST_GPUS], 1, job->gpus, &job->least_gpus, err));
    if (sc_csv_has(csv, at[MOST_GPUS]))
        BS_TRY(bs_csv_integer(csv, at[MOST_GPUS], job->gpus, MAX_GPUS, &job->most_gpus, err));
    BS_TRY(sc_csv_optional(csv, at[SCALING], 0, 1, &job->scaling, err));
    BS_TRY(sc_csv_optional(csv, at[ONLINE], 0, 1, &online, err));
    job->is_online = online == 1;
    if (online == floor(online)) return MDOT_OK;
    return bs_csv_fail(csv, err, MDOT_MALFORMED, "online is \"%.40s\", but must be 0 or 1", csv->field[at[ONLINE]]);
}

static mdot_status read_outcome(const bs_csv *csv, int column, sc_job *job, mdot_error *err)
{
    static const char *const outcomes[] = {"completed", "failed", "cancelled", "timed-out"};
    int outcome = 0;
    if (!sc_csv_has(csv, column)) return MDOT_OK;
    while (outcome < 4 && strcmp(csv->field[column], outcomes[outcome]) != 0) outcome++;
    job->outcome = (mdot_ended)outcome;
    if (outcome < 4) return MDOT_OK;
    return bs_csv_fail(csv, err, MDOT_MALFORMED,
                       "outcome is \"%.40s\", but must be completed, failed, cancelled or timed-out",
                       csv->field[column]);
}

static mdot_status read_job(const bs_csv *csv, const int *at, void *workload, mdot_error *err)
{
    sc_job job = {.deadline_s = INFINITY, .weight = 1, .kind = SC_NONE};
    double gpus = 1, part = 1;
    bool has_type = at[TYPE] != BS_CSV_ABSENT;
    if (csv->field[at[ID]][0] == '\0') return bs_csv_fail(csv, err, MDOT_MALFORMED, "job_id is empty");
    BS_TRY(bs_csv_number(csv, at[SUBMIT], 0, MAX_SECONDS, &job.submit_s, err));
    BS_TRY(bs_csv_number(csv, at[GPUS], .01, MAX_GPUS, &gpus, err));
    job.gpus = (int)ceil(gpus);
    if (gpus != floor(gpus)) job.fraction = gpus;
    BS_TRY(bs_csv_number(csv, at[AMOUNT], has_type, MAX_SECONDS, &job.work, err));
    if (has_type && job.work != floor(job.work))
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "steps is not an integer: \"%.40s\"", csv->field[at[AMOUNT]]);
    if (has_type) BS_TRY(sc_workload_add_kind(workload, csv->field[at[TYPE]], &job.kind, err));
    BS_TRY(sc_csv_optional(csv, at[DEADLINE], job.submit_s, MAX_SECONDS, &job.deadline_s, err));
    BS_TRY(sc_csv_optional(csv, at[PLANNED], 1e-6, 1, &part, err));
    if (sc_csv_has(csv, at[PLANNED])) job.planned = 1 / part;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        BS_TRY(sc_csv_optional(csv, at[NUMBERS + i], numbers[i].least, numbers[i].most,
                               (double *)(void *)((char *)&job + numbers[i].at), err));
    BS_TRY(read_outcome(csv, at[OUTCOME], &job, err));
    BS_TRY(read_elastic_columns(csv, at, &job, err));
    const int texts[] = {at[ID], at[GROUP], at[USER], at[NAME], at[GPU_TYPE]};
    return sc_workload_add_row(workload, job, csv, texts, err);
}

static mdot_status read_own(const char *path, sc_workload *workload, mdot_error *err)
{
    bs_csv csv;
    char names[400];
    BS_TRY(bs_csv_open(path, UINT64_MAX, NULL, &csv, err));
    snprintf(names, sizeof names, "job_id,submit_s,%s,%s,%s",
             bs_csv_find(&csv, "scale_factor") != BS_CSV_ABSENT ? "scale_factor" : "gpus",
             bs_csv_find(&csv, "job_type") != BS_CSV_ABSENT ? "steps" : "duration_s", other_names);
    mdot_status status = sc_read_open_rows(&csv, names, read_job, workload, err);
    bs_csv_close(&csv);
    return status;
}

mdot_status sc_read_trace(const char *path, sc_workload *out_workload, mdot_error *err)
{
    sc_workload workload = {0};
    bool is_pai = false, is_sacct = false;
    mdot_status status = sc_read_pai(path, &is_pai, &workload, err);
    if (status == MDOT_OK && !is_pai) status = sc_read_sacct(path, &is_sacct, &workload, err);
    if (status == MDOT_OK && !is_pai && !is_sacct) status = read_own(path, &workload, err);
    if (status == MDOT_OK) status = sc_workload_finish(&workload, path, err);
    if (status == MDOT_OK)
        *out_workload = workload;
    else
        sc_workload_free(&workload);
    return status;
}
