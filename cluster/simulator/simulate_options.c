/* simulate_options.c — mdot-simulate's command line, as a table. */
#include "simulator/simulate_options.h"
#include "base/command/command.h"
#include "base/text.h"
#include "simulator/policy/policies.h"
#include "simulator/report/simulation_report.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "mdot-simulate"

/* Prints a usage error. Returns false. */
#define refuse(...) cli_refuse(PROGRAM, __VA_ARGS__)

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* Parses all of `text` up to `end` as a number from `least` to `most`. */
static bool parse_number(const char *option, const char *text, char end, double minimum, double maximum,
                         double *out_value, const char **out_end)
{
    const char *behind;
    double value = bs_number_read(text, &behind);
    if (behind == text || (*behind != '\0' && *behind != end) || !isfinite(value))
        return refuse("%s: \"%s\" is not a number", option, text);
    if (value < minimum || value > maximum)
        return refuse("%s: %s must be between %g and %g", option, text, minimum, maximum);
    *out_value = value;
    if (out_end != NULL) *out_end = behind;
    return true;
}

static bool parse_integer(const char *option, const char *text, char end, double minimum, double maximum,
                          double *out_value, const char **out_end)
{
    if (!parse_number(option, text, end, minimum, maximum, out_value, out_end)) return false;
    return *out_value == floor(*out_value) || refuse("%s: \"%s\" is not an integer", option, text);
}

static bool read_policies(const char *command, char *text, void *place)
{
    sc_request *request = place;
    mdot_error err = {0};
    for (char *name = strtok(text, ","); name != NULL; name = strtok(NULL, ",")) {
        if (request->policy_count == SC_MAX_POLICIES)
            return refuse("--policy takes at most %d policies", SC_MAX_POLICIES);
        if (sc_policy_find(name, &request->policies[request->policy_count++], &err) != MDOT_OK)
            return refuse("%s", err.message);
    }
    return request->policy_count > 0 || refuse("--policy requires the name of a policy");
}

static bool read_window(const char *command, char *text, void *place)
{
    sc_request *request = place;
    double start = 0, count = 0, windows = 0;
    const char *colon = strchr(text, ':'), *slash = strchr(text, '/');
    if (colon == NULL) return refuse("--window takes FROM:COUNT or K/N:COUNT, not \"%s\"", text);
    if (!parse_integer("--window", colon + 1, '\0', 1, 1e9, &count, NULL)) return false;
    request->window.count = (size_t)count;
    if (slash == NULL) {
        if (!parse_integer("--window", text, ':', 0, 1e9, &start, NULL)) return false;
        request->window.from = (size_t)start;
        return true;
    }
    if (!parse_integer("--window", slash + 1, ':', 1, 1e6, &windows, NULL) ||
        !parse_integer("--window", text, '/', 1, windows, &start, NULL))
        return false;
    request->window.number = (size_t)start - 1;
    request->window.of = (size_t)windows;
    return true;
}

static bool read_restart(const char *command, char *text, void *place)
{
    sc_request *request = place;
    const char *comma = text;
    if (!parse_number("--restart-cost", text, ',', 0, 1e6, &request->restart.base_s, &comma)) return false;
    return *comma == '\0' ||
           parse_number("--restart-cost", comma + 1, '\0', 0, 1e6, &request->restart.per_doubling_s, NULL);
}

static bool read_deadlines(const char *command, char *text, void *place)
{
    sc_request *request = place;
    const char *colon = text;
    if (strchr(text, ':') == NULL) return refuse("--deadlines takes A:B, not \"%s\"", text);
    if (!parse_number("--deadlines", text, ':', 1e-3, 1e6, &request->low, &colon) ||
        !parse_number("--deadlines", colon + 1, '\0', 1e-3, 1e6, &request->high, NULL))
        return false;
    return request->low <= request->high || refuse("--deadlines takes A:B with A <= B, not %s", text);
}

