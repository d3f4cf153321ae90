/* backfill_run.c — runs every policy with every source of limits on every window, on all cores. */
#include "simulator/core/workload.h"
#include "simulator/estimate/estimators.h"
#include "simulator/experiment/backfill_experiment.h"
#include "simulator/experiment/command_line.h"
#include "simulator/policy/policies.h"

#include <math.h>
#include <stdlib.h>

/* The defaults of cluster/slurm. */
static const double margin = 1.1, startup_s = 600;

static const struct {
    const sc_policy *policy;
    double length_weight;
} policies[BF_POLICIES] = {
    {&sc_policy_fifo, 0}, {&sc_policy_easy, 0}, {&sc_policy_conservative, 0}, {&sc_policy_easy, 10000}};

const char *const bf_policy_names[BF_POLICIES] = {"FIFO", "EASY", "conservative", "EASY, short jobs first"};
const char *const bf_source_names[BF_SOURCES] = {"requested", "maximum", "mdot, binding", "mdot, planned", "exact"};

size_t bf_count(const bf_setup *setup)
{
    return setup->load_count * setup->trace_count * setup->windows * BF_POLICIES * BF_SOURCES;
}

const bf_cell *bf_at(const bf_setup *setup, const bf_cell *cells, size_t load, size_t trace, size_t window,
                     size_t policy, size_t source)
{
    size_t position = (load * setup->trace_count + trace) * setup->windows + window;
    return &cells[(position * BF_POLICIES + policy) * BF_SOURCES + source];
}

/* Assigns a measured network to each job. The factor is predicted over measured step time. */
static mdot_status make_predictions(const bf_setup *setup, size_t jobs, uint64_t seed, sc_estimator *out_estimator,
                                    mdot_error *err)
{
    const ex_predictions *p = &setup->predictions;
    double *factors = calloc(jobs + 1, sizeof *factors);
    if (factors == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < jobs; i++)
        factors[i] = p->factors[(size_t)setup->column * p->network_count + sc_random_next(&seed) % p->network_count];
    return sc_estimator_make_fixed(factors, out_estimator, err);
}

static mdot_status make_source(const bf_setup *setup, bf_source source, sc_workload *workload, uint64_t seed,
                               sc_estimator *out_estimator, sc_run_options *options, mdot_error *err)
{
    switch (source) {
    case BF_LIMIT:
        options->limit_factor = margin * setup->upper;
        options->limit_extra_s = startup_s;
        return make_predictions(setup, workload->job_count, seed, out_estimator, err);
    case BF_PLANNED: return make_predictions(setup, workload->job_count, seed, out_estimator, err);
    case BF_EXACT: *out_estimator = sc_estimator_oracle(); return MDOT_OK;
    case BF_MAXIMUM:
        for (size_t i = 0; i < workload->job_count; i++)
            workload->jobs[i].limit_s = fmax(setup->most_limit_s, workload->jobs[i].work);
        break;
    default: break;
    }
    options->errors = SC_ERRORS_TOTAL;
    return sc_estimator_make_limits(workload, out_estimator, err);
}

static mdot_status run_one(const bf_setup *setup, size_t load, size_t trace, size_t window, size_t policy,
                           bf_source source, bf_cell *out_cell, mdot_error *err)
{
    sc_cluster cluster = {0};
    sc_workload workload = {0};
    sc_accounts accounts = {0};
    sc_estimator estimator = {0};
    sc_result result = {0};
    sc_run_options options = {0};
    uint64_t seed = setup->seed * 1000003 + trace * 1009 + window; /* the same for all policies and sources */
    mdot_status status = sc_cluster_make_pool(setup->gpus, &cluster, err);
    if (status == MDOT_OK)
        status = ex_read_window(setup->trace_paths[trace], setup->windows, setup->jobs, window, setup->loads[load],
                                &cluster, &workload, err);
    if (status == MDOT_OK) sc_workload_request_limits(&workload, &cluster, setup->most_limit_s, seed);
    if (status == MDOT_OK) status = make_source(setup, source, &workload, seed, &estimator, &options, err);
    if (status == MDOT_OK && policies[policy].length_weight > 0) {
        status = sc_accounts_create(&accounts, err);
        if (status == MDOT_OK) status = sc_accounts_assign(&accounts, &workload, err);
        accounts.priority.length_weight = policies[policy].length_weight;
        accounts.priority.fairshare_weight = 0;
        options.accounts = &accounts;
    }
    if (status == MDOT_OK)
        status = sc_simulate(&workload, &cluster, policies[policy].policy, &estimator, &options, &result, err);
    if (status == MDOT_OK) status = sc_summarise(&workload, &cluster, &result, &out_cell->summary, err);
    if (status == MDOT_OK) out_cell->load = sc_workload_load(&workload, &cluster);
    sc_result_free(&result);
    sc_estimator_destroy(&estimator);
    sc_accounts_free(&accounts);
    sc_workload_free(&workload);
    sc_cluster_free(&cluster);
    return status;
}

static mdot_status run_task(void *user, size_t task, void *out_result, mdot_error *err)
{
    const bf_setup *setup = user;
    size_t source = task % BF_SOURCES, policy = task / BF_SOURCES % BF_POLICIES;
    size_t window = task / BF_SOURCES / BF_POLICIES, trace = window / setup->windows;
    return run_one(setup, trace / setup->trace_count, trace % setup->trace_count, window % setup->windows, policy,
                   (bf_source)source, out_result, err);
}

mdot_status bf_run(const bf_setup *setup, void (*progress)(size_t done, size_t total), bf_cell **out_cells,
                   mdot_error *err)
{
    void *cells = NULL;
    bf_setup copy = *setup;
    mdot_status status =
        ex_parallel(bf_count(setup), sizeof(bf_cell), setup->workers, run_task, &copy, progress, &cells, err);
    if (status == MDOT_OK) *out_cells = cells;
    return status;
}
