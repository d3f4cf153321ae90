/* cmd_plan.c — `mdot plan`: which GPUs, how many, and which parallelism a training needs, and what it costs. */
#include "base/command/quantity.h"
#include "base/file.h"
#include "base/processors.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/plan/plan_request.h"
#include "cli/report/report.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_TOTAL (INT64_C(1) << 50) /* exact in a double, with space for a product */
enum { MAX_GPUS = 1 << 16, DEFAULT_TOP = 1, PROGRESS_SECONDS = 2 };
#define DEFAULT_CONFIDENCE 0.8

/* "8..256" is 8, 16, 32 … 256; "8,24" is a list. */
static bool parse_sizes(const char *command, char *text, void *request)
{
    plan_request *r = request;
    int64_t sizes[MDOT_PLAN_SIZES_MAX];
    r->size_count = 0;
    if (!cli_add_values(command, "--gpus", text, MAX_GPUS, true, MDOT_PLAN_SIZES_MAX, sizes, &r->size_count))
        return false;
    for (size_t i = 0; i < r->size_count; i++) r->sizes[i] = (uint32_t)sizes[i];
    return true;
}

static bool parse_global_batch(const char *command, char *text, void *request)
{
    plan_request *r = request;
    char *unit = strchr(text, '-');
    r->counts_tokens = unit != NULL && strcmp(unit, "-tokens") == 0;
    if (r->counts_tokens) *unit = '\0';
    const char *reason = cli_read_count(text, 1, 1, INT64_C(1) << 40, &r->global_batch);
    if (reason == NULL) return true;
    cli_usage_error(command, "--global-batch takes samples, for example 512, or tokens, for example 4M-tokens: %s",
                    reason);
    return false;
}

static bool parse_grid(const char *command, char *text, void *request)
{
    const char *end;
    double grams = bs_number_read(text, &end);
    ((plan_request *)request)->run.grid_grams_per_kwh = grams;
    if (end != text && grams > 0 && isfinite(grams) &&
        (*end == '\0' || strcmp(end, "g/kWh") == 0 || strcmp(end, "g") == 0))
        return true;
    cli_usage_error(command, "--grid takes the CO2 of a kWh, for example 350g/kWh, not \"%s\"", text);
    return false;
}