static bool read_priority(const char *command, char *text, void *place)
{
    sc_request *request = place;
    sc_priority *p = &request->priority;
    double days = 7, *const values[] = {&p->age_weight, &p->fairshare_weight, &p->size_weight, &p->length_weight,
                                        &days};
    *p = sc_priority_default();
    request->has_priority = true;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        const char *end = text;
        if (!parse_number("--priority", text, ',', i < 4 ? 0 : 1e-3, 1e9, values[i], &end)) return false;
        if (*end == '\0') {
            p->half_life_s = 86400 * days;
            return i >= 2 || refuse("--priority takes A,F,S[,L[,DAYS]]");
        }
        text += end + 1 - text;
    }
    return refuse("--priority takes A,F,S[,L[,DAYS]]");
}

static bool read_limits(const char *command, char *text, void *place)
{
    sc_request *request = place;
    const char *comma = text;
    if (!parse_number("--limits", text, ',', 1e-3, 1e6, &request->limit_factor, &comma)) return false;
    return *comma == '\0' || parse_number("--limits", comma + 1, '\0', 0, 1e9, &request->limit_extra_s, NULL);
}

static bool read_user_limits(const char *command, char *text, void *place)
{
    sc_request *request = place;
    const char *comma = text;
    if (!parse_number("--user-limits", text, ',', 1, 1e12, &request->most_limit_s, &comma)) return false;
    request->wants_maximum = strcmp(comma, ",all") == 0;
    return *comma == '\0' || request->wants_maximum || refuse("--user-limits takes MAX_S[,all], not \"%s\"", text);
}

static bool read_known(const char *command, char *text, void *place)
{
    return parse_number("--known", text, '\0', 0, 1, place, NULL);
}

