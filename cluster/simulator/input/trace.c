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
#include "base/csv.h"
#include "simulator/input/input.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GPUS = 1 << 20 };
#define MAX_SPREAD 1e3
#define MAX_SECONDS 1e12 /* whole seconds are exact far beyond, even in sums */

/* Optional numbers of a job. */
static const struct {
    const char *name;
    double least, most;
    size_t at;
} numbers[] = {
    {"weight", 1e-6, 1e6, offsetof(sc_job, weight)},
    {"spread", 1, MAX_SPREAD, offsetof(sc_job, spread)},
    {"rack_spread", 1, MAX_SPREAD, offsetof(sc_job, rack_spread)},
    {"limit_s", 0, MAX_SECONDS, offsetof(sc_job, limit_s)},
    {"batch", 1, 1e9, offsetof(sc_job, batch)},
    {"clock_share", 0, 1, offsetof(sc_job, clock_share)},
    {"loader_cpus", 0, 1e6, offsetof(sc_job, loader_cpus)},
    {"cpus", 0, 1e6, offsetof(sc_job, cpus)},
    {"memory_gb", 0, 1e6, offsetof(sc_job, memory_gb)},
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

typedef struct columns {
    int id, submit, gpus, duration, type, steps, deadline, group;
    int user, name, gpu_type, outcome, planned;
    int least_gpus, most_gpus, scaling, online;
    int numbers[NUMBERS];
} columns;

static mdot_status find_columns(const bs_csv *csv, columns *out, mdot_error *err)
{
    *out = (columns){.duration = bs_csv_find(csv, "duration_s"),
                     .type = bs_csv_find(csv, "job_type"),
                     .steps = bs_csv_find(csv, "steps"),
                     .deadline = bs_csv_find(csv, "deadline_s"),
                     .group = bs_csv_find(csv, "group"),
                     .user = bs_csv_find(csv, "user"),
                     .name = bs_csv_find(csv, "name"),
                     .gpu_type = bs_csv_find(csv, "gpu_type"),
                     .outcome = bs_csv_find(csv, "outcome"),
                     .planned = bs_csv_find(csv, "planned_part"),
                     .least_gpus = bs_csv_find(csv, "min_gpus"),
                     .most_gpus = bs_csv_find(csv, "max_gpus"),
                     .scaling = bs_csv_find(csv, "scaling"),
                     .online = bs_csv_find(csv, "online"),
                     .gpus = bs_csv_find(csv, "scale_factor")};
    for (size_t i = 0; i < NUMBERS; i++) out->numbers[i] = bs_csv_find(csv, numbers[i].name);
    mdot_status status = bs_csv_need(csv, "job_id", &out->id, err);
    if (status == MDOT_OK) status = bs_csv_need(csv, "submit_s", &out->submit, err);
    if (status == MDOT_OK && out->gpus == BS_CSV_ABSENT) status = bs_csv_need(csv, "gpus", &out->gpus, err);
    if (status == MDOT_OK && out->type == BS_CSV_ABSENT) status = bs_csv_need(csv, "duration_s", &out->duration, err);
    if (status == MDOT_OK && out->type != BS_CSV_ABSENT) status = bs_csv_need(csv, "steps", &out->steps, err);
    return status;
}

static bool has(const bs_csv *csv, int column) { return column != BS_CSV_ABSENT && csv->field[column][0] != '\0'; }

/* Reads the columns for elastic jobs, batch sizes and services. Bounds go around `gpus`. */
static mdot_status read_elastic_columns(const bs_csv *csv, const columns *fields, sc_job *job, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    double online = 0;
    if (has(csv, fields->least_gpus) || has(csv, fields->most_gpus)) {
        job->least_gpus = job->most_gpus = job->gpus;
        job->scaling = 1;
    }
    if (has(csv, fields->least_gpus))
        status = bs_csv_integer(csv, fields->least_gpus, 1, job->gpus, &job->least_gpus, err);
    if (status == MDOT_OK && has(csv, fields->most_gpus))
        status = bs_csv_integer(csv, fields->most_gpus, job->gpus, MAX_GPUS, &job->most_gpus, err);
    if (status == MDOT_OK && has(csv, fields->scaling))
        status = bs_csv_number(csv, fields->scaling, 0, 1, &job->scaling, err);
    if (status == MDOT_OK && has(csv, fields->online)) status = bs_csv_number(csv, fields->online, 0, 1, &online, err);
    if (status == MDOT_OK && online != floor(online))
        status = bs_csv_fail(csv, err, MDOT_MALFORMED, "online is \"%.40s\", but must be 0 or 1",
                             csv->field[fields->online]);
    job->is_online = online == 1;
    return status;
}

/* Reads the columns that estimates from history use. */
static mdot_status read_history_columns(const bs_csv *csv, const columns *fields, sc_job *job, mdot_error *err)
{
    static const char *const outcomes[] = {"completed", "failed", "cancelled", "timed-out"};
    mdot_status status = MDOT_OK;
    if (status == MDOT_OK && has(csv, fields->outcome)) {
        int outcome = 0;
        while (outcome < 4 && strcmp(csv->field[fields->outcome], outcomes[outcome]) != 0) outcome++;
        if (outcome == 4)
            return bs_csv_fail(csv, err, MDOT_MALFORMED,
                               "outcome is \"%.40s\", but must be completed, failed, cancelled or timed-out",
                               csv->field[fields->outcome]);
        job->outcome = (mdot_ended)outcome;
    }
    return status;
}

static mdot_status read_job(sc_workload *workload, const bs_csv *csv, const columns *fields, mdot_error *err)
{
    sc_job job = {.deadline_s = INFINITY, .weight = 1, .kind = SC_NONE};
    if (csv->field[fields->id][0] == '\0') return bs_csv_fail(csv, err, MDOT_MALFORMED, "job_id is empty");
    mdot_status status = bs_csv_number(csv, fields->submit, 0, MAX_SECONDS, &job.submit_s, err);
    double gpus = 1;
    if (status == MDOT_OK) status = bs_csv_number(csv, fields->gpus, .01, MAX_GPUS, &gpus, err);
    job.gpus = (int)ceil(gpus);
    if (gpus != floor(gpus)) job.fraction = gpus;
    if (status == MDOT_OK && fields->type == BS_CSV_ABSENT)
        status = bs_csv_number(csv, fields->duration, 0, MAX_SECONDS, &job.work, err);
    if (status == MDOT_OK && fields->type != BS_CSV_ABSENT) {
        status = bs_csv_number(csv, fields->steps, 1, MAX_SECONDS, &job.work, err);
        if (status == MDOT_OK && job.work != floor(job.work))
            status =
                bs_csv_fail(csv, err, MDOT_MALFORMED, "steps is not an integer: \"%.40s\"", csv->field[fields->steps]);
        if (status == MDOT_OK) status = sc_workload_add_kind(workload, csv->field[fields->type], &job.kind, err);
    }
    if (status == MDOT_OK && has(csv, fields->deadline))
        status = bs_csv_number(csv, fields->deadline, job.submit_s, MAX_SECONDS, &job.deadline_s, err);
    if (status == MDOT_OK && has(csv, fields->planned)) {
        double part;
        status = bs_csv_number(csv, fields->planned, 1e-6, 1, &part, err);
        if (status == MDOT_OK) job.planned = 1 / part;
    }
    for (size_t i = 0; status == MDOT_OK && i < NUMBERS; i++)
        if (has(csv, fields->numbers[i]))
            status = bs_csv_number(csv, fields->numbers[i], numbers[i].least, numbers[i].most,
                                   (double *)(void *)((char *)&job + numbers[i].at), err);
    if (status == MDOT_OK) status = read_history_columns(csv, fields, &job, err);
    if (status == MDOT_OK) status = read_elastic_columns(csv, fields, &job, err);
    if (status != MDOT_OK) return status;
    bool is_missing = false;
    job.id = sc_copy_field(csv, fields->id, &is_missing);
    job.group = sc_copy_field(csv, fields->group, &is_missing);
    job.user = sc_copy_field(csv, fields->user, &is_missing);
    job.name = sc_copy_field(csv, fields->name, &is_missing);
    job.gpu_type = sc_copy_field(csv, fields->gpu_type, &is_missing);
    status = sc_workload_add(workload, job, err);
    if (status == MDOT_OK && is_missing) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    return status;
}

static mdot_status read_own(const char *path, sc_workload *workload, mdot_error *err)
{
    bs_csv csv;
    columns fields;
    mdot_status status = bs_csv_open(path, UINT64_MAX, NULL, &csv, err);
    if (status != MDOT_OK) return status;
    status = find_columns(&csv, &fields, err);
    bool is_row = true;
    while (status == MDOT_OK && is_row) {
        status = bs_csv_next(&csv, &is_row, err);
        if (status == MDOT_OK && is_row) status = read_job(workload, &csv, &fields, err);
    }
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
