/* explain.c — breaks a predicted step down: its time by operator and phase, its memory by operator.
 *
 * Time. An artefact with an entry "explain" breaks its answer down by row (mdot_predict.h, "Explanations"). A row
 * stands for several operators, among which its time is divided in proportion to their rooflines. If the requested
 * configuration differs from the queried one, each operator's time is multiplied by the ratio of its own rooflines,
 * requested over queried. The total is then scaled to the prediction (analytic_correction.c), and the explanation is
 * marked as
 * estimated analytically. If the artefact lacks the entry, only rooflines divide the step, and the explanation is
 * marked accordingly.
 *
 * Memory. Weights, gradients and the optimizer's state are assigned by parameters. Activations are the tensors alive
 * at the peak (activation_memory.c), each assigned to its operator. If the optimizer's update takes more memory than
 * they do, its bytes are assigned by parameters.
 */
#include "runtime/predict/explain.h"
#include "base/struct_version.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/communication.h"
#include "runtime/perf/operator_traits.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/roofline.h"
#include "runtime/predict/analytic_correction.h"
#include "runtime/predict/operator_features.h"
#include "runtime/predict/predict.h"

#include <math.h>
#include <stdlib.h>

struct mdot_explanation {
    mdot_explanation_info info;
    mdot_operator_time *operators;
};

static const bs_struct_version info_type = BS_SIZED(mdot_explanation_info, reserved);
static const bs_struct_version operator_time_type = BS_SIZED(mdot_operator_time, activation_bytes);

/* The step in progress: first the time of the queried configuration, then that of the requested one. */
typedef struct work {
    mdot_context *context;
    const mdot_job *job;
    rt_resolved_configuration requested, queried;
    rt_resolved_configuration queried_shard; /* the queried configuration on the requested shard */
    const rt_sharding *sharding;
    double (*operator_ms)[MDOT_PHASE_COUNT];
    double optimizer_ms, host_ms, communication_ms;
    mdot_explanation *out;
} work;

static size_t count_of(const work *w)
{
    return w->job->info.operator_count;
}

static double part_of(const work *w, size_t index)
{
    return w->requested.shard.of[w->sharding->position[index]];
}

/* ---- Time of the queried configuration --------------------------------------------------------------------------- */

/* operator_ms starts as rooflines, which give the operators' relative times. */
static void begin_with_rooflines(work *w)
{
    for (size_t i = 0; i < count_of(w); i++) {
        rt_operator_roofline(w->job, i, &w->queried_shard, w->operator_ms[i]);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) w->operator_ms[i][phase] *= part_of(w, i);
    }
}

static void rely_on_rooflines(work *w)
{
    double backward_ms = 0;
    for (size_t i = 0; i < count_of(w); i++)
        backward_ms += w->operator_ms[i][MDOT_PHASE_DATA_GRADIENT] + w->operator_ms[i][MDOT_PHASE_WEIGHT_GRADIENT];
    w->optimizer_ms = rt_optimizer_ms(&w->queried, rt_parameters(w->job, &w->requested.shard));
    w->communication_ms = rt_communication_ms(w->job, &w->queried, backward_ms);
    w->out->info.approximate |= MDOT_EXPLAINED_BY_ROOFLINE;
}

/* Divides each row's time among its operators in proportion to operator_ms. */
static void divide_rows(work *w, const uint32_t *row_of, const float *row_ms, double *sums, size_t row_count)
{
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        double *weights = sums, *counts = sums + row_count;
        for (size_t r = 0; r < 2 * row_count; r++) sums[r] = 0;
        for (size_t i = 0; i < count_of(w); i++) {
            weights[row_of[i]] += w->operator_ms[i][phase];
            counts[row_of[i]] += part_of(w, i);
        }
        for (size_t i = 0; i < count_of(w); i++) {
            double whole = row_ms[row_of[i] * MDOT_PHASE_COUNT + (size_t)phase], weight = weights[row_of[i]];
            double count = counts[row_of[i]];
            double *ms = &w->operator_ms[i][phase];
            *ms = weight > 0 ? whole * (*ms / weight) : count > 0 ? whole * part_of(w, i) / count : 0;
        }
    }
}

static bool are_times(const float *ms, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(isfinite(ms[i]) && ms[i] >= 0)) return false;
    return true;
}

