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

static const bs_sized prediction_type = BS_SIZED(mdot_prediction, warnings);

/* Which of several pairs a message is about. */
static mdot_status in_pair(const pairs *p, size_t i, mdot_status status, mdot_error *err)
{
    if (p->count == 1 || err == NULL) return status;
    return mdot_fail(err, status, "pair %zu: %s", i, err->message);
}

static mdot_status check_pairs(const pairs *p, rt_gpu_names *names, const mdot_prediction *predictions, mdot_error *err)
{
    if (p->count == 0) return MDOT_OK;
    mdot_status status = bs_check_struct(&prediction_type, predictions, err);
    if (status != MDOT_OK) return status;
    for (size_t i = 0; i < p->count; i++) {
        mdot_configuration c;
        mdot_gpu gpu;
        status = job_of(p, i) != NULL ? rt_configuration_read(p->configurations, i, names, &c, &gpu, err)
                                      : mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no job");
        if (status != MDOT_OK) return in_pair(p, i, status, err);
    }
    return MDOT_OK;
}

/* ---- One pair --------------------------------------------------------------------------------------------------- */

static void write_pair(const mdot_job *job, const mdot_configuration *c, rt_job_pair *pair)
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
#define WRITE(field) pair->gpu[RT_GPU_##field] = (float)c->gpu_figures->field;
    RT_GPU_COLUMN_MAP(WRITE)
#undef WRITE
    pair->peak_memory_bytes = rt_peak_memory_bytes(job, c);
    pair->fits = rt_fits(pair->peak_memory_bytes, c->gpu_figures->memory_gib);
}

static bool is_time(float ms)
{
    return isfinite(ms) && ms > 0;
}

/* Types that the predictor takes for unknown: without a number, or with one from after its time. */
static bool has_unknown(const mdot_job *job, const rt_job_schema *schema)
{
    bool reads_types = schema->input_at[RT_JOB_INPUT_TYPE] != RT_NOT_THERE;
    return job->has_unnumbered || (reads_types && job->highest_number >= schema->type_count);
}

static mdot_status read_pair(const mdot_context *context, const rt_job_tensors *tensors, const rt_job_pair *pair,
                             const mdot_job *job, mdot_prediction *out_prediction, mdot_error *err)
{
    const float *ms = pair->step_ms;
    if (!is_time(ms[0]) || !is_time(ms[1]) || !is_time(ms[2]))
        return mdot_fail(err, MDOT_MALFORMED, "the predictor answers with %g, %g, %g ms, which are no times",
                         (double)ms[0], (double)ms[1], (double)ms[2]);
    uint32_t warnings = tensors->shortened ? MDOT_WARN_SHORTENED : 0;
    if (has_unknown(job, &tensors->schema)) warnings |= MDOT_WARN_UNKNOWN_OPERATOR;
    if (!(pair->outside <= 0)) warnings |= MDOT_WARN_OUTSIDE_TRAINING; /* no number is no promise, either */
    if (rt_fell_back(context)) warnings |= MDOT_WARN_FALLBACK;
    *out_prediction = (mdot_prediction){.step_ms = (double)ms[1],
                                        .lower_ms = (double)ms[0],
                                        .upper_ms = (double)ms[2],
                                        .peak_memory_bytes = pair->peak_memory_bytes,
                                        .fits = pair->fits,
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
static void run_alike(mdot_context *context, rt_job_tensors *tensors, const pairs *p, size_t first, size_t count,
                      rt_gpu_names *names)
{
    rt_item items[RT_PAIR_CAPACITY];
    for (size_t i = 0; i < count; i++) {
        rt_job_pair *pair = &tensors->pairs[i];
        mdot_configuration c;
        mdot_gpu gpu;
        if (rt_configuration_read(p->configurations, first + i, names, &c, &gpu, NULL) == MDOT_OK)
            write_pair(job_of(p, first), &c, pair);
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
    rt_gpu_names names = {0};
    mdot_status status = check_pairs(p, &names, out_predictions, err);
    if (status != MDOT_OK) return status;
    for (size_t first = 0, count; first < p->count; first += count) {
        const mdot_job *job = job_of(p, first);
        count = count_alike(p, first);
        if (first == 0 || job != job_of(p, first - 1)) rt_write_rows(job, tensors);
        run_alike(context, tensors, p, first, count, &names);
        for (size_t i = 0; i < count; i++) {
            mdot_prediction prediction;
            status = read_pair(context, tensors, &tensors->pairs[i], job, &prediction, err);
            if (status != MDOT_OK) return in_pair(p, first + i, status, err);
            bs_write_struct(&prediction_type, &prediction, bs_struct_at(out_predictions, first + i),
                            bs_struct_bytes(out_predictions));
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
