/* explain.c — breaks a predicted step down: its time by operator and phase, its memory by operator.
 *
 * Time. An artefact with an entry "explain" breaks its answer down by row (mdot_explain.h). A row
 * stands for several operators, among which its time is divided in proportion to their rooflines. Each operator's time
 * is multiplied by the ratio of its own rooflines, requested over queried. The operators of one kind of work in one
 * pass are then scaled to that part of the prediction (analytic_correction.c). If the artefact lacks the entry, only
 * rooflines divide the step, and the explanation is marked accordingly.
 *
 * Memory. Weights, gradients and the optimizer's state are assigned by parameters. Activations are the tensors alive
 * at the peak (activation_memory.c), each assigned to its operator. If the optimizer's update takes more memory than
 * they do, its bytes are assigned by parameters.
 */
#include "base/struct_version.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/operator_traits.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/step_time.h"
#include "runtime/predict/analytic_correction.h"
#include "runtime/predict/predict.h"
#include "runtime/predict/predictor_tensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct mdot_explanation {
    mdot_explanation_info info;
    mdot_operator_time *operators;
    rt_job_identity identity; /* a copy, because an explanation may outlive its job */
};

static const bs_struct_version info_type = BS_SIZED(mdot_explanation_info, reserved);
static const bs_struct_version operator_time_type = BS_SIZED(mdot_operator_time, activation_bytes);

/* The step in progress: first the queried configuration's time, then the requested one's. */
typedef struct breakdown {
    mdot_context *context;
    const mdot_job *job;
    rt_resolved_configuration requested, queried;
    rt_resolved_configuration queried_shard; /* the queried configuration on the requested shard */
    const rt_sharding *sharding;
    double (*operator_ms)[MDOT_PHASE_COUNT];
    double optimizer_ms, host_ms, communication_ms;
    double host_busy_ms; /* 0 if the predictor lacks it */
    bool explains;       /* the predictor has an entry "explain" */
    mdot_explanation *out;
} breakdown;

static size_t count_of(const breakdown *b) { return b->job->info.operator_count; }

static double part_of(const breakdown *b, size_t index) { return b->requested.shard.of[b->sharding->position[index]]; }

/* operator_ms starts as rooflines, which give the operators' relative times. */
static void start_with_rooflines(breakdown *b, const rt_resolved_configuration *resolved)
{
    for (size_t i = 0; i < count_of(b); i++) {
        rt_operator_roofline(b->job, i, resolved, b->operator_ms[i]);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) b->operator_ms[i][phase] *= part_of(b, i);
    }
}

static void use_rooflines(breakdown *b)
{
    double backward_ms = 0;
    for (size_t i = 0; i < count_of(b); i++)
        backward_ms += b->operator_ms[i][MDOT_PHASE_DATA_GRADIENT] + b->operator_ms[i][MDOT_PHASE_WEIGHT_GRADIENT];
    b->optimizer_ms = rt_optimizer_ms(b->job, &b->queried, &b->requested.shard);
    b->communication_ms = rt_communication_ms(b->job, &b->queried, backward_ms);
    b->out->info.approximate |= MDOT_EXPLAINED_BY_ROOFLINE;
}

/* Divides each row's time among its operators in proportion to operator_ms. */
static void divide_rows(breakdown *b, const uint32_t *row_of, const float *row_ms, double *sums, size_t row_count)
{
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        double *weights = sums, *counts = sums + row_count;
        for (size_t r = 0; r < 2 * row_count; r++) sums[r] = 0;
        for (size_t i = 0; i < count_of(b); i++) {
            weights[row_of[i]] += b->operator_ms[i][phase];
            counts[row_of[i]] += part_of(b, i);
        }
        for (size_t i = 0; i < count_of(b); i++) {
            double whole = row_ms[row_of[i] * MDOT_PHASE_COUNT + (size_t)phase], weight = weights[row_of[i]];
            double count = counts[row_of[i]];
            double *ms = &b->operator_ms[i][phase];
            *ms = weight > 0 ? whole * (*ms / weight) : count > 0 ? whole * part_of(b, i) / count : 0;
        }
    }
}

