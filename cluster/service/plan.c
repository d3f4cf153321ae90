/* plan.c — POST /v1/plan: the fastest layouts of a job on several GPUs, with the price of a whole training. */
#include "base/text.h"
#include "base/training/prediction_json.h"
#include "service/configurations.h"
#include "service/job_cache.h"
#include "service/service.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_CONTEXTS = 16, DEFAULT_SIZE = 8, MOST_GPUS = 1 << 16 };
#define MOST_TOTAL 1125899906842624.0 /* 2^50 */

/* Numbers of mdot_training_run. */
#define TRAINING_MAP(X)                                                                                                \
    X(samples), X(evaluation_samples), X(evaluation_steps), X(checkpoint_bytes), X(storage_gbps),                      \
        X(checkpoint_minutes), X(gpu_failure_hours), X(interruptions_per_hour), X(restart_minutes),                    \
        X(startup_minutes), X(grid_grams_per_kwh), X(deadline_hours), X(budget)

typedef struct question {
    const char *job;
    struct json_object *gpus, *sizes, *options, *training, *prices;
    int64_t node_gpus, global_batch, kept;
} question;

typedef struct search {
    sv_state *state;
    sv_model *model;
    const sv_job *job;
    question q;
    mdot_configuration base;
    mdot_gpu gpus[MDOT_PLAN_GPU_MODELS_MAX];
    size_t gpu_count;
    double prices[MDOT_PLAN_GPU_MODELS_MAX];
    uint32_t sizes[MDOT_PLAN_SIZES_MAX];
    size_t size_count;
    mdot_plan_axis axes[MDOT_PLAN_AXES_MAX];
    double values[MDOT_PLAN_AXES_MAX][MDOT_PLAN_VALUES_MAX];
    size_t axis_count;
    mdot_training_run run;
    int64_t end_ns;
} search;

/* Reads an option: a value for all layouts, or an array of values to try. */
static mdot_status read_option(void *user, const char *name, struct json_object *value, mdot_error *err)
{
    search *s = user;
    const rt_option *option = NULL, *former = NULL;
    double number = 0;
    mdot_status status = MDOT_OK;
    if (!json_object_is_type(value, json_type_array)) {
        status = sv_read_option(name, value, &option, &number, err);
        if (status == MDOT_OK) rt_option_set(&s->base, option, number);
        return status;
    }
    size_t count = json_object_array_length(value);
    if (s->axis_count == MDOT_PLAN_AXES_MAX || count == 0 || count > MDOT_PLAN_VALUES_MAX)
        return mdot_fail(err, MDOT_OUT_OF_RANGE, "options has at most %d arrays of 1 to %d values", MDOT_PLAN_AXES_MAX,
                         MDOT_PLAN_VALUES_MAX);
    for (size_t i = 0; status == MDOT_OK && i < count; i++, former = option) {
        status = sv_read_option(name, json_object_array_get_idx(value, i), &option, &s->values[s->axis_count][i], err);
        if (status == MDOT_OK && former != NULL && former != option)
            status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "%.64s has names and numbers in one array", name);
    }
    if (status == MDOT_OK) s->axes[s->axis_count] = (mdot_plan_axis){option->field, s->values[s->axis_count], count};
    s->axis_count += status == MDOT_OK;
    return status;
}

static mdot_status read_price(void *user, const char *name, struct json_object *value, mdot_error *err)
{
    search *s = user;
    mdot_gpu gpu;
    double price = 0;
    mdot_status status = sv_gpu_table_find(&s->model->gpus, name, &gpu, err);
    if (status == MDOT_OK) status = sv_json_number("a price", value, false, 1e-9, 1e9, &price, err);
    for (size_t i = 0; status == MDOT_OK && i < s->gpu_count; i++)
        if (strcmp(s->gpus[i].name, gpu.name) == 0) s->prices[i] = price;
    return status;
}