static const cli_option options[] = {
    CLI_CALL_ROW("gpus", "A..B", parse_sizes,
                 "numbers of GPUs: 8..256 for 8, 16, 32 and so on, or a list such as 8,24,96 (default 8)",
                 .heading = "Search"),
    CLI_WHOLE_ROW("node-gpus", "N", plan_request, node_gpus, 1, MAX_GPUS, "GPUs of a node (default 8)"),
    CLI_WHOLE_ROW("threads", "N", plan_request, threads, 1, 256,
                  "threads of the search (default: the available processors)"),
    CLI_VALUE_ROW(CLI_COUNT, "tokens", "N", plan_request, tokens,
                  "tokens to train on, for example 30G or 30e9, for a job with tokens", .least = 1, .most = MAX_TOTAL,
                  .heading = "Whole training", .excludes = "samples"),
    CLI_VALUE_ROW(CLI_COUNT, "samples", "N", plan_request, samples, "samples to train on", .least = 1,
                  .most = MAX_TOTAL, .excludes = "epochs"),
    CLI_VALUE_ROW(CLI_COUNT, "epochs", "N", plan_request, epochs, "epochs to train, over the samples of --dataset",
                  .least = 1, .most = MAX_TOTAL, .needs = "dataset"),
    CLI_VALUE_ROW(CLI_COUNT, "dataset", "N", plan_request, dataset, "number of samples of an epoch", .least = 1,
                  .most = MAX_TOTAL, .needs = "epochs"),
    CLI_VALUE_ROW(CLI_DURATION, "deadline", "TIME", plan_request, run.deadline_hours,
                  "time that the training may take, for example 7d, 36h or 90min"),
    CLI_VALUE_ROW(CLI_REAL, "budget", "X", plan_request, run.budget,
                  "cost that the training may have, in the currency of --price", .most = INT64_C(1) << 40),
    CLI_VALUE_ROW(CLI_REAL, "confidence", "P", plan_request, confidence,
                  "probability with which deadline and budget must be met, by the prediction's interval (default 0.8)",
                  .most = 1),
    CLI_VALUE_ROW(CLI_COUNT, "evaluate-every", "N", plan_request, evaluate_every,
                  "steps from one evaluation to the next", .least = 1, .most = MAX_TOTAL,
                  .needs = "evaluation-samples"),
    CLI_VALUE_ROW(CLI_COUNT, "evaluation-samples", "N", plan_request, evaluation_samples, "samples of one evaluation",
                  .least = 1, .most = MAX_TOTAL, .needs = "evaluate-every"),
    CLI_VALUE_ROW(CLI_RATE, "storage", "GB/s", plan_request, run.storage_gbps,
                  "rate at which a checkpoint is written while training waits; without it there are no checkpoints",
                  .most = 1 << 20),
    CLI_VALUE_ROW(
        CLI_DURATION, "checkpoint-every", "TIME", plan_request, checkpoint_hours,
        "time between checkpoints (default: the best one by Young and Daly, from --storage and the failures)"),
    CLI_VALUE_ROW(CLI_DURATION, "gpu-failure", "TIME", plan_request, run.gpu_failure_hours,
                  "mean time between failures of one GPU, for example 50000h"),
    CLI_VALUE_ROW(CLI_DURATION, "interrupted-every", "TIME", plan_request, interruption_hours,
                  "mean time between interruptions of all GPUs, for example by a spot market"),
    CLI_VALUE_ROW(CLI_DURATION, "restart", "TIME", plan_request, restart_hours,
                  "time from a failure until training goes on"),
    CLI_VALUE_ROW(CLI_DURATION, "startup", "TIME", plan_request, startup_hours,
                  "time from the allocation until the first step"),
    CLI_CALL_ROW("grid", "G/KWH", parse_grid, "CO2 of a kWh of electric energy, for example 350g/kWh"),
    CLI_CALL_ROW(
        "global-batch", "N", parse_global_batch,
        "samples of an optimizer step over all GPUs, or tokens, for example 4M-tokens. Without it, each layout has "
        "the batch that suits it",
        .heading = "Job"),
    CLI_READING_OPTIONS(plan_request, reading),
#define TRAINING CLI_OPTION_ROW
#include "runtime/job/configuration.def"
    CLI_GPU_OPTION(plan_request, gpus, "one or several GPU models, or \"all\" (required)"),
    CLI_GPU_SPEC_OPTION(plan_request, gpus, "a GPU described by its spec values, as in `mdot predict`"),
    CLI_CALL_ROW(
        "parallel", "KIND=N,…", cli_parse_parallel,
        "degrees of parallelism that the search keeps: dp, tp, pp, ep, cp, vpp, sp, zero, ps; it varies the others",
        .takes_list = true),
    CLI_VALUE_ROW(CLI_CHOICE, "sync", "S", cli_training, value[RT_OPTION_sync],
                  "with ps: bsp, or asp, where workers do not wait for each other (default bsp)",
                  .choices = rt_sync_names, .words = rt_sync_words, .takes_list = true),
    CLI_CALL_ROW("link", "LINK", cli_parse_link,
                 "link between the GPUs of a node: pcie, nvlink, or the bandwidth that a collective reaches, in GB/s"),
    CLI_VALUE_ROW(
        CLI_RATE, "network", "GB/s", cli_training, value[RT_OPTION_network_gbps],
        "bandwidth that a collective reaches between nodes, in GB/s per GPU (default 20, and 40 from Hopper on)",
        .most = 1000000000),
    CLI_CALL_ROW(
        "price", "X/h|FILE[,COLUMN=X…]", cli_read_gpu_prices,
        "price of a GPU per hour, for example 2.5 or $2.5/h, or a table (CSV) with the columns gpu and price and, "
        "if known, currency, provider, region and date, for example prices.csv,provider=aws",
        .heading = "Output", .at = offsetof(plan_request, prices), .files = "*"),
    CLI_WHOLE_ROW("top", "N", plan_request, top, 1, MDOT_PLAN_KEPT_MAX,
                  "layouts to show for each GPU model and number of GPUs (default 1, and only the Pareto front)"),
    CLI_VALUE_ROW(CLI_CHOICE, "emit", "PROGRAM", plan_request, emit,
                  "print only launch settings of the recommended layout, for torchtitan (a job file), torchrun (with "
                  "arguments of transformers' Trainer), or megatron (arguments of Megatron-LM)",
                  .choices = plan_emit_names, .excludes = "json"),
    CLI_OUTPUT_OPTION(plan_request, output, "FILE.html", "write a page instead: time against cost, and memory by kind",
                      "html"),
    PREDICT_MODEL_OPTION(plan_request, model_path, "Predictor",
                         "a compiled predictor (default: the environment variable MDOT_PREDICTOR, otherwise the "
                         "predictor of the installation)"),
    MEASURED_OPTIONS(plan_request, measured),
    CLI_JSON_OPTION(plan_request, json, "print everything as JSON"),
    CLI_QUIET_OPTION(plan_request, reading.quiet, "suppress warnings and progress"),
};
static mdot_configuration base_of(const plan_request *r, const plan_answers *answers)
{
    mdot_configuration base = {.struct_size = sizeof base, .batch = 1};
    mdot_configuration usual = cli_plan_base(answers->job, r->gpus.item, r->gpus.count);
    cli_training_apply(&r->training, &answers->info, &base);
    if (r->training.value[RT_OPTION_precision].choice == CLI_NO_CHOICE) base.precision = usual.precision;
    if (r->training.value[RT_OPTION_optimizer].choice == CLI_NO_CHOICE) base.optimizer = usual.optimizer;
    return base;
}

