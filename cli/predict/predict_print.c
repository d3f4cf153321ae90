/* predict_print.c — prints the answers of `mdot predict`: a paragraph for one prediction, a table for several, or
 * JSON. */
#include "base/text.h"
#include "base/training/prediction_json.h"
#include "cli/predict/predict_request.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define JOULES_PER_KWH 3.6e6

/* In bit order. */
static const uint32_t warnings[] = {
#define WARNING(id, bit, name, text) MDOT_WARN_##id,
    MDOT_WARNING_MAP(WARNING)
#undef WARNING
};
enum { WARNING_COUNT = sizeof warnings / sizeof warnings[0] };

typedef struct cell {
    char text[128];
} cell;

static const char *number(cell *out, double value)
{
    snprintf(out->text, sizeof out->text, "%.*f", predict_decimals(value), value);
    return out->text;
}

/* Formats "830 ms", "45.0 s", "12 min 5 s", "3 h 20 min" or "4 d 7 h": the two largest units. */
static const char *duration(cell *out, double seconds)
{
    static const struct {
        double seconds;
        const char *large, *small;
        double small_seconds;
    } units[] = {{86400, "d", "h", 3600}, {3600, "h", "min", 60}, {60, "min", "s", 1}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        double whole = round(seconds / units[i].small_seconds) * units[i].small_seconds;
        if (whole < 2 * units[i].seconds) continue;
        double large = floor(whole / units[i].seconds);
        snprintf(out->text, sizeof out->text, "%.0f %s %.0f %s", large, units[i].large,
                 (whole - large * units[i].seconds) / units[i].small_seconds, units[i].small);
        return out->text;
    }
    if (seconds < 1) {
        cell ms;
        snprintf(out->text, sizeof out->text, "%.*s ms", 16, number(&ms, 1000 * seconds));
    } else {
        snprintf(out->text, sizeof out->text, "%.1f s", seconds);
    }
    return out->text;
}

static const char *warning_words(cell *out, uint32_t bits)
{
    bs_join list;
    bs_join_begin(&list, out->text, sizeof out->text);
    for (int i = 0; i < WARNING_COUNT; i++)
        if ((bits & warnings[i]) != 0) bs_join_add(&list, "%s", mdot_warning_name(warnings[i]));
    return out->text;
}

static uint32_t all_warnings(const predict_answers *answers)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < answers->count; i++) bits |= cli_shown_warnings(&answers->predictions[i]);
    return bits;
}

/* Prints ": Loop, SequenceEmpty; 12 % of the work". At most MOST different types are listed. */
static void explain_unknown(const predict_answers *answers)
{
    enum { MOST = 4 };
    const char *seen[MOST]; /* borrowed from the job */
    int named = 0;
    for (size_t i = 0; i < answers->job.operator_count && named <= MOST; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        mdot_job_get_operator(answers->first_job, i, &op);
        int used = 0;
        while (used < named && strcmp(seen[used], op.type) != 0) used++;
        if (op.traits.number != 0 || used < named) continue;
        cli_text type;
        if (named < MOST) {
            seen[named] = op.type;
            fprintf(stderr, "%s%s", named == 0 ? ": " : ", ", cli_printable(&type, op.type));
        }
        named++;
    }
    if (named > MOST) fputs(" and others", stderr);
    fprintf(stderr, "; %.0f %% of its work", 100 * answers->predictions[0].unknown_share);
}

static size_t count_touched(const predict_answers *answers, uint32_t warning)
{
    size_t touched = 0;
    for (size_t i = 0; i < answers->count; i++)
        touched += (cli_shown_warnings(&answers->predictions[i]) & warning) != 0;
    return touched;
}

/* Prints the bounds that implausible predictions break, with counts if there are several kinds. */
static void explain_implausible(const predict_answers *answers)
{
    enum {
#define LAST(id, number, name, text) MOST_##id = (number),
        MDOT_IMPLAUSIBLE_MAP(LAST)
#undef LAST
            KINDS
    };
    size_t counts[KINDS] = {0}, kinds = 0;
    for (size_t i = 0; i < answers->count; i++)
        if (answers->predictions[i].implausible < KINDS) counts[answers->predictions[i].implausible]++;
    for (uint32_t kind = 1; kind < KINDS; kind++) kinds += counts[kind] > 0;
    const char *gap = ": ";
    for (uint32_t kind = 1; kind < KINDS; kind++) {
        if (counts[kind] == 0) continue;
        fputs(gap, stderr);
        if (kinds > 1) fprintf(stderr, "%zu times ", counts[kind]);
        fputs(mdot_implausible_text(kind), stderr);
        gap = "; ";
    }
}

