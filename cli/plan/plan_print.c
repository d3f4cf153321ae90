/* plan_print.c — prints a plan: a table of the Pareto front and a recommendation with its reason, or JSON. */
#include "base/text.h"
#include "base/training/prediction_json.h"
#include "cli/plan/plan_request.h"
#include "cli/report/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

typedef struct small_cell {
    char text[48];
} small_cell;

static const char *hours_text(small_cell *out, double hours)
{
    if (hours >= 48)
        snprintf(out->text, sizeof out->text, "%.1f d", hours / 24);
    else if (hours >= 1)
        snprintf(out->text, sizeof out->text, "%.1f h", hours);
    else
        snprintf(out->text, sizeof out->text, hours < 1.0 / 6 ? "%.0f s" : "%.0f min",
                 hours * (hours < 1.0 / 6 ? 3600 : 60));
    return out->text;
}

static bool has_total(const plan_request *r) { return r->run.samples > 0; }
static bool has_goal(const plan_request *r) { return r->run.deadline_hours > 0 || r->run.budget > 0; }

static const char *micro_batch(cell *out, const mdot_configuration *c)
{
    uint32_t micro = c->micro_batches > 0 ? c->micro_batches : 1, passes = c->accumulate > 1 ? c->accumulate : micro;
    snprintf(out->text, sizeof out->text, "%" PRId64 " x %u", c->batch / micro, passes);
    return out->text;
}

enum column { GPU, COUNT, PARALLEL, LISTED, MICRO, RECOMPUTE, MEMORY, STEP, RATE, TIME, RANGE, COST, CHANCE, COLUMNS };
typedef cell line[COLUMNS];

/* The options of which the command line lists several values, as "precision, offload"; or the values in a layout. */
static void listed(const plan_request *r, const mdot_configuration *c, cell *out)
{
    bs_join list;
    bs_join_begin(&list, out->text, sizeof out->text);
    for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
        const rt_option *option = &rt_options[i];
        bool is_listed = false;
        for (size_t k = 0; k < r->lists.count; k++)
            is_listed = is_listed || strcmp(r->lists.item[k].option->name, option->command) == 0;
        if (!is_listed) continue;
        if (c == NULL)
            bs_join_add(&list, "%s", option->command);
        else if (option->kind == RT_KIND_CHOICE)
            bs_join_add(&list, "%s", option->choices[(int)rt_option_get(c, option)]);
        else
            bs_join_add(&list, "%g", rt_option_get(c, option));
    }
}

static void fill_line(const plan_request *r, const plan_answers *answers, const plan_row *row, line out)
{
    const mdot_configuration *c = &row->layout.configuration;
    const mdot_prediction *p = &row->layout.prediction;
    double unit = answers->tokens_per_sample > 0 ? answers->tokens_per_sample : 1;
    small_cell first, second;
    snprintf(out[GPU].text, sizeof out->text, "%s", c->gpu_spec->name);
    snprintf(out[COUNT].text, sizeof out->text, "%d", c->gpu_count);
    if (*plan_degrees(c, &out[PARALLEL]) == '\0') strcpy(out[PARALLEL].text, "dp=1");
    listed(r, c, &out[LISTED]);
    micro_batch(&out[MICRO], c);
    snprintf(out[RECOMPUTE].text, sizeof out->text, "%s", rt_recompute_names[c->recompute]);
    snprintf(out[MEMORY].text, sizeof out->text, "%.1f", (double)p->reserved_bytes / CLI_GIB);
    snprintf(out[STEP].text, sizeof out->text, "%.*f", p->step_ms < 100 ? 1 : 0, p->step_ms);
    cli_short_number(row->layout.samples * unit * 1000 / p->step_ms, out[RATE].text);
    snprintf(out[TIME].text, sizeof out->text, "%s", hours_text(&first, row->cost.hours));
    snprintf(out[RANGE].text, sizeof out->text, "%s to %s", hours_text(&first, row->cost.lower_hours),
             hours_text(&second, row->cost.upper_hours));
    snprintf(out[COST].text, sizeof out->text, "%.*f", row->money < 100 ? 2 : 0, row->money);
    snprintf(out[CHANCE].text, sizeof out->text, "%.0f %%", 100 * fmin(row->cost.in_time, row->cost.in_budget));
}

