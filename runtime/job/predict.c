/* predict.c — predictions of jobs: a job and a configuration become the inputs of the artefact's entry "predict".
 *
 * All arguments are checked before anything runs, so that a call answers for all pairs or for none. Nothing here
 * allocates, locks or calls the operating system; tests/runtime/job/test_predict_calls.c holds it to that.
 */
#include "runtime/job/predict.h"
#include "runtime/job/job.h"

#include <math.h>
#include <string.h>

/* The pairs of one call: jobs[i], or `job` with every configuration. */
typedef struct pairs {
    const mdot_job *const *jobs;
    const mdot_job *job;
    const mdot_configuration *configurations;
    size_t count;
} pairs;

static const mdot_job *job_of(const pairs *p, size_t i)
{
    return p->jobs != NULL ? p->jobs[i] : p->job;
}

/* ---- Checks ----------------------------------------------------------------------------------------------------- */

enum { MAX_BATCH = 1 << 24 }; /* as far as an f32 holds every whole number */

static mdot_status check_configuration(const mdot_configuration *c, mdot_error *err)
{
    if (c->batch < 1 || c->batch > MAX_BATCH)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the batch is %lld, not 1 to %d", (long long)c->batch, MAX_BATCH);
    if (c->gpu_count < 0) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the GPU count is %d", c->gpu_count);
    if ((unsigned)c->precision > MDOT_PRECISION_AMP)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no precision %d", (int)c->precision);
    if ((unsigned)c->layout > MDOT_LAYOUT_NHWC)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no layout %d", (int)c->layout);
    if ((unsigned)c->optimizer > MDOT_OPTIMIZER_ADAMW)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no optimizer %d", (int)c->optimizer);
    mdot_gpu_info gpu;
    return mdot_gpu_find(c->gpu, &gpu, err);
}

/* Which of several pairs a message is about. */
static mdot_status in_pair(const pairs *p, size_t i, mdot_status status, mdot_error *err)
{
    if (p->count == 1 || err == NULL) return status;
    return mdot_fail(err, status, "pair %zu: %s", i, err->message);
}

static mdot_status check_pairs(const pairs *p, mdot_error *err)
{
    for (size_t i = 0; i < p->count; i++) {
        mdot_status status = job_of(p, i) != NULL ? check_configuration(&p->configurations[i], err)
                                                  : mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no job");
        if (status != MDOT_OK) return in_pair(p, i, status, err);
    }
    return MDOT_OK;
}

/* ---- One pair --------------------------------------------------------------------------------------------------- */

static void write_pair(const mdot_configuration *c, const mdot_gpu_info *gpu, rt_job_pair *pair)
{
    const float configuration[RT_CONFIGURATION_NUMBERS] = {
        (float)c->batch,
        c->gpu_count == 0 ? 1 : (float)c->gpu_count,
        c->precision == MDOT_PRECISION_FP32,
        c->precision == MDOT_PRECISION_TF32,
        c->precision == MDOT_PRECISION_AMP,
        c->layout == MDOT_LAYOUT_NHWC,
        c->optimizer == MDOT_OPTIMIZER_ADAM,
        c->optimizer == MDOT_OPTIMIZER_ADAMW,
    };
    memcpy(pair->configuration, configuration, sizeof configuration);
    const double numbers[] = {gpu->compute_capability, gpu->sm_count,    gpu->boost_mhz,
                              gpu->memory_gib,         gpu->memory_gbps, gpu->l2_mib,
                              gpu->fp32_tflops,        gpu->tf32_tflops, gpu->fp16_tflops};
    _Static_assert(sizeof numbers == RT_GPU_NUMBERS * sizeof *numbers, "a column of gpus.def is missing");
    for (int i = 0; i < RT_GPU_NUMBERS; i++) pair->gpu[i] = (float)numbers[i];
    pair->memory_gib = gpu->memory_gib;
}

static bool is_time(float ms)
{
    return isfinite(ms) && ms > 0;
}