/* Prints each warning kind once, with the number of affected predictions. Reasons for leaving the measured data share
 * one line, because they often come together. */
static void explain_warnings(const predict_answers *answers)
{
    uint32_t bits = all_warnings(answers), reasons = bits & MDOT_WARN_OUTSIDE_REASONS;
    bool begun = false;
    for (int w = 0; w < WARNING_COUNT; w++) {
        if ((bits & warnings[w]) == 0) continue;
        bool is_reason = (warnings[w] & MDOT_WARN_OUTSIDE_REASONS) != 0, continues = is_reason && begun;
        if (!continues) fputs("mdot predict: warning: ", stderr);
        if (continues) fputs("; ", stderr);
        fputs(mdot_warning_name(warnings[w]), stderr);
        size_t touched = count_touched(answers, warnings[w]);
        if (answers->count > 1) fprintf(stderr, " (%zu of %zu predictions)", touched, answers->count);
        if (warnings[w] == MDOT_WARN_IMPLAUSIBLE)
            explain_implausible(answers);
        else
            fprintf(stderr, ": %s", mdot_warning_text(warnings[w]));
        if (warnings[w] == MDOT_WARN_UNKNOWN_OPERATOR) explain_unknown(answers);
        begun = begun || is_reason;
        reasons &= ~warnings[w];
        if (!is_reason || reasons == 0) fputc('\n', stderr);
    }
}

/* Names the options for several GPUs that the command line gives to one. */
static void explain_ignored(const predict_answers *answers)
{
    char names[160];
    bs_join list;
    bs_join_begin(&list, names, sizeof names);
    for (size_t i = 0; i < answers->count; i++)
        if (cli_gpu_count(&answers->configurations[i]) > 1) return;
    for (size_t i = 0; i < RT_OPTION_COUNT; i++)
        if (rt_options[i].section >= RT_SECTION_CLUSTER &&
            rt_option_is_set(&answers->configurations[0], &rt_options[i]))
            bs_join_add(&list, "%s", rt_option_label_of(&rt_options[i]).text);
    if (list.count > 0) cli_message("predict", "warning: %s has no effect on one GPU: pass --gpus N", names);
}

/* Prints the properties shared by all predictions, in lines; the first line begins at `column`. */
static void print_common(const predict_request *r, const predict_answers *answers, const char *before, int indent,
                         int column)
{
    const mdot_configuration *c = &answers->configurations[0];
    cli_sentence training;
    char text[sizeof training.text + sizeof(cell)];
    bool is_estimated = (answers->predictions[0].warnings & MDOT_WARN_ANALYTIC_ESTIMATE) != 0;
    cli_describe_training(&training, &r->training, c, &answers->job, &answers->choices, is_estimated);
    snprintf(text, sizeof text, "%.*s%s", (int)sizeof(cell) - 1, before, training.text);
    cli_print_wrapped(stdout, text, indent, column);
}

/* Prints "25.6M parameters, 24.5 GFLOP a sample", so that a reader can check the job. */
static void print_work(const predict_answers *answers)
{
    char parameters[CLI_PARAMETERS_SIZE], flops[16];
    const mdot_prediction *p = &answers->predictions[0];
    printf("  work        %s", cli_parameters(&answers->job, parameters));
    if (answers->variant_count == 1) printf(", %s FLOP per sample", cli_short_number(p->flops_per_sample, flops));
}

/* Formats a reserved and a usable size with up to three decimals, as many as distinguish them. */
static void format_limit(cell *reserved, cell *usable, const mdot_prediction *p)
{
    double used = (double)p->reserved_bytes / CLI_GIB, limit = (double)p->usable_bytes / CLI_GIB;
    int more = 0;
    do {
        snprintf(reserved->text, sizeof reserved->text, "%.*f", (used < 99.95) + more, used);
        snprintf(usable->text, sizeof usable->text, "%.*f", (limit < 99.95) + more, limit);
    } while (strcmp(reserved->text, usable->text) == 0 && ++more <= 2);
}