static bool are_times(const float *ms, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!(isfinite(ms[i]) && ms[i] >= 0)) return false;
    return true;
}

static mdot_status run_entry(breakdown *b, const mdot_abi_table *table, rt_job_tensors *tensors, float *row_ms,
                             mdot_error *err)
{
    const rt_job_schema *schema = &tensors->schema;
    rt_job_block *block = &tensors->blocks[0];
    float others[RT_OTHER_NUMBERS] = {0}; /* a predictor may lack the last one */
    rt_add_configuration(schema, &b->queried.configuration, block);
    rt_bind_cached_features(schema, &tensors->features, block);
    block->outputs[schema->output_at[RT_JOB_OUTPUT_OPERATORS]] = row_ms;
    block->outputs[schema->output_at[RT_JOB_OUTPUT_OTHERS]] = others;
    rt_item item = {block->inputs, block->outputs};
    rt_run_many(b->context, rt_entry(table, schema->evaluate_entry), (int64_t)tensors->row_count, &item, 1);
    if (!are_times(row_ms, tensors->row_count * MDOT_PHASE_COUNT) || !are_times(others, schema->other_count))
        return mdot_fail(err, MDOT_MALFORMED,
                         "the predictor's explanation of the step contains values that are negative, infinite or NaN");
    b->optimizer_ms = (double)others[0];
    b->host_ms = (double)others[1];
    b->communication_ms = (double)others[2];
    b->host_busy_ms = (double)others[RT_OTHER_PARTS];
    return MDOT_OK;
}

static mdot_status use_explain_entry(breakdown *b, const mdot_abi_table *table, const rt_job_schema *schema,
                                     mdot_error *err)
{
    const mdot_predictor *predictor = rt_context_predictor(b->context);
    rt_job_tensors *tensors = NULL;
    float *row_ms = NULL;
    double *sums = NULL;
    uint32_t *row_of = calloc(count_of(b), sizeof *row_of);
    mdot_status status = rt_job_tensors_create(predictor, schema, &tensors, err);
    if (status == MDOT_OK) {
        rt_write_operator_features(b->job, &b->requested.shard, tensors);
        row_ms = calloc(tensors->row_count * MDOT_PHASE_COUNT + 1, sizeof *row_ms);
        sums = calloc(2 * tensors->row_count + 1, sizeof *sums);
        if (row_of == NULL || row_ms == NULL || sums == NULL) status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    if (status == MDOT_OK) status = run_entry(b, table, tensors, row_ms, err);
    if (status == MDOT_OK) {
        rt_find_feature_rows(b->job, &b->requested.shard, tensors, row_of);
        divide_rows(b, row_of, row_ms, sums, tensors->row_count);
    }
    free(row_of);
    free(row_ms);
    free(sums);
    rt_job_tensors_destroy(predictor, tensors);
    return status;
}

static mdot_status explain_queried(breakdown *b, mdot_error *err)
{
    const mdot_abi_table *table = rt_predictor_artefact(rt_context_predictor(b->context))->table;
    rt_job_schema schema;
    bool explains = rt_job_schema_read(table, RT_JOB_EXPLAIN, &schema, NULL) == MDOT_OK && schema.row_capacity > 0;
    b->explains = explains;
    if (explains) {
        /* The predictor knows equal operators as equal. Without fusion, their rooflines are equal, too. */
        rt_resolved_configuration unfused = b->queried_shard;
        unfused.configuration.c.compiled = 0;
        unfused.fused = 0;
        start_with_rooflines(b, &unfused);
        return use_explain_entry(b, table, &schema, err);
    }
    start_with_rooflines(b, &b->queried_shard);
    use_rooflines(b);
    return MDOT_OK;
}

static rt_pass pass_of(int phase) { return phase == MDOT_PHASE_FORWARD ? RT_PASS_FORWARD : RT_PASS_BACKWARD; }

static double ratio(double requested, double queried) { return queried > 0 ? requested / queried : 1; }

/* The operators' times, by pass and work. */
static void sum_operators(const breakdown *b, double out_ms[RT_PASS_COUNT][RT_WORK_COUNT])
{
    memset(out_ms, 0, sizeof(double[RT_PASS_COUNT][RT_WORK_COUNT]));
    for (size_t i = 0; i < count_of(b); i++) {
        rt_work work = rt_work_of(&b->job->operators[i]);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) out_ms[pass_of(phase)][work] += b->operator_ms[i][phase];
    }
}

