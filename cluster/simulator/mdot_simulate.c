/* mdot_simulate.c — mdot-simulate: runs policies on a trace. run() shows the whole program. */
#include "base/command/command.h"
#include "base/status.h"
#include "simulator/estimate/estimators.h"
#include "simulator/idle/idle.h"
#include "simulator/policy/learned.h"
#include "simulator/report/simulation_report.h"
#include "simulator/simulate_options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static mdot_status read_input(const sc_request *request, sc_cluster *cluster, sc_workload *workload,
                              sc_accounts *accounts, mdot_error *err)
{
    BS_TRY(request->cluster_path != NULL ? sc_read_cluster(request->cluster_path, cluster, err)
                                         : sc_cluster_make_pool((int)request->gpus, cluster, err));
    cluster->power_w = request->power_w;
    BS_TRY(sc_read_trace(request->trace_path, workload, err));
    if (request->throughputs_path != NULL)
        BS_TRY(sc_read_throughputs(request->throughputs_path, cluster, workload, err));
    if (request->steps_path != NULL)
        BS_TRY(sc_read_step_times(request->steps_path, request->noise_path, cluster, workload, err));
    if (request->sweep_path != NULL)
        BS_TRY(sc_sweep_throughputs(request->sweep_path, request->predictor_path, request->interference_path, cluster,
                                    workload, err));
    if (request->steps_path == NULL && request->noise_path != NULL)
        BS_TRY(sc_read_noise(request->noise_path, workload, err));
    if (request->pairs_path != NULL) BS_TRY(sc_read_pairs(request->pairs_path, cluster, workload, err));
    if (request->slices > 0) BS_TRY(sc_slice_gpus((int)request->slices, cluster, workload, err));
    BS_TRY(sc_workload_select(workload, cluster, &request->window, err));
    if (request->high > 0)
        sc_workload_give_deadlines(workload, cluster, request->low, request->high, (uint64_t)request->seed);
    if (request->outcomes >= 0) sc_workload_draw_outcomes(workload, (uint64_t)request->seed);
    if (request->wants_maximum)
        sc_workload_request_maximum(workload, cluster, request->most_limit_s);
    else if (request->most_limit_s > 0)
        sc_workload_request_limits(workload, cluster, request->most_limit_s, (uint64_t)request->seed);
    if (request->accounts_path != NULL)
        BS_TRY(sc_read_accounts(request->accounts_path, accounts, err));
    else if (request->has_priority)
        BS_TRY(sc_accounts_create(accounts, err));
    if (request->has_priority) accounts->priority = request->priority;
    return accounts->count > 0 ? sc_accounts_assign(accounts, workload, err) : MDOT_OK;
}

static void show_progress(void *user, size_t done, size_t total)
{
    fprintf(stderr, "\r%s: %zu of %zu jobs%s", (const char *)user, done, total, done == total ? "\r\033[K" : "");
}

static mdot_status simulate(const sc_request *request, const sc_workload *workload, const sc_cluster *cluster,
                            const sc_accounts *accounts, const hs_row_model *learned, const sc_policy *policy,
                            sc_summary *out_summary, mdot_error *err)
{
    sc_estimator estimator = {0};
    sc_result result = {0};
    sc_run_options options = {.restart = request->restart,
                              .limit_factor = request->limit_factor,
                              .limit_extra_s = request->limit_extra_s,
                              .accounts = accounts->count > 0 ? accounts : NULL,
                              .learned = learned,
                              .user = (void *)(uintptr_t)policy->name};
    if (isatty(STDERR_FILENO)) options.progress = show_progress;
    mdot_status status = sc_make_estimator(request, workload, &estimator, &options.errors, err);
    if (status == MDOT_OK && request->log_path != NULL) status = sc_open_output(request->log_path, &options.log, err);
    if (status == MDOT_OK) status = sc_simulate(workload, cluster, policy, &estimator, &options, &result, err);
    if (options.log != NULL && fclose(options.log) != 0 && status == MDOT_OK)
        status = mdot_fail(err, MDOT_IO, "%s: %s", request->log_path, strerror(errno));
    if (status == MDOT_OK) status = sc_summarise(workload, cluster, &result, out_summary, err);
    if (status == MDOT_OK && request->jobs_path != NULL)
        status = sc_write_jobs(request->jobs_path, workload, &result, err);
    sc_result_free(&result);
    sc_estimator_destroy(&estimator);
    return status;
}

