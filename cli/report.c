/* report.c — the answers of `mdot predict`: a paragraph for one prediction, a table for several, JSON for programs. */
#include "base/list.h"
#include "cli/predict.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GIB ((double)(1 << 30))

const char *const predict_precision_names[PREDICT_PRECISION_COUNT + 1] = {
    [MDOT_PRECISION_FP32] = "fp32", [MDOT_PRECISION_TF32] = "tf32", [MDOT_PRECISION_AMP] = "amp", NULL};
const char *const predict_layout_names[PREDICT_LAYOUT_COUNT + 1] = {
    [MDOT_LAYOUT_NCHW] = "nchw", [MDOT_LAYOUT_NHWC] = "nhwc", NULL};

static const struct {
    uint32_t bit;
    const char *word, *reason;
} warnings[] = {{MDOT_WARN_UNKNOWN_OPERATOR, "unknown-operators", "the job has operators that the predictor never saw"},
                {MDOT_WARN_OUTSIDE_TRAINING, "outside-training",
                 "batch, GPU, precision or loads lie beyond what the predictor was trained on"},
                {MDOT_WARN_SHORTENED, "shortened", "operators were merged to fit the predictor's longest sequence"},
                {MDOT_WARN_FALLBACK, "fallback", "a GPU failed to compute the prediction and the CPU did"}};
enum { WARNING_COUNT = sizeof warnings / sizeof warnings[0] };

/* ---- What both forms show --------------------------------------------------------------------------------------- */

/* Steps of the whole training, 0 where the command line does not say. A last batch that is not full is a step. */
static double total_steps(const predict_request *r, const mdot_configuration *c)
{
    if (r->steps > 0) return (double)r->steps;
    return (double)r->epochs * ceil((double)r->dataset / ((double)c->batch * c->gpu_count));
}

static double samples_per_second(const mdot_configuration *c, const mdot_prediction *p)
{
    return 1000 * (double)c->batch * c->gpu_count / p->step_ms;
}

static double memory_gib_of(const char *gpu)
{
    mdot_gpu info = MDOT_INIT(mdot_gpu);
    mdot_gpu_find(gpu, &info, NULL); /* the command line's GPUs are known */
    return info.memory_gib;
}

typedef struct cell {
    char text[64];
} cell;

/* Three significant digits or the whole number: more would pretend. */
static const char *number(cell *out, double value)
{
    int decimals = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
    snprintf(out->text, sizeof out->text, "%.*f", decimals, value);
    return out->text;
}

/* "830 ms", "45.0 s", "12 min 5 s", "3 h 20 min", "4 d 7 h": the two units that matter. */
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
        snprintf(out->text, sizeof out->text, "%.3g ms", 1000 * seconds);
    } else {
        snprintf(out->text, sizeof out->text, "%.1f s", seconds);
    }
    return out->text;
}

static const char *warning_words(cell *out, uint32_t bits)
{
    bs_list list;
    bs_list_begin(&list, out->text, sizeof out->text);
    for (int i = 0; i < WARNING_COUNT; i++)
        if ((bits & warnings[i].bit) != 0) bs_list_add(&list, "%s", warnings[i].word);
    return out->text;
}

static uint32_t all_warnings(const predict_answers *answers)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < answers->count; i++) bits |= answers->predictions[i].warnings;
    return bits;
}

/* Each kind once, with the number of predictions that it touches. */
static void explain_warnings(const predict_answers *answers)
{
    for (int w = 0; w < WARNING_COUNT; w++) {
        size_t touched = 0;
        for (size_t i = 0; i < answers->count; i++)
            touched += (answers->predictions[i].warnings & warnings[w].bit) != 0;
        if (touched == 0) continue;
        fprintf(stderr, "mdot predict: warning: %s", warnings[w].word);
        if (answers->count > 1) fprintf(stderr, " (%zu of %zu predictions)", touched, answers->count);
        fprintf(stderr, ": %s\n", warnings[w].reason);
    }
}

/* ", fp32 (default), nchw, adam (the file's), 1 GPU": what all predictions of a command have in common. */
static void print_common(const predict_request *r, const predict_answers *answers)
{
    const mdot_configuration *c = &answers->configurations[0];
    bool is_the_files = answers->job.has_optimizer;
    printf("%s%s", predict_precision_names[c->precision], r->precision == CLI_NO_CHOICE ? " (default)" : "");
    printf(", %s%s", predict_layout_names[c->layout], r->layout == CLI_NO_CHOICE ? " (default)" : "");
    printf(", %s%s", cli_optimizer_names[c->optimizer],
           r->optimizer != CLI_NO_CHOICE ? ""
           : is_the_files                ? " (the file's)"
                                         : " (default)");
    printf(", %d GPU%s", c->gpu_count, c->gpu_count == 1 ? "" : "s");
}

/* ---- One prediction --------------------------------------------------------------------------------------------- */

static void print_one(const predict_request *r, const predict_answers *answers)
{
    const mdot_configuration *c = &answers->configurations[0];
    const mdot_prediction *p = &answers->predictions[0];
    cli_text name;
    cell a, b, d;
    printf("%s on %s\n", cli_printable(&name, r->job_path), c->gpu);
    printf("  batch %" PRId64 "%s, ", c->batch, r->batch_count > 0 ? "" : " (the file's)");
    print_common(r, answers);
    printf("\n\n  step        %s ms, 90 %% interval %s to %s ms\n", number(&a, p->step_ms), number(&b, p->lower_ms),
           number(&d, p->upper_ms));
    printf("  throughput  %s samples/s\n", number(&a, samples_per_second(c, p)));
    printf("  memory      %s of %.0f GiB: %s\n", number(&a, (double)p->peak_memory_bytes / GIB), memory_gib_of(c->gpu),
           p->fits ? "fits" : "does not fit");
    double steps = total_steps(r, c);
    if (steps > 0)
        printf("  total       %s for %.0f step%s\n", duration(&a, steps * p->step_ms / 1000), steps,
               steps == 1 ? "" : "s");
}