/* The options that the command line states, with all values that it lists. An axis keeps the search from varying an
 * option whose stated value is its default. */
typedef struct axis_table {
    mdot_plan_axis axis[MDOT_PLAN_AXES_MAX];
    double values[MDOT_PLAN_AXES_MAX][MDOT_PLAN_VALUES_MAX];
    size_t count;
} axis_table;

static bool add_value(axis_table *table, const char *option, double value)
{
    size_t i = 0, k = 0;
    while (i < table->count && table->axis[i].option != option) i++;
    if (i == MDOT_PLAN_AXES_MAX) return false;
    if (i == table->count) table->axis[table->count++] = (mdot_plan_axis){option, table->values[i], 0};
    while (k < table->axis[i].count && table->values[i][k] != value) k++;
    if (k == MDOT_PLAN_VALUES_MAX) return false;
    if (k == table->axis[i].count) table->values[i][table->axis[i].count++] = value;
    return true;
}

static mdot_status list_axes(plan_request *r, const plan_answers *answers, axis_table *out, mdot_error *err)
{
    enum { MAX_COMBINATIONS = 1 << 14 };
    size_t combinations = cli_combination_count(&r->lists);
    bool has_space = combinations <= MAX_COMBINATIONS;
    for (size_t combination = 0; has_space && combination < combinations; combination++) {
        cli_set_combination("plan", &r->lists, combination, r);
        mdot_configuration base = base_of(r, answers);
        for (size_t i = 0; i < RT_OPTION_COUNT; i++) {
            bool is_derived = i == RT_OPTION_data_parallel || i == RT_OPTION_micro_batches;
            if (!is_derived && cli_training_states(&r->training, i))
                has_space = has_space && add_value(out, rt_options[i].field, rt_option_get(&base, &rt_options[i]));
        }
    }
    cli_set_combination("plan", &r->lists, 0, r);
    if (has_space) return MDOT_OK;
    return BS_INVALID(err, "too many values of options: at most %d combinations of at most %d options",
                      MAX_COMBINATIONS, MDOT_PLAN_AXES_MAX);
}

typedef struct progress {
    time_t last;
    bool is_shown;
} progress;

static bool show_progress(void *state, double finished)
{
    progress *p = state;
    time_t now = time(NULL);
    if (now - p->last < PROGRESS_SECONDS) return true;
    p->last = now;
    p->is_shown = true;
    fprintf(stderr, "\rmdot plan: %.0f %% of the search", 100 * finished);
    fflush(stderr);
    return true;
}