const char *plan_name_row(const plan_row *row, cell *out)
{
    const mdot_configuration *c = &row->layout.configuration;
    cell text;
    plan_degrees(c, &text);
    snprintf(out->text, sizeof out->text, "%d %s %.120s", c->gpu_count, c->gpu_spec->name,
             *text.text != '\0' ? text.text : "dp=1");
    return out->text;
}

static void write_cell(FILE *out, const char *text, bool is_head)
{
    fprintf(out, "<t%c>", is_head ? 'h' : 'd');
    report_text(out, text);
    fprintf(out, "</t%c>", is_head ? 'h' : 'd');
}

static void print_table(FILE *out, const plan_request *r, const plan_answers *answers, bool is_html)
{
    static const line titles = {{"GPU"},           {"GPUs"}, {"parallel"}, {""}, {"micro-batch"},
                                {"recompute"},     {"GiB"},  {"step ms"},  {""}, {"time"},
                                {"90 % interval"}, {""},     {"chance"}};
    int widths[COLUMNS];
    bool is_shown[COLUMNS];
    line heads;
    memcpy(heads, titles, sizeof heads);
    snprintf(heads[RATE].text, sizeof heads->text, "%s/s", answers->tokens_per_sample > 0 ? "tokens" : "samples");
    snprintf(heads[COST].text, sizeof heads->text, "%s", answers->has_prices ? "cost" : "GPU-hours");
    listed(r, NULL, &heads[LISTED]);
    for (int c = 0; c < COLUMNS; c++) {
        widths[c] = (int)strlen(heads[c].text);
        is_shown[c] = c < TIME || has_total(r);
    }
    is_shown[LISTED] = widths[LISTED] > 0;
    is_shown[CHANCE] = has_goal(r);
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < answers->count + (size_t)pass; i++) {
            line cells;
            bool is_head = pass == 1 && i == 0;
            const plan_row *row = is_head ? NULL : &answers->rows[i - (size_t)pass];
            bool shows_front = r->top == 1 && has_total(r);
            if (!is_head && shows_front && !row->is_front && row != answers->recommended) continue;
            if (is_head)
                memcpy(cells, heads, sizeof cells);
            else
                fill_line(r, answers, row, cells);
            if (pass == 1 && is_html)
                fputs(row != NULL && row == answers->recommended ? "<tr class=\"best\">" : "<tr>", out);
            for (int c = 0; c < COLUMNS; c++) {
                int length = (int)strlen(cells[c].text);
                if (pass == 0 && length > widths[c]) widths[c] = length;
                bool is_left = c == GPU || c == PARALLEL || c == LISTED || c == RECOMPUTE || c == RANGE;
                if (pass == 0 || !is_shown[c]) continue;
                if (is_html)
                    write_cell(out, cells[c].text, is_head);
                else
                    fprintf(out, "%s%*s", c > 0 ? "  " : "", is_left ? -widths[c] : widths[c], cells[c].text);
            }
            if (pass == 0) continue;
            bool is_marked = !is_html && row != NULL && has_total(r) && row == answers->recommended;
            fputs(is_html ? "</tr>\n" : is_marked ? "  <\n" : "\n", out);
        }
}

void plan_write_rows(FILE *out, const plan_request *r, const plan_answers *answers)
{
    print_table(out, r, answers, true);
}

/* Another number of the recommended GPU model: the next smaller or larger one, or the smallest that meets the goal. */
typedef enum other { SMALLER, LARGER, FEWEST } other;

