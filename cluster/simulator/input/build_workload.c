/* build_workload.c — builds a workload job by job, sorts it, and cuts it to the part to simulate. */
#include "simulator/core/workload.h"
#include "simulator/input/input.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

char *sc_copy_text(const char *text, bool *out_is_missing)
{
    if (text == NULL || *text == '\0') return NULL;
    char *copy = strdup(text);
    *out_is_missing = *out_is_missing || copy == NULL;
    return copy;
}

mdot_status sc_workload_add(sc_workload *workload, sc_job job, mdot_error *err)
{
    if (workload->job_count == SC_NONE || job.id == NULL ||
        !sc_grow(&workload->jobs, workload->job_count, sizeof *workload->jobs)) {
        sc_job_free(&job);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    workload->jobs[workload->job_count++] = job;
    return MDOT_OK;
}

mdot_status sc_workload_add_row(sc_workload *workload, sc_job job, const bs_csv *csv, const int columns[5],
                                mdot_error *err)
{
    bool is_missing = false;
    char **texts[] = {&job.id, &job.group, &job.user, &job.name, &job.gpu_type};
    for (size_t i = 0; i < 5; i++)
        if (columns[i] != BS_CSV_ABSENT) *texts[i] = sc_copy_text(csv->field[columns[i]], &is_missing);
    mdot_status status = sc_workload_add(workload, job, err);
    return is_missing && status == MDOT_OK ? mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL) : status;
}

mdot_status sc_workload_add_kind(sc_workload *workload, const char *name, uint32_t *out_kind, mdot_error *err)
{
    const sc_kind *known = sc_workload_find_kind(workload, name, SIZE_MAX);
    if (known != NULL) {
        *out_kind = (uint32_t)(known - workload->kinds);
        return MDOT_OK;
    }
    char *copy = strdup(name);
    if (copy == NULL || !sc_grow(&workload->kinds, workload->kind_count, sizeof *workload->kinds)) {
        free(copy);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    workload->kinds[workload->kind_count] = (sc_kind){.name = copy};
    *out_kind = (uint32_t)workload->kind_count++;
    return MDOT_OK;
}

static int by_id(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static mdot_status check_ids(const sc_workload *workload, const char *path, mdot_error *err)
{
    char **ids = calloc(workload->job_count + 1, sizeof *ids);
    if (ids == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < workload->job_count; i++) ids[i] = workload->jobs[i].id;
    qsort(ids, workload->job_count, sizeof *ids, by_id);
    mdot_status status = MDOT_OK;
    for (size_t i = 1; status == MDOT_OK && i < workload->job_count; i++)
        if (strcmp(ids[i - 1], ids[i]) == 0)
            status = mdot_fail(err, MDOT_MALFORMED, "%s: two jobs have the name %s", path, ids[i]);
    free(ids);
    return status;
}

/* Stable merge of two sorted halves. */
static void merge(const sc_job *jobs, size_t middle, size_t count, sc_job *out)
{
    size_t left = 0, right = middle;
    for (size_t i = 0; i < count; i++) {
        bool takes_left = left < middle && (right == count || jobs[left].submit_s <= jobs[right].submit_s);
        out[i] = takes_left ? jobs[left++] : jobs[right++];
    }
}

static void sort_by_arrival(sc_job *jobs, sc_job *scratch, size_t count)
{
    if (count < 2) return;
    size_t middle = count / 2;
    sort_by_arrival(jobs, scratch, middle);
    sort_by_arrival(jobs + middle, scratch, count - middle);
    merge(jobs, middle, count, scratch);
    memcpy(jobs, scratch, count * sizeof *jobs);
}

mdot_status sc_workload_finish(sc_workload *workload, const char *path, mdot_error *err)
{
    if (workload->job_count == 0) return mdot_fail(err, MDOT_MALFORMED, "%s: holds no jobs", path);
    BS_TRY(check_ids(workload, path, err));
    bool is_sorted = true;
    for (size_t i = 1; i < workload->job_count; i++)
        is_sorted &= workload->jobs[i - 1].submit_s <= workload->jobs[i].submit_s;
    if (is_sorted) return MDOT_OK;
    sc_job *scratch = calloc(workload->job_count, sizeof *scratch);
    if (scratch == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    sort_by_arrival(workload->jobs, scratch, workload->job_count);
    free(scratch);
    return MDOT_OK;
}

double sc_workload_load(const sc_workload *workload, const sc_cluster *cluster)
{
    double gpu_s = 0;
    for (size_t i = 0; i < workload->job_count; i++) {
        const sc_job *job = &workload->jobs[i];
        gpu_s += job->gpus * sc_workload_duration_s(workload, job, cluster->type_count);
    }
    double span_s = workload->jobs[workload->job_count - 1].submit_s - workload->jobs[0].submit_s;
    return span_s > 0 ? gpu_s / (cluster->gpus * span_s) : INFINITY;
}

/* The remaining jobs keep their order. */
static void drop_wide(sc_workload *workload, const sc_cluster *cluster)
{
    size_t kept = 0;
    for (size_t i = 0; i < workload->job_count; i++) {
        sc_job job = workload->jobs[i];
        if (sc_cluster_holds(cluster, job.gpus)) {
            workload->jobs[kept++] = job;
        } else {
            sc_job_free(&job);
        }
    }
    workload->job_count = kept;
}

static void cut(sc_workload *workload, size_t start, size_t count)
{
    for (size_t i = 0; i < workload->job_count; i++) {
        if (i < start || i - start >= count) sc_job_free(&workload->jobs[i]);
    }
    memmove(workload->jobs, workload->jobs + start, count * sizeof *workload->jobs);
    workload->job_count = count;
}

mdot_status sc_workload_select(sc_workload *workload, const sc_cluster *cluster, const sc_window *window,
                               mdot_error *err)
{
    size_t left = 0, from = window->from;
    for (size_t i = 0; i < workload->job_count; i++) left += sc_cluster_holds(cluster, workload->jobs[i].gpus);
    if (left == 0) return mdot_fail(err, MDOT_OUT_OF_RANGE, "every job is wider than the cluster");
    if (window->of > 1 && left >= window->count) from = window->number * ((left - window->count) / (window->of - 1));
    if (from >= left || window->count > left - from)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "the window ends at job %zu, and %zu are left that fit the cluster",
                         from + window->count, left);
    drop_wide(workload, cluster);
    cut(workload, from, window->count > 0 ? window->count : left - from);
    double first_s = workload->jobs[0].submit_s, stretch = 1;
    if (window->load > 0) {
        double load = sc_workload_load(workload, cluster);
        if (!isfinite(load))
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "--scale-load requires jobs that arrive at different times");
        stretch = load / window->load;
    }
    for (size_t i = 0; i < workload->job_count; i++) {
        sc_job *job = &workload->jobs[i];
        double submit_s = job->submit_s - first_s;
        double stretched_s = window->load > 0 ? floor(submit_s * stretch + 0.5) : submit_s;
        job->deadline_s += stretched_s - job->submit_s;
        job->submit_s = stretched_s;
    }
    return MDOT_OK;
}

void sc_workload_give_deadlines(sc_workload *workload, const sc_cluster *cluster, double low, double high,
                                uint64_t seed)
{
    for (size_t i = 0; i < workload->job_count; i++) {
        sc_job *job = &workload->jobs[i];
        double times = low + (high - low) * sc_random_unit(&seed);
        job->deadline_s = job->submit_s + times * sc_workload_duration_s(workload, job, cluster->type_count);
    }
}