static mdot_status search(plan_request *r, plan_answers *answers, mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    mdot_context *contexts[256] = {0};
    size_t threads = r->threads > 0 ? (size_t)r->threads : (size_t)fmin(256, (double)bs_processors());
    mdot_status status = predict_open_model(r->model_path, NULL, &predictor, &contexts[0], err);
    for (size_t i = 1; status == MDOT_OK && i < threads; i++)
        status = mdot_context_create(predictor, &contexts[i], err);
    mdot_configuration base = base_of(r, answers);
    static axis_table axes; /* too large for the stack */
    if (status == MDOT_OK) status = list_axes(r, answers, &axes, err);
    mdot_calibration *calibration = NULL;
    cli_training assumed = r->training; /* of a measured step that omits keys */
    assumed.value[RT_OPTION_precision].choice = (int)base.precision;
    assumed.value[RT_OPTION_optimizer].choice = (int)base.optimizer;
    const measured_defaults defaults = {
        .training = &assumed, .gpu = r->gpus.count == 1 ? &r->gpus.item[0] : NULL, .batch = base.batch};
    if (status == MDOT_OK)
        status = measured_make_calibration("plan", &r->measured, &defaults, predictor, contexts[0], answers->job,
                                           &answers->measured, &calibration, err);
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    if (calibration != NULL) mdot_calibration_get_info(calibration, &info);
    answers->calibrated_rows = info.row_count;
    progress shown = {.last = time(NULL)};
    const mdot_plan_space space = {.struct_size = sizeof space,
                                   .base = &base,
                                   .gpus = r->gpus.item,
                                   .gpu_model_count = r->gpus.count,
                                   .sizes = r->sizes,
                                   .size_count = r->size_count,
                                   .node_gpus = (uint32_t)r->node_gpus,
                                   .global_batch = r->global_batch,
                                   .axes = axes.axis,
                                   .axis_count = axes.count,
                                   .kept = (uint32_t)r->top,
                                   .progress = r->reading.quiet || isatty(STDERR_FILENO) == 0 ? NULL : show_progress,
                                   .progress_state = &shown,
                                   .calibration = calibration};
    if (status == MDOT_OK) status = mdot_plan_create(contexts, threads, answers->job, &space, &answers->plan, err);
    if (shown.is_shown) fputs("\r\033[K", stderr);
    for (size_t i = 0; i < threads; i++) mdot_context_destroy(contexts[i]);
    mdot_calibration_destroy(calibration);
    mdot_predictor_close(predictor);
    return status;
}

/* Returns the number of samples within 5 % of `samples` that most layouts divide: 4M tokens of 8192 are 488 samples,
 * and people mean 512. */
static int64_t divisible_batch(double samples)
{
    int64_t exact = (int64_t)fmax(1, round(samples));
    for (int64_t power = INT64_C(1) << 40; power > 1; power /= 2) {
        int64_t near = power * (int64_t)round(samples / (double)power);
        if (near > 0 && fabs((double)near - samples) <= 0.05 * samples) return near;
    }
    return exact;
}

/* Leaves out GPU models without a price. */
static mdot_status keep_priced(plan_request *r, mdot_error *err)
{
    size_t kept = 0, count = r->gpus.count;
    const char *left_out = NULL;
    for (size_t i = 0; r->prices.is_set && i < count; i++) {
        if (isnan(cli_gpu_hour_price(&r->prices, r->gpus.item[i].name)))
            left_out = r->gpus.item[i].name;
        else {
            r->gpus.spec[kept] = r->gpus.spec[i];
            r->gpus.item[kept++] = r->gpus.item[i];
        }
    }
    if (left_out == NULL) return MDOT_OK;
    if (kept == 0) return BS_INVALID(err, "--price has no price of %s: add a row for it", left_out);
    r->gpus.count = kept;
    if (!r->reading.quiet)
        fprintf(stderr, "mdot plan: warning: %zu of %zu GPU models have no price and are left out, for example %s\n",
                count - kept, count, left_out);
    return MDOT_OK;
}

/* Converts tokens and epochs to samples. */
static mdot_status count_samples(plan_request *r, plan_answers *answers, mdot_error *err)
{
    double length = answers->tokens_per_sample;
    bool has_tokens = r->tokens > 0 || r->counts_tokens;
    if (has_tokens && length == 0)
        return BS_INVALID(err,
                          "%s: the job has no tokens, because no operator looks up embeddings and attends to them: use "
                          "--samples or --epochs, and --global-batch in samples",
                          r->job_path);
    r->run.samples = r->tokens > 0 ? ceil((double)r->tokens / length) : (double)r->samples;
    if (r->epochs > 0) r->run.samples = (double)r->epochs * (double)r->dataset;
    if (r->counts_tokens) r->global_batch = divisible_batch((double)r->global_batch / length);
    r->run.evaluation_samples = (double)r->evaluation_samples;
    r->run.evaluation_steps = (double)r->evaluate_every;
    r->run.checkpoint_minutes = 60 * r->checkpoint_hours;
    r->run.restart_minutes = 60 * r->restart_hours;
    r->run.startup_minutes = 60 * r->startup_hours;
    if (r->interruption_hours > 0) r->run.interruptions_per_hour = 1 / r->interruption_hours;
    return MDOT_OK;
}

