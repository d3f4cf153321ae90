/* calibration_rows.c — measured steps → anchors: each different step on a GPU model once, with the mean residual of its
 * rows.
 *
 * Rows are sorted before averaging, so that a calibration is independent of row order to the last bit. */
#include "base/struct_version.h"
#include "base/text.h"
#include "runtime/core/core.h"
#include "runtime/job/configuration.h"
#include "runtime/job/job_model.h"
#include "runtime/job/operator_hash.h"
#include "runtime/perf/analysis.h"
#include "runtime/predict/calibration.h"
#include "runtime/predict/predict.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define QUANTILE_95 1.6448536 /* 95 % quantile of the normal distribution */

static const bs_struct_version measurement_type = BS_SIZED(mdot_measurement, place);
static const bs_struct_version prediction_type = BS_SIZED(mdot_prediction, warnings);

static uint64_t hash_number(uint64_t hash, double number) { return rt_hash(hash, &number, sizeof number); }

static uint64_t hash_options(const mdot_configuration *c)
{
    uint64_t hash = RT_HASH_START;
#define HASH_NUMBER(field) hash_number(hash, (double)c->field)
#define HASH_WHOLE HASH_NUMBER
#define HASH_COUNT HASH_NUMBER
#define HASH_REAL HASH_NUMBER
#define HASH_CHOICE HASH_NUMBER
#define HASH_FLAG HASH_NUMBER
#define HASH_VERSION HASH_NUMBER
#define HASH_GPU(field) hash
#define OPTION(field, kind, ...) hash = HASH_##kind(field);
#include "runtime/job/configuration.def"
    return hash;
}

mdot_status rt_calibration_step(const mdot_configuration *configuration, rt_step *out_step, const char **out_gpu,
                                mdot_error *err)
{
    rt_gpu_names names = {0};
    rt_configuration read;
    mdot_configuration requested = MDOT_INIT(mdot_configuration);
    BS_TRY(bs_read_struct(&rt_configuration_type, configuration, &requested, err));
    BS_TRY(rt_configuration_read(configuration, 0, &names, &read, err));
    mdot_configuration c = read.c;
    c.link_gbps = requested.link_gbps; /* otherwise rates of the GPU model, which make equal options differ */
    c.network_gbps = requested.network_gbps;
    rt_step step = {.job = RT_NO_JOB,
                    .precision = (uint32_t)c.precision,
                    .layout = (uint32_t)c.layout,
                    .torch = c.torch,
                    .gpu_count = (uint32_t)c.gpu_count,
                    .mode = (uint32_t)c.mode,
                    .batch = (double)c.batch};
    c.batch = c.gpu_count = 0;
    c.data_parallel = 0; /* follows from the others */
    c.loader_rate = c.cpu_rate = c.cpus = 0;
    c.precision = MDOT_PRECISION_FP32;
    c.layout = MDOT_LAYOUT_NCHW;
    c.torch = 0;
    step.others = hash_options(&c);
    *out_step = step;
    *out_gpu = read.gpu.name;
    return MDOT_OK;
}

static double deviation_of(double lower, double upper)
{
    double deviation = lower > 0 && upper > lower ? log(upper / lower) / (2 * QUANTILE_95) : 0;
    return fmin(fmax(deviation, RT_CALIBRATION_LEAST_DEVIATION), RT_CALIBRATION_MOST_DEVIATION);
}

void rt_state_deviations(const mdot_prediction *p, rt_step *step)
{
    step->is_new_gpu = (p->warnings & MDOT_WARN_GPU_NOT_MEASURED) != 0;
    step->deviation[RT_QUANTITY_TIME] = deviation_of(p->gpu_lower_ms, p->gpu_upper_ms);
    step->deviation[RT_QUANTITY_MEMORY] = deviation_of((double)p->memory_lower_bytes, (double)p->memory_upper_bytes);
}

/* Names are cut to RT_CALIBRATION_NAME_BYTES - 1 bytes, at a character boundary. */
static size_t name_length(const char *name) { return bs_cut_length(name, RT_CALIBRATION_NAME_BYTES - 1); }

const rt_calibration_gpu *rt_calibration_find_gpu(const mdot_calibration *calibration, const char *name)
{
    size_t length = name != NULL ? name_length(name) : 0;
    for (size_t i = 0; length > 0 && i < calibration->gpu_count; i++) {
        const char *known = calibration->gpus[i].name;
        if (strncmp(known, name, length) == 0 && known[length] == '\0') return &calibration->gpus[i];
    }
    return NULL;
}

