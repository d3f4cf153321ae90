/* calibrate.c — corrects a predictor's answers with a site's measurements: the public calls. The model is described in
 * calibration_prior.c and calibration_fit.c.
 */
#include "base/struct_version.h"
#include "base/text.h"
#include "runtime/core/core.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/predict/calibration.h"
#include "runtime/predict/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const bs_struct_version prediction_type = BS_SIZED(mdot_prediction, warnings);
static const bs_struct_version info_type = BS_SIZED(mdot_calibration_info, interval);
static const bs_struct_version gpu_type = BS_SIZED(mdot_calibration_gpu, half_interval);
static const bs_struct_version factors_type = BS_SIZED(mdot_calibration_factors, carried_factor);
static_assert((int)RT_TERMS == (int)MDOT_CALIBRATION_EFFECT_COUNT, "the public effects are the terms of the model");

const char *mdot_calibration_effect_name(mdot_calibration_effect effect)
{
    static const char *const names[] = {
#define NAME(id, name) name,
        MDOT_CALIBRATION_EFFECT_MAP(NAME)
#undef NAME
    };
    return (unsigned)effect < MDOT_CALIBRATION_EFFECT_COUNT ? names[effect] : "?";
}

/* A calibration file holds the name as one non-empty line of printable text. */
static void copy_predictor_name(mdot_calibration *calibration, const char *name)
{
    memcpy(calibration->predictor, name, bs_cut_length(name, sizeof calibration->predictor - 1));
    bs_make_printable(calibration->predictor);
    if (calibration->predictor[0] == '\0') calibration->predictor[0] = '?';
}

