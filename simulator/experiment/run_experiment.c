/* run_experiment.c — runs every window of every trace under every arm, at its own load and at the given loads. */
#include "simulator/core/random.h"
#include "simulator/estimate/estimators.h"
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

/* Assigns a network to each job, drawn with the seed. The error of a predictor for a job is its error for that
 * network. */
static mdot_status draw_networks(const ex_predictions *p, int column, size_t job_count, uint64_t seed,
                                 sc_estimator *out_estimator, mdot_error *err)
{
    double *factors = calloc(job_count + 1, sizeof *factors);
    if (factors == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for %zu factors", job_count);
    for (size_t i = 0; i < job_count; i++)
        factors[i] = p->factors[(size_t)column * p->network_count + sc_random_next(&seed) % p->network_count];
    return sc_estimator_make_fixed(factors, out_estimator, err);
}

static mdot_status make_estimator(const ex_setup *setup, const ex_arm *arm, size_t job_count, uint64_t seed,
                                  sc_estimator *out_estimator, mdot_error *err)
{
    switch (arm->kind) {
    case EX_SCALE:
    case EX_TOTAL:
        return sc_estimator_make_errors(job_count, arm->error, seed, out_estimator, err);
    case EX_PREDICTED:
        return draw_networks(&setup->predictions, arm->column, job_count, seed, out_estimator, err);
    default:
        *out_estimator = sc_estimator_oracle();
        return MDOT_OK;
    }
}

static mdot_status run_arm(const ex_setup *setup, const ex_arm *arm, const sc_workload *workload,
                           const sc_cluster *cluster, double *out_mean_jct_s, mdot_error *err)
{
    bool is_random = arm->kind == EX_SCALE || arm->kind == EX_TOTAL || arm->kind == EX_PREDICTED;
    size_t seeds = is_random ? setup->seeds : 1;
    mdot_status status = MDOT_OK;
    double sum_s = 0;
    for (size_t seed = 1; status == MDOT_OK && seed <= seeds; seed++) {
        sc_estimator estimator = {0};
        sc_result result = {0};
        sc_summary summary;
        sc_run_options options = {.errors = arm->kind == EX_TOTAL ? SC_ERRORS_TOTAL : SC_ERRORS_SCALE};
        status = make_estimator(setup, arm, workload->job_count, seed, &estimator, err);
        if (status == MDOT_OK) status = sc_simulate(workload, cluster, arm->policy, &estimator, &options, &result, err);
        if (status == MDOT_OK) status = sc_summarise(workload, cluster, &result, &summary, err);
        if (status == MDOT_OK) sum_s += summary.mean_jct_s;
        sc_result_free(&result);
        sc_estimator_destroy(&estimator);
    }
    *out_mean_jct_s = sum_s / (double)seeds;
    return status;
}

/* Reads window w. Windows of so many jobs lie evenly from the beginning of the trace to its end. */
static mdot_status read_window(const ex_setup *setup, size_t trace, size_t window, double load,
                               const sc_cluster *cluster, sc_workload *out_workload, mdot_error *err)
{
    mdot_status status = sc_read_trace(setup->trace_paths[trace], out_workload, err);
    if (status != MDOT_OK) return status;
    size_t fitting = 0;
    for (size_t i = 0; i < out_workload->job_count; i++)
        fitting += sc_cluster_holds(cluster, out_workload->jobs[i].gpus);
    sc_window cut = {.count = setup->jobs, .load = load};
    if (setup->windows > 1 && fitting >= setup->jobs)
        cut.from = window * ((fitting - setup->jobs) / (setup->windows - 1));
    return sc_workload_select(out_workload, cluster, &cut, err);
}

static mdot_status run_window(const ex_setup *setup, const sc_cluster *cluster, size_t load, size_t trace,
                              size_t window, ex_results *results, mdot_error *err)
{
    sc_workload workload = {0};
    mdot_status status = read_window(setup, trace, window, setup->loads[load], cluster, &workload, err);
    if (status == MDOT_OK && setup->loads[load] == 0)
        results->window_loads[trace * setup->windows + window] = sc_workload_load(&workload, cluster);
    for (size_t arm = 0; status == MDOT_OK && arm < setup->arm_count; arm++) {
        ex_cell *cell = ex_cell_at(setup, results, load, trace, window, arm);
        status = run_arm(setup, &setup->arms[arm], &workload, cluster, &cell->mean_jct_s, err);
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
    if (results.cells == NULL || results.window_loads == NULL)
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for %zu windows", total);
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