static mdot_status run_entry(work *w, const mdot_abi_table *table, rt_job_tensors *tensors, float *row_ms,
                             mdot_error *err)
{
    const rt_job_schema *schema = &tensors->schema;
    rt_job_block *block = &tensors->blocks[0];
    float others[RT_OTHER_NUMBERS];
    rt_add_configuration(schema, &w->queried.configuration, block);
    rt_bind_cached_features(schema, &tensors->features, block);
    block->outputs[schema->output_at[RT_JOB_OUTPUT_OPERATORS]] = row_ms;
    block->outputs[schema->output_at[RT_JOB_OUTPUT_OTHERS]] = others;
    rt_item item = {block->inputs, block->outputs};
    rt_run_many(w->context, rt_entry(table, schema->evaluate_entry), (int64_t)tensors->row_count, &item, 1);
    if (!are_times(row_ms, tensors->row_count * MDOT_PHASE_COUNT) || !are_times(others, RT_OTHER_NUMBERS))
        return mdot_fail(err, MDOT_MALFORMED,
                         "the predictor's explanation of the step contains values that are negative, infinite or NaN");
    w->optimizer_ms = (double)others[0];
    w->host_ms = (double)others[1];
    w->communication_ms = (double)others[2];
    return MDOT_OK;
}

static mdot_status rely_on_entry(work *w, const mdot_abi_table *table, const rt_job_schema *schema, mdot_error *err)
{
    const mdot_predictor *predictor = rt_context_predictor(w->context);
    rt_job_tensors *tensors = NULL;
    float *row_ms = NULL;
    double *sums = NULL;
    uint32_t *row_of = calloc(count_of(w), sizeof *row_of);
    mdot_status status = rt_job_tensors_create(predictor, schema, &tensors, err);
    if (status == MDOT_OK) {
        rt_write_operator_features(w->job, &w->requested.shard, tensors);
        row_ms = calloc(tensors->row_count * MDOT_PHASE_COUNT + 1, sizeof *row_ms);
        sums = calloc(2 * tensors->row_count + 1, sizeof *sums);
        if (row_of == NULL || row_ms == NULL || sums == NULL)
            status =
                mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for an explanation of %zu operators", count_of(w));
    }
    if (status == MDOT_OK) status = run_entry(w, table, tensors, row_ms, err);
    if (status == MDOT_OK) {
        rt_find_feature_rows(w->job, &w->requested.shard, tensors, row_of);
        divide_rows(w, row_of, row_ms, sums, tensors->row_count);
    }
    free(row_of);
    free(row_ms);
    free(sums);
    rt_job_tensors_destroy(predictor, tensors);
    return status;
}

static mdot_status explain_queried(work *w, mdot_error *err)
{
    const mdot_abi_table *table = rt_predictor_artefact(rt_context_predictor(w->context))->table;
    rt_job_schema schema;
    begin_with_rooflines(w);
    bool explains = rt_job_schema_read(table, RT_JOB_EXPLAIN, &schema, NULL) == MDOT_OK && schema.row_capacity > 0;
    if (explains) return rely_on_entry(w, table, &schema, err);
    rely_on_rooflines(w);
    return MDOT_OK;
}

/* ---- Time of the requested configuration ------------------------------------------------------------------------- */

static double ratio(double requested, double queried)
{
    return queried > 0 ? requested / queried : 1;
}

/* Converts times from the queried to the requested configuration. The sum is correct only after scaling. */
static void move_to_requested(work *w)
{
    double steps = w->requested.micro_steps / w->queried.micro_steps;
    for (size_t i = 0; i < count_of(w); i++) {
        double requested[MDOT_PHASE_COUNT], queried[MDOT_PHASE_COUNT];
        rt_operator_roofline(w->job, i, &w->requested, requested);
        rt_operator_roofline(w->job, i, &w->queried_shard, queried);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
            w->operator_ms[i][phase] *= steps * ratio(requested[phase], queried[phase]);
    }
    w->host_ms *= steps;
    double parameters = rt_parameters(w->job, &w->requested.shard);
    w->optimizer_ms *= ratio(rt_optimizer_ms(&w->requested, parameters), rt_optimizer_ms(&w->queried, parameters));
}

/* Sums the times of one GPU. */
static double sum_times(const work *w, double out_phase_ms[MDOT_PHASE_COUNT])
{
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) out_phase_ms[phase] = 0;
    for (size_t i = 0; i < count_of(w); i++)
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) out_phase_ms[phase] += w->operator_ms[i][phase];
    double sum = w->optimizer_ms + w->host_ms + w->communication_ms;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) sum += out_phase_ms[phase];
    return sum;
}

/* The fraction of a pipeline's micro-steps in which a GPU waits because the pipeline fills and empties. */
static double idle_fraction(const work *w)
{
    return ((double)w->requested.configuration.c.pipeline_parallel - 1) / w->requested.micro_steps;
}