static mdot_status read_lists(search *s, mdot_error *err)
{
    size_t gpus = sv_json_length(s->q.gpus), sizes = sv_json_length(s->q.sizes);
    if (gpus == 0 || gpus > MDOT_PLAN_GPU_MODELS_MAX || sizes > MDOT_PLAN_SIZES_MAX)
        return mdot_fail(err, gpus == 0 ? MDOT_INVALID_ARGUMENT : MDOT_OUT_OF_RANGE,
                         "gpus needs 1 to %d GPUs, and sizes at most %d numbers", MDOT_PLAN_GPU_MODELS_MAX,
                         MDOT_PLAN_SIZES_MAX);
    mdot_status status = MDOT_OK;
    for (; status == MDOT_OK && s->gpu_count < gpus; s->gpu_count++)
        status = sv_read_gpu(json_object_array_get_idx(s->q.gpus, s->gpu_count), &s->model->gpus,
                             &s->gpus[s->gpu_count], err);
    for (; status == MDOT_OK && s->size_count < sizes; s->size_count++) {
        double size = 1;
        status = sv_json_number("a size", json_object_array_get_idx(s->q.sizes, s->size_count), true, 1, MOST_GPUS,
                                &size, err);
        s->sizes[s->size_count] = (uint32_t)size;
    }
    if (sizes == 0) s->sizes[s->size_count++] = DEFAULT_SIZE;
    return status;
}

static mdot_status read_question(search *s, struct json_object *body, mdot_error *err)
{
    static const sv_member members[] = {SV_MEMBER(question, job, TEXT, 0, 0),
                                        SV_MEMBER(question, gpus, ARRAY, 0, 0),
                                        SV_MEMBER(question, sizes, ARRAY, 0, 0),
                                        SV_MEMBER(question, options, OBJECT, 0, 0),
                                        SV_MEMBER(question, training, OBJECT, 0, 0),
                                        SV_MEMBER(question, prices, OBJECT, 0, 0),
                                        SV_MEMBER(question, node_gpus, WHOLE, 1, MOST_GPUS),
                                        SV_MEMBER(question, global_batch, WHOLE, 1, 1LL << 40),
                                        SV_MEMBER(question, kept, WHOLE, 1, MDOT_PLAN_KEPT_MAX)};
#define REAL_OF(field) SV_MEMBER(mdot_training_run, field, REAL, 0, MOST_TOTAL)
    static const sv_member training[] = {TRAINING_MAP(REAL_OF)};
    mdot_status status = sv_json_members(body, members, SV_COUNT(members), &s->q, NULL, NULL, err);
    if (status == MDOT_OK && s->q.job == NULL)
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "job is missing: the digest of POST /v1/jobs");
    if (status == MDOT_OK) status = sv_jobs_find(s->state->jobs, s->q.job, &s->job, err);
    if (status == MDOT_OK) status = read_lists(s, err);
    if (status != MDOT_OK) return status;
    s->base = cli_plan_base(s->job->job, s->gpus, s->gpu_count);
    s->run = MDOT_INIT(mdot_training_run);
    if (s->q.options != NULL) status = sv_json_members(s->q.options, NULL, 0, s, read_option, s, err);
    if (status == MDOT_OK && s->q.training != NULL)
        status = sv_json_members(s->q.training, training, SV_COUNT(training), &s->run, NULL, NULL, err);
    if (status == MDOT_OK && s->q.prices != NULL) status = sv_json_members(s->q.prices, NULL, 0, s, read_price, s, err);
    return status;
}

static bool has_time(void *user, double finished) { return sv_now_ns() < ((const search *)user)->end_ns; }

