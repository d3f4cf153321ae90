/* simulate_options.c — reading mdot-simulate's command line. */
#include "simulator/simulate_options.h"
#include "simulator/policy/policies.h"
#include "simulator/report/simulation_report.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: mdot-simulate TRACE.csv --gpus N | --cluster FILE --policy NAME,… [OPTION]…\n";
static const char help[] =
    "Simulates scheduling policies on a trace of jobs and prints completion times.\n"
    "\n"
    "  --gpus N            a pool of N equal GPUs\n"
    "  --cluster FILE      node,type,gpus[,watts][,domain][,rack]: one line per node\n"
    "  --power W           power limit of all GPUs together, for policies with a power limit; "
    "requires watts in --cluster\n"
    "  --policy NAME,…     one or several policies; --list shows all\n"
    "  --throughputs FILE  speed of each job_type on each GPU type: job_type,gpus,type,steps_per_s, "
    "or Gavel's JSON\n"
    "  --pairs FILE        speeds of jobs that share GPUs: "
    "gpu,job_a,job_b,gpus,together_a_steps_s,together_b_steps_s\n"
    "  --step-times FILE   step times by placement and batch size: "
    "application,placement,nodes,gpus,batch_per_gpu,step_ms,sync_ms[,type]\n"
    "  --gradient-noise FILE  statistical efficiency of batch sizes: application,batch,progress,grad_sqr,grad_var\n"
    "  --sweep FILE        speeds that policies assume, predicted by libmdot: "
    "job_type,job,batch,precision,layout,optimizer;\n"
    "                      GPU types are then names of mdot; without --throughputs, jobs run at the "
    "predicted speed\n"
    "  --predictor FILE    the compiled predictor for --sweep\n"
    "  --estimate E        durations that policies assume: oracle, limit (the requested time), or error:M for "
    "log-normal factors\n"
    "                      of mean error M; or learned from completed jobs: history, rolling (means), last-two (of a "
    "user),\n"
    "                      survival (default oracle)\n"
    "  --learn             correct --estimate error:M, --factors or --sweep by the completed jobs of the same "
    "job_type, "
    "or user\n"
    "                      and name\n"
    "  --factors FILE      job_id,factor: predicted over true duration of each job, instead of "
    "--estimate\n"
    "  --errors scale|total  error in the step time with known steps, or in the total duration "
    "without corrections\n"
    "                      (default: scale; rolling, last-two and limit: total; history, survival: the rest itself)\n"
    "  --outcomes philly   let jobs fail and be cancelled as in Philly: estimates are those of their longer "
    "plans\n"
    "  --user-limits MAX_S  draw the time limit that each job requests, at most MAX_S, unless the trace "
    "has limit_s\n"
    "  --limits Q[,S]      cut jobs off at Q times their estimate plus S seconds; they lose their work and "
    "come again\n"
    "                      with twice the limit\n"
    "  --accounts FILE     account,parent,shares[,gpus][,gpu_minutes]: fair-share tree and quotas, for "
    "easy and conservative\n"
    "  --priority A,F,S[,L[,DAYS]]  weights of age, fair share, size and shortness, and the half-life of usage, "
    "for easy\n"
    "                      and conservative (with --accounts 1000,10000,0,0,7; otherwise first come, first served)\n"
    "  --window FROM:COUNT  only COUNT jobs from FROM on, among those that fit the cluster\n"
    "  --scale-load L      stretch submit times until the load is L\n"
    "  --restart-cost B[,D]  duration of a restart in seconds: B + D (log2(GPUs) + 1) (default 0)\n"
    "  --start-cost        the first start of a job costs as much as a restart\n"
    "  --deadlines A:B     every job's deadline is A to B times its duration after its submission, "
    "at random\n"
    "  --idle FILE         gpu,from_s,to_s: place jobs of one GPU in these idle windows instead, "
    "first-fit, by the upper\n"
    "                      quantile of the prediction and by the true duration\n"
    "  --upper Q           that quantile over the prediction (default: 95 % of --estimate error:M, "
    "else 1)\n"
    "  --seed N            seed of random errors and deadlines (default 1)\n"
    "  --json              print JSON\n"
    "  --per-job FILE      job_id,start_s,end_s,jct_s,preemptions of each job; requires one policy\n"
    "  --log FILE          every decision; requires one policy\n"
    "  --list              list the policies\n"
    "  --help\n"
    "\n"
    "Exit status: 0 success, 1 failure, 2 usage error. Formats: cluster/docs/simulator.md.\n";