/* Prints the tensors, and then the process memory on the GPU, which decides whether the step fits. */
static void print_memory(const mdot_configuration *c, const mdot_prediction *p)
{
    cell a, b, d, e;
    printf("  memory      %s GiB allocated, 90 %% interval %s to %s GiB\n",
           number(&a, (double)p->peak_memory_bytes / CLI_GIB), number(&b, (double)p->memory_lower_bytes / CLI_GIB),
           number(&d, (double)p->memory_upper_bytes / CLI_GIB));
    printf("              weights %s, gradients %s, optimizer %s, activations %s\n",
           number(&a, p->weight_bytes / CLI_GIB), number(&b, p->gradient_bytes / CLI_GIB),
           number(&d, p->optimizer_bytes / CLI_GIB), number(&e, p->activation_bytes / CLI_GIB));
    format_limit(&a, &b, p);
    printf("  reserved    %s of %s GiB usable on a card of %.0f GiB: %s\n", a.text, b.text, c->gpu_spec->memory_gib,
           p->fits ? "fits" : "does not fit");
    printf("              fragmentation %s, CUDA context %s, workspaces %s", number(&a, p->rounding_bytes / CLI_GIB),
           number(&b, p->context_bytes / CLI_GIB), number(&d, p->workspace_bytes / CLI_GIB));
    if (p->collective_bytes > 0) printf(", NCCL %s", number(&e, p->collective_bytes / CLI_GIB));
    putchar('\n');
}

static void print_energy(const predict_request *r, const mdot_configuration *c, const mdot_prediction *p)
{
    if (p->average_watts == 0) return;
    cell a, b, d;
    printf("  energy      %s W%s, %s J per step", number(&a, p->average_watts), cli_gpu_count(c) > 1 ? " per GPU" : "",
           number(&b, p->energy_joules));
    double steps = cli_total_steps(&r->total, c);
    if (steps > 0) printf(", %s kWh in total", number(&d, steps * p->energy_joules / JOULES_PER_KWH));
    putchar('\n');
}

static void print_one(const predict_request *r, const predict_answers *answers)
{
    const mdot_configuration *c = &answers->configurations[0];
    const mdot_prediction *p = &answers->predictions[0];
    cli_text name;
    cell a, b, d, batch;
    printf("%s on %s\n", cli_printable(&name, r->job_path), c->gpu_spec->name);
    snprintf(batch.text, sizeof batch.text, "batch %" PRId64 "%s, ", c->batch,
             r->fit               ? p->fits ? " (the largest that fits)" : " (the smallest, which does not fit)"
             : r->batch_count > 0 ? ""
                                  : " (the file's)");
    if (r->fits_dim)
        snprintf(batch.text, sizeof batch.text, "batch %" PRId64 ", %.40s %" PRId64 "%s, ", c->batch,
                 cli_printable(&name, r->swept_dim), answers->variants[0].value,
                 p->fits ? " (the largest that fits)" : ", which does not fit");
    print_common(r, answers, batch.text, 2, 0);
    printf("\n  step        %s ms, 90 %% interval %s to %s ms\n", number(&a, p->step_ms), number(&b, p->lower_ms),
           number(&d, p->upper_ms));
    if (p->loader_ms > 0)
        printf("  data        loaders take %s ms for a step, the GPU %s ms\n", number(&a, p->loader_ms),
               number(&b, p->gpu_ms));
    printf("  throughput  %s samples/s", number(&a, predict_samples_per_second(c, p)));
    if (predict_tokens_per_second(answers, 0) > 0)
        printf(", %s tokens/s", number(&a, predict_tokens_per_second(answers, 0)));
    putchar('\n');
    print_memory(c, p);
    print_work(answers);
    printf("; %.0f %% of the GPU's peak FLOP/s, %.0f %% of its bandwidth\n", 100 * p->compute_share,
           100 * p->memory_share);
    print_energy(r, c, p);
    if (answers->calibrated_rows > 0)
        printf("  calibrated  by %zu measured step%s\n", answers->calibrated_rows,
               answers->calibrated_rows == 1 ? "" : "s");
    double steps = cli_total_steps(&r->total, c);
    if (steps > 0)
        printf("  total       %s for %.0f step%s\n", duration(&a, steps * p->step_ms / 1000), steps,
               steps == 1 ? "" : "s");
    double cost = cli_total_cost(&r->total, c, p);
    if (isnan(cost)) return;
    printf("  cost        %s%s, at ", number(&a, cost), steps > 0 ? "" : " per million samples");
    cli_print_price(&r->total.prices, c->gpu_spec->name);
    putchar('\n');
}