static mdot_status add_gpu(mdot_calibration *calibration, const char *name, size_t *out_index, mdot_error *err)
{
    if (name == NULL || name[0] == '\0')
        return BS_INVALID(err, "a calibration needs a name for each GPU: set --gpu, or name in --gpu-spec");
    const rt_calibration_gpu *known = rt_calibration_find_gpu(calibration, name);
    *out_index = known != NULL ? (size_t)(known - calibration->gpus) : calibration->gpu_count;
    if (known == NULL) {
        if (calibration->gpu_count == RT_CALIBRATION_MAX_GPUS)
            return mdot_fail(err, MDOT_OUT_OF_RANGE, "a calibration holds at most %d GPUs", RT_CALIBRATION_MAX_GPUS);
        memcpy(calibration->gpus[calibration->gpu_count++].name, name, name_length(name));
    }
    return MDOT_OK;
}

uint32_t rt_calibration_find_job(const mdot_calibration *calibration, uint64_t digest)
{
    size_t first = 0, end = calibration->job_count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (calibration->jobs[middle].digest < digest)
            first = middle + 1;
        else
            end = middle;
    }
    bool is_known = first < calibration->job_count && calibration->jobs[first].digest == digest;
    return is_known ? (uint32_t)first : RT_NO_JOB;
}

void rt_calibration_free(mdot_calibration *calibration)
{
    if (calibration == NULL) return;
    for (size_t g = 0; g < calibration->gpu_count; g++) {
        free(calibration->gpus[g].anchors);
        for (int q = 0; q < RT_QUANTITIES; q++) {
            free(calibration->gpus[g].fit[q].anchor);
            free(calibration->gpus[g].fit[q].factor);
            free(calibration->gpus[g].fit[q].weight);
            free(calibration->gpus[g].fit[q].standard);
        }
    }
    for (int q = 0; q < RT_QUANTITIES; q++) free(calibration->agreement[q]);
    free(calibration->jobs);
    free(calibration);
}

typedef struct measured_row {
    size_t gpu;
    const rt_job_identity *identity; /* of the caller's job */
    rt_step step;
    bool is_measured[RT_QUANTITIES];
    bool waits; /* the step waited for its data loaders: no measurement of the GPU */
    double residual[RT_QUANTITIES];
} measured_row;

static bool is_number(double value) { return value >= 0 && isfinite(value); }

static mdot_status check_row(const mdot_measurement *m, const char *function, mdot_error *err)
{
    if (m->job == NULL || m->configuration == NULL) return BS_INVALID(err, "the job or the configuration is NULL");
    if (!is_number(m->step_ms) || (m->step_ms == 0 && m->memory_bytes == 0))
        return BS_INVALID(err, "the measured time of %g ms must be a positive number", m->step_ms);
    if (!is_number(m->memory_bytes))
        return BS_INVALID(err, "the measured memory of %g bytes must be a positive number", m->memory_bytes);
    return rt_handle_check(m->job, RT_JOB, function, err);
}

/* Takes the caller's prediction if there is one. */
static mdot_status read_prediction(const mdot_measurement *m, mdot_prediction *io_prediction, mdot_error *err)
{
    if (m->prediction == NULL) return MDOT_OK;
    BS_TRY(bs_read_struct(&prediction_type, m->prediction, io_prediction, err));
    rt_complete_prediction(io_prediction);
    const mdot_prediction *p = io_prediction;
    bool is_valid = p->status == MDOT_OK && p->lower_ms > 0 && p->lower_ms <= p->step_ms && p->step_ms <= p->upper_ms &&
                    isfinite(p->upper_ms) && p->gpu_lower_ms > 0 && p->gpu_lower_ms <= p->gpu_ms &&
                    p->gpu_ms <= p->gpu_upper_ms && p->gpu_upper_ms <= p->upper_ms;
    return is_valid
               ? MDOT_OK
               : BS_INVALID(err, "its prediction of %g ms, %g to %g, is invalid", p->step_ms, p->lower_ms, p->upper_ms);
}

/* A step takes at least this part of the time of its FLOPs and of its bytes at the GPU's peak rates: a causal mask
 * skips half of the FLOPs, and caches and fused kernels save most bytes. */
#define LEAST_OF_COMPUTE 0.5
#define LEAST_OF_MEMORY 0.125
#define LEAST_OF_LOADERS 0.9 /* part of a step from which on its data loaders' time explains it */

