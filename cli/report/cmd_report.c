/* cmd_report.c — `mdot report`: jobs on GPUs as one HTML file. */
#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/predict/predict_request.h"
#include "cli/report/report.h"

#include <string.h>

typedef struct report_request {
    predict_request predict; /* must be first, because the option rows expect it */
    const char *output;
} report_request;

enum { DEFAULT_BATCH = 32, MOST_BATCH = 1024 };

static const cli_option options[] = {
    CLI_OUTPUT_OPTION(report_request, output, "FILE.html", "output file of the report (required)", "html"),
#define PREDICT_DEFAULT_BATCH "32"
#define PREDICT_DEFAULT_GPUS "default: T4, L4, RTX-3090, A100, L40S, H100, H200"
#include "cli/predict/predict_options.def"
};
/* Names a row by its GPU and by each value that differs between rows. */
static void name_row(const predict_request *r, const predict_answers *answers, size_t i, report_result *out)
{
    const mdot_configuration *c = &answers->configurations[i];
    bs_join name;
    bs_join_begin(&name, out->name, sizeof out->name);
    bs_join_add(&name, "%s", c->gpu_spec->name);
    for (size_t l = 0; l < r->lists.count; l++) {
        bool is_number = r->lists.item[l].option->kind != CLI_CHOICE && r->lists.item[l].option->kind != CLI_CALL;
        bs_join_add(&name, "%s%s%s", is_number ? r->lists.item[l].option->name : "", is_number ? " " : "",
                    cli_value_in(&r->lists, l, answers->combination[i]));
    }
    if (answers->variant_count > 1 || r->fits_dim)
        bs_join_add(&name, "%s %lld", r->swept_dim, (long long)answers->variants[answers->variant[i]].value);
    if (r->batch_count > 1 || r->fit) bs_join_add(&name, "batch %lld", (long long)c->batch);
    if (r->training.torch_count > 1) bs_join_add(&name, RT_VERSION_FORMAT, RT_VERSION_PARTS(c->torch));
}

/* Lists the batches of the drawing: multiples of the micro-batches that every row can have. */
static void list_batches(const predict_answers *answers, report_job *job)
{
    int64_t unit = 1;
    for (size_t i = 0; i < answers->count; i++) {
        const mdot_configuration *c = &answers->configurations[i];
        int64_t own = c->micro_batches > 0 ? c->micro_batches : c->pipeline_parallel > 0 ? c->pipeline_parallel : 1;
        if (unit % own != 0 && unit * own <= CLI_MAX_BATCH) unit = own % unit == 0 ? own : unit * own;
    }
    int64_t most = MOST_BATCH * unit < CLI_MAX_BATCH ? MOST_BATCH * unit : CLI_MAX_BATCH;
    for (int64_t batch = unit; batch <= most && job->batch_count < REPORT_MAX_BATCHES; batch *= 2)
        job->batches[job->batch_count++] = batch;
}

/* Whether two rows differ in the batch alone. */
static bool is_same_row(const predict_answers *a, size_t i, const predict_answers *b, size_t k)
{
    const mdot_configuration *x = &a->configurations[i], *y = &b->configurations[k];
    return x->gpu_spec == y->gpu_spec && a->combination[i] == b->combination[k] && a->variant[i] == b->variant[k] &&
           x->torch == y->torch;
}

/* Predicts each row at the batches of the drawing, as far as they fit. */
static mdot_status predict_batches(predict_request *r, predict_answers *answers, report_job *job, mdot_error *err)
{
    static predict_request asked; /* too large for the stack */
    asked = *r;
    list_batches(answers, job);
    r->fit = r->fits_dim = r->explain = false;
    r->batch_count = job->batch_count;
    memcpy(r->batches, job->batches, sizeof job->batches);
    predict_answers scaled = {.variants = answers->variants,
                              .variant_count = answers->variant_count,
                              .first_job = answers->first_job,
                              .job = answers->job,
                              .calibration = answers->calibration};
    mdot_status status = predict_answer(r, &scaled, err);
    size_t shown = 1;
    for (size_t k = 0; status == MDOT_OK && k < scaled.count; k++) {
        size_t b = 0;
        while (job->batches[b] != scaled.configurations[k].batch) b++;
        if (!scaled.predictions[k].fits) continue;
        if (b >= shown) shown = b + 1;
        for (size_t i = 0; i < answers->count; i++)
            if (is_same_row(answers, i, &scaled, k)) job->results[i].at[b] = scaled.predictions[k];
    }
    job->batch_count = shown;
    scaled.calibration = NULL; /* it is that of `answers` */
    predict_free_rows(&scaled);
    *r = asked;
    return status;
}