static mdot_status read_pair(const mdot_context *context, const rt_job_tensors *tensors, const rt_job_pair *pair,
                             const mdot_job *job, const mdot_configuration *c, mdot_prediction *out_prediction,
                             mdot_error *err)
{
    const float *ms = pair->step_ms;
    if (!is_time(ms[0]) || !is_time(ms[1]) || !is_time(ms[2]))
        return mdot_fail(err, MDOT_MALFORMED, "the predictor answers with %g, %g, %g ms, which are no times",
                         (double)ms[0], (double)ms[1], (double)ms[2]);
    uint64_t peak_memory_bytes = rt_peak_memory_bytes(job, c);
    uint32_t warnings = tensors->shortened ? MDOT_WARN_SHORTENED : 0;
    if (job->has_unnumbered) warnings |= MDOT_WARN_UNKNOWN_OPERATOR;
    if (!(pair->outside <= 0)) warnings |= MDOT_WARN_OUTSIDE_TRAINING; /* no number is no promise, either */
    if (rt_fell_back(context)) warnings |= MDOT_WARN_FALLBACK;
    *out_prediction = (mdot_prediction){.step_ms = (double)ms[1],
                                        .lower_ms = (double)ms[0],
                                        .upper_ms = (double)ms[2],
                                        .peak_memory_bytes = peak_memory_bytes,
                                        .fits = rt_fits(peak_memory_bytes, pair->memory_gib),
                                        .warnings = warnings};
    return MDOT_OK;
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

static const mdot_abi_table *table_of(const mdot_context *context)
{
    return rt_predictor_artefact(rt_context_predictor(context))->table;
}

/* How many pairs from `first` on have its job, as far as one run takes them. */
static size_t count_alike(const pairs *p, size_t first)
{
    size_t count = 1;
    while (count < RT_PAIR_CAPACITY && first + count < p->count && job_of(p, first + count) == job_of(p, first))
        count++;
    return count;
}

/* The rows are written and the arguments checked. */
static void run_alike(mdot_context *context, rt_job_tensors *tensors, const mdot_configuration *configurations,
                      size_t count)
{
    rt_item items[RT_PAIR_CAPACITY];
    for (size_t i = 0; i < count; i++) {
        rt_job_pair *pair = &tensors->pairs[i];
        mdot_gpu_info gpu = {0};
        mdot_gpu_find(configurations[i].gpu, &gpu, NULL);
        write_pair(&configurations[i], &gpu, pair);
        items[i] = (rt_item){pair->inputs, pair->outputs};
    }
    const mdot_abi_entry *entry = rt_entry(table_of(context), tensors->schema.entry);
    rt_run_many(context, entry, (int64_t)tensors->row_count, items, count);
}

static mdot_status predict_pairs(mdot_context *context, const pairs *p, mdot_prediction *out_predictions,
                                 mdot_error *err)
{
    rt_job_tensors *tensors = rt_context_state(context, &rt_job_extension);
    if (tensors == NULL) return rt_job_schema_read(table_of(context), &(rt_job_schema){0}, err);
    mdot_status status = check_pairs(p, err);
    if (status != MDOT_OK) return status;
    for (size_t first = 0, count; first < p->count; first += count) {
        const mdot_job *job = job_of(p, first);
        count = count_alike(p, first);
        if (first == 0 || job != job_of(p, first - 1)) rt_write_rows(job, tensors);
        run_alike(context, tensors, &p->configurations[first], count);
        for (size_t i = 0; i < count; i++) {
            status = read_pair(context, tensors, &tensors->pairs[i], job, &p->configurations[first + i],
                               &out_predictions[first + i], err);
            if (status != MDOT_OK) return in_pair(p, first + i, status, err);
        }
    }
    return MDOT_OK;
}

static bool is_missing(const void *array, size_t count)
{
    return count > 0 && array == NULL;
}

mdot_status mdot_predict(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                         mdot_prediction *out_prediction, mdot_error *err)
{
    return mdot_sweep(context, job, configuration, 1, out_prediction, err);
}

mdot_status mdot_predict_many(mdot_context *context, const mdot_job *const *jobs,
                              const mdot_configuration *configurations, size_t count, mdot_prediction *out_predictions,
                              mdot_error *err)
{
    if (context == NULL || is_missing(jobs, count) || is_missing(configurations, count) ||
        is_missing(out_predictions, count))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "a prediction needs a context, jobs, configurations and a place for the results");
    return predict_pairs(context, &(pairs){.jobs = jobs, .configurations = configurations, .count = count},
                         out_predictions, err);
}

mdot_status mdot_sweep(mdot_context *context, const mdot_job *job, const mdot_configuration *configurations,
                       size_t count, mdot_prediction *out_predictions, mdot_error *err)
{
    if (context == NULL || job == NULL || is_missing(configurations, count) || is_missing(out_predictions, count))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "a prediction needs a context, a job, a configuration and a place for the result");
    return predict_pairs(context, &(pairs){.job = job, .configurations = configurations, .count = count},
                         out_predictions, err);
}