static void print_json(const sc_request *request, const sc_workload *workload, const sc_cluster *cluster,
                       const sc_summary *summaries)
{
    double load = sc_workload_load(workload, cluster);
    fputs("{\"trace\": ", stdout);
    sc_print_json_string(stdout, request->trace_path);
    printf(", \"jobs\": %zu, \"gpus\": %d, \"load\": ", workload->job_count, cluster->gpus);
    if (isfinite(load))
        printf("%.6g", load);
    else
        fputs("null", stdout);
    fputs(",\n  \"results\": [\n", stdout);
    for (size_t i = 0; i < request->policy_count; i++) {
        sc_print_json(stdout, request->policies[i]->name, sc_name_estimate(request), &summaries[i]);
        fputs(i + 1 < request->policy_count ? ",\n" : "\n  ]}\n", stdout);
    }
}

static mdot_status run(const sc_request *request, mdot_error *err)
{
    sc_cluster cluster = {0};
    sc_workload workload = {0};
    sc_accounts accounts = {0};
    hs_row_model *learned = NULL;
    sc_summary summaries[SC_MAX_POLICIES];
    mdot_status status = read_input(request, &cluster, &workload, &accounts, err);
    if (status == MDOT_OK && request->learned_path != NULL)
        status = sc_learned_open(request->learned_path, &learned, err);
    if (status == MDOT_OK && !request->json) {
        printf("%zu job%s, %d GPU%s, load %.3g\n", workload.job_count, workload.job_count == 1 ? "" : "s", cluster.gpus,
               cluster.gpus == 1 ? "" : "s", sc_workload_load(&workload, &cluster));
        sc_print_header(stdout);
    }
    for (size_t i = 0; status == MDOT_OK && i < request->policy_count; i++) {
        status = simulate(request, &workload, &cluster, &accounts, learned, request->policies[i], &summaries[i], err);
        if (status == MDOT_OK && !request->json)
            sc_print_row(stdout, request->policies[i]->name, sc_name_estimate(request), &summaries[i]);
    }
    if (status == MDOT_OK && request->json) print_json(request, &workload, &cluster, summaries);
    hs_row_model_close(learned);
    sc_accounts_free(&accounts);
    sc_workload_free(&workload);
    sc_cluster_free(&cluster);
    if (status == MDOT_OK && (fflush(stdout) != 0 || ferror(stdout) != 0))
        status = mdot_fail(err, MDOT_IO, "standard output: %s", strerror(errno));
    return status;
}

static void print_idle(const sc_request *request, const sc_idle_result *results)
{
    if (request->json)
        printf("{\"idle_gpu_h\": %.6f,\n  \"results\": [\n", results[0].idle_gpu_h);
    else
        printf("%.1f idle GPU-hours\n%-10s %12s %12s %8s %8s\n", results[0].idle_gpu_h, "rule", "used GPU-h",
               "lost GPU-h", "ended", "cut off");
    for (int rule = 0; rule < SC_IDLE_RULES; rule++) {
        const sc_idle_result *r = &results[rule];
        if (request->json)
            printf("    {\"rule\": \"%s\", \"used_gpu_h\": %.6f, \"lost_gpu_h\": %.6f, \"ended\": %zu, \"cut_off\": "
                   "%zu}%s",
                   sc_idle_rule_names[rule], r->used_gpu_h, r->lost_gpu_h, r->ended, r->cut_off,
                   rule + 1 < SC_IDLE_RULES ? ",\n" : "\n  ]}\n");
        else
            printf("%-10s %12.1f %12.1f %8zu %8zu\n", sc_idle_rule_names[rule], r->used_gpu_h, r->lost_gpu_h, r->ended,
                   r->cut_off);
    }
}

static mdot_status run_idle(const sc_request *request, mdot_error *err)
{
    sc_cluster one = {0};
    sc_workload workload = {0};
    sc_idle_windows windows = {0};
    sc_idle_result results[SC_IDLE_RULES];
    double *predicted_s = NULL;
    mdot_status status = sc_cluster_make_pool(1, &one, err);
    if (status == MDOT_OK) status = sc_read_trace(request->trace_path, &workload, err);
    if (status == MDOT_OK) status = sc_workload_select(&workload, &one, &request->window, err);
    if (status == MDOT_OK) status = sc_read_idle_windows(request->idle_path, &windows, err);
    if (status == MDOT_OK) status = sc_make_upper_quantiles(request, &workload, &predicted_s, err);
    for (int rule = 0; status == MDOT_OK && rule < SC_IDLE_RULES; rule++)
        status = sc_fill_idle_windows(&workload, &windows, (sc_idle_rule)rule, predicted_s, &results[rule], err);
    if (status == MDOT_OK) print_idle(request, results);
    free(predicted_s);
    sc_idle_windows_free(&windows);
    sc_workload_free(&workload);
    sc_cluster_free(&one);
    return status;
}

mdot_status sc_run_request(const sc_request *request, mdot_error *err)
{
    return request->idle_path != NULL ? run_idle(request, err) : run(request, err);
}

int main(int argc, char **argv) { return cli_run_program(argc, argv); }