static mdot_status make(mdot_context *context, const mdot_measurement *rows, size_t count, const char *function,
                        mdot_calibration **out_calibration, mdot_error *err)
{
    const mdot_abi_table *table = rt_predictor_artefact(rt_context_predictor(context))->table;
    mdot_calibration *calibration = calloc(1, sizeof *calibration);
    if (calibration == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    copy_predictor_name(calibration, rt_string(table, table->name_at));
    mdot_status status = rt_calibration_read_rows(context, rows, count, function, calibration, err);
    if (status == MDOT_OK) status = rt_calibration_fit(calibration, true, err);
    if (status != MDOT_OK) {
        rt_calibration_free(calibration);
        return status;
    }
    rt_handle_register(calibration, RT_CALIBRATION);
    *out_calibration = calibration;
    return MDOT_OK;
}

static mdot_status make_entered(mdot_context *context, const mdot_measurement *rows, size_t count,
                                mdot_calibration **out_calibration, const char *function, mdot_error *err)
{
    BS_TRY(rt_handle_enter(context, function, err));
    mdot_status status = make(context, rows, count, function, out_calibration, err);
    rt_handle_leave(context);
    return status;
}

static mdot_status refuse_count(size_t count, mdot_error *err)
{
    return mdot_fail(err, MDOT_OUT_OF_RANGE, "%zu measured steps are too many; the limit is %d", count,
                     RT_CALIBRATION_MAX_ROWS);
}

mdot_status mdot_calibrate_measured(mdot_context *context, const mdot_measurement *rows, size_t count,
                                    mdot_calibration **out_calibration, mdot_error *err)
{
    if (context == NULL || out_calibration == NULL || (count > 0 && rows == NULL))
        return BS_INVALID(err, "mdot_calibrate_measured: context, rows or out_calibration is NULL");
    if (count > RT_CALIBRATION_MAX_ROWS) return refuse_count(count, err);
    return make_entered(context, rows, count, out_calibration, __func__, err);
}

mdot_status mdot_calibrate(mdot_context *context, const mdot_job *const *jobs, const mdot_configuration *configurations,
                           const double *measured_ms, size_t count, mdot_calibration **out_calibration, mdot_error *err)
{
    if (context == NULL || out_calibration == NULL ||
        (count > 0 && (jobs == NULL || configurations == NULL || measured_ms == NULL)))
        return BS_INVALID(err, "mdot_calibrate: context, jobs, configurations, measured_ms or out_calibration is NULL");
    if (count > RT_CALIBRATION_MAX_ROWS) return refuse_count(count, err);
    mdot_measurement *rows = calloc(count + 1, sizeof *rows);
    if (rows == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < count; i++)
        rows[i] = (mdot_measurement){.struct_size = sizeof *rows,
                                     .job = jobs[i],
                                     .configuration = bs_struct_at(configurations, i),
                                     .step_ms = measured_ms[i]};
    mdot_status status = make_entered(context, rows, count, out_calibration, __func__, err);
    free(rows);
    return status;
}

/* A prediction to be corrected. */
typedef struct question {
    const rt_calibration_gpu *gpu; /* NULL: it lacks rows */
    rt_step step;
    mdot_prediction prediction;
} question;

static bool are_bounds(double lower, double middle, double upper)
{
    return lower > 0 && lower <= middle && middle <= upper && isfinite(upper);
}

static void set_job(const mdot_calibration *calibration, const rt_job_identity *identity, rt_step *step)
{
    step->job = rt_calibration_find_job(calibration, identity->digest);
    step->share = identity->share;
}

/* Reads the prediction and the configuration. */
static mdot_status read_question(const mdot_calibration *calibration, const mdot_configuration *configuration,
                                 const mdot_prediction *prediction, question *out, mdot_error *err)
{
    const char *name = NULL;
    BS_TRY(bs_read_struct(&prediction_type, prediction, &out->prediction, err));
    BS_TRY(rt_calibration_step(configuration, &out->step, &name, err));
    rt_complete_prediction(&out->prediction);
    const mdot_prediction *p = &out->prediction;
    bool is_step = are_bounds(p->lower_ms, p->step_ms, p->upper_ms);
    if (!is_step || !are_bounds(p->gpu_lower_ms, p->gpu_ms, p->gpu_upper_ms))
        return BS_INVALID(err,
                          "a prediction of %g %sms, %g to %g, is invalid, because bounds ascend: calibrate only "
                          "predictions that succeeded",
                          is_step ? p->gpu_ms : p->step_ms, is_step ? "GPU " : "",
                          is_step ? p->gpu_lower_ms : p->lower_ms, is_step ? p->gpu_upper_ms : p->upper_ms);
    rt_state_deviations(p, &out->step);
    out->gpu = rt_calibration_find_gpu(calibration, name);
    out->step.host_share = p->host_share;
    out->step.is_new_gpu = out->gpu != NULL && out->gpu->is_new;
    return MDOT_OK;
}

static uint64_t round_bytes(double bytes) { return bytes > 0 ? (uint64_t)fmin(rint(bytes), 9e18) : 0; }

/* The difference belongs to the activations, unless they are smaller. Then all parts are scaled. */
static void correct_memory(mdot_prediction *p, const rt_corrected *corrected)
{
    double before = (double)p->peak_memory_bytes, factor = exp(corrected->mean), after = before * factor;
    if (!(before > 0)) return;
    double lower = (double)p->memory_lower_bytes / before, upper = (double)p->memory_upper_bytes / before;
    double fixed = p->weight_bytes + p->gradient_bytes + p->optimizer_bytes;
    double scale = after > fixed ? 1 : factor;
    p->weight_bytes *= scale;
    p->gradient_bytes *= scale;
    p->optimizer_bytes *= scale;
    p->activation_bytes = after > fixed ? after - fixed : p->activation_bytes * scale;
    p->reserved_bytes = round_bytes((double)p->reserved_bytes + (after - before) + p->rounding_bytes * (factor - 1));
    p->rounding_bytes *= factor;
    p->peak_memory_bytes = round_bytes(after);
    p->memory_lower_bytes = lower > 0 ? round_bytes(after * pow(lower, corrected->interval)) : 0;
    p->memory_upper_bytes = upper > 0 ? round_bytes(after * pow(upper, corrected->interval)) : 0;
    p->fits = p->reserved_bytes <= p->usable_bytes;
}

static void correct(const mdot_calibration *calibration, question *q)
{
    mdot_prediction *p = &q->prediction;
    rt_corrected time, memory;
    rt_calibration_correct(calibration, q->gpu, RT_QUANTITY_TIME, &q->step, &time);
    rt_calibration_correct(calibration, q->gpu, RT_QUANTITY_MEMORY, &q->step, &memory);
    double gpu_ms = p->gpu_ms * exp(time.mean), before_ms = p->step_ms;
    bool is_own = time.half_width > 0;
    p->gpu_lower_ms = gpu_ms * (is_own ? exp(-time.half_width) : pow(p->gpu_lower_ms / p->gpu_ms, time.interval));
    p->gpu_upper_ms = gpu_ms * (is_own ? exp(time.half_width) : pow(p->gpu_upper_ms / p->gpu_ms, time.interval));
    p->gpu_ms = gpu_ms;
    rt_wait_for_data(p);
    double factor = p->step_ms / before_ms;
    p->compute_share /= factor;
    p->memory_share /= factor;
    p->energy_joules *= factor; /* at the same average power */
    if (q->step.job != RT_NO_JOB && calibration->jobs[q->step.job].waits && p->loader_ms == 0)
        p->warnings |= MDOT_WARN_WAITED_FOR_DATA;
    if (memory.mean != 0 || memory.interval != 1) correct_memory(p, &memory);
}

mdot_status mdot_calibration_apply_to_job(const mdot_calibration *calibration, const mdot_job *job,
                                          const mdot_configuration *configuration, mdot_prediction *prediction,
                                          mdot_error *err)
{
    if (calibration == NULL || job == NULL || configuration == NULL || prediction == NULL)
        return BS_INVALID(err, "mdot_calibration_apply_to_job: calibration, job, configuration or prediction is NULL");
    question q;
    BS_TRY(rt_handle_check(calibration, RT_CALIBRATION, __func__, err));
    BS_TRY(rt_handle_check(job, RT_JOB, __func__, err));
    BS_TRY(read_question(calibration, configuration, prediction, &q, err));
    set_job(calibration, &job->analysis->identity, &q.step);
    correct(calibration, &q);
    bs_write_struct(&prediction_type, &q.prediction, prediction, prediction->struct_size);
    return MDOT_OK;
}

static rt_carried explain_quantity(const mdot_calibration *calibration, const question *q, rt_quantity quantity,
                                   double *factor, double *interval, double by_effect[RT_TERMS],
                                   double believed[RT_TERMS])
{
    rt_corrected corrected;
    rt_calibration_correct(calibration, q->gpu, quantity, &q->step, &corrected);
    rt_calibration_believe(calibration, q->gpu, quantity, &q->step, believed);
    *factor = exp(corrected.mean);
    *interval = corrected.interval;
    if (q->gpu != NULL && q->gpu->fit[quantity].count > 0) { /* one term */
        corrected.by_term[RT_TERM_GPU] += corrected.by_term[RT_TERM_SITE];
        corrected.by_term[RT_TERM_SITE] = 0;
    }
    for (int t = 0; t < RT_TERMS; t++) by_effect[t] = exp(corrected.by_term[t]);
    return corrected.carried;
}

mdot_status mdot_calibration_explain(const mdot_calibration *calibration, const mdot_configuration *configuration,
                                     const mdot_explanation *explanation, const mdot_prediction *prediction,
                                     mdot_calibration_factors *out_factors, mdot_error *err)
{
    if (calibration == NULL || configuration == NULL || prediction == NULL || out_factors == NULL)
        return BS_INVALID(err,
                          "mdot_calibration_explain: calibration, configuration, prediction or out_factors is NULL");
    question q;
    BS_TRY(rt_handle_check(calibration, RT_CALIBRATION, __func__, err));
    if (explanation != NULL) BS_TRY(rt_handle_check(explanation, RT_EXPLANATION, __func__, err));
    BS_TRY(read_question(calibration, configuration, prediction, &q, err));
    if (explanation != NULL) set_job(calibration, rt_explained_job(explanation), &q.step);
    mdot_calibration_factors f = {.struct_size = sizeof f};
    const rt_carried carried =
        explain_quantity(calibration, &q, RT_QUANTITY_TIME, &f.factor, &f.interval, f.by_effect, f.believed);
    f.carried_gpu = carried.from != NULL ? carried.from->name : NULL;
    f.carried_correlation = carried.correlation;
    f.carried_factor = exp(carried.shift);
    explain_quantity(calibration, &q, RT_QUANTITY_MEMORY, &f.memory_factor, &f.memory_interval, f.memory_by_effect,
                     f.memory_believed);
    for (size_t i = 0; q.gpu != NULL && i < q.gpu->anchor_count; i++) {
        const rt_anchor *a = &q.gpu->anchors[i];
        size_t times = a->row_count[RT_QUANTITY_TIME], memories = a->row_count[RT_QUANTITY_MEMORY];
        f.row_count += times > memories ? times : memories;
        if (a->step.job == q.step.job && a->step.job != RT_NO_JOB)
            f.job_row_count += times > memories ? times : memories;
    }
    return bs_fill_struct(&factors_type, &f, out_factors, err);
}

void mdot_calibration_destroy(mdot_calibration *calibration)
{
    if (calibration == NULL || !rt_handle_unregister(calibration, RT_CALIBRATION, __func__)) return;
    if (!rt_validates_handles()) rt_calibration_free(calibration);
}

/* The correction for a job that shares nothing with measured jobs, without the effect of several GPUs. */
static rt_corrected correct_any_job(const mdot_calibration *calibration, const rt_calibration_gpu *gpu,
                                    mdot_precision precision, uint32_t gpu_count)
{
    const rt_fit *fit = gpu != NULL ? &gpu->fit[RT_QUANTITY_TIME] : NULL;
    rt_step step = {.job = RT_NO_JOB, .precision = (uint32_t)precision, .gpu_count = gpu_count, .batch = 1};
    step.host_share = fit != NULL ? fit->host_share : 0;
    step.is_new_gpu = gpu != NULL && gpu->is_new;
    step.deviation[RT_QUANTITY_TIME] =
        fit != NULL && fit->count > 0 ? fit->deviation : calibration->site[RT_QUANTITY_TIME].deviation;
    rt_corrected corrected = {.interval = 1};
    if (step.deviation[RT_QUANTITY_TIME] > 0)
        rt_calibration_correct(calibration, gpu, RT_QUANTITY_TIME, &step, &corrected);
    return corrected;
}

mdot_status mdot_calibration_get_info(const mdot_calibration *calibration, mdot_calibration_info *out_info)
{
    if (calibration == NULL || !rt_handle_is_live(calibration, RT_CALIBRATION, __func__)) return MDOT_INVALID_ARGUMENT;
    rt_corrected others = correct_any_job(calibration, NULL, MDOT_PRECISION_FP32, 1);
    double several = 0, rows = 0;
    for (size_t g = 0; g < calibration->gpu_count; g++) {
        const rt_calibration_gpu *gpu = &calibration->gpus[g];
        double count = (double)gpu->several_row_count;
        rows += count;
        if (count > 0)
            several += count * correct_any_job(calibration, gpu, MDOT_PRECISION_FP32, 2).by_term[RT_TERM_SEVERAL];
    }
    const mdot_calibration_info info = {.struct_size = sizeof info,
                                        .predictor = calibration->predictor,
                                        .row_count = calibration->row_count,
                                        .gpu_count = calibration->gpu_count,
                                        .factor = exp(others.mean),
                                        .interval = others.interval,
                                        .several_row_count = (size_t)rows,
                                        .several_factor = rows > 0 ? exp(several / rows) : 1,
                                        .several_interval = 1,
                                        .memory_row_count = calibration->memory_row_count,
                                        .job_count = calibration->job_count};
    return bs_fill_struct(&info_type, &info, out_info, NULL);
}

mdot_status mdot_calibration_get_gpu(const mdot_calibration *calibration, size_t index, mdot_calibration_gpu *out_gpu)
{
    if (calibration == NULL || !rt_handle_is_live(calibration, RT_CALIBRATION, __func__)) return MDOT_INVALID_ARGUMENT;
    if (index >= calibration->gpu_count) return MDOT_OUT_OF_RANGE;
    const rt_calibration_gpu *gpu = &calibration->gpus[index];
    rt_corrected full = correct_any_job(calibration, gpu, MDOT_PRECISION_FP32, 1);
    rt_corrected half = correct_any_job(calibration, gpu, MDOT_PRECISION_AMP, 1);
    const mdot_calibration_gpu known = {.struct_size = sizeof known,
                                        .name = gpu->name,
                                        .row_count = gpu->row_count[RT_PRECISION_FULL],
                                        .factor = exp(full.mean),
                                        .interval = full.interval,
                                        .half_row_count = gpu->row_count[RT_PRECISION_HALF],
                                        .half_factor = exp(half.mean),
                                        .half_interval = half.interval};
    return bs_fill_struct(&gpu_type, &known, out_gpu, NULL);
}