__attribute__((format(printf, 1, 2))) static bool refuse(const char *format, ...)
{
    char text[1024];
    mdot_error err;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    mdot_fail(&err, MDOT_INVALID_ARGUMENT, "%s", text); /* makes it one printable line */
    fprintf(stderr, "mdot-simulate: %s\n", err.message);
    return false;
}

/* Parses all of `text` up to `end` as a number from `least` to `most`. */
static bool parse_number(const char *option, const char *text, char end, double least, double most, double *out_value,
                         const char **out_end)
{
    char *behind;
    double value = strtod(text, &behind);
    if (behind == text || (*behind != '\0' && *behind != end) || !isfinite(value))
        return refuse("%s: \"%s\" is not a number", option, text);
    if (value < least || value > most) return refuse("%s: %s must be between %g and %g", option, text, least, most);
    *out_value = value;
    if (out_end != NULL) *out_end = behind;
    return true;
}

static bool parse_integer(const char *option, const char *text, char end, double least, double most, double *out_value,
                          const char **out_end)
{
    if (!parse_number(option, text, end, least, most, out_value, out_end)) return false;
    return *out_value == floor(*out_value) || refuse("%s: \"%s\" is not an integer", option, text);
}

static bool parse_policies(char *text, sc_request *request)
{
    mdot_error err = {0};
    for (char *name = strtok(text, ","); name != NULL; name = strtok(NULL, ",")) {
        if (request->policy_count == SC_MAX_POLICIES)
            return refuse("--policy takes at most %d policies", SC_MAX_POLICIES);
        if (sc_policy_find(name, &request->policies[request->policy_count++], &err) != MDOT_OK)
            return refuse("%s", err.message);
    }
    return request->policy_count > 0 || refuse("--policy requires the name of a policy");
}

static bool parse_window(const char *text, sc_request *request)
{
    double from = 0, count = 0;
    const char *colon = text;
    if (strchr(text, ':') == NULL) return refuse("--window takes FROM:COUNT, not \"%s\"", text);
    if (!parse_integer("--window", text, ':', 0, 1e9, &from, &colon) ||
        !parse_integer("--window", colon + 1, '\0', 1, 1e9, &count, NULL))
        return false;
    request->window.from = (size_t)from;
    request->window.count = (size_t)count;
    return true;
}

static bool parse_restart(const char *text, sc_request *request)
{
    const char *comma = text;
    if (!parse_number("--restart-cost", text, ',', 0, 1e6, &request->restart.base_s, &comma)) return false;
    return *comma == '\0' ||
           parse_number("--restart-cost", comma + 1, '\0', 0, 1e6, &request->restart.per_doubling_s, NULL);
}

static bool parse_deadlines(const char *text, sc_request *request)
{
    const char *colon = text;
    if (strchr(text, ':') == NULL) return refuse("--deadlines takes A:B, not \"%s\"", text);
    if (!parse_number("--deadlines", text, ':', 1e-3, 1e6, &request->low, &colon) ||
        !parse_number("--deadlines", colon + 1, '\0', 1e-3, 1e6, &request->high, NULL))
        return false;
    return request->low <= request->high || refuse("--deadlines takes A:B with A <= B, not %s", text);
}