static bool dominates(const plan_row *a, const plan_row *b)
{
    bool better = a->cost.hours < b->cost.hours || a->money < b->money;
    return better && a->cost.hours <= b->cost.hours && a->money <= b->money;
}

static int compare_money(const void *first, const void *second)
{
    const plan_row *a = first, *b = second;
    return (a->money > b->money) - (a->money < b->money);
}

/* Finds the Pareto front and the recommended row: the cheapest eligible one, or else the one that is most likely in
 * time and in budget. */
static void judge(plan_answers *answers)
{
    for (size_t i = 0; i < answers->count; i++) {
        plan_row *row = &answers->rows[i];
        row->is_front = true;
        for (size_t k = 0; k < answers->count; k++) row->is_front = row->is_front && !dominates(&answers->rows[k], row);
        double chance = fmin(row->cost.in_time, row->cost.in_budget);
        const plan_row *best = answers->recommended;
        bool is_better = best == NULL;
        if (best != NULL && row->is_eligible != best->is_eligible)
            is_better = row->is_eligible;
        else if (best != NULL && row->is_eligible)
            is_better = row->money < best->money;
        else if (best != NULL)
            is_better = chance > fmin(best->cost.in_time, best->cost.in_budget);
        if (is_better) answers->recommended = row;
    }
}

