/* predict_answers.c — the predictions that a command line asks for: one for each size of the swept dimension, GPU,
 * combination of listed options, batch and version of PyTorch. `mdot predict` prints them, and `mdot report` draws
 * them. */
#include "base/suggest.h"
#include "cli/cli.h"
#include "cli/predict/predict_request.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const predict_order_names[PREDICT_ORDER_COUNT + 1] = {
    [PREDICT_BY_TIME] = "time", [PREDICT_BY_THROUGHPUT] = "throughput", [PREDICT_BY_COST] = "cost", NULL};

/* Adds to PREDICT_MAX_BATCHES values. */
bool predict_parse_batch(const char *command, char *text, void *request)
{
    predict_request *r = request;
    if (r->sweeps_batch) return cli_refuse(command, "--batch and --sweep exclude each other");
    return cli_add_values(command, "--batch", text, CLI_MAX_BATCH, false, PREDICT_MAX_BATCHES, r->batches,
                          &r->batch_count);
}

static bool is_length(const predict_request *r, const mdot_job_info *info)
{
    return info->length > 0 && (strcmp(r->swept_dim, "length") == 0 || strcmp(r->swept_dim, info->length_name) == 0);
}

/* If the job can be read although the dimension is unbound, and is not the job's length, which has a default, the job
 * lacks that dimension, and every value would give the same answer. */
static mdot_status check_swept(const predict_request *r, mdot_error *err)
{
    cli_reading reading = r->reading;
    mdot_job *job = NULL;
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    reading.quiet = true;
    if (cli_read_job(r->command, r->job_path, &reading, &job, NULL) != MDOT_OK) return MDOT_OK;
    mdot_job_get_info(job, &info);
    bool is_known = is_length(r, &info);
    mdot_job_destroy(job);
    if (is_known) return MDOT_OK;
    bs_suggest suggestion = bs_suggest_begin(r->swept_dim);
    bs_suggest_add(&suggestion, "batch");
    if (info.length > 0) bs_suggest_add(&suggestion, "length");
    return BS_INVALID(err, "%s: there is no symbolic dimension '%s' to sweep%s", r->job_path, r->swept_dim,
                      bs_suggest_end(&suggestion).text);
}

static void keep_job(predict_variant *v, mdot_job *job, int64_t value)
{
    mdot_job_destroy(v->job);
    *v = (predict_variant){.job = job, .value = value, .info = MDOT_INIT(mdot_job_info)};
    mdot_job_get_info(job, &v->info);
    v->tokens_per_sample = cli_tokens_per_sample(job, &v->info);
}

/* Reads the job with a value of the swept dimension, if there is one. A job whose tensors are all empty is refused,
 * because the time is unpredictable. */
static mdot_status read_variant(const predict_request *r, int64_t value, bool is_quiet, predict_variant *v,
                                mdot_error *err)
{
    cli_reading reading = r->reading;
    mdot_job *job = NULL;
    reading.quiet = reading.quiet || is_quiet;
    if (r->swept_dim != NULL && reading.dims.count == CLI_MAX_DIMS)
        return BS_INVALID(err, "at most %d dimensions", CLI_MAX_DIMS);
    if (r->swept_dim != NULL)
        reading.dims.item[reading.dims.count++] = (mdot_dim_binding){.name = r->swept_dim, .value = value};
    BS_TRY(cli_read_job(r->command, r->job_path, &reading, &job, err));
    keep_job(v, job, value);
    if (cli_has_work(v->job, &v->info)) return MDOT_OK;
    return BS_INVALID(err, "%s: the job is empty, because every tensor has zero elements", r->job_path);
}

/* Reads the job once for each value of the swept dimension. */
mdot_status predict_read(const predict_request *r, predict_answers *answers, mdot_error *err)
{
    size_t count = r->swept_dim != NULL ? r->dim_value_count : 1;
    answers->variants = calloc(count, sizeof *answers->variants);
    if (answers->variants == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = r->swept_dim != NULL ? check_swept(r, err) : MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < count; i++, answers->variant_count++) {
        predict_variant *v = &answers->variants[i];
        status = read_variant(r, r->dim_values[i], i > 0 || r->fits_dim, v, err);
        if (status != MDOT_OK && r->fits_dim) status = read_variant(r, r->dim_values[i], false, v, err); /* warns */
    }
    answers->first_job = answers->variants[0].job;
    answers->job = answers->variants[0].info;
    if (answers->first_job != NULL) answers->choices = cli_choices_of(answers->first_job);
    return status;
}