static const char *const *policy_names(void)
{
    static const char *names[SC_MAX_POLICIES + 1];
    for (size_t i = 0; sc_policies[i] != NULL && i < SC_MAX_POLICIES; i++) names[i] = sc_policies[i]->name;
    return names;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

static const char *const error_models[] = {"scale", "total", NULL}; /* as sc_errors */
static const char *const outcome_models[] = {"philly", NULL};

static const cli_option options[] = {
    CLI_WHOLE_ROW("gpus", "N", sc_request, gpus, 1, 1 << 24, "a pool of N equal GPUs",
                  .heading = "Cluster and policies"),
    CLI_TEXT_ROW("cluster", "FILE", sc_request, cluster_path,
                 "node,type,gpus[,watts][,domain][,rack]: one line per node", .files = "csv"),
    CLI_WHOLE_ROW("slices", "N", sc_request, slices, 2, 100,
                  "count in N-ths of a GPU, for jobs with fractions, under kubeshare and hived"),
    CLI_VALUE_ROW(CLI_REAL, "power", "W", sc_request, power_w,
                  "power limit of all GPUs together, for policies with a power limit; requires watts in --cluster",
                  .most = INT64_C(1000000000000)),
    CLI_CALL_ROW("policy", "NAME,…", read_policies, "one or several policies; --list shows all", .names = policy_names,
                 .is_list = true),
    CLI_FLAG_ROW("list", sc_request, lists, "list the policies"),
    CLI_TEXT_ROW("learned", "FILE", sc_request, learned_path, "the compiled network of the policy mlfs",
                 .files = "mdot"),
    CLI_TEXT_ROW("throughputs", "FILE", sc_request, throughputs_path,
                 "speed of each job_type on each GPU type: job_type,gpus,type,samples_per_s,batch, or Gavel's JSON",
                 .heading = "Speeds of jobs", .files = "csv|json"),
    CLI_TEXT_ROW("pairs", "FILE", sc_request, pairs_path,
                 "speeds of jobs that share GPUs: gpu,job_a,job_b,gpus,together_a_steps_s,together_b_steps_s",
                 .files = "csv"),
    CLI_TEXT_ROW("step-times", "FILE", sc_request, steps_path,
                 "step times by placement and batch size: "
                 "application,placement,nodes,gpus,batch_per_gpu,step_ms,sync_ms[,type]",
                 .files = "csv"),
    CLI_TEXT_ROW("gradient-noise", "FILE", sc_request, noise_path,
                 "statistical efficiency of batch sizes: application,batch,progress,grad_sqr,grad_var", .files = "csv"),
    CLI_TEXT_ROW("sweep", "FILE", sc_request, sweep_path,
                 "speeds that policies assume, predicted by libmdot: job_type,job,batch,precision,layout,optimizer"
                 "[,batch_rule,max_batch]; GPU types are then names of mdot; without --throughputs, jobs run at the "
                 "predicted speed",
                 .files = "csv"),
    CLI_TEXT_ROW("predictor", "FILE", sc_request, predictor_path, "the compiled predictor for --sweep",
                 .files = "mdot"),
    CLI_TEXT_ROW("interference", "FILE", sc_request, interference_path,
                 "the compiled interference.mdot, for the speeds of pairs that --pairs lacks; requires --sweep",
                 .files = "mdot"),
    CLI_TEXT_ROW(
        "estimate", "E", sc_request, estimate,
        "durations that policies assume: oracle, limit (the requested time), or error:M[,MODEL] for random factors of "
        "mean error M (log-normal, normal or two-point); or learned from completed jobs: history, rolling (means), "
        "last-two (of a user), survival, or trees:FILE, the history corrected by the compiled trees of "
        "lab/mdot_lab/durations (default oracle)",
        .heading = "Estimates and limits"),
    CLI_FLAG_ROW(
        "learn", sc_request, learns,
        "correct --estimate error:M, --factors or --sweep by the completed jobs of the same job_type, or user and "
        "name, and --predictions by those of the same network"),
    CLI_TEXT_ROW("factors", "FILE", sc_request, factors_path,
                 "job_id,factor: predicted over true duration of each job, instead of --estimate", .files = "csv"),
    CLI_TEXT_ROW("predictions", "FILE", sc_request, predictions_path,
                 "step_ms,PREDICTOR,…: measured and predicted step times of networks, which jobs have at random, "
                 "equal for the same user and name; instead of --estimate",
                 .files = "csv"),
    CLI_TEXT_ROW("predicted-by", "NAME", sc_request, predicted_by, "the column of --predictions (default mdot)"),
    CLI_CALL_ROW("known", "SHARE", read_known,
                 "share of jobs with known steps under --predictions; the others have a history (default 1)",
                 .at = offsetof(sc_request, known_share)),
    CLI_VALUE_ROW(
        CLI_CHOICE, "errors", "scale|total", sc_request, errors,
        "error in the step time with known steps, or in the total duration without corrections (default: scale; "
        "rolling, last-two and limit: total; history, survival: the rest itself)",
        .choices = error_models),
    CLI_VALUE_ROW(CLI_CHOICE, "outcomes", "philly", sc_request, outcomes,
                  "let jobs fail and be cancelled as in Philly: estimates are those of their longer plans",
                  .choices = outcome_models),
    CLI_CALL_ROW("user-limits", "MAX_S[,all]", read_user_limits,
                 "draw the time limit that each job requests, at most MAX_S, unless the trace has limit_s; all: every "
                 "job requests MAX_S"),
    CLI_CALL_ROW(
        "limits", "Q[,S]", read_limits,
        "cut jobs off at Q times their estimate plus S seconds; they lose their work and come again with twice "
        "the limit"),
    CLI_TEXT_ROW("accounts", "FILE", sc_request, accounts_path,
                 "account,parent,shares[,gpus][,gpu_minutes]: fair-share tree and quotas, for easy and conservative",
                 .heading = "Order of the queue", .files = "csv"),
    CLI_CALL_ROW(
        "priority", "A,F,S[,L[,DAYS]]", read_priority,
        "weights of age, fair share, size and shortness, and the half-life of usage, for easy and conservative "
        "(with --accounts 1000,10000,0,0,7; otherwise first come, first served)"),
    CLI_CALL_ROW("deadlines", "A:B", read_deadlines,
                 "every job's deadline is A to B times its duration after its submission, at random"),
    CLI_CALL_ROW("window", "FROM:COUNT", read_window,
                 "only COUNT jobs from FROM on, among those that fit the cluster; K/N:COUNT is window K of N that lie "
                 "evenly along the trace",
                 .heading = "The simulation"),
    CLI_VALUE_ROW(CLI_REAL, "scale-load", "L", sc_request, window.load, "stretch submit times until the load is L",
                  .most = 1000000),
    CLI_CALL_ROW("restart-cost", "B[,D]", read_restart,
                 "duration of a restart in seconds: B + D (log2(GPUs) + 1) (default 0)"),
    CLI_FLAG_ROW("start-cost", sc_request, restart.first, "the first start of a job costs as much as a restart"),
    CLI_WHOLE_ROW("seed", "N", sc_request, seed, 0, INT64_MAX, "seed of random errors and deadlines (default 1)"),
    CLI_TEXT_ROW(
        "idle", "FILE", sc_request, idle_path,
        "gpu,from_s,to_s: place jobs of one GPU in these idle windows instead, first-fit, by the upper quantile "
        "of the prediction and by the true duration",
        .heading = "Idle windows", .files = "csv"),
    CLI_VALUE_ROW(CLI_REAL, "upper", "Q", sc_request, upper,
                  "that quantile over the prediction (default: 95 % of --estimate error:M, else 1)", .most = 1000),
    CLI_FLAG_ROW("json", sc_request, json, "print JSON", .heading = "Output"),
    CLI_TEXT_ROW("per-job", "FILE", sc_request, jobs_path,
                 "job_id,start_s,end_s,jct_s,preemptions of each job; requires one policy", .files = "csv"),
    CLI_TEXT_ROW("log", "FILE", sc_request, log_path, "every decision; requires one policy", .files = "csv"),
};

static int run_program(int argc, char **argv);

const cli_command cli_program = {
    .name = PROGRAM,
    .summary = "simulate scheduling policies of GPU clusters on a trace of jobs",
    .synopsis = "TRACE.csv --gpus N | --cluster FILE --policy NAME,… [OPTION]…\n"
                "TRACE.csv --idle FILE [OPTION]…\n"
                "--list",
    .description = "Runs each policy on the trace and prints completion times, utilisation, "
                   "preemptions and the cost of decisions. The trace is a CSV file with a header "
                   "(job_id,submit_s,gpus,duration_s), the output of `sacct -P`, or a table of Alibaba's PAI.",
    CLI_OPTIONS(options),
    .notes = "cluster/docs/simulator.md describes the formats, the estimates and the policies.",
    .exit_status = "0 success, 1 failure, 2 a wrong command line",
    .files = "csv|sacct",
    .run = run_program};

/* ---- Checks ------------------------------------------------------------------------------------------------------ */

static void list_policies(void)
{
    for (size_t i = 0; sc_policies[i] != NULL; i++) printf("%-12s %s\n", sc_policies[i]->name, sc_policies[i]->summary);
}

/* Refuses an output that would replace an input or the other output. */
static bool check_outputs(const sc_request *request)
{
    const char *const inputs[] = {request->trace_path,       request->cluster_path,  request->factors_path,
                                  request->throughputs_path, request->idle_path,     request->sweep_path,
                                  request->predictor_path,   request->accounts_path, request->pairs_path,
                                  request->steps_path,       request->noise_path,    request->interference_path,
                                  request->predictions_path, request->learned_path};
    mdot_error err;
    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (sc_check_output(request->log_path, inputs[i], &err) != MDOT_OK ||
            sc_check_output(request->jobs_path, inputs[i], &err) != MDOT_OK)
            return refuse("%s", err.message);
    bool is_one = request->log_path != NULL && request->jobs_path != NULL &&
                  (strcmp(request->log_path, request->jobs_path) == 0 ||
                   sc_check_output(request->log_path, request->jobs_path, NULL) != MDOT_OK);
    return !is_one || refuse("--log and --per-job are one file");
}

static bool check(const sc_request *request)
{
    if (request->trace_path == NULL) return refuse("no trace given");
    if (!check_outputs(request)) return false;
    if (request->idle_path != NULL && (request->gpus > 0 || request->cluster_path != NULL || request->policy_count > 0))
        return refuse("--idle excludes --gpus, --cluster and --policy");
    if ((request->factors_path != NULL) + (request->predictions_path != NULL) + (request->estimate != NULL) > 1)
        return refuse("--estimate, --factors and --predictions exclude each other");
    if (request->predictions_path == NULL && (request->predicted_by != NULL || request->known_share < 1))
        return refuse("--predicted-by and --known require --predictions");
    if (request->learns && request->estimate != NULL && strncmp(request->estimate, "error:", 6) != 0)
        return refuse("--learn corrects --estimate error:M, --factors or --sweep, not --estimate %s",
                      request->estimate);
    if (request->idle_path != NULL) return true;
    if ((request->gpus > 0) == (request->cluster_path != NULL)) return refuse("expected either --gpus or --cluster");
    if (request->power_w > 0 && request->cluster_path == NULL) return refuse("--power requires --cluster with watts");
    if (request->policy_count == 0) return refuse("no --policy given");
    for (size_t i = 0; request->slices > 0 && i < request->policy_count; i++)
        if (!request->policies[i]->keeps_fractions)
            return refuse("--slices: policy %s may put a fraction on two GPUs; use kubeshare or hived",
                          request->policies[i]->name);
    if ((request->sweep_path != NULL) != (request->predictor_path != NULL))
        return refuse("--sweep and --predictor require each other");
    if (request->interference_path != NULL && request->sweep_path == NULL)
        return refuse("--interference requires --sweep");
    if (request->steps_path != NULL && request->noise_path == NULL)
        return refuse("--step-times requires --gradient-noise");
    if (request->noise_path != NULL && request->steps_path == NULL && request->sweep_path == NULL)
        return refuse("--gradient-noise requires --step-times or --sweep");
    if (request->restart.first && request->restart.base_s == 0 && request->restart.per_doubling_s == 0)
        return refuse("--start-cost requires --restart-cost");
    if (request->policy_count > 1 && request->jobs_path != NULL) return refuse("--per-job requires a single policy");
    if (request->policy_count > 1 && request->log_path != NULL) return refuse("--log requires a single policy");
    return true;
}

/* False after help, a list or a usage error; *out_status is the exit status then. */
static bool read_options(int argc, char **argv, sc_request *out_request, int *out_status)
{
    cli_operands operands;
    *out_request = (sc_request){.seed = 1, .known_share = 1, .errors = CLI_NO_CHOICE, .outcomes = CLI_NO_CHOICE};
    if (!cli_read_line(&cli_program, argc, argv, out_request, &operands, out_status)) return false;
    *out_status = CLI_OK;
    if (out_request->lists) {
        list_policies();
        return false;
    }
    *out_status = CLI_USAGE;
    if (operands.count > 1) return refuse("expected one trace");
    if (operands.count == 1) out_request->trace_path = operands.item[0];
    return check(out_request);
}

static int run_program(int argc, char **argv)
{
    sc_request request;
    int exit_status;
    if (!read_options(argc, argv, &request, &exit_status)) return exit_status;
    mdot_error err = {0};
    return sc_run_request(&request, &err) == MDOT_OK ? CLI_OK : cli_report(PROGRAM, &err);
}