static mdot_status check_possible(const mdot_measurement *m, const mdot_prediction *p, mdot_error *err)
{
    double bound_ms = p->step_ms * fmax(LEAST_OF_COMPUTE * p->compute_share, LEAST_OF_MEMORY * p->memory_share);
    if (m->step_ms == 0 || m->step_ms >= bound_ms) return MDOT_OK;
    return BS_INVALID(
        err,
        "the measured step of %g ms is impossible: at the GPU's peak rates it takes at least %.3g ms; the "
        "unit is milliseconds",
        m->step_ms, bound_ms);
}

static double residual_of(double measured, double predicted)
{
    if (!(predicted > 0)) return 0;
    return fmin(fmax(log(measured / predicted), -RT_CALIBRATION_MOST_RESIDUAL), RT_CALIBRATION_MOST_RESIDUAL);
}

static mdot_status read_row(mdot_context *context, const mdot_measurement *m, const char *function,
                            mdot_calibration *calibration, measured_row *out, mdot_error *err)
{
    rt_answer answer;
    const char *name = NULL;
    BS_TRY(check_row(m, function, err));
    BS_TRY(rt_answer_one(context, m->job, m->configuration, &answer, err));
    mdot_prediction p = answer.prediction;
    BS_TRY(check_possible(m, &p, err));
    out->waits = m->step_ms > 0 && p.loader_ms > LEAST_OF_LOADERS * m->step_ms;
    BS_TRY(read_prediction(m, &p, err));
    BS_TRY(rt_calibration_step(m->configuration, &out->step, &name, err));
    BS_TRY(add_gpu(calibration, name, &out->gpu, err));
    out->identity = &m->job->analysis->identity;
    out->step.host_share = p.host_share;
    rt_state_deviations(&p, &out->step);
    out->is_measured[RT_QUANTITY_TIME] = m->step_ms > 0 && !out->waits;
    out->is_measured[RT_QUANTITY_MEMORY] = m->memory_bytes > 0;
    out->residual[RT_QUANTITY_TIME] = out->is_measured[RT_QUANTITY_TIME] ? residual_of(m->step_ms, p.gpu_ms) : 0;
    out->residual[RT_QUANTITY_MEMORY] =
        m->memory_bytes > 0 ? residual_of(m->memory_bytes, (double)p.peak_memory_bytes) : 0;
    rt_calibration_gpu *gpu = &calibration->gpus[out->gpu];
    gpu->row_count[rt_precision_class_of(out->step.precision)] += out->is_measured[RT_QUANTITY_TIME];
    gpu->several_row_count += out->step.gpu_count > 1;
    gpu->is_new = gpu->is_new || out->step.is_new_gpu;
    calibration->row_count++;
    calibration->memory_row_count += m->memory_bytes > 0;
    return MDOT_OK;
}

static int compare_words(uint64_t a, uint64_t b) { return (a > b) - (a < b); }

static int compare_doubles(double a, double b) { return (a > b) - (a < b); }

/* Orders by job, so that a job's anchors stand together, and then from the property that merges last to the first. */
static int compare_steps(const rt_step *a, const rt_step *b)
{
    int order = compare_words(a->job, b->job);
    if (order == 0) order = compare_words(rt_precision_class_of(a->precision), rt_precision_class_of(b->precision));
    if (order == 0) order = compare_words(a->gpu_count > 1, b->gpu_count > 1);
    if (order == 0) order = compare_words(a->precision, b->precision);
    if (order == 0) order = compare_words(a->layout, b->layout);
    if (order == 0) order = compare_words(a->torch, b->torch);
    if (order == 0) order = compare_words(a->gpu_count, b->gpu_count);
    if (order == 0) order = compare_words(a->others, b->others);
    return order != 0 ? order : compare_doubles(a->batch, b->batch);
}

static int compare_rows(const void *first, const void *second)
{
    const measured_row *a = first, *b = second;
    int order = compare_words(a->gpu, b->gpu);
    if (order == 0) order = compare_steps(&a->step, &b->step);
    for (int q = 0; order == 0 && q < RT_QUANTITIES; q++) {
        order = compare_words(a->is_measured[q], b->is_measured[q]);
        if (order == 0) order = compare_doubles(a->residual[q], b->residual[q]);
        if (order == 0) order = compare_doubles(a->step.deviation[q], b->step.deviation[q]);
    }
    return order != 0 ? order : compare_doubles(a->step.host_share, b->step.host_share);
}