static size_t at_least_one(size_t count) { return count > 0 ? count : 1; }

/* Lists one configuration for each variant, GPU, combination of listed options, batch and version of PyTorch, in this
 * order, with defaults from the job. */
static mdot_status list_configurations(predict_request *r, predict_answers *answers, mdot_error *err)
{
    size_t batch_count = at_least_one(r->batch_count), torch_count = at_least_one(r->training.torch_count);
    size_t combinations = cli_combination_count(&r->lists), each = batch_count * torch_count;
    if (combinations > PREDICT_MAX_ROWS / (answers->variant_count * r->gpus.count * each))
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "the options have more than %d combinations", PREDICT_MAX_ROWS);
    size_t gpu_each = combinations * each, per_gpu_model = r->gpus.count * gpu_each;
    answers->count = answers->variant_count * per_gpu_model;
    answers->configurations = calloc(answers->count, sizeof *answers->configurations);
    answers->predictions = calloc(answers->count, sizeof *answers->predictions);
    answers->variant = calloc(answers->count, sizeof *answers->variant);
    answers->combination = calloc(answers->count, sizeof *answers->combination);
    if (answers->configurations == NULL || answers->predictions == NULL || answers->variant == NULL ||
        answers->combination == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < answers->count; i++) {
        const mdot_job_info *info = &answers->variants[i / per_gpu_model].info;
        mdot_configuration *c = &answers->configurations[i];
        answers->variant[i] = i / per_gpu_model;
        answers->predictions[i].struct_size = sizeof *answers->predictions;
        *c = (mdot_configuration){.struct_size = sizeof *c,
                                  .batch = cli_job_batch(info),
                                  .gpu_spec = &r->gpus.item[i % per_gpu_model / gpu_each]};
        if (r->batch_count > 0) c->batch = r->batches[i % each / torch_count];
        answers->combination[i] = i % gpu_each / each;
        cli_set_combination(r->command, &r->lists, answers->combination[i], r);
        cli_training_apply(&r->training, info, c);
        c->torch = r->training.torch[i % torch_count];
    }
    cli_set_combination(r->command, &r->lists, 0, r);
    return MDOT_OK;
}

/* Sets the batch or the value of the dimension. A dimension other than the job's length needs another reading. */
static mdot_status set_size(const predict_request *r, int64_t size, predict_variant *v, mdot_configuration *c,
                            mdot_error *err)
{
    mdot_job *job = NULL;
    if (!r->fits_dim) c->batch = size;
    if (!r->fits_dim) return MDOT_OK;
    if (v->job == NULL || !is_length(r, &v->info)) return read_variant(r, size, true, v, err);
    BS_TRY(mdot_job_with_length(v->job, size, &job, err));
    keep_job(v, job, size);
    return MDOT_OK;
}

/* Finds the largest batch, or value of a dimension, whose step fits, and stores it in *c or *v; the smallest if none
 * fits. Memory grows with both. A job may limit its dimension. */
static mdot_status find_fit(const predict_request *r, mdot_context *context, predict_variant *v, mdot_configuration *c,
                            mdot_error *err)
{
    int64_t unit = c->micro_batches > 0 ? c->micro_batches : c->pipeline_parallel > 0 ? c->pipeline_parallel : 1;
    if (r->fits_dim) unit = 1;
    int64_t fits = 0, limit = (r->fits_dim ? INT32_MAX : CLI_MAX_BATCH) / unit, too_large = limit + 1;
    for (int64_t tried = 1; too_large - fits > 1;) {
        mdot_prediction p = MDOT_INIT(mdot_prediction);
        mdot_status status = set_size(r, tried * unit, v, c, err);
        if (status == MDOT_OK) status = mdot_predict(context, v->job, c, &p, err);
        if (status != MDOT_OK && (fits == 0 || !r->fits_dim)) return status;
        *(p.fits ? &fits : &too_large) = tried;
        bool doubling = p.fits && too_large > limit && 2 * tried < too_large;
        tried = doubling ? 2 * tried : fits + (too_large - fits) / 2;
    }
    return set_size(r, (fits > 0 ? fits : 1) * unit, v, c, err);
}