static mdot_status predict_job(predict_request *r, predict_answers *answers, report_job *job, mdot_error *err)
{
    mdot_status status = predict_read(r, answers, err);
    if (status == MDOT_OK) status = predict_answer(r, answers, err);
    if (status == MDOT_OK && answers->count > REPORT_MAX_ROWS)
        status = mdot_fail(err, MDOT_OUT_OF_RANGE, "a report shows at most %d rows, not %zu: list fewer values",
                           REPORT_MAX_ROWS, answers->count);
    if (status != MDOT_OK) return status;
    *job = (report_job){.path = r->job_path, .total = &r->total, .answers = answers, .result_count = answers->count};
    for (size_t i = 0; i < job->result_count; i++) {
        report_result *result = &job->results[i];
        result->configuration = answers->configurations[i];
        result->prediction = answers->predictions[i];
        result->explanation = answers->explanations[i];
        name_row(r, answers, i, result);
    }
    return predict_batches(r, answers, job, err);
}

static mdot_status write_report(predict_request *r, const cli_operands *jobs, FILE *out, mdot_error *err)
{
    static report_job job; /* too large for the stack */
    char predictor[128] = "";
    mdot_status status = MDOT_OK;
    report_begin(out);
    for (int i = 0; status == MDOT_OK && i < jobs->count; i++) {
        predict_answers answers = {.job = MDOT_INIT(mdot_job_info)};
        r->job_path = jobs->item[i];
        status = predict_job(r, &answers, &job, err);
        if (status == MDOT_OK && !report_write_job(out, &job, &r->training))
            status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        snprintf(predictor, sizeof predictor, "%s", answers.predictor);
        predict_free_rows(&answers);
        predict_free_jobs(&answers);
    }
    report_end(out, predictor);
    return status;
}

static int run(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--plan") != 0) continue;
        for (; i > 1; i--) argv[i] = argv[i - 1];
        return cli_plan.run(argc - 1, argv + 1);
    }
    static report_request request; /* too large for the stack */
    request = (report_request){.predict = {.command = "report", .sort = CLI_NO_CHOICE, .explain = true}};
    predict_request *r = &request.predict;
    cli_training_begin(&r->training);
    cli_operands operands;
    int usage;
    if (!cli_read_line(&cli_report_command, argc, argv, &request, &operands, &usage)) return usage;
    if (operands.count == 0) return cli_usage_error("report", "no job given");
    if (request.output == NULL) return cli_usage_error("report", "no output file given: use -o FILE.html");
    if (operands.count > 1 && r->measured.step_count > 0)
        return cli_usage_error("report", "--measured requires one job, because it is a step of that job");
    r->job_path = operands.item[0];
    usage = predict_check(r);
    if (usage != CLI_OK) return usage;
    char fallback[] = "T4,L4,RTX-3090,A100,L40S,H100,H200";
    if (r->gpus.count == 0 && !cli_add_gpus("report", fallback, &r->gpus)) return CLI_USAGE;
    if (r->batch_count == 0 && !r->fit) r->batches[r->batch_count++] = DEFAULT_BATCH;
    r->reading.output = request.output;
    mdot_error err = {0};
    bs_memstream buffer;
    mdot_status status = bs_memstream_open(&buffer) ? MDOT_OK : mdot_fail(&err, MDOT_OUT_OF_MEMORY, NULL);
    if (status == MDOT_OK) status = bs_check_output(request.output, &err);
    if (status == MDOT_OK) status = write_report(r, &operands, buffer.file, &err);
    mdot_status saved = report_save(&buffer, status == MDOT_OK ? request.output : NULL, &err);
    if (status == MDOT_OK) status = saved;
    return status == MDOT_OK ? CLI_OK : cli_report("report", &err);
}

const cli_command cli_report_command = {
    .name = "report",
    .summary = "write an HTML report: time, memory and their breakdowns on several GPUs",
    .synopsis = "JOB… -o FILE.html [OPTION]…\n"
                "--plan JOB -o FILE.html [OPTION of `mdot plan`]…",
    .description = "Writes one self-contained HTML file. For each job, it shows a table, step time against batch, "
                   "breakdowns of time and memory, and warnings. Lists of options give rows for all combinations, as "
                   "in `mdot predict`.",
    CLI_OPTIONS(options),
    .lists = offsetof(report_request, predict.lists),
    .option_words = rt_option_words,
    .wider = &cli_predict,
    .files = "onnx|job",
    .run = run,
};
