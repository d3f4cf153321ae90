/* simulate_options.c — mdot-simulate's command line, as a table. */
#include "simulator/simulate_options.h"
#include "base/command/command.h"
#include "simulator/policy/policies.h"
#include "simulator/report/simulation_report.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAM "mdot-simulate"

/* Prints a usage error. Returns false. */
__attribute__((format(printf, 1, 2))) static bool refuse(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    cli_usage_error(PROGRAM, "%s", text);
    return false;
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

/* Parses all of `text` up to `end` as a number from `least` to `most`. */
static bool parse_number(const char *option, const char *text, char end, double minimum, double maximum,
                         double *out_value, const char **out_end)
{
    char *behind;
    double value = strtod(text, &behind);
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
    (void)command;
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
    (void)command;
    double start = 0, count = 0;
    const char *colon = text;
    if (strchr(text, ':') == NULL) return refuse("--window takes FROM:COUNT, not \"%s\"", text);
    if (!parse_integer("--window", text, ':', 0, 1e9, &start, &colon) ||
        !parse_integer("--window", colon + 1, '\0', 1, 1e9, &count, NULL))
        return false;
    request->window.from = (size_t)start;
    request->window.count = (size_t)count;
    return true;
}

static bool read_restart(const char *command, char *text, void *place)
{
    sc_request *request = place;
    (void)command;
    const char *comma = text;
    if (!parse_number("--restart-cost", text, ',', 0, 1e6, &request->restart.base_s, &comma)) return false;
    return *comma == '\0' ||
           parse_number("--restart-cost", comma + 1, '\0', 0, 1e6, &request->restart.per_doubling_s, NULL);
}

static bool read_deadlines(const char *command, char *text, void *place)
{
    sc_request *request = place;
    (void)command;
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
    (void)command;
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
    (void)command;
    const char *comma = text;
    if (!parse_number("--limits", text, ',', 1e-3, 1e6, &request->limit_factor, &comma)) return false;
    return *comma == '\0' || parse_number("--limits", comma + 1, '\0', 0, 1e9, &request->limit_extra_s, NULL);
}

static bool read_errors(const char *command, char *text, void *place)
{
    sc_request *request = place;
    (void)command;
    request->has_errors = true;
    request->errors = strcmp(text, "total") == 0 ? SC_ERRORS_TOTAL : SC_ERRORS_SCALE;
    return strcmp(text, "total") == 0 || strcmp(text, "scale") == 0 ||
           refuse("--errors takes scale or total, not \"%s\"", text);
}

static bool read_outcomes(const char *command, char *text, void *place)
{
    (void)command;
    ((sc_request *)place)->draws_outcomes = true;
    return strcmp(text, "philly") == 0 || refuse("--outcomes takes philly, not \"%s\"", text);
}

static bool read_seed(const char *command, char *text, void *place)
{
    char *end;
    (void)command;
    errno = 0;
    *(uint64_t *)place = strtoull(text, &end, 10);
    return (end != text && *end == '\0' && errno == 0 && text[0] != '-') ||
           refuse("--seed: \"%s\" is not an integer", text);
}

static bool read_gpus(const char *command, char *text, void *place)
{
    double number = 0;
    (void)command;
    if (!parse_integer("--gpus", text, '\0', 1, 1 << 24, &number, NULL)) return false;
    *(int *)place = (int)number;
    return true;
}

/* Defines the reader of a number option from `minimum` to `maximum`. */
#define READ_NUMBER(function, option, minimum, maximum)                                                                \
    static bool function(const char *command, char *text, void *place)                                                 \
    {                                                                                                                  \
        (void)command;                                                                                                 \
        return parse_number(option, text, '\0', minimum, maximum, place, NULL);                                        \
    }
READ_NUMBER(read_power, "--power", 1, 1e12)
READ_NUMBER(read_user_limits, "--user-limits", 1, 1e12)
READ_NUMBER(read_load, "--scale-load", 1e-6, 1e6)
READ_NUMBER(read_upper, "--upper", 1e-3, 1e3)

static const char *const *policy_names(void)
{
    static const char *names[SC_MAX_POLICIES + 1];
    for (size_t i = 0; sc_policies[i] != NULL && i < SC_MAX_POLICIES; i++) names[i] = sc_policies[i]->name;
    return names;
}

/* ---- The table --------------------------------------------------------------------------------------------------- */

static const cli_option options[] = {
    {.heading = "Cluster and policies",
     .name = "gpus",
     .value = "N",
     .help = "a pool of N equal GPUs",
     .kind = CLI_CALL,
     .at = offsetof(sc_request, gpus),
     .call = read_gpus},
    {.name = "cluster",
     .value = "FILE",
     .help = "node,type,gpus[,watts][,domain][,rack]: one line per node",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, cluster_path),
     .files = "csv"},
    {.name = "power",
     .value = "W",
     .help = "power limit of all GPUs together, for policies with a power limit; requires watts in --cluster",
     .kind = CLI_CALL,
     .at = offsetof(sc_request, power_w),
     .call = read_power},
    {.name = "policy",
     .value = "NAME,…",
     .help = "one or several policies; --list shows all",
     .kind = CLI_CALL,
     .call = read_policies,
     .names = policy_names,
     .is_list = true},
    {.name = "list", .help = "list the policies", .kind = CLI_FLAG, .at = offsetof(sc_request, lists)},
    {.heading = "Speeds of jobs",
     .name = "throughputs",
     .value = "FILE",
     .help = "speed of each job_type on each GPU type: job_type,gpus,type,samples_per_s,batch, or Gavel's JSON",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, throughputs_path),
     .files = "csv|json"},
    {.name = "pairs",
     .value = "FILE",
     .help = "speeds of jobs that share GPUs: gpu,job_a,job_b,gpus,together_a_steps_s,together_b_steps_s",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, pairs_path),
     .files = "csv"},
    {.name = "step-times",
     .value = "FILE",
     .help = "step times by placement and batch size: "
             "application,placement,nodes,gpus,batch_per_gpu,step_ms,sync_ms[,type]",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, steps_path),
     .files = "csv"},
    {.name = "gradient-noise",
     .value = "FILE",
     .help = "statistical efficiency of batch sizes: application,batch,progress,grad_sqr,grad_var",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, noise_path),
     .files = "csv"},
    {.name = "sweep",
     .value = "FILE",
     .help = "speeds that policies assume, predicted by libmdot: job_type,job,batch,precision,layout,optimizer"
             "[,batch_rule,max_batch]; GPU types are then names of mdot; without --throughputs, jobs run at the "
             "predicted speed",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, sweep_path),
     .files = "csv"},
    {.name = "predictor",
     .value = "FILE",
     .help = "the compiled predictor for --sweep",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, predictor_path),
     .files = "mdot"},
    {.name = "interference",
     .value = "FILE",
     .help = "the compiled interference.mdot, for the speeds of pairs that --pairs lacks; requires --sweep",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, interference_path),
     .files = "mdot"},
    {.heading = "Estimates and limits",
     .name = "estimate",
     .value = "E",
     .help = "durations that policies assume: oracle, limit (the requested time), or error:M for log-normal factors of "
             "mean error M; or learned from completed jobs: history, rolling (means), last-two (of a user), survival "
             "(default oracle)",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, estimate)},
    {.name = "learn",
     .help = "correct --estimate error:M, --factors or --sweep by the completed jobs of the same job_type, or user and "
             "name",
     .kind = CLI_FLAG,
     .at = offsetof(sc_request, learns)},
    {.name = "factors",
     .value = "FILE",
     .help = "job_id,factor: predicted over true duration of each job, instead of --estimate",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, factors_path),
     .files = "csv"},
    {.name = "errors",
     .value = "scale|total",
     .help = "error in the step time with known steps, or in the total duration without corrections (default: scale; "
             "rolling, last-two and limit: total; history, survival: the rest itself)",
     .kind = CLI_CALL,
     .call = read_errors},
    {.name = "outcomes",
     .value = "philly",
     .help = "let jobs fail and be cancelled as in Philly: estimates are those of their longer plans",
     .kind = CLI_CALL,
     .call = read_outcomes},
    {.name = "user-limits",
     .value = "MAX_S",
     .help = "draw the time limit that each job requests, at most MAX_S, unless the trace has limit_s",
     .kind = CLI_CALL,
     .at = offsetof(sc_request, most_limit_s),
     .call = read_user_limits},
    {.name = "limits",
     .value = "Q[,S]",
     .help = "cut jobs off at Q times their estimate plus S seconds; they lose their work and come again with twice "
             "the limit",
     .kind = CLI_CALL,
     .call = read_limits},
    {.heading = "Order of the queue",
     .name = "accounts",
     .value = "FILE",
     .help = "account,parent,shares[,gpus][,gpu_minutes]: fair-share tree and quotas, for easy and conservative",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, accounts_path),
     .files = "csv"},
    {.name = "priority",
     .value = "A,F,S[,L[,DAYS]]",
     .help = "weights of age, fair share, size and shortness, and the half-life of usage, for easy and conservative "
             "(with --accounts 1000,10000,0,0,7; otherwise first come, first served)",
     .kind = CLI_CALL,
     .call = read_priority},
    {.name = "deadlines",
     .value = "A:B",
     .help = "every job's deadline is A to B times its duration after its submission, at random",
     .kind = CLI_CALL,
     .call = read_deadlines},
    {.heading = "The simulation",
     .name = "window",
     .value = "FROM:COUNT",
     .help = "only COUNT jobs from FROM on, among those that fit the cluster",
     .kind = CLI_CALL,
     .call = read_window},
    {.name = "scale-load",
     .value = "L",
     .help = "stretch submit times until the load is L",
     .kind = CLI_CALL,
     .at = offsetof(sc_request, window.load),
     .call = read_load},
    {.name = "restart-cost",
     .value = "B[,D]",
     .help = "duration of a restart in seconds: B + D (log2(GPUs) + 1) (default 0)",
     .kind = CLI_CALL,
     .call = read_restart},
    {.name = "start-cost",
     .help = "the first start of a job costs as much as a restart",
     .kind = CLI_FLAG,
     .at = offsetof(sc_request, restart.first)},
    {.name = "seed",
     .value = "N",
     .help = "seed of random errors and deadlines (default 1)",
     .kind = CLI_CALL,
     .at = offsetof(sc_request, seed),
     .call = read_seed},
    {.heading = "Idle windows",
     .name = "idle",
     .value = "FILE",
     .help = "gpu,from_s,to_s: place jobs of one GPU in these idle windows instead, first-fit, by the upper quantile "
             "of the prediction and by the true duration",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, idle_path),
     .files = "csv"},
    {.name = "upper",
     .value = "Q",
     .help = "that quantile over the prediction (default: 95 % of --estimate error:M, else 1)",
     .kind = CLI_CALL,
     .at = offsetof(sc_request, upper),
     .call = read_upper},
    {.heading = "Output", .name = "json", .help = "print JSON", .kind = CLI_FLAG, .at = offsetof(sc_request, json)},
    {.name = "per-job",
     .value = "FILE",
     .help = "job_id,start_s,end_s,jct_s,preemptions of each job; requires one policy",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, jobs_path),
     .files = "csv"},
    {.name = "log",
     .value = "FILE",
     .help = "every decision; requires one policy",
     .kind = CLI_TEXT,
     .at = offsetof(sc_request, log_path),
     .files = "csv"},
};

