/* mdot_durations.c — mdot-durations: a history's answer for each job of a trace, at submission. Jobs start when
 * they are submitted, and the history learns from each job's end. The output has one line per job in order of
 * submission, for comparisons with other estimates (cluster/durations). Outcome and key are the numbers in mdot_ended
 * and mdot_history_key. */
#include "base/command/command.h"
#include "base/csv.h"
#include "history/mdot_history.h"

#include "simulator/core/simulator.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char header[] =
    "job_id,user,group,name,gpu_type,gpus,submit_s,duration_s,outcome,limit_s,early_failure,key,weight,"
    "p5_s,p10_s,p25_s,p50_s,p75_s,p90_s,p95_s";

static const double probabilities[] = {.05, .1, .25, .5, .75, .9, .95};
enum { QUANTILES = sizeof probabilities / sizeof probabilities[0] };

typedef struct ending {
    double end_s;
    uint32_t job;
} ending;

static int by_end(const void *a, const void *b)
{
    const ending *x = a, *y = b;
    if (x->end_s != y->end_s) return x->end_s < y->end_s ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

static mdot_status print_job(const mdot_history *history, const sc_job *job, mdot_error *err)
{
    mdot_history_job question = sc_history_job_of(job);
    mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
    BS_TRY(mdot_history_ask(history, &question, &e, err));
    const char *const texts[] = {job->id, job->user, job->group, job->name, job->gpu_type};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bs_csv_write_text(stdout, texts[i] != NULL ? texts[i] : "");
        putchar(',');
    }
    printf("%d,%.17g,%.17g,%d,%.17g,%.6g,%d,%.4g", job->gpus, job->submit_s, job->work, (int)job->outcome, job->limit_s,
           e.early_failure, (int)e.key, e.weight);
    for (int i = 0; i < QUANTILES; i++) printf(",%.6g", mdot_history_quantile_s(&e, probabilities[i]));
    putchar('\n');
    return MDOT_OK;
}

static mdot_status replay(const sc_workload *workload, mdot_error *err)
{
    mdot_history *history = NULL;
    size_t count = workload->job_count, learned = 0;
    ending *endings = calloc(count + 1, sizeof *endings);
    if (endings == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < count; i++)
        endings[i] = (ending){workload->jobs[i].submit_s + workload->jobs[i].work, (uint32_t)i};
    qsort(endings, count, sizeof *endings, by_end);
    mdot_status status = mdot_history_create(NULL, &history, err);
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        const sc_job *job = &workload->jobs[i];
        for (; status == MDOT_OK && learned < count && endings[learned].end_s <= job->submit_s; learned++) {
            const sc_job *ended = &workload->jobs[endings[learned].job];
            mdot_history_job added = sc_history_job_of(ended);
            status = mdot_history_add(history, &added, ended->outcome, ended->work, endings[learned].end_s, err);
        }
        if (status == MDOT_OK) status = print_job(history, job, err);
    }
    mdot_history_destroy(history);
    free(endings);
    return status;
}

static mdot_status run(const char *path, mdot_error *err)
{
    sc_workload workload = {0};
    mdot_status status = sc_read_trace(path, &workload, err);
    for (size_t i = 0; status == MDOT_OK && i < workload.job_count; i++)
        if (workload.jobs[i].kind != SC_NONE)
            status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s: job %s has steps instead of a duration", path,
                               workload.jobs[i].id);
    if (status == MDOT_OK) {
        puts(header);
        status = replay(&workload, err);
    }
    sc_workload_free(&workload);
    return status;
}

static int run_program(int argc, char **argv)
{
    cli_operands operands;
    mdot_error err = {0};
    int status;
    if (!cli_read_line(&cli_program, argc, argv, NULL, &operands, &status)) return status;
    if (operands.count != 1) return cli_usage_error(cli_program.name, "expected one trace");
    return run(operands.item[0], &err) == MDOT_OK ? CLI_OK : cli_report(cli_program.name, &err);
}

const cli_command cli_program = {
    .name = "mdot-durations",
    .summary = "estimate the durations of a trace's jobs from those that ended before",
    .synopsis = "TRACE",
    .description =
        "Reads a trace in any form that mdot-simulate reads. Prints, for each job, quantiles of its duration as "
        "a history of the jobs that ended before its submission estimates them.",
    .files = "csv|sacct",
    .run = run_program};

int main(int argc, char **argv) { return cli_run_program(argc, argv); }