static bool parse_priority(const char *text, sc_request *request)
{
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
        text = end + 1;
    }
    return refuse("--priority takes A,F,S[,L[,DAYS]]");
}

static bool parse_limits(const char *text, sc_request *request)
{
    const char *comma = text;
    if (!parse_number("--limits", text, ',', 1e-3, 1e6, &request->limit_factor, &comma)) return false;
    return *comma == '\0' || parse_number("--limits", comma + 1, '\0', 0, 1e9, &request->limit_extra_s, NULL);
}

static bool parse_errors(const char *text, sc_request *request)
{
    request->has_errors = true;
    request->errors = strcmp(text, "total") == 0 ? SC_ERRORS_TOTAL : SC_ERRORS_SCALE;
    return strcmp(text, "total") == 0 || strcmp(text, "scale") == 0 ||
           refuse("--errors takes scale or total, not \"%s\"", text);
}

static bool parse_seed(const char *text, sc_request *request)
{
    char *end;
    errno = 0;
    request->seed = strtoull(text, &end, 10);
    return (end != text && *end == '\0' && errno == 0 && text[0] != '-') ||
           refuse("--seed: \"%s\" is not an integer", text);
}

enum {
    GPUS,
    CLUSTER,
    POLICY,
    ESTIMATE,
    FACTORS,
    ERRORS,
    WINDOW,
    LOAD,
    RESTART,
    SEED,
    JSON,
    PER_JOB,
    LOG,
    LIST,
    THROUGHPUTS,
    DEADLINES,
    IDLE,
    UPPER,
    LEARN,
    SWEEP,
    PREDICTOR,
    POWER,
    USER_LIMITS,
    LIMITS,
    ACCOUNTS,
    PRIORITY,
    PAIRS,
    STEPS,
    NOISE,
    OUTCOMES,
    START,
    HELP
};

static bool take(int option, char *value, sc_request *request)
{
    double number = 0;
    switch (option) {
    case GPUS:
        if (!parse_integer("--gpus", value, '\0', 1, 1 << 24, &number, NULL)) return false;
        request->gpus = (int)number;
        return true;
    case CLUSTER:
        request->cluster_path = value;
        return true;
    case POLICY:
        return parse_policies(value, request);
    case ESTIMATE:
        request->estimate = value;
        return true;
    case FACTORS:
        request->factors_path = value;
        return true;
    case ERRORS:
        return parse_errors(value, request);
    case WINDOW:
        return parse_window(value, request);
    case LOAD:
        return parse_number("--scale-load", value, '\0', 1e-6, 1e6, &request->window.load, NULL);
    case RESTART:
        return parse_restart(value, request);
    case START:
        request->restart.first = true;
        return true;
    case SEED:
        return parse_seed(value, request);
    case JSON:
        request->json = true;
        return true;
    case PER_JOB:
        request->jobs_path = value;
        return true;
    case LEARN:
        request->learns = true;
        return true;
    case IDLE:
        request->idle_path = value;
        return true;
    case UPPER:
        return parse_number("--upper", value, '\0', 1e-3, 1e3, &request->upper, NULL);
    case SWEEP:
        request->sweep_path = value;
        return true;
    case PREDICTOR:
        request->predictor_path = value;
        return true;
    case POWER:
        return parse_number("--power", value, '\0', 1, 1e12, &request->power_w, NULL);
    case USER_LIMITS:
        return parse_number("--user-limits", value, '\0', 1, 1e12, &request->most_limit_s, NULL);
    case LIMITS:
        return parse_limits(value, request);
    case ACCOUNTS:
        request->accounts_path = value;
        return true;
    case STEPS:
        request->steps_path = value;
        return true;
    case NOISE:
        request->noise_path = value;
        return true;
    case OUTCOMES:
        request->draws_outcomes = true;
        return strcmp(value, "philly") == 0 || refuse("--outcomes takes philly, not \"%s\"", value);
    case PAIRS:
        request->pairs_path = value;
        return true;
    case PRIORITY:
        return parse_priority(value, request);
    case DEADLINES:
        return parse_deadlines(value, request);
    case THROUGHPUTS:
        request->throughputs_path = value;
        return true;
    case LOG:
        request->log_path = value;
        return true;
    default:
        return false;
    }
}

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
                                  request->steps_path,       request->noise_path};
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
    if ((request->steps_path != NULL) != (request->noise_path != NULL))
        return refuse("--step-times and --gradient-noise require each other");
    if (request->restart.first && request->restart.base_s == 0 && request->restart.per_doubling_s == 0)
        return refuse("--start-cost requires --restart-cost");
    if (request->policy_count > 1 && request->jobs_path != NULL) return refuse("--per-job requires a single policy");
    if (request->policy_count > 1 && request->log_path != NULL) return refuse("--log requires a single policy");
    return true;
}