/* Elements that an operator has on this GPU. The optimizer's time is divided in proportion to them. */
static double parameters_of(const work *w, size_t index, bool frozen_too)
{
    const mdot_job_operator *op = &w->job->operators[index];
    double elements = op->parameters + (frozen_too ? op->frozen_parameters : 0);
    return part_of(w, index) * elements / rt_shard_divisor(w->sharding, index, &w->requested.shard);
}

static void write_times(work *w, double step_ms, const rt_correction *corrected)
{
    mdot_explanation_info *info = &w->out->info;
    double fixed_ms = 0; /* already known; the rest is scaled to the remainder of the step */
    if (corrected->is_analytic) info->approximate |= MDOT_EXPLAINED_BY_MODEL;
    if (corrected->differs) move_to_requested(w);
    if (corrected->exchanges) {
        fixed_ms = corrected->exchanged_ms;
        w->communication_ms = 0;
    }
    double phase_ms[MDOT_PHASE_COUNT], sum = sum_times(w, phase_ms);
    if (!(sum > 0)) w->host_ms = sum = 1; /* the time cannot be attributed, so the host gets all of it */
    double scale = (step_ms - fixed_ms) / sum;
    double busy = 1 - idle_fraction(w), all_parameters = 0;
    for (size_t i = 0; i < count_of(w); i++) all_parameters += parameters_of(w, i, false);
    for (size_t i = 0; i < count_of(w); i++) {
        mdot_operator_time *time = &w->out->operators[i];
        const double *ms = w->operator_ms[i];
        time->forward_ms = scale * busy * ms[MDOT_PHASE_FORWARD];
        time->data_gradient_ms = scale * busy * ms[MDOT_PHASE_DATA_GRADIENT];
        time->weight_gradient_ms = scale * busy * ms[MDOT_PHASE_WEIGHT_GRADIENT];
        if (all_parameters > 0)
            time->optimizer_ms = scale * w->optimizer_ms * (parameters_of(w, i, false) / all_parameters);
    }
    info->forward_ms = scale * busy * phase_ms[MDOT_PHASE_FORWARD];
    info->data_gradient_ms = scale * busy * phase_ms[MDOT_PHASE_DATA_GRADIENT];
    info->weight_gradient_ms = scale * busy * phase_ms[MDOT_PHASE_WEIGHT_GRADIENT];
    info->optimizer_ms = scale * w->optimizer_ms;
    info->host_ms = scale * busy * w->host_ms;
    info->communication_ms = fixed_ms + scale * w->communication_ms;
    info->idle_ms = scale * (1 - busy) * (sum - w->optimizer_ms - w->communication_ms);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Adds `bytes` to a field of every operator's result in proportion to `weights`, or equally if all weights are 0. */
static void spread(work *w, double bytes, const double *weights, size_t field)
{
    double sum = 0, equal = bytes / (double)count_of(w);
    for (size_t i = 0; i < count_of(w); i++) sum += weights[i];
    for (size_t i = 0; i < count_of(w); i++) {
        double *to = (double *)(void *)((char *)&w->out->operators[i] + field);
        *to += sum > 0 ? bytes * (weights[i] / sum) : equal;
    }
}

static mdot_status write_memory(work *w, mdot_error *err)
{
    size_t count = count_of(w);
    rt_memory m = rt_measure_memory(w->job, &w->requested);
    double *parameters = calloc(4 * count, sizeof *parameters);
    double *weights = parameters + count, *half = weights + count, *activations = half + count;
    bool allocated = parameters != NULL && rt_shard_activations(w->job, w->sharding, &w->requested.activation_case,
                                                                w->requested.shard.tensor, activations);
    if (allocated) {
        for (size_t i = 0; i < count; i++) {
            parameters[i] = parameters_of(w, i, false);
            weights[i] = parameters_of(w, i, true);
            half[i] = rt_uses_tensor_cores(&w->job->operators[i]) ? weights[i] : 0;
        }
        spread(w, m.weights, weights, offsetof(mdot_operator_time, weight_bytes));
        spread(w, m.gradients, parameters, offsetof(mdot_operator_time, gradient_bytes));
        spread(w, m.optimizer, parameters, offsetof(mdot_operator_time, optimizer_bytes));
        bool in_pass = m.pass_activations + m.half_weights >= m.activations;
        spread(w, in_pass ? m.pass_activations : m.activations, in_pass ? activations : parameters,
               offsetof(mdot_operator_time, activation_bytes));
        if (in_pass) spread(w, m.half_weights, half, offsetof(mdot_operator_time, activation_bytes));
        mdot_explanation_info *info = &w->out->info;
        info->weight_bytes = m.weights;
        info->gradient_bytes = m.gradients;
        info->optimizer_bytes = m.optimizer;
        info->activation_bytes = m.activations;
    }
    free(parameters);
    if (allocated) return MDOT_OK;
    return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for an explanation of %zu operators", count);
}

/* ---- Public functions -------------------------------------------------------------------------------------------- */

static mdot_status explain(work *w, const rt_answer *answer, mdot_error *err)
{
    mdot_status status = explain_queried(w, err);
    if (status != MDOT_OK) return status;
    rt_correction corrected = rt_correct(&w->requested, &w->queried, w->job, answer->queried_ms);
    write_times(w, answer->prediction.step_ms, &corrected);
    return write_memory(w, err);
}

static void free_explanation(mdot_explanation *explanation)
{
    if (explanation != NULL) free(explanation->operators);
    free(explanation);
}

static mdot_status predict_and_explain(mdot_context *context, const mdot_job *job,
                                       const mdot_configuration *configuration, rt_answer *out_answer,
                                       mdot_explanation **out_explanation, mdot_error *err)
{
    work w = {.context = context, .job = job, .sharding = &job->analysis->sharding};
    mdot_status status = rt_answer_one(context, job, configuration, out_answer, err);
    if (status != MDOT_OK) return status;
    w.requested = out_answer->requested;
    w.queried = w.queried_shard = out_answer->queried;
    w.queried_shard.shard = w.requested.shard;
    w.operator_ms = calloc(count_of(&w), sizeof *w.operator_ms);
    w.out = calloc(1, sizeof *w.out);
    if (w.out != NULL) w.out->operators = calloc(count_of(&w), sizeof *w.out->operators);
    bool allocated = w.operator_ms != NULL && w.out != NULL && w.out->operators != NULL;
    if (allocated) {
        w.out->info = (mdot_explanation_info){.struct_size = sizeof w.out->info,
                                              .operator_count = count_of(&w),
                                              .step_ms = out_answer->prediction.step_ms};
        status = explain(&w, out_answer, err);
    } else {
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for an explanation of %zu operators", count_of(&w));
    }
    free(w.operator_ms);
    if (status != MDOT_OK) {
        free_explanation(w.out);
        return status;
    }
    *out_explanation = w.out;
    return MDOT_OK;
}

mdot_status rt_explain_one(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                           mdot_prediction *out_prediction, mdot_explanation_info *out_info, mdot_error *err)
{
    rt_answer answer;
    mdot_explanation *made = NULL;
    mdot_status status = predict_and_explain(context, job, configuration, &answer, &made, err);
    if (status != MDOT_OK) return status;
    *out_prediction = answer.prediction;
    *out_info = made->info;
    free_explanation(made);
    return MDOT_OK;
}

mdot_status mdot_explain(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                         mdot_explanation **out_explanation, mdot_error *err)
{
    if (context == NULL || job == NULL || configuration == NULL || out_explanation == NULL)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "mdot_explain: context, job, configuration or out_explanation is NULL");
    mdot_status status = rt_handle_enter(context, __func__, err);
    if (status != MDOT_OK) return status;
    rt_answer answer;
    mdot_explanation *made = NULL;
    status = rt_handle_check(job, RT_JOB, __func__, err);
    if (status == MDOT_OK) status = predict_and_explain(context, job, configuration, &answer, &made, err);
    rt_handle_leave(context);
    if (status != MDOT_OK) return status;
    rt_handle_register(made, RT_EXPLANATION);
    *out_explanation = made;
    return MDOT_OK;
}

void mdot_explanation_destroy(mdot_explanation *explanation)
{
    if (explanation == NULL || !rt_handle_unregister(explanation, RT_EXPLANATION, __func__)) return;
    free(explanation->operators);
    if (!rt_validates_handles()) free(explanation);
}

mdot_status mdot_explanation_get_info(const mdot_explanation *explanation, mdot_explanation_info *out_info)
{
    if (explanation == NULL || !rt_handle_is_live(explanation, RT_EXPLANATION, __func__)) return MDOT_INVALID_ARGUMENT;
    return bs_fill_struct(&info_type, &explanation->info, out_info, NULL);
}

mdot_status mdot_explanation_get_operator(const mdot_explanation *explanation, size_t index,
                                          mdot_operator_time *out_operator)
{
    if (explanation == NULL || !rt_handle_is_live(explanation, RT_EXPLANATION, __func__)) return MDOT_INVALID_ARGUMENT;
    if (index >= explanation->info.operator_count) return MDOT_OUT_OF_RANGE;
    return bs_fill_struct(&operator_time_type, &explanation->operators[index], out_operator, NULL);
}