static mdot_status price_rows(const plan_request *r, plan_answers *answers, mdot_error *err)
{
    answers->search = MDOT_INIT(mdot_plan_info);
    mdot_plan_get_info(answers->plan, &answers->search);
    size_t count = answers->search.layout_count;
    answers->rows = calloc(count + 1, sizeof *answers->rows);
    if (answers->rows == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = MDOT_OK;
    answers->has_prices = r->prices.is_set;
    for (size_t i = 0; i < count; i++) {
        plan_row *row = &answers->rows[answers->count];
        mdot_training_run run = r->run;
        row->layout = MDOT_INIT(mdot_plan_layout);
        row->cost = MDOT_INIT(mdot_training_cost);
        mdot_plan_get_layout(answers->plan, i, &row->layout);
        double price = r->prices.is_set ? cli_gpu_hour_price(&r->prices, row->layout.configuration.gpu_spec->name) : 0;
        run.price = price;
        if (run.samples == 0) run.samples = row->layout.samples; /* one step, for throughput alone */
        mdot_status priced = mdot_training_cost_of(&run, &row->layout, &row->cost, err);
        if (priced != MDOT_OK) { /* failures leave no time for progress */
            status = priced;
            answers->search.refused++;
            continue;
        }
        answers->count++;
        row->money = price > 0 ? row->cost.cost : row->cost.gpu_hours;
        if (run.samples == row->layout.samples) row->money /= row->layout.samples;
        row->is_eligible = fmin(row->cost.in_time, row->cost.in_budget) >= r->confidence;
    }
    if (answers->count == 0) return status;
    if (!r->json) qsort(answers->rows, answers->count, sizeof *answers->rows, compare_money);
    judge(answers);
    return MDOT_OK;
}

static mdot_status write_page(const plan_request *r, const plan_answers *answers, mdot_error *err)
{
    bs_memstream buffer;
    if (!bs_memstream_open(&buffer)) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    plan_write_report(buffer.file, r, answers);
    return report_save(&buffer, r->output, err);
}

static int check(const plan_request *r, const cli_operands *operands)
{
    if (operands->count == 0) return cli_usage_error("plan", "no job given");
    if (operands->count > 1)
        return cli_usage_error("plan", "expected one job, not \"%s\" and \"%s\"", operands->item[0], operands->item[1]);
    if (r->gpus.count == 0)
        return cli_usage_error("plan",
                               "no GPU given: use --gpu NAME, for example H100,A100-80GB; `mdot gpus` lists all");
    if (r->gpus.count > MDOT_PLAN_GPU_MODELS_MAX)
        return cli_usage_error("plan", "--gpu takes at most %d models", MDOT_PLAN_GPU_MODELS_MAX);
    bool has_total = r->tokens > 0 || r->samples > 0 || r->epochs > 0;
    if (!has_total && (r->run.deadline_hours > 0 || r->run.budget > 0))
        return cli_usage_error("plan",
                               "--deadline and --budget need the length of the training: --tokens, --samples, or "
                               "--epochs and --dataset");
    if (r->run.budget > 0 && !r->prices.is_set) return cli_usage_error("plan", "--budget requires --price");
    if (r->tokens > 0 && r->epochs > 0) return cli_usage_error("plan", "--tokens and --epochs exclude each other");
    if (r->output != NULL && (r->json || r->emit != CLI_NO_CHOICE))
        return cli_usage_error("plan", "--output writes a page: leave --json and --emit out");
    return CLI_OK;
}

static int run(int argc, char **argv)
{
    static plan_request request; /* too large for the stack */
    request = (plan_request){.confidence = DEFAULT_CONFIDENCE,
                             .top = DEFAULT_TOP,
                             .emit = CLI_NO_CHOICE,
                             .run = MDOT_INIT(mdot_training_run)};
    cli_training_begin(&request.training);
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_plan, argc, argv, &request, &operands, &usage)) return usage;
    usage = check(&request, &operands);
    if (usage != CLI_OK) return usage;
    if (request.size_count == 0) request.sizes[request.size_count++] = 8;
    request.job_path = operands.item[0];
    request.reading.output = request.output;
    mdot_error err = {0};
    plan_answers answers = {.info = MDOT_INIT(mdot_job_info)};
    mdot_status status = request.output != NULL ? bs_check_output(request.output, &err) : MDOT_OK;
    if (status == MDOT_OK) status = cli_read_job("plan", request.job_path, &request.reading, &answers.job, &err);
    if (status == MDOT_OK) status = mdot_job_get_info(answers.job, &answers.info);
    if (status == MDOT_OK) answers.tokens_per_sample = cli_tokens_per_sample(answers.job, &answers.info);
    if (status == MDOT_OK) status = keep_priced(&request, &err);
    if (status == MDOT_OK) status = count_samples(&request, &answers, &err);
    if (status == MDOT_OK) status = search(&request, &answers, &err);
    if (status == MDOT_OK) status = price_rows(&request, &answers, &err);
    if (status == MDOT_OK && request.output != NULL)
        status = write_page(&request, &answers, &err);
    else if (status == MDOT_OK && request.emit != CLI_NO_CHOICE)
        status = plan_emit(&request, &answers, &err);
    else if (status == MDOT_OK)
        plan_print(&request, &answers);
    free(answers.rows);
    measured_free(&answers.measured);
    mdot_plan_destroy(answers.plan);
    mdot_job_destroy(answers.job);
    return status == MDOT_OK ? CLI_OK : cli_report("plan", &err);
}

/* Options of `mdot predict` that the search varies or counts by itself. */
static const bs_choice_word nearest[] = {
    {"batch", "global-batch", false},
    {"nodes", "node-gpus", false},
    {"steps", "samples", false},
    {"keep-gathered", "parallel zero", false},
    {"schedule", "parallel pp", false},
    {"whole-gradients", "accumulate", false},
    {NULL, NULL, false},
};

const cli_command cli_plan = {
    .name = "plan",
    .summary = "find GPUs, parallelism and cost of a whole training",
    .synopsis = "JOB --gpu NAME --gpus A..B --tokens N [OPTION]…",
    .description =
        "Searches GPU models, numbers of GPUs, degrees of parallelism, ZeRO stages, micro-batches and recomputation "
        "for a training, and prices each layout that fits the GPU's memory. Shows the layouts that no other beats in "
        "both time and cost, and recommends the cheapest one that meets the deadline and the budget. The search keeps "
        "to the options that are given, and tries each value of a list, as in --precision bf16,fp8; it varies the "
        "others.",
    CLI_OPTIONS(options),
    .lists = offsetof(plan_request, lists),
    .option_words = rt_option_words,
    .nearest = nearest,
    .files = "onnx|job",
    .run = run,
};