enum {
    GPU,
    BATCH,
    DIM,
    TORCH,
    LISTS, /* the first list of an option's values */
    STEP = LISTS + CLI_MAX_LISTS,
    LOWER,
    UPPER,
    RATE,
    TOKENS,
    PEAK,
    MEMORY,
    MEMORY_LOWER,
    MEMORY_UPPER,
    RESERVED,
    USABLE,
    USED,
    FITS,
    TOTAL,
    COST,
    WARNINGS,
    COLUMN_COUNT
};
typedef cell row[COLUMN_COUNT];

static const row headings = {
    [GPU] = {"GPU"},           [BATCH] = {"batch"}, [TORCH] = {"torch"},      [STEP] = {"step, ms"},
    [LOWER] = {"5 %"},         [UPPER] = {"95 %"},  [RATE] = {"samples/s"},   [TOKENS] = {"tokens/s"},
    [PEAK] = {"peak"},         [MEMORY] = {"GiB"},  [MEMORY_LOWER] = {"5 %"}, [MEMORY_UPPER] = {"95 %"},
    [RESERVED] = {"reserved"}, [USABLE] = {"of"},   [USED] = {"used"},        [FITS] = {"fits"},
    [TOTAL] = {"total"},       [COST] = {"cost"},   [WARNINGS] = {"warnings"}};

static void fill_row(const predict_request *r, const predict_answers *answers, size_t i, row out)
{
    const mdot_configuration *c = &answers->configurations[i];
    const mdot_prediction *p = &answers->predictions[i];
    snprintf(out[GPU].text, sizeof out[GPU].text, "%s", c->gpu_spec->name);
    snprintf(out[BATCH].text, sizeof out[BATCH].text, "%" PRId64, c->batch);
    for (size_t k = 0; k < r->lists.count; k++)
        snprintf(out[LISTS + k].text, sizeof out[LISTS + k].text, "%s",
                 cli_value_in(&r->lists, k, answers->combination[i]));
    number(&out[STEP], p->step_ms);
    number(&out[LOWER], p->lower_ms);
    number(&out[UPPER], p->upper_ms);
    number(&out[RATE], predict_samples_per_second(c, p));
    number(&out[TOKENS], predict_tokens_per_second(answers, i));
    snprintf(out[DIM].text, sizeof out[DIM].text, "%" PRId64, answers->variants[answers->variant[i]].value);
    snprintf(out[TORCH].text, sizeof out[TORCH].text, RT_VERSION_FORMAT, RT_VERSION_PARTS(c->torch));
    snprintf(out[PEAK].text, sizeof out[PEAK].text, "%.0f %%", 100 * fmax(p->compute_share, p->memory_share));
    number(&out[MEMORY], (double)p->peak_memory_bytes / CLI_GIB);
    number(&out[MEMORY_LOWER], (double)p->memory_lower_bytes / CLI_GIB);
    number(&out[MEMORY_UPPER], (double)p->memory_upper_bytes / CLI_GIB);
    format_limit(&out[RESERVED], &out[USABLE], p);
    double used = 100 * (double)p->reserved_bytes / (double)p->usable_bytes; /* near 100, decimals show the side */
    snprintf(out[USED].text, sizeof out[USED].text, "%.*f %%", used > 99.5 && used < 100.5 ? 2 : 0, used);
    snprintf(out[FITS].text, sizeof out[FITS].text, "%s", p->fits ? "yes" : "no");
    duration(&out[TOTAL], cli_total_steps(&r->total, c) * p->step_ms / 1000);
    double cost = cli_total_cost(&r->total, c, p);
    if (isnan(cost))
        snprintf(out[COST].text, sizeof out[COST].text, "-");
    else
        number(&out[COST], cost);
    warning_words(&out[WARNINGS], cli_shown_warnings(p));
}