/* The parts of the queried step as the entry "explain" divides it. Without a part, all of it is the host's. */
static rt_step_parts parts_of_explanation(const breakdown *b, double queried_ms)
{
    double steps = b->queried.micro_steps;
    rt_step_parts parts = {.optimizer_ms = b->optimizer_ms, .wait_ms = b->host_ms / steps, .is_learned = b->explains};
    sum_operators(b, parts.pass_ms);
    for (int pass = 0; pass < RT_PASS_COUNT; pass++)
        for (int work = 0; work < RT_WORK_COUNT; work++) parts.pass_ms[pass][work] /= steps;
    if (!(rt_overlapped_ms(&parts, steps) > 0)) parts.wait_ms = queried_ms / steps;
    return parts;
}

/* Multiplies each operator's time by the ratio of its rooflines, and replaces the time of those that fused kernels run.
 * The sums are correct only after scaling. */
static void convert_to_requested(breakdown *b, const rt_step_parts *parts)
{
    bool fuses = rt_replaces_fused_kernels(&b->requested, b->job, parts);
    rt_resolved_configuration unfused = b->requested;
    if (fuses) unfused.fused = b->queried.fused;
    double fused = b->requested.fused;
    for (size_t i = 0; i < count_of(b); i++) {
        double requested[MDOT_PHASE_COUNT], queried[MDOT_PHASE_COUNT], in_kernels[MDOT_PHASE_COUNT];
        bool is_fused = fuses && rt_work_of(&b->job->operators[i]) == RT_WORK_OTHER;
        rt_operator_roofline(b->job, i, is_fused ? &unfused : &b->requested, requested);
        rt_operator_roofline(b->job, i, &b->queried_shard, queried);
        if (is_fused) rt_fused_operator_ms(b->job, i, &b->requested, in_kernels);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            double *ms = &b->operator_ms[i][phase];
            *ms *= ratio(requested[phase], queried[phase]);
            if (is_fused) *ms += fused * (part_of(b, i) * b->requested.micro_steps * in_kernels[phase] - *ms);
        }
    }
}

/* Elements that an operator has on this GPU. The optimizer's time is divided in proportion to them. */
static double parameters_of(const breakdown *b, size_t index, bool frozen_too)
{
    const mdot_job_operator *op = &b->job->operators[index];
    double elements = frozen_too ? op->parameters + op->frozen_parameters : rt_dense_parameters(op);
    return part_of(b, index) * elements / rt_shard_divisor(b->sharding, index, &b->requested.shard);
}

/* The elements that the update of an operator's parameters moves: those of the rows that a step looks up, in a table
 * with sparse gradients. */
static double updated_of(const breakdown *b, size_t index)
{
    const mdot_job_operator *op = &b->job->operators[index];
    if (!rt_has_sparse_gradient(op)) return parameters_of(b, index, false);
    double samples = (double)b->requested.configuration.micro_batch * b->requested.steps;
    return fmin(op->parameters, samples * op->per_sample[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written / sizeof(float));
}

/* Scales the operators' times to `parts`, of all micro-steps that this GPU computes. */
static void write_operator_times(breakdown *b, const rt_step_parts *parts, double scale)
{
    double sum_ms[RT_PASS_COUNT][RT_WORK_COUNT], updated = 0;
    sum_operators(b, sum_ms);
    for (size_t i = 0; i < count_of(b); i++) updated += updated_of(b, i);
    for (size_t i = 0; i < count_of(b); i++) {
        mdot_operator_time *time = &b->out->operators[i];
        rt_work work = rt_work_of(&b->job->operators[i]);
        double ms[MDOT_PHASE_COUNT];
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            double sum = sum_ms[pass_of(phase)][work];
            ms[phase] = sum > 0 ? scale * parts->pass_ms[pass_of(phase)][work] * (b->operator_ms[i][phase] / sum) : 0;
        }
        time->forward_ms = ms[MDOT_PHASE_FORWARD];
        time->data_gradient_ms = ms[MDOT_PHASE_DATA_GRADIENT];
        time->weight_gradient_ms = ms[MDOT_PHASE_WEIGHT_GRADIENT];
        if (updated > 0) time->optimizer_ms = b->out->info.optimizer_ms * (updated_of(b, i) / updated);
        b->out->info.forward_ms += time->forward_ms;
        b->out->info.data_gradient_ms += time->data_gradient_ms;
        b->out->info.weight_gradient_ms += time->weight_gradient_ms;
    }
}

