/* cmd_converge.c — `mdot converge`: steps to a target loss, from a table of losses. */
#include "base/csv.h"
#include "cli/cli.h"
#include "mdot/mdot.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_TABLE_BYTES = 1 << 26 };

typedef struct converge_request {
    double target;
    bool json;
} converge_request;

static const char *number_or(double value, const char *otherwise, char out[32])
{
    snprintf(out, 32, "%.*f", value < 100 ? 1 : 0, value);
    return isinf(value) ? otherwise : out;
}

static void print(const converge_request *r, const mdot_convergence *c, size_t count, double last_step)
{
    char texts[3][32];
    const char *never = r->json ? "null" : "never", *steps = number_or(c->steps, never, texts[0]),
               *lower = number_or(c->lower_steps, never, texts[1]), *upper = number_or(c->upper_steps, never, texts[2]);
    if (r->json)
        printf(
            "{\"schema\": \"mdot-converge/1\", \"target\": %.9g, \"points\": %zu, \"last_step\": %.15g, \"steps\": %s, "
            "\"lower_steps\": %s, \"upper_steps\": %s, \"reach_probability\": %.9g, \"asymptote\": %.9g, "
            "\"exponent\": %.9g}\n",
            r->target, count, last_step, steps, lower, upper, c->reach_probability, c->asymptote, c->exponent);
    else
        printf("  target      loss %.6g, from %zu points to step %.15g\n  steps       %s%s, 90 %% interval %s to %s%s\n"
               "  reached     in %.0f %% of the resampled fits\n"
               "  fit         approaches the loss %.4g, as steps^-%.2g\n",
               r->target, count, last_step, steps, isinf(c->steps) ? ", by this fit" : "", lower, upper,
               c->upper_steps <= last_step ? ": the curve has reached it" : "", 100 * c->reach_probability,
               c->asymptote, c->exponent);
}

/* Reads the columns step and loss, asks, and prints the answer. */
static mdot_status converge(const converge_request *r, const char *path, mdot_error *err)
{
    bs_csv csv;
    mdot_error reason;
    mdot_convergence convergence = MDOT_INIT(mdot_convergence);
    int step, loss;
    bool is_row;
    size_t count = 0;
    BS_TRY(bs_csv_open(path, MAX_TABLE_BYTES, NULL, &csv, err));
    double *steps = calloc(csv.line_count, sizeof *steps), *losses = calloc(csv.line_count, sizeof *losses);
    mdot_status status = MDOT_OK;
    if (steps == NULL || losses == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "step", &step, err);
    if (status == MDOT_OK) status = bs_csv_need(&csv, "loss", &loss, err);
    while (status == MDOT_OK && (status = bs_csv_next(&csv, &is_row, err)) == MDOT_OK && is_row) {
        status = bs_csv_number(&csv, step, 0, 1e18, &steps[count], err);
        if (status == MDOT_OK) status = bs_csv_number(&csv, loss, 0, 1e18, &losses[count++], err);
    }
    bs_csv_close(&csv);
    if (status == MDOT_OK) {
        status = mdot_steps_to_loss(steps, losses, count, r->target, &convergence, &reason);
        if (status != MDOT_OK) mdot_fail(err, status, "%s: %s", path, reason.message);
    }
    if (status == MDOT_OK) print(r, &convergence, count, steps[count - 1]);
    free(steps);
    free(losses);
    return status;
}

static int run(int argc, char **argv)
{
    converge_request request = {0};
    cli_operands operands;
    mdot_error err = {0};
    int usage;
    if (!cli_read_line(&cli_converge, argc, argv, &request, &operands, &usage)) return usage;
    if (operands.count != 1 || request.target == 0)
        return cli_usage_error("converge", "expected one table of losses and --target LOSS");
    if (converge(&request, operands.item[0], &err) != MDOT_OK) return cli_report("converge", &err);
    return CLI_OK;
}

static const cli_option options[] = {
    CLI_VALUE_ROW(CLI_REAL, "target", "LOSS", converge_request, target, "the loss to reach", .most = INT64_C(1) << 40),
    CLI_JSON_OPTION(converge_request, json, "print everything as JSON; null is never"),
};
const cli_command cli_converge = {
    .name = "converge",
    .summary = "predict the steps to a target loss from a curve's beginning",
    .synopsis = "LOSSES.csv --target LOSS [--json]",
    .description =
        "Fits curves to a table with the columns step and loss, at least 10 rows in order of steps. The answer has a "
        "90 % interval, which assumes that the training goes on as before: no later change of the learning rate or of "
        "the batch. \"never\" means that the fitted curve stays above the target.",
    CLI_OPTIONS(options),
    .exit_status = "0 success, also for \"never\"; 1 failure, 2 usage error",
    .files = "csv",
    .run = run,
};