static int run_program(int argc, char **argv);

static const char *const synopsis[] = {"TRACE.csv --gpus N | --cluster FILE --policy NAME,… [OPTION]…",
                                       "TRACE.csv --idle FILE [OPTION]…", "--list", NULL};

const cli_command cli_program = {
    .name = PROGRAM,
    .summary = "simulate scheduling policies of GPU clusters on a trace of jobs",
    .synopsis = synopsis,
    .description = "Runs each policy on the trace and prints completion times, utilisation, "
                   "preemptions and the cost of decisions. The trace is a CSV file with a "
                   "header (job_id,submit_s,gpus,duration_s), the output of `sacct -P`, or a "
                   "table of Alibaba's PAI.",
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
                                  request->steps_path,       request->noise_path,    request->interference_path};
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
    if (request->factors_path != NULL && request->estimate != NULL) return refuse("--factors excludes --estimate");
    if (request->learns && request->estimate != NULL && strncmp(request->estimate, "error:", 6) != 0)
        return refuse("--learn corrects --estimate error:M, --factors or --sweep, not --estimate %s",
                      request->estimate);
    if (request->idle_path != NULL) return true;
    if ((request->gpus > 0) == (request->cluster_path != NULL)) return refuse("expected either --gpus or --cluster");
    if (request->power_w > 0 && request->cluster_path == NULL) return refuse("--power requires --cluster with watts");
    if (request->policy_count == 0) return refuse("no --policy given");
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
    *out_request = (sc_request){.seed = 1};
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