/* `step_ms` without data loaders. */
static void write_times(breakdown *b, double step_ms, bool is_own, const rt_correction *corrected)
{
    mdot_explanation_info *info = &b->out->info;
    info->data_ms = info->step_ms - step_ms;
    if (corrected->is_analytic) info->approximate |= MDOT_EXPLAINED_BY_MODEL;
    const rt_step_parts *parts = &corrected->parts;
    convert_to_requested(b, parts);
    double exchanged = corrected->exchanges ? corrected->exchanged_ms : b->communication_ms;
    double waited = exchanged + corrected->transferred_ms + corrected->launched_ms + corrected->shown_ms;
    double host_busy_ms = is_own ? b->host_busy_ms / b->queried.micro_steps : parts->host_ms;
    double micro_steps = b->requested.micro_steps, busy = b->requested.steps / micro_steps;
    double overlapped = rt_overlapped_ms(parts, micro_steps);
    /* 1, unless the prediction and its explanation divide the step differently */
    double scale = step_ms / (overlapped + waited);
    info->optimizer_ms = scale * parts->optimizer_ms;
    write_operator_times(b, parts, scale * b->requested.steps);
    double computed = info->forward_ms + info->data_gradient_ms + info->weight_gradient_ms;
    info->communication_ms = scale * (exchanged + corrected->transferred_ms);
    rt_step_parts passes = *parts;
    passes.optimizer_ms = 0;
    info->idle_ms = scale * (1 - busy) * rt_overlapped_ms(&passes, micro_steps);
    /* the rest: the GPU waits, or works on operators that cannot be named */
    info->host_ms = fmax(step_ms - computed - info->optimizer_ms - info->communication_ms - info->idle_ms, 0);
    info->gpu_busy_ms = computed + info->optimizer_ms;
    info->host_busy_ms = fmax(scale * (b->requested.steps * host_busy_ms + corrected->launched_ms), info->host_ms);
    info->overlap_ms = info->host_busy_ms - info->host_ms;
}

/* Adds `bytes` to a field of every operator's result in proportion to `weights`, or equally if all weights are 0. */
static void distribute(breakdown *b, double bytes, const double *weights, size_t field)
{
    double sum = 0, equal = bytes / (double)count_of(b);
    for (size_t i = 0; i < count_of(b); i++) sum += weights[i];
    for (size_t i = 0; i < count_of(b); i++) {
        double *target = (double *)(void *)((char *)&b->out->operators[i] + field);
        *target += sum > 0 ? bytes * (weights[i] / sum) : equal;
    }
}