/* ---- A table ---------------------------------------------------------------------------------------------------- */

enum { GPU, BATCH, STEP, LOWER, UPPER, RATE, MEMORY, OF, FITS, TOTAL, WARNINGS, COLUMN_COUNT };
typedef cell row[COLUMN_COUNT];

static const row headings = {[GPU] = {"GPU"},    [BATCH] = {"batch"},    [STEP] = {"step, ms"},    [LOWER] = {"5 %"},
                             [UPPER] = {"95 %"}, [RATE] = {"samples/s"}, [MEMORY] = {"GiB"},       [OF] = {"of"},
                             [FITS] = {"fits"},  [TOTAL] = {"total"},    [WARNINGS] = {"warnings"}};

static void fill_row(const predict_request *r, const mdot_configuration *c, const mdot_prediction *p, row out)
{
    snprintf(out[GPU].text, sizeof out[GPU].text, "%s", c->gpu);
    snprintf(out[BATCH].text, sizeof out[BATCH].text, "%" PRId64, c->batch);
    number(&out[STEP], p->step_ms);
    number(&out[LOWER], p->lower_ms);
    number(&out[UPPER], p->upper_ms);
    number(&out[RATE], samples_per_second(c, p));
    number(&out[MEMORY], (double)p->peak_memory_bytes / GIB);
    snprintf(out[OF].text, sizeof out[OF].text, "%.0f", memory_gib_of(c->gpu));
    snprintf(out[FITS].text, sizeof out[FITS].text, "%s", p->fits ? "yes" : "no");
    duration(&out[TOTAL], total_steps(r, c) * p->step_ms / 1000);
    warning_words(&out[WARNINGS], p->warnings);
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
    for (int c = 0; c < COLUMN_COUNT; c++) {
        widths[c] = (int)strlen(headings[c].text);
        is_shown[c] = true;
    }
    is_shown[TOTAL] = total_steps(r, &answers->configurations[0]) > 0;
    is_shown[WARNINGS] = all_warnings(answers) != 0;
    for (size_t i = 0; i < answers->count; i++) {
        row cells;
        fill_row(r, &answers->configurations[i], &answers->predictions[i], cells);
        for (int c = 0; c < COLUMN_COUNT; c++)
            if ((int)strlen(cells[c].text) > widths[c]) widths[c] = (int)strlen(cells[c].text);
    }
    printf("%s: ", cli_printable(&name, r->job_path));
    if (r->batch_count == 0) printf("batch %" PRId64 " (the file's), ", answers->configurations[0].batch);
    print_common(r, answers);
    puts("\n");
    print_row(headings, widths, is_shown);
    for (size_t i = 0; i < answers->count; i++) {
        row cells;
        fill_row(r, &answers->configurations[i], &answers->predictions[i], cells);
        print_row(cells, widths, is_shown);
    }
}

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

static void print_json_prediction(const predict_request *r, const mdot_configuration *c, const mdot_prediction *p)
{
    printf("{\"gpu\": ");
    cli_json_string(stdout, c->gpu);
    printf(", \"gpus\": %d, \"batch\": %" PRId64 ", \"precision\": \"%s\", \"layout\": \"%s\", \"optimizer\": \"%s\",\n"
           "   \"step_ms\": %.9g, \"lower_ms\": %.9g, \"upper_ms\": %.9g, \"samples_per_second\": %.9g,\n"
           "   \"peak_memory_bytes\": %" PRIu64 ", \"gpu_memory_bytes\": %.0f, \"fits\": %s, ",
           c->gpu_count, c->batch, predict_precision_names[c->precision], predict_layout_names[c->layout],
           cli_optimizer_names[c->optimizer], p->step_ms, p->lower_ms, p->upper_ms, samples_per_second(c, p),
           p->peak_memory_bytes, memory_gib_of(c->gpu) * GIB, p->fits ? "true" : "false");
    double steps = total_steps(r, c);
    if (steps > 0) printf("\"steps\": %.0f, \"total_seconds\": %.9g, ", steps, steps * p->step_ms / 1000);
    printf("\"warnings\": [");
    const char *comma = "";
    for (int w = 0; w < WARNING_COUNT; w++) {
        if ((p->warnings & warnings[w].bit) == 0) continue;
        printf("%s\"%s\"", comma, warnings[w].word);
        comma = ", ";
    }
    printf("]}");
}

static void print_json(const predict_request *r, const predict_answers *answers)
{
    printf("{\"job\": ");
    cli_json_string(stdout, r->job_path);
    printf(", \"operators\": %zu, \"unknown\": %zu, \"parameters\": %.0f, \"file_batch\": %" PRId64
           ",\n \"predictions\": [",
           answers->job.operator_count, answers->job.unknown_count, answers->job.parameters, answers->job.batch);
    for (size_t i = 0; i < answers->count; i++) {
        printf("%s\n  ", i == 0 ? "" : ",");
        print_json_prediction(r, &answers->configurations[i], &answers->predictions[i]);
    }
    printf("\n ]}\n");
}

void predict_print(const predict_request *request, const predict_answers *answers)
{
    if (request->json) {
        print_json(request, answers);
    } else if (answers->count == 1) {
        print_one(request, answers);
    } else {
        print_table(request, answers);
    }
    fflush(stdout); /* what is said about the answers follows them */
    if (!request->quiet) explain_warnings(answers);
}
