/* cmd_converge.c — `mdot converge`: steps to a target loss, from a table of losses. */
#include "base/csv.h"
#include "cli/cli.h"
#include "mdot/mdot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { MAX_TABLE_BYTES = 1 << 26 };

typedef struct converge_request {
    double target;
    const char *step, *loss; /* columns; NULL: by endings of their names */
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
        printf("  target      %s %.6g, from %zu points to %s %.15g\n  steps       %s%s, 90 %% interval %s to %s%s\n"
               "  reached     in %.0f %% of the resampled fits\n"
               "  fit         approaches the loss %.4g, as steps^-%.2g\n",
               r->loss, r->target, count, r->step, last_step, steps, isinf(c->steps) ? ", by this fit" : "", lower,
               upper, c->upper_steps <= last_step ? ": the curve has reached it" : "", 100 * c->reach_probability,
               c->asymptote, c->exponent);
}

/* Finds the column that the user names, or else the only one that ends with the first ending that any column has. */
static mdot_status find(const bs_csv *csv, const char *option, const char *const *endings, const char *chosen,
                        int *out_column, mdot_error *err)
{
    if (chosen != NULL) return bs_csv_need(csv, chosen, out_column, err);
    *out_column = bs_csv_find(csv, endings[0]);
    for (size_t found = 0; *endings != NULL && *out_column == BS_CSV_ABSENT; endings++, found = 0)
        for (int column = 0; column < csv->header_count; column++) {
            const char *name = csv->header[column];
            size_t bytes = strlen(name), end = strlen(*endings);
            if (bytes < end || strcasecmp(name + bytes - end, *endings) != 0) continue;
            if (found++ > 0)
                return mdot_fail(err, MDOT_MALFORMED, "%s: %s and %s may be the %s; choose one with --%s", csv->path,
                                 csv->header[*out_column], name, option, option);
            *out_column = column;
        }
    if (*out_column != BS_CSV_ABSENT) return MDOT_OK;
    return mdot_fail(err, MDOT_MALFORMED,
                     "%s: no column %s; name its column with --%s. The first, up to a \"%c\", is \"%s\"", csv->path,
                     option, option, csv->separator, csv->header[0]);
}

/* Reads the row's step and loss behind `count` others; *io_is_lost is whether the last loss is not a number. */
static mdot_status read_point(const bs_csv *csv, const int at[2], double *steps, double *losses, size_t *io_count,
                              bool *io_is_lost, mdot_error *err)
{
    double *step = &steps[*io_count];
    if (csv->field[at[0]][0] == '\0' || csv->field[at[1]][0] == '\0') return MDOT_OK; /* a row of another metric */
    if ((*io_is_lost = !isfinite(atof(csv->field[at[1]])))) return MDOT_OK;           /* one step of mixed precision */
    BS_TRY(bs_csv_number(csv, at[0], 0, 1e18, step, err));
    if (*io_count > 0 && *step <= step[-1])
        return bs_csv_fail(csv, err, MDOT_MALFORMED,
                           "step %.15g behind %.15g; delete rows that a resumed run repeats, or name a column that "
                           "counts through all epochs with --step",
                           *step, step[-1]);
    if (atof(csv->field[at[1]]) < 0)
        return bs_csv_fail(csv, err, MDOT_MALFORMED, "a negative loss; add a constant to losses and --target");
    return bs_csv_number(csv, at[1], 0, 1e18, &losses[(*io_count)++], err);
}

/* Reads steps and losses, asks, and prints the answer. */
static mdot_status converge(converge_request *r, const char *path, mdot_error *err)
{
    bs_csv csv;
    mdot_error reason;
    mdot_convergence convergence = MDOT_INIT(mdot_convergence);
    static const char *const steps_end[] = {"step", "steps", "iteration", "iter", "epoch", NULL},
                             *const losses_end[] = {"loss", "value", "loss_step", NULL};
    int at[2] = {0};
    bool is_row, is_lost = false;
    size_t count = 0;
    BS_TRY(bs_csv_open(path, MAX_TABLE_BYTES, NULL, &csv, err));
    double *steps = calloc(csv.line_count, sizeof *steps), *losses = calloc(csv.line_count, sizeof *losses);
    mdot_status status = steps == NULL || losses == NULL ? mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL) : MDOT_OK;
    if (status == MDOT_OK) status = find(&csv, "step", steps_end, r->step, &at[0], err);
    if (status == MDOT_OK) status = find(&csv, "loss", losses_end, r->loss, &at[1], err);
    while (status == MDOT_OK && (status = bs_csv_next(&csv, &is_row, err)) == MDOT_OK && is_row)
        status = read_point(&csv, at, steps, losses, &count, &is_lost, err);
    if (status == MDOT_OK && is_lost)
        status = mdot_fail(err, MDOT_MALFORMED, "%s: the last loss is not a number; the training has diverged", path);
    if (status == MDOT_OK) {
        status = mdot_steps_to_loss(steps, losses, count, r->target, &convergence, &reason);
        if (status != MDOT_OK) mdot_fail(err, status, "%s: %s", path, reason.message);
    }
    if (status == MDOT_OK) {
        r->step = csv.header[at[0]], r->loss = csv.header[at[1]];
        print(r, &convergence, count, steps[count - 1]);
    }
    bs_csv_close(&csv);
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
    CLI_VALUE_ROW(CLI_TEXT, "step", "COLUMN", converge_request, step, "the steps' column"),
    CLI_VALUE_ROW(CLI_TEXT, "loss", "COLUMN", converge_request, loss, "the losses' column"),
    CLI_JSON_OPTION(converge_request, json, "print everything as JSON; null is never"),
};
const cli_command cli_converge = {
    .name = "converge",
    .summary = "predict the steps to a target loss from a curve's beginning",
    .synopsis = "LOSSES.csv --target LOSS [OPTION…]",
    .description =
        "Fits curves to the columns that end with step, iteration or epoch, and with loss or value: at least 10 rows "
        "in order of steps. The answer has a 90 % interval, which assumes that the training goes on as before: no "
        "later "
        "change of the learning rate or of the batch. \"never\" means that the fitted curve stays above the target.",
    CLI_OPTIONS(options),
    .exit_status = "0 success, also for \"never\"; 1 failure, 2 usage error",
    .files = "csv",
    .run = run,
};