static mdot_status find_plan(search *s, mdot_plan **out_plan, mdot_error *err)
{
    const mdot_plan_space space = {.struct_size = sizeof space,
                                   .base = &s->base,
                                   .gpus = s->gpus,
                                   .gpu_model_count = s->gpu_count,
                                   .sizes = s->sizes,
                                   .size_count = s->size_count,
                                   .node_gpus = (uint32_t)s->q.node_gpus,
                                   .global_batch = s->q.global_batch,
                                   .axes = s->axes,
                                   .axis_count = s->axis_count,
                                   .kept = (uint32_t)s->q.kept,
                                   .progress = has_time,
                                   .progress_state = s};
    sv_predictor *predictor = s->model->predictor;
    mdot_context *contexts[MOST_CONTEXTS] = {sv_predictor_borrow(predictor)};
    size_t wanted = s->state->plan_threads < MOST_CONTEXTS ? s->state->plan_threads : MOST_CONTEXTS;
    size_t count = 1 + sv_predictor_borrow_more(predictor, contexts + 1, wanted > 0 ? wanted - 1 : 0);
    s->end_ns = sv_now_ns() + 1000000000 * s->state->plan_seconds;
    mdot_status status = mdot_plan_create(contexts, count, s->job->job, &space, out_plan, err);
    for (size_t i = 0; i < count; i++) sv_predictor_return(predictor, contexts[i]);
    return status;
}

static mdot_status print_layouts(const search *s, const mdot_plan *plan, FILE *out, mdot_error *err)
{
    mdot_plan_info info = MDOT_INIT(mdot_plan_info);
    mdot_status status = MDOT_OK;
    mdot_plan_get_info(plan, &info);
    fprintf(out,
            "\"parameters\": %.0f, \"tokens_of_a_sample\": %.0f,\n \"priced\": %llu, \"too_large\": %llu, "
            "\"indivisible\": %llu, \"refused\": %llu, \"cancelled\": %s,\n \"layouts\": [",
            s->job->info.parameters, s->job->tokens_per_sample, (unsigned long long)info.priced,
            (unsigned long long)info.too_large, (unsigned long long)info.indivisible, (unsigned long long)info.refused,
            info.cancelled != 0 ? "true" : "false");
    for (size_t i = 0; status == MDOT_OK && i < info.layout_count; i++) {
        mdot_plan_layout layout = MDOT_INIT(mdot_plan_layout);
        mdot_training_cost cost = MDOT_INIT(mdot_training_cost);
        mdot_training_run run = s->run;
        mdot_plan_get_layout(plan, i, &layout);
        run.price = s->prices[layout.gpu_model];
        if (run.samples == 0) run.samples = layout.samples; /* one step, for throughput alone */
        if (s->model->calibration != NULL)
            status = mdot_calibration_apply_to_job(s->model->calibration, s->job->job, &layout.configuration,
                                                   &layout.prediction, err);
        if (status == MDOT_OK) status = mdot_training_cost_of(&run, &layout, &cost, err);
        if (status != MDOT_OK) break;
        fputs(i == 0 ? "\n  " : ",\n  ", out);
        cli_json_layout(out, &layout, &cost, run.price > 0);
        fputs("}", out);
    }
    fputs("\n ]}\n", out);
    return status;
}

mdot_status sv_handle_plan(sv_state *state, const sv_request *request, struct json_object *body, FILE *out,
                           mdot_error *err)
{
    mdot_plan *plan = NULL;
    search *s = calloc(1, sizeof *s);
    if (s == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    s->state = state;
    s->model = sv_state_model(state);
    mdot_status status = read_question(s, body, err);
    if (status == MDOT_OK) status = find_plan(s, &plan, err);
    if (status == MDOT_OK) {
        const cli_json_origin origin = sv_origin(s->model, s->job);
        cli_json_origin_begin(out, "mdot-plan/1", &origin);
        fputs(", ", out);
        status = print_layouts(s, plan, out, err);
        atomic_fetch_add(&state->metrics.plans, 1);
    }
    mdot_plan_destroy(plan);
    sv_jobs_release(state->jobs, s->job);
    sv_model_release(s->model);
    free(s);
    return status;
}