bool sc_read_options(int argc, char **argv, sc_request *out_request, int *out_status)
{
    static const struct option options[] = {{"gpus", required_argument, NULL, GPUS},
                                            {"cluster", required_argument, NULL, CLUSTER},
                                            {"policy", required_argument, NULL, POLICY},
                                            {"estimate", required_argument, NULL, ESTIMATE},
                                            {"factors", required_argument, NULL, FACTORS},
                                            {"errors", required_argument, NULL, ERRORS},
                                            {"window", required_argument, NULL, WINDOW},
                                            {"scale-load", required_argument, NULL, LOAD},
                                            {"restart-cost", required_argument, NULL, RESTART},
                                            {"start-cost", no_argument, NULL, START},
                                            {"seed", required_argument, NULL, SEED},
                                            {"json", no_argument, NULL, JSON},
                                            {"per-job", required_argument, NULL, PER_JOB},
                                            {"throughputs", required_argument, NULL, THROUGHPUTS},
                                            {"deadlines", required_argument, NULL, DEADLINES},
                                            {"idle", required_argument, NULL, IDLE},
                                            {"upper", required_argument, NULL, UPPER},
                                            {"learn", no_argument, NULL, LEARN},
                                            {"sweep", required_argument, NULL, SWEEP},
                                            {"predictor", required_argument, NULL, PREDICTOR},
                                            {"power", required_argument, NULL, POWER},
                                            {"user-limits", required_argument, NULL, USER_LIMITS},
                                            {"limits", required_argument, NULL, LIMITS},
                                            {"accounts", required_argument, NULL, ACCOUNTS},
                                            {"pairs", required_argument, NULL, PAIRS},
                                            {"step-times", required_argument, NULL, STEPS},
                                            {"gradient-noise", required_argument, NULL, NOISE},
                                            {"outcomes", required_argument, NULL, OUTCOMES},
                                            {"priority", required_argument, NULL, PRIORITY},
                                            {"log", required_argument, NULL, LOG},
                                            {"list", no_argument, NULL, LIST},
                                            {"help", no_argument, NULL, HELP},
                                            {0}};
    *out_request = (sc_request){.seed = 1};
    *out_status = SC_EXIT_USAGE;
    bool is_right = true;
    opterr = 0; /* getopt would repeat unprintable characters */
    for (int option; is_right && (option = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (option == LIST || option == HELP) {
            if (option == LIST)
                list_policies();
            else
                printf("%s\n%s", usage, help);
            *out_status = SC_EXIT_OK;
            return false;
        }
        is_right = option != '?' ? take(option, optarg, out_request)
                                 : refuse("%s: unknown option, or its value is missing", argv[optind - 1]);
    }
    if (is_right && argc - optind > 1) is_right = refuse("expected one trace");
    if (is_right && argc - optind == 1) out_request->trace_path = argv[optind];
    if (is_right) is_right = check(out_request);
    if (!is_right) fputs(usage, stderr);
    return is_right;
}