/* Gives each configuration a variant of its own. */
static mdot_status separate_variants(predict_answers *answers, mdot_error *err)
{
    predict_variant *variants = realloc(answers->variants, answers->count * sizeof *variants);
    if (variants == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    answers->variants = variants;
    for (size_t i = 1; i < answers->count; i++) {
        answers->variant[i] = i;
        variants[i] = (predict_variant){.job = NULL};
    }
    answers->variant_count = answers->count;
    return MDOT_OK;
}

/* Reads the job with the largest value that was found, for the reader's warnings. */
static mdot_status warn_of_largest(const predict_request *r, const predict_answers *answers, mdot_error *err)
{
    predict_variant largest = {.job = NULL};
    int64_t value = 1;
    for (size_t i = 0; i < answers->variant_count; i++)
        if (answers->variants[i].value > value) value = answers->variants[i].value;
    mdot_status status = read_variant(r, value, false, &largest, err);
    mdot_job_destroy(largest.job);
    return status;
}

static const mdot_job *job_of(const predict_answers *answers, size_t i)
{
    return answers->variants[answers->variant[i]].job;
}

static mdot_status explain_all(mdot_context *context, predict_answers *answers, mdot_error *err)
{
    answers->explanations = calloc(answers->count, sizeof *answers->explanations);
    if (answers->explanations == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < answers->count; i++)
        BS_TRY(mdot_explain(context, job_of(answers, i), &answers->configurations[i], &answers->explanations[i], err));
    return MDOT_OK;
}

static mdot_status calibrate_all(const predict_request *r, mdot_predictor *predictor, mdot_context *context,
                                 predict_answers *answers, mdot_error *err)
{
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    if (r->explain) answers->factors = calloc(answers->count, sizeof *answers->factors);
    if (r->explain && answers->factors == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    const measured_defaults defaults = {.training = &r->training,
                                        .gpu = r->gpus.count == 1 ? &r->gpus.item[0] : NULL,
                                        .batch = r->batch_count > 1 ? 0 : answers->configurations[0].batch};
    mdot_status status = MDOT_OK;
    if (answers->calibration == NULL)
        status = measured_make_calibration(r->command, &r->measured, &defaults, predictor, context, answers->first_job,
                                           &answers->measured, &answers->calibration, err);
    const mdot_calibration *calibration = answers->calibration;
    if (status == MDOT_OK) status = mdot_calibration_get_info(calibration, &info);
    for (size_t i = 0; status == MDOT_OK && i < answers->count; i++) {
        const mdot_configuration *c = &answers->configurations[i];
        mdot_prediction *p = &answers->predictions[i];
        if (answers->factors != NULL) {
            answers->factors[i].struct_size = sizeof *answers->factors;
            status = mdot_calibration_explain(calibration, c, answers->explanations[i], p, &answers->factors[i], err);
        }
        if (status == MDOT_OK) status = mdot_calibration_apply_to_job(calibration, job_of(answers, i), c, p, err);
    }
    answers->calibrated_rows = info.row_count;
    return status;
}

/* Predicts the configurations of one variant. With lists of options, refused combinations are only counted. */
static mdot_status predict_rows(const predict_request *r, mdot_context *context, predict_answers *answers, size_t first,
                                size_t count, mdot_error *err)
{
    mdot_error reason = {0};
    mdot_status status = mdot_sweep(context, job_of(answers, first), &answers->configurations[first], count,
                                    &answers->predictions[first], &reason);
    if (status == MDOT_OK) return status;
    if (cli_combination_count(&r->lists) == 1) return mdot_fail(err, status, "%s", reason.message);
    size_t refused = 0;
    for (size_t i = first; i < first + count; i++) refused += answers->predictions[i].status != MDOT_OK;
    if (refused == 0) return mdot_fail(err, status, "%s", reason.message);
    const char *text = strncmp(reason.message, "pair ", 5) == 0 ? strstr(reason.message, ": ") + 2 : reason.message;
    if (answers->left_out == 0) mdot_fail(&answers->reason, status, "%s", text);
    answers->left_out += refused;
    return MDOT_OK;
}

/* Removes the refused combinations; fails if none is left. */
static mdot_status drop_refused(predict_answers *answers, mdot_error *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < answers->count; i++) {
        if (answers->predictions[i].status != MDOT_OK) continue;
        answers->predictions[kept] = answers->predictions[i];
        answers->configurations[kept] = answers->configurations[i];
        answers->variant[kept] = answers->variant[i];
        answers->combination[kept++] = answers->combination[i];
    }
    answers->count = kept;
    if (kept > 0) return MDOT_OK;
    return BS_INVALID(err, "none of the combinations is possible, for example: %s", answers->reason.message);
}

/* Opens the predictor and evaluates every configuration. */
static mdot_status predict_all(const predict_request *r, predict_answers *answers, mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_status status = predict_open_model(r->model_path, r->reading.output, &predictor, &context, err);
    if (status == MDOT_OK) {
        mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
        status = mdot_predictor_get_info(predictor, &info);
        snprintf(answers->predictor, sizeof answers->predictor, "%s", info.name);
        snprintf(answers->compiler, sizeof answers->compiler, "%s", info.compiler);
        answers->choices.torch = info.assumed_torch;
    }
    if (status == MDOT_OK && r->fits_dim) status = separate_variants(answers, err);
    for (size_t i = 0; status == MDOT_OK && (r->fit || r->fits_dim) && i < answers->count; i++) {
        predict_variant *v = &answers->variants[answers->variant[i]];
        status = find_fit(r, context, v, &answers->configurations[i], err);
        if (cli_combination_count(&r->lists) > 1) status = MDOT_OK; /* refused below */
    }
    if (status == MDOT_OK && r->fits_dim) status = warn_of_largest(r, answers, err);
    answers->first_job = answers->variants[0].job;
    answers->job = answers->variants[0].info;
    size_t stride = answers->count / answers->variant_count;
    for (size_t v = 0; status == MDOT_OK && v < answers->variant_count; v++)
        status = predict_rows(r, context, answers, v * stride, stride, err);
    if (status == MDOT_OK && answers->left_out > 0) status = drop_refused(answers, err);
    bool calibrates = r->measured.calibration_path != NULL || r->measured.step_count > 0;
    if (status == MDOT_OK && r->explain) status = explain_all(context, answers, err);
    if (status == MDOT_OK && calibrates) status = calibrate_all(r, predictor, context, answers, err);
    if (status == MDOT_OK && r->beside_path != NULL) status = predict_beside(r, context, answers, err);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return status;
}

mdot_status predict_answer(predict_request *r, predict_answers *answers, mdot_error *err)
{
    mdot_status status = list_configurations(r, answers, err);
    if (status == MDOT_OK) status = predict_all(r, answers, err);
    return status == MDOT_OK && !predict_sort(r, answers) ? mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL) : status;
}

