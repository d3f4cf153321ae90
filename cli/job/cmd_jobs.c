/* cmd_jobs.c — `mdot jobs`: list the ready jobs, which commands take by name. */
#include "cli/cli.h"
#include "mdot/mdotjob.h"

#include <inttypes.h>
#include <string.h>

typedef struct jobs_request {
    bool json;
    const char *text; /* names must contain it; NULL: all names */
    size_t shown;
} jobs_request;

static void print_row(void *user, const mdot_ready_job *job)
{
    jobs_request *request = user;
    char parameters[16], length[24] = "";
    if (request->text != NULL && strcasestr(job->name, request->text) == NULL) return;
    bool is_first = request->shown++ == 0;
    if (request->json) {
        cli_json_member(stdout, is_first ? "{\"schema\": \"mdot-jobs/1\", \"jobs\": [\n  {" : ",\n  {", "name",
                        job->name);
        printf(", \"parameters\": %.0f, \"length\": %" PRId64, job->parameters, job->length);
        cli_json_member(stdout, ", ", "title", job->title);
        putchar('}');
        return;
    }
    if (job->length > 0) snprintf(length, sizeof length, "%" PRId64, job->length);
    if (is_first) printf("%-30s %10s %7s  %s\n", "job", "parameters", "length", "network");
    printf("%-30s %10s %7s  %s\n", job->name, cli_short_number(job->parameters, parameters), length, job->title);
}

static int run(int argc, char **argv)
{
    jobs_request request = {0};
    cli_operands operands;
    mdot_error err = {0};
    int usage;
    if (!cli_read_line(&cli_jobs, argc, argv, &request, &operands, &usage)) return usage;
    if (operands.count > 1) return cli_usage_error("jobs", "expected at most one text to search for");
    if (operands.count == 1) request.text = operands.item[0];
    if (mdot_ready_jobs(print_row, &request, &err) != MDOT_OK) return cli_report("jobs", &err);
    if (request.shown == 0) {
        cli_message("jobs",
                    "no name contains \"%s\"; `mdot jobs` lists all. `mdot export` makes a job from other models",
                    request.text != NULL ? request.text : "");
        return CLI_FAILED;
    }
    if (request.json) printf("\n ]}\n");
    return CLI_OK;
}

static const cli_option options[] = {
    CLI_JSON_OPTION(jobs_request, json, "print everything as JSON"),
};
const cli_command cli_jobs = {
    .name = "jobs",
    .summary = "list the ready jobs, which other commands take by name",
    .synopsis = "[TEXT] [--json]",
    .description = "Lists the networks that ship with mdot: `mdot predict resnet50 --gpu H100` needs no file. With "
                   "TEXT, it lists the names that contain TEXT. The column length has the default of a symbolic "
                   "length, for example tokens per sequence; `--dim length=N` selects another one.",
    CLI_OPTIONS(options),
    .exit_status = "0 success, 1 failure or no name, 2 usage error",
    .run = run,
};