static const plan_row *find_other(const plan_answers *answers, other kind)
{
    const plan_row *best = answers->recommended, *found = NULL;
    int known = best->layout.configuration.gpu_count, nearest = 0;
    for (size_t i = 0; i < answers->count; i++) {
        const plan_row *row = &answers->rows[i];
        int gpus = row->layout.configuration.gpu_count;
        bool is_other = kind == LARGER ? gpus > known : gpus < known && (kind == SMALLER || row->is_eligible);
        if (row->layout.gpu_model != best->layout.gpu_model || !is_other) continue;
        if (found != NULL && (kind == SMALLER ? gpus <= nearest : gpus >= nearest)) continue;
        found = row;
        nearest = gpus;
    }
    return found;
}

static void print_neighbour(const plan_request *r, const plan_answers *answers, const plan_row *row, const char *remark)
{
    const plan_row *best = answers->recommended;
    small_cell time;
    if (row == NULL) return;
    int gpus = row->layout.configuration.gpu_count;
    double more = 100 * (row->money / best->money - 1);
    const char *money = answers->has_prices ? "money" : "GPU-hours";
    printf("; %d%s ", gpus, remark);
    if (has_goal(r) && !row->is_eligible && best->is_eligible)
        printf("miss the goal (%s, a chance of %.0f %%)", hours_text(&time, row->cost.hours),
               100 * fmin(row->cost.in_time, row->cost.in_budget));
    else if (fabs(more) < 1)
        printf("take %s and the same %s within 1 %%", hours_text(&time, row->cost.hours), money);
    else
        printf("take %s and %.*f %% %s %s", hours_text(&time, row->cost.hours), fabs(more) < 10 ? 1 : 0, fabs(more),
               more < 0 ? "less" : "more", money);
}

static void print_recommendation(const plan_request *r, const plan_answers *answers)
{
    const plan_row *best = answers->recommended;
    const mdot_configuration *c = &best->layout.configuration;
    small_cell time, low, high;
    printf("\n%d %s: %s (%s to %s), ", c->gpu_count, c->gpu_spec->name, hours_text(&time, best->cost.hours),
           hours_text(&low, best->cost.lower_hours), hours_text(&high, best->cost.upper_hours));
    printf("%s", report_number(best->money, low.text));
    if (answers->has_prices)
        printf(" (%s to %s)", report_number(best->cost.lower_cost, low.text),
               report_number(best->cost.upper_cost, high.text));
    else
        printf(" GPU-hours");
    if (best->cost.kwh > 0) printf(", %s kWh", report_number(best->cost.kwh, low.text));
    if (best->cost.co2_kg > 0) printf(", %s kg of CO2", report_number(best->cost.co2_kg, low.text));
    if (has_goal(r))
        printf(best->is_eligible ? ": the cheapest with a chance of %.0f %% or more"
                                 : ": no layout meets the goal with a chance of %.0f %%; this one comes nearest",
               100 * r->confidence);
    else
        printf(": the cheapest");
    const plan_row *smaller = find_other(answers, SMALLER), *least = has_goal(r) ? find_other(answers, FEWEST) : NULL;
    if (best->is_eligible) print_neighbour(r, answers, least, ", the fewest with such a chance,");
    if (least != smaller || !best->is_eligible) print_neighbour(r, answers, smaller, "");
    print_neighbour(r, answers, find_other(answers, LARGER), "");
    puts(".");
    if (answers->has_prices && r->prices.has_origins) {
        fputs("The price is ", stdout);
        cli_print_price(&r->prices, c->gpu_spec->name);
        puts(" for a GPU.");
    }
    const mdot_training_cost *k = &best->cost;
    const struct part {
        const char *name;
        double hours;
    } parts[] = {{"evaluations", k->evaluation_hours},
                 {"checkpoints", k->checkpoint_hours},
                 {"failures", k->failure_hours},
                 {"start", k->startup_hours}};
    enum { CHECKPOINTS = 1 }; /* among the parts */
    const char *between = NULL;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (parts[i].hours <= 0) continue;
        if (between == NULL) printf("Beside %s of steps: ", hours_text(&time, k->step_hours));
        printf("%s%s %s", between != NULL ? between : "", parts[i].name, hours_text(&low, parts[i].hours));
        between = ", ";
        if (i == CHECKPOINTS && k->checkpoint_minutes > 0)
            printf(" (every %s)", hours_text(&high, k->checkpoint_minutes / 60));
    }
    if (between != NULL) puts(".");
    if (c->pipeline_parallel > 1)
        printf("Pipeline stages wait for %.0f %% of the step.\n", 100 * best->layout.pipeline_share);
    if (answers->calibrated_rows > 0)
        printf("Calibrated by %zu measured step%s.\n  ", answers->calibrated_rows,
               answers->calibrated_rows == 1 ? "" : "s");
    else
        printf("One measured step narrows the interval most: time this layout, and add --measured.\n  ");
    plan_print_command(r, answers, best);
}