static int compare_identities(const void *a, const void *b)
{
    return compare_words(((const rt_job_identity *)a)->digest, ((const rt_job_identity *)b)->digest);
}

/* Levels at which steps become one anchor, until they fit. */
typedef enum merging { MERGE_EQUAL, MERGE_NEAR_BATCHES, MERGE_BATCHES, MERGE_CONFIGURATIONS, MERGE_LEVELS } merging;

static bool merges(const rt_step *a, const rt_step *b, merging level)
{
    bool same_class = rt_precision_class_of(a->precision) == rt_precision_class_of(b->precision);
    if (a->job != b->job || !same_class) return false;
    if (a->job == RT_NO_JOB || level >= MERGE_CONFIGURATIONS) return (a->gpu_count > 1) == (b->gpu_count > 1);
    rt_step reversed = *b;
    bool is_near = floor(2 * log2(a->batch)) == floor(2 * log2(b->batch)); /* half a doubling */
    if (level == MERGE_BATCHES || (level == MERGE_NEAR_BATCHES && is_near)) reversed.batch = a->batch;
    return compare_steps(a, &reversed) == 0;
}

/* The first anchor gets the mean of both, weighted by rows. */
static void merge_anchor(rt_anchor *target, const rt_anchor *source)
{
    double rows = 0, more = 0;
    for (int q = 0; q < RT_QUANTITIES; q++) {
        rows += (double)target->row_count[q];
        more += (double)source->row_count[q];
        double sum = (double)(target->row_count[q] + source->row_count[q]);
        if (sum > 0)
            target->residual[q] += (source->residual[q] - target->residual[q]) * (double)source->row_count[q] / sum;
        target->row_count[q] += source->row_count[q];
    }
    double part = more > 0 ? more / (rows + more) : 0;
    target->step.host_share += (source->step.host_share - target->step.host_share) * part;
    target->step.batch *= pow(source->step.batch / target->step.batch, part);
    for (int q = 0; q < RT_QUANTITIES; q++)
        target->step.deviation[q] += (source->step.deviation[q] - target->step.deviation[q]) * part;
}

static size_t merge_neighbours(rt_anchor *anchors, size_t count, merging level)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && merges(&anchors[kept - 1].step, &anchors[i].step, level))
            merge_anchor(&anchors[kept - 1], &anchors[i]);
        else
            anchors[kept++] = anchors[i];
    }
    return kept;
}

static int compare_anchors(const void *a, const void *b)
{
    return compare_steps(&((const rt_anchor *)a)->step, &((const rt_anchor *)b)->step);
}

static size_t rows_of(const rt_anchor *a) { return a->row_count[RT_QUANTITY_TIME] + a->row_count[RT_QUANTITY_MEMORY]; }

/* Jobs with few rows lose their identity, until the others fill half of the limit. Of jobs with equally many rows,
 * those with the lowest digests keep theirs. */
static size_t merge_small_jobs(rt_anchor *anchors, size_t count)
{
    enum { MOST = RT_CALIBRATION_MAX_ANCHORS / 2 };
    size_t minimum = 0, more = count; /* anchors of more than `least` rows */
    while (more > MOST) {
        minimum++;
        more = 0;
        for (size_t i = 0; i < count; i++) more += rows_of(&anchors[i]) > minimum;
    }
    size_t places = MOST - more;
    for (size_t i = 0; i < count; i++) {
        size_t rows = rows_of(&anchors[i]);
        bool is_kept = rows > minimum || (rows == minimum && places > 0);
        if (rows == minimum && places > 0) places--;
        if (is_kept) continue;
        anchors[i].step.job = RT_NO_JOB;
        anchors[i].step.share = NULL;
    }
    qsort(anchors, count, sizeof *anchors, compare_anchors);
    return merge_neighbours(anchors, count, MERGE_CONFIGURATIONS);
}