/* Tables are limited to the 80 columns of a terminal. A wider table loses columns in this order. Warnings are also
 * printed behind the table. Both interval ends are dropped together, and so are reserved and usable memory. --wide
 * shows all columns. */
enum { TABLE_COLUMNS = 80 };
static const int dropped[] = {MEMORY_LOWER, MEMORY_UPPER, RESERVED, USABLE, PEAK, TOKENS,
                              WARNINGS,     LOWER,        UPPER,    USED,   FITS};

static int width_of_table(const int *widths, const bool *is_shown)
{
    int used = -2;
    for (int c = 0; c < COLUMN_COUNT; c++) used += is_shown[c] ? widths[c] + 2 : 0;
    return used;
}

static void drop_columns(const int *widths, bool *is_shown)
{
    for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++) {
        bool is_second = (dropped[i] == UPPER && !is_shown[LOWER]) ||
                         (dropped[i] == MEMORY_UPPER && !is_shown[MEMORY_LOWER]) ||
                         (dropped[i] == USABLE && !is_shown[RESERVED]);
        if (is_second || width_of_table(widths, is_shown) > TABLE_COLUMNS) is_shown[dropped[i]] = false;
    }
}

static void print_row(const row cells, const int *widths, const bool *is_shown)
{
    char line[sizeof(row) + 2 * COLUMN_COUNT + 1] = "";
    int used = 0;
    for (int c = 0; c < COLUMN_COUNT; c++) {
        bool is_left = c == GPU || c == WARNINGS;
        if (is_shown[c]) used += sprintf(line + used, "%*s  ", is_left ? -widths[c] : widths[c], cells[c].text);
    }
    while (used > 0 && line[used - 1] == ' ') used--;
    printf("%.*s\n", used, line);
}

static void print_table(const predict_request *r, const predict_answers *answers)
{
    cli_text name;
    int widths[COLUMN_COUNT];
    bool is_shown[COLUMN_COUNT];
    row titles;
    memcpy(titles, headings, sizeof titles);
    if (r->swept_dim != NULL)
        snprintf(titles[DIM].text, sizeof titles[DIM].text, "%s", cli_printable(&name, r->swept_dim));
    for (int c = 0; c < COLUMN_COUNT; c++) {
        widths[c] = (int)strlen(titles[c].text);
        is_shown[c] = true;
    }
    for (size_t k = 0; k < CLI_MAX_LISTS; k++) is_shown[LISTS + k] = false;
    for (size_t k = 0; k < r->lists.count; k++) {
        snprintf(titles[LISTS + k].text, sizeof titles[LISTS + k].text, "%s", r->lists.item[k].option->name);
        widths[LISTS + k] = (int)strlen(titles[LISTS + k].text);
        is_shown[LISTS + k] = r->lists.item[k].count > 1;
    }
    is_shown[DIM] = r->swept_dim != NULL;
    is_shown[TORCH] = r->training.torch_count > 1;
    is_shown[TOKENS] = predict_tokens_per_second(answers, 0) > 0;
    is_shown[TOTAL] = cli_total_steps(&r->total, &answers->configurations[0]) > 0;
    is_shown[COST] = r->total.prices.is_set;
    is_shown[WARNINGS] = all_warnings(answers) != 0;
    for (size_t i = 0; i < answers->count; i++) {
        row cells;
        fill_row(r, answers, i, cells);
        for (int c = 0; c < COLUMN_COUNT; c++)
            if ((int)strlen(cells[c].text) > widths[c]) widths[c] = (int)strlen(cells[c].text);
    }
    cell batch = {""};
    int used = 0;
    for (size_t k = 0; k < r->lists.count && used < (int)sizeof batch.text / 2; k++)
        if (is_shown[LISTS + k])
            used += snprintf(batch.text + used, sizeof batch.text - (size_t)used, "%s%s", used > 0 ? ", " : "",
                             titles[LISTS + k].text);
    if (used > 0) used += snprintf(batch.text + used, sizeof batch.text - (size_t)used, " by row; in the first: ");
    if (r->batch_count == 0 && !r->fit)
        snprintf(batch.text + used, sizeof batch.text - (size_t)used, "batch %" PRId64 " (the file's), ",
                 answers->configurations[0].batch);
    printf("%s: ", cli_printable(&name, r->job_path));
    print_common(r, answers, batch.text, 2, 2);
    print_work(answers);
    if (answers->calibrated_rows > 0)
        printf("; calibrated by %zu measured step%s", answers->calibrated_rows,
               answers->calibrated_rows == 1 ? "" : "s");
    if (r->total.prices.is_set && cli_total_steps(&r->total, &answers->configurations[0]) == 0)
        printf("; cost per million samples");
    puts("\n");
    if (!r->wide) drop_columns(widths, is_shown);
    print_row(titles, widths, is_shown);
    for (size_t i = 0; i < answers->count; i++) {
        row cells;
        fill_row(r, answers, i, cells);
        print_row(cells, widths, is_shown);
    }
    const char *previous = ""; /* GPU model; a sorted table may name a price again */
    for (size_t i = 0; r->total.prices.has_origins && i < answers->count; i++) {
        const char *gpu = answers->configurations[i].gpu_spec->name;
        if (strcmp(gpu, previous) == 0 || isnan(cli_gpu_hour_price(&r->total.prices, gpu))) continue;
        printf("%s%s ", i == 0 ? "\n" : "", previous = gpu);
        cli_print_price(&r->total.prices, gpu);
        putchar('\n');
    }
}