static mdot_status write_memory(breakdown *b, mdot_error *err)
{
    size_t count = count_of(b);
    rt_memory m = rt_measure_memory(b->job, &b->requested);
    double *parameters = calloc(4 * count, sizeof *parameters);
    double *weights = parameters + count, *half = weights + count, *activations = half + count;
    double batch = (double)b->requested.configuration.micro_batch;
    const double weight[RT_BATCH_TERMS] = {1, batch, 1 / batch};
    const rt_job_totals *totals = &b->job->analysis->totals;
    mdot_job weighed = *b->job;
    bool has_terms = totals->has_squares || totals->has_constants;
    bool allocated = parameters != NULL && (!has_terms || rt_weigh_terms(b->job, weight, &weighed)) &&
                     rt_shard_activations(&weighed, b->sharding, totals->logits, &b->requested.activation_case,
                                          b->requested.shard.tensor, activations);
    if (has_terms && parameters != NULL) free(weighed.operators);
    if (allocated) {
        for (size_t i = 0; i < count; i++) {
            parameters[i] = parameters_of(b, i, false);
            weights[i] = parameters_of(b, i, true);
            half[i] = rt_uses_tensor_cores(&b->job->operators[i]) ? weights[i] : 0;
        }
        distribute(b, m.weights, weights, offsetof(mdot_operator_time, weight_bytes));
        distribute(b, m.gradients, parameters, offsetof(mdot_operator_time, gradient_bytes));
        distribute(b, m.optimizer, parameters, offsetof(mdot_operator_time, optimizer_bytes));
        bool in_pass = m.pass_activations + m.half_weights > 0;
        distribute(b, in_pass ? m.pass_activations : m.activations, in_pass ? activations : parameters,
                   offsetof(mdot_operator_time, activation_bytes));
        if (in_pass) distribute(b, m.half_weights, half, offsetof(mdot_operator_time, activation_bytes));
        mdot_explanation_info *info = &b->out->info;
        info->weight_bytes = m.weights;
        info->gradient_bytes = m.gradients;
        info->optimizer_bytes = m.optimizer;
        info->activation_bytes = m.activations;
    }
    free(parameters);
    if (allocated) return MDOT_OK;
    return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
}

static mdot_status explain(breakdown *b, const rt_answer *answer, mdot_error *err)
{
    BS_TRY(explain_queried(b, err));
    bool is_own = b->explains && !answer->has_parts; /* the entries may divide the step differently */
    rt_step_parts parts = is_own ? parts_of_explanation(b, answer->queried_ms) : answer->parts;
    rt_job_tensors *tensors = rt_context_state(b->context, &rt_predict_extension); /* of the answer's job */
    rt_correction corrected = rt_correct(&b->requested, &b->queried, b->job, &parts, &tensors->typical);
    write_times(b, answer->prediction.gpu_ms, is_own, &corrected);
    return write_memory(b, err);
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
    breakdown b = {.context = context, .job = job, .sharding = &job->analysis->sharding};
    mdot_status status = rt_answer_one(context, job, configuration, out_answer, err);
    if (status != MDOT_OK) return status;
    b.requested = out_answer->requested;
    b.queried = b.queried_shard = out_answer->queried;
    b.queried_shard.shard = b.requested.shard;
    b.operator_ms = calloc(count_of(&b), sizeof *b.operator_ms);
    b.out = calloc(1, sizeof *b.out);
    if (b.out != NULL) b.out->operators = calloc(count_of(&b), sizeof *b.out->operators);
    bool allocated = b.operator_ms != NULL && b.out != NULL && b.out->operators != NULL;
    if (allocated) {
        b.out->identity = job->analysis->identity;
        b.out->info = (mdot_explanation_info){.struct_size = sizeof b.out->info,
                                              .operator_count = count_of(&b),
                                              .step_ms = out_answer->prediction.step_ms};
        status = explain(&b, out_answer, err);
    } else {
        status = mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    free(b.operator_ms);
    if (status != MDOT_OK) {
        free_explanation(b.out);
        return status;
    }
    *out_explanation = b.out;
    return MDOT_OK;
}

const rt_job_identity *rt_explained_job(const mdot_explanation *explanation) { return &explanation->identity; }

mdot_status mdot_explain(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                         mdot_explanation **out_explanation, mdot_error *err)
{
    if (context == NULL || job == NULL || configuration == NULL || out_explanation == NULL)
        return BS_INVALID(err, "mdot_explain: context, job, configuration or out_explanation is NULL");
    BS_TRY(rt_handle_enter(context, __func__, err));
    rt_answer answer;
    mdot_explanation *made = NULL;
    mdot_status status = rt_handle_check(job, RT_JOB, __func__, err);
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