static mdot_status make_anchors(mdot_calibration *calibration, const measured_row *rows, size_t count, mdot_error *err)
{
    for (size_t first = 0, end; first < count; first = end) {
        rt_calibration_gpu *gpu = &calibration->gpus[rows[first].gpu];
        for (end = first; end < count && rows[end].gpu == rows[first].gpu;) end++;
        rt_anchor *anchors = calloc(end - first, sizeof *anchors);
        if (anchors == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        for (size_t i = first; i < end; i++) {
            rt_anchor *a = &anchors[i - first];
            a->step = rows[i].step;
            for (int q = 0; q < RT_QUANTITIES; q++) {
                a->row_count[q] = rows[i].is_measured[q];
                a->residual[q] = rows[i].residual[q];
            }
        }
        size_t kept = end - first;
        for (int level = MERGE_EQUAL; level < MERGE_LEVELS; level++)
            if (level == MERGE_EQUAL || kept > RT_CALIBRATION_MAX_ANCHORS)
                kept = merge_neighbours(anchors, kept, (merging)level);
        if (kept > RT_CALIBRATION_MAX_ANCHORS) kept = merge_small_jobs(anchors, kept);
        for (size_t i = 0; i < kept; i++) anchors[i].step.is_new_gpu = gpu->is_new;
        gpu->anchors = anchors;
        gpu->anchor_count = kept;
    }
    return MDOT_OK;
}

static mdot_status collect_jobs(mdot_calibration *calibration, measured_row *rows, size_t count, mdot_error *err)
{
    rt_job_identity *jobs = calloc(count + 1, sizeof *jobs);
    if (jobs == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) jobs[i] = *rows[i].identity;
    qsort(jobs, count, sizeof *jobs, compare_identities);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || jobs[kept - 1].digest != jobs[i].digest) jobs[kept++] = jobs[i];
    calibration->jobs = jobs;
    calibration->job_count = kept;
    for (size_t i = 0; i < count; i++) {
        rows[i].step.job = rt_calibration_find_job(calibration, rows[i].identity->digest);
        rows[i].step.share = jobs[rows[i].step.job].share;
        if (rows[i].waits) jobs[rows[i].step.job].waits = true;
    }
    return MDOT_OK;
}

/* Removes jobs without anchors, so that a calibration stays within its limit. OUT_OF_MEMORY. */
static mdot_status drop_merged_jobs(mdot_calibration *calibration, mdot_error *err)
{
    enum { UNUSED, USED };
    uint32_t *place = calloc(calibration->job_count + 1, sizeof *place);
    if (place == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t g = 0; g < calibration->gpu_count; g++) {
        const rt_calibration_gpu *gpu = &calibration->gpus[g];
        for (size_t i = 0; i < gpu->anchor_count; i++)
            if (gpu->anchors[i].step.job != RT_NO_JOB) place[gpu->anchors[i].step.job] = USED;
    }
    size_t kept = 0;
    for (size_t j = 0; j < calibration->job_count; j++) {
        if (place[j] == UNUSED) continue;
        place[j] = (uint32_t)kept;
        calibration->jobs[kept++] = calibration->jobs[j];
    }
    calibration->job_count = kept;
    for (size_t g = 0; g < calibration->gpu_count; g++) {
        rt_calibration_gpu *gpu = &calibration->gpus[g];
        for (size_t i = 0; i < gpu->anchor_count; i++) {
            rt_step *step = &gpu->anchors[i].step;
            if (step->job == RT_NO_JOB) continue;
            step->job = place[step->job];
            step->share = calibration->jobs[step->job].share;
        }
    }
    free(place);
    return MDOT_OK;
}

mdot_status rt_calibration_read_rows(mdot_context *context, const mdot_measurement *measured, size_t count,
                                     const char *function, mdot_calibration *calibration, mdot_error *err)
{
    measured_row *rows = count < SIZE_MAX / sizeof *rows ? calloc(count + 1, sizeof *rows) : NULL;
    if (rows == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = MDOT_OK;
    for (size_t i = 0; status == MDOT_OK && i < count; i++) {
        mdot_error reason = {0};
        mdot_measurement m = {.place = NULL};
        status = bs_read_element(&measurement_type, measured, i, &m, &reason);
        if (status == MDOT_OK) status = read_row(context, &m, function, calibration, &rows[i], &reason);
        if (status != MDOT_OK && m.place != NULL) mdot_fail(err, status, "%s: %s", m.place, reason.message);
        if (status != MDOT_OK && m.place == NULL) mdot_fail(err, status, "row %zu: %s", i, reason.message);
    }
    if (status == MDOT_OK) status = collect_jobs(calibration, rows, count, err);
    if (status == MDOT_OK) {
        qsort(rows, count, sizeof *rows, compare_rows);
        status = make_anchors(calibration, rows, count, err);
    }
    if (status == MDOT_OK) status = drop_merged_jobs(calibration, err);
    free(rows);
    return status;
}