static void print_counts(const plan_answers *answers)
{
    const mdot_plan_info *s = &answers->search;
    printf("%" PRIu64 " layouts priced; left out: %" PRIu64 " exceed the memory, %" PRIu64
           " do not divide the batch, %" PRIu64 " cannot run\n",
           s->priced, s->too_large, s->indivisible, s->refused);
}

static void print_json_row(const plan_request *r, const plan_answers *answers, const plan_row *row)
{
    cli_json_layout(stdout, &row->layout, &row->cost, answers->has_prices);
    fputs(", ", stdout);
    cli_json_price(stdout, &r->prices, row->layout.configuration.gpu_spec->name);
    printf("\"is_front\": %s, \"is_recommended\": %s}", row->is_front ? "true" : "false",
           row == answers->recommended ? "true" : "false");
}

static void print_json(const plan_request *r, const plan_answers *answers)
{
    const mdot_plan_info *s = &answers->search;
    printf("{\"schema\": \"mdot-plan/1\", \"mdot\": \"%s\",\n \"job\": ", mdot_version());
    cli_json_string(stdout, r->job_path);
    printf(", \"parameters\": %.0f, \"tokens_of_a_sample\": %.0f,\n \"priced\": %" PRIu64 ", \"too_large\": %" PRIu64
           ", \"indivisible\": %" PRIu64 ", \"refused\": %" PRIu64 ",\n \"layouts\": [",
           answers->info.parameters, answers->tokens_per_sample, s->priced, s->too_large, s->indivisible, s->refused);
    for (size_t i = 0; i < answers->count; i++) {
        printf("%s\n  ", i == 0 ? "" : ",");
        print_json_row(r, answers, &answers->rows[i]);
    }
    printf("\n ]}\n");
}

void plan_print(const plan_request *r, const plan_answers *answers)
{
    char parameters[CLI_PARAMETERS_SIZE];
    cli_text name, number;
    if (r->json) {
        print_json(r, answers);
        return;
    }
    printf("%s: %s", cli_printable(&name, r->job_path), cli_parameters(&answers->info, parameters));
    if (answers->tokens_per_sample > 0) printf(", %.0f tokens in a sample", answers->tokens_per_sample);
    if (r->run.samples > 0)
        printf(", %s%s to train on", cli_short_number(r->tokens > 0 ? (double)r->tokens : r->run.samples, number.text),
               r->tokens > 0 ? "" : " samples");
    if (answers->count > 0) {
        const mdot_configuration *c = &answers->rows[0].layout.configuration;
        bool is_left = c->precision == MDOT_PRECISION_PYTORCH;
        if (r->global_batch > 0) printf(", %" PRId64 " samples in a step", r->global_batch);
        printf("; %s, %s\n\n", rt_precision_names[is_left ? cli_choices_of(answers->job).precision : c->precision],
               rt_optimizer_names[c->optimizer]);
        print_table(stdout, r, answers, false);
        if (has_total(r)) print_recommendation(r, answers);
    } else {
        printf("\n\n%s\n",
               answers->search.too_large > 0
                   ? "No layout fits: use more GPUs, GPUs with more memory, --offload, or a smaller precision."
                   : "No layout divides the global batch: use another one, or fewer GPUs.");
    }
    print_counts(answers);
}