void predict_free_rows(predict_answers *answers)
{
    for (size_t i = 0; answers->explanations != NULL && i < answers->count; i++)
        mdot_explanation_destroy(answers->explanations[i]);
    free(answers->explanations);
    free(answers->factors);
    free(answers->servings);
    mdot_calibration_destroy(answers->calibration);
    measured_free(&answers->measured);
    free(answers->configurations);
    free(answers->predictions);
    free(answers->variant);
    free(answers->combination);
}

void predict_free_jobs(predict_answers *answers)
{
    for (size_t i = 0; i < answers->variant_count; i++) mdot_job_destroy(answers->variants[i].job);
    free(answers->variants);
}

bool predict_has_several(const predict_request *r)
{
    return r->gpus.count > 1 || r->batch_count > 1 || r->dim_value_count > 1 || r->training.torch_count > 1 ||
           cli_combination_count(&r->lists) > 1;
}

int predict_check(const predict_request *r)
{
    if (r->sort == PREDICT_BY_COST && !r->total.prices.is_set)
        return cli_usage_error(r->command, "--sort cost requires --price");
    if (r->fit && r->batch_count > 0)
        return cli_usage_error(r->command, "--fit excludes --batch and --sweep, because it determines the batch");
    if (r->swept_dim != NULL && strcmp(r->job_path, "-") == 0)
        return cli_usage_error(
            r->command, "--sweep of a dimension requires a job in a file, because it reads the job several times");
    if (r->swept_dim != NULL && r->measured.step_count > 0)
        return cli_usage_error(r->command, "--measured excludes --sweep of a dimension, because its step has one size");
    return CLI_OK;
}
