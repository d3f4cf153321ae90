/* run_experiment.c — runs every window of every trace under every arm, at the trace's load and at the given loads. */
#include "simulator/estimate/estimators.h"
#include "simulator/experiment/command_line.h"
#include "simulator/experiment/experiment.h"
#include "simulator/report/simulation_report.h"

#include <stdlib.h>

ex_cell *ex_cell_at(const ex_setup *setup, const ex_results *results, size_t load, size_t trace, size_t window,
                    size_t arm)
{
    return &results->cells[((load * setup->trace_count + trace) * setup->windows + window) * setup->arm_count + arm];
}

void ex_results_free(ex_results *results)
{
    free(results->cells);
    free(results->window_loads);
    *results = (ex_results){0};
}

/* Adds each tenth's mean completion time, divided by the number of seeds. */
static void add_parts(const sc_workload *workload, const sc_result *result, size_t seeds, ex_cell *cell)
{
    size_t count = workload->job_count;
    for (size_t part = 0; part < EX_PARTS; part++) {
        size_t start = part * count / EX_PARTS, end = (part + 1) * count / EX_PARTS;
        double sum_s = 0;
        for (size_t i = start; i < end; i++) sum_s += result->states[i].end_s - workload->jobs[i].submit_s;
        cell->parts_jct_s[part] += sum_s / (double)(end - start) / (double)seeds;
    }
}

static mdot_status run_arm(const ex_setup *setup, const ex_arm *arm, const sc_workload *workload,
                           const sc_cluster *cluster, ex_cell *cell, mdot_error *err)
{
    size_t seeds = ex_is_random(arm) ? setup->seeds : 1;
    uint64_t *digests = calloc(workload->job_count + 1, sizeof *digests);
    mdot_status status = digests != NULL ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    double sum_s = 0;
    for (size_t seed = 1; status == MDOT_OK && seed <= seeds; seed++) {
        sc_estimator estimator = {0};
        sc_result result = {0};
        sc_summary summary;
        sc_run_options options = {0};
        status = ex_make_estimator(setup, arm, workload, seed, digests, &estimator, &options.errors, err);
        if (status == MDOT_OK) status = sc_simulate(workload, cluster, arm->policy, &estimator, &options, &result, err);
        if (status == MDOT_OK) status = sc_summarise(workload, cluster, &result, &summary, err);
        if (status == MDOT_OK) {
            sum_s += summary.mean_jct_s;
            add_parts(workload, &result, seeds, cell);
        }
        sc_result_free(&result);
        sc_estimator_destroy(&estimator);
    }
    free(digests);
    cell->mean_jct_s = sum_s / (double)seeds;
    return status;
}

static mdot_status run_window(const ex_setup *setup, const sc_cluster *cluster, size_t load, size_t trace,
                              size_t window, ex_results *results, mdot_error *err)
{
    sc_workload workload = {0};
    mdot_status status = ex_read_window(setup->trace_paths[trace], setup->windows, setup->jobs, window,
                                        setup->loads[load], cluster, &workload, err);
    if (status == MDOT_OK && setup->loads[load] == 0)
        results->window_loads[trace * setup->windows + window] = sc_workload_load(&workload, cluster);
    for (size_t arm = 0; status == MDOT_OK && arm < setup->arm_count; arm++) {
        ex_cell *cell = ex_cell_at(setup, results, load, trace, window, arm);
        status = run_arm(setup, &setup->arms[arm], &workload, cluster, cell, err);
        cell->ratio = cell->mean_jct_s / ex_cell_at(setup, results, load, trace, window, 0)->mean_jct_s;
    }
    sc_workload_free(&workload);
    return status;
}

mdot_status ex_run(const ex_setup *setup, void (*progress)(void *user, size_t done, size_t total), void *user,
                   ex_results *out_results, mdot_error *err)
{
    size_t windows = setup->trace_count * setup->windows, total = EX_LOADS * windows, done = 0;
    sc_cluster cluster = {0};
    ex_results results = {.cells = calloc(total * setup->arm_count, sizeof *results.cells),
                          .window_loads = calloc(windows, sizeof *results.window_loads)};
    mdot_status status = MDOT_OK;
    if (results.cells == NULL || results.window_loads == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = sc_cluster_make_pool(setup->gpus, &cluster, err);
    for (size_t load = 0; status == MDOT_OK && load < EX_LOADS; load++) {
        for (size_t i = 0; status == MDOT_OK && i < windows; i++) {
            if (progress != NULL) progress(user, done++, total);
            status = run_window(setup, &cluster, load, i / setup->windows, i % setup->windows, &results, err);
        }
    }
    if (progress != NULL && status == MDOT_OK) progress(user, total, total);
    sc_cluster_free(&cluster);
    if (status == MDOT_OK)
        *out_results = results;
    else
        ex_results_free(&results);
    return status;
}