static void print_json_prediction(const predict_request *r, const predict_answers *answers, size_t i)
{
    const mdot_configuration *c = &answers->configurations[i];
    const mdot_prediction *p = &answers->predictions[i];
    const predict_variant *variant = &answers->variants[answers->variant[i]];
    cli_json_step(stdout, c, p, &answers->choices, variant->tokens_per_sample);
    if (r->swept_dim != NULL) {
        printf("\"dims\": {");
        cli_json_string(stdout, r->swept_dim);
        printf(": %" PRId64 "}, ", variant->value);
    }
    double steps = cli_total_steps(&r->total, c);
    if (steps > 0) printf("\"steps\": %.0f, \"total_seconds\": %.9g, ", steps, steps * p->step_ms / 1000);
    double cost = cli_total_cost(&r->total, c, p);
    cli_json_price(stdout, &r->total.prices, c->gpu_spec->name);
    if (!isnan(cost)) printf("\"%s\": %.9g, ", steps > 0 ? "cost" : "cost_of_a_million_samples", cost);
    cli_json_memory(stdout, c, p);
    if (answers->servings != NULL) predict_json_serving(answers, i);
    if (r->explain) predict_json_explanation(answers, i);
    if (answers->factors != NULL) predict_json_correction(answers, i);
    if (r->beside_path != NULL) predict_json_beside(r, answers);
    printf("}");
}

static void print_json(const predict_request *r, const predict_answers *answers)
{
    const cli_json_origin origin = {.predictor = answers->predictor,
                                    .compiler = answers->compiler,
                                    .calibrated_rows = answers->calibrated_rows,
                                    .job = r->job_path,
                                    .info = &answers->job,
                                    .flops_per_sample = answers->predictions[0].flops_per_sample};
    cli_json_begin(stdout, &origin);
    for (size_t i = 0; i < answers->count; i++) {
        printf("%s\n  ", i == 0 ? "" : ",");
        print_json_prediction(r, answers, i);
    }
    printf("\n ]}\n");
}

mdot_status predict_print(const predict_request *request, const predict_answers *answers, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    if (request->json) {
        print_json(request, answers);
    } else if (answers->count == 1 && answers->left_out == 0) {
        print_one(request, answers);
        if (request->beside_path != NULL) predict_print_beside(request, answers);
        if (answers->factors != NULL) predict_correction(answers);
        if (request->explain) status = predict_explain(answers, err);
    } else {
        print_table(request, answers);
    }
    if (answers->servings != NULL && !request->json) predict_print_servings(request, answers);
    fflush(stdout); /* comments on the answers follow the answers */
    if (status == MDOT_OK && !request->reading.quiet) explain_warnings(answers);
    if (status == MDOT_OK && !request->reading.quiet) explain_ignored(answers);
    if (status == MDOT_OK && answers->left_out > 0 && !request->reading.quiet)
        cli_message("predict", "%zu combinations are left out, for example: %s", answers->left_out,
                    answers->reason.message);
    return status;
}
