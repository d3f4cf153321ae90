/* test_calibration_rows.c — measured rows become the anchors that a slow reference makes of them, within all limits. */
#include "mdot/mdotc.h"
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/predict/calibration.h"
#include "tests/support/assertions.h"
#include "tests/support/calibration_site.h"
#include "tests/support/process.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_ROWS = 1600, MOST_JOBS = 600, MOST = RT_CALIBRATION_MAX_ANCHORS };

static uint64_t next_random(uint64_t *state, uint64_t below)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return (*state >> 33) % below;
}

/* ---- The reference ----------------------------------------------------------------------------------------------- */

/* A row, as the caller knows it. */
typedef struct known_row {
    mdot_configuration c;
    mdot_prediction given;
    uint64_t digest; /* 0: the row lost its job */
    const char *gpu;
    rt_step step;
    bool is_measured[RT_QUANTITIES];
    double residual[RT_QUANTITIES];
    size_t group;
} known_row;

/* What rows share if they become one anchor at a level, from equal steps to equal precision classes. */
static bool is_same(const known_row *a, const known_row *b, int level)
{
    const rt_step *x = &a->step, *y = &b->step;
    bool same = a->digest == b->digest && strcmp(a->gpu, b->gpu) == 0 &&
                rt_is_half((mdot_precision)x->precision) == rt_is_half((mdot_precision)y->precision) &&
                (x->gpu_count > 1) == (y->gpu_count > 1);
    if (a->digest == 0 || level == 3) return same;
    same = same && x->precision == y->precision && x->layout == y->layout && x->torch == y->torch &&
           x->gpu_count == y->gpu_count && x->others == y->others;
    if (level == 1) return same && floor(2 * log2(x->batch)) == floor(2 * log2(y->batch));
    return same && (level == 2 || x->batch == y->batch);
}

/* Numbers the groups, and returns their count. */
static size_t group_rows(known_row *rows, size_t count, int level)
{
    static size_t first[MOST_ROWS];
    size_t groups = 0;
    for (size_t i = 0; i < count; i++) {
        size_t g = 0;
        while (g < groups && !is_same(&rows[first[g]], &rows[i], level)) g++;
        if (g == groups) first[groups++] = i;
        rows[i].group = g;
    }
    return groups;
}

static double rows_of(const known_row *row) { return (double)row->is_measured[0] + (double)row->is_measured[1]; }

/* Order of equally large groups. */
static bool is_before(const known_row *a, const known_row *b)
{
    if (a->digest != b->digest) return a->digest < b->digest;
    bool is_half = rt_is_half((mdot_precision)a->step.precision);
    if (is_half != rt_is_half((mdot_precision)b->step.precision)) return !is_half;
    return a->step.gpu_count == 1;
}

/* Rows of small groups lose their job: those with the fewest measured numbers, and of equals those with the highest
 * digests. Half of the limit keep theirs. */
static size_t forget_small_groups(known_row *rows, size_t count, size_t groups)
{
    double *size = calloc(groups, sizeof *size);
    bool *is_kept = calloc(groups, sizeof *is_kept);
    const known_row **of = calloc(groups, sizeof *of);
    assert_true(size != NULL && is_kept != NULL && of != NULL);
    for (size_t i = 0; i < count; i++) size[rows[i].group] += rows_of(&rows[i]), of[rows[i].group] = &rows[i];
    for (size_t kept = 0; kept < MOST / 2; kept++) {
        size_t best = groups;
        for (size_t g = 0; g < groups; g++) {
            if (is_kept[g]) continue;
            bool is_first = best == groups || size[g] > size[best];
            if (best < groups && size[g] == size[best]) is_first = is_before(of[g], of[best]);
            if (is_first) best = g;
        }
        is_kept[best] = true;
    }
    for (size_t i = 0; i < count; i++)
        if (!is_kept[rows[i].group]) rows[i].digest = 0;
    free(size);
    free(is_kept);
    free(of);
    return group_rows(rows, count, 3);
}

/* The means of a group's rows, by measured numbers. */
static void assert_means(const rt_anchor *a, const known_row *rows, size_t count, size_t group)
{
    double all = 0, batch = 0, host = 0, sum[RT_QUANTITIES] = {0}, n[RT_QUANTITIES] = {0}, deviation[2] = {0};
    for (size_t i = 0; i < count; i++) {
        if (rows[i].group != group) continue;
        double weight = rows_of(&rows[i]);
        all += weight;
        batch += weight * log(rows[i].step.batch);
        host += weight * rows[i].step.host_share;
        for (int q = 0; q < RT_QUANTITIES; q++) {
            deviation[q] += weight * rows[i].step.deviation[q];
            if (rows[i].is_measured[q]) n[q]++, sum[q] += rows[i].residual[q];
        }
    }
    for (int q = 0; q < RT_QUANTITIES; q++) {
        assert_int_equal(a->row_count[q], (size_t)n[q]);
        if (n[q] > 0) assert_within(a->residual[q], sum[q] / n[q], 1e-9);
        if (all > 0) assert_within(a->step.deviation[q], deviation[q] / all, 1e-9);
    }
    if (all == 0) return;
    assert_within(log(a->step.batch), batch / all, 1e-9);
    assert_within(a->step.host_share, host / all, 1e-9);
}

static void assert_anchors(const mdot_calibration *c, known_row *rows, size_t count)
{
    size_t total = 0;
    for (size_t g = 0; g < c->gpu_count; g++) {
        const rt_calibration_gpu *gpu = &c->gpus[g];
        static known_row own[MOST_ROWS];
        size_t n = 0, groups = 0, several = 0, classes[RT_PRECISION_CLASSES] = {0};
        for (size_t i = 0; i < count; i++)
            if (strcmp(rows[i].gpu, gpu->name) == 0) own[n++] = rows[i];
        for (size_t i = 0; i < n; i++) {
            several += own[i].step.gpu_count > 1;
            classes[rt_is_half((mdot_precision)own[i].step.precision)] += own[i].is_measured[RT_QUANTITY_TIME];
        }
        assert_int_equal(gpu->several_row_count, several);
        assert_memory_equal(gpu->row_count, classes, sizeof classes);
        int level = 0;
        while ((groups = group_rows(own, n, level)) > MOST && level < 3) level++;
        if (groups > MOST) groups = forget_small_groups(own, n, groups);
        assert_int_equal(gpu->anchor_count, groups);
        bool *seen = calloc(groups, sizeof *seen);
        assert_non_null(seen);
        for (size_t i = 0; i < gpu->anchor_count; i++) {
            const rt_anchor *a = &gpu->anchors[i];
            assert_true(a->step.job == RT_NO_JOB || a->step.job < c->job_count);
            bool has_job = a->step.job != RT_NO_JOB;
            assert_ptr_equal(a->step.share, has_job ? c->jobs[a->step.job].share : NULL);
            const known_row like = {
                .digest = has_job ? c->jobs[a->step.job].digest : 0, .gpu = gpu->name, .step = a->step};
            size_t r = 0;
            while (r < n && !is_same(&like, &own[r], level)) r++;
            assert_true(r < n && !seen[own[r].group]);
            seen[own[r].group] = true;
            assert_means(a, own, n, own[r].group);
        }
        for (size_t j = 0; j < c->job_count; j++) { /* ascending jobs, each with an anchor somewhere */
            bool is_used = false;
            for (size_t k = 0; k < c->gpu_count; k++)
                for (size_t i = 0; i < c->gpus[k].anchor_count; i++) is_used |= c->gpus[k].anchors[i].step.job == j;
            assert_true(is_used && (j == 0 || c->jobs[j - 1].digest < c->jobs[j].digest));
        }
        free(seen);
        total += n;
    }
    assert_int_equal(total, count);
    assert_int_equal(c->row_count, count);
}

/* ---- Random sites ------------------------------------------------------------------------------------------------ */

/* A kind of site: how many different values each property has. */
typedef struct variety {
    size_t rows, jobs, batches, versions, counts, precisions, optimizers, gpus;
} variety;

static known_row draw_row(calibration_site *s, const mdot_job *job, const variety *v, uint64_t *random,
                          mdot_measurement *out)
{
    static const char *const gpus[] = {"A100", "H100", "T4"};
    static const mdot_precision precisions[] = {MDOT_PRECISION_FP32, MDOT_PRECISION_AMP, MDOT_PRECISION_TF32,
                                                MDOT_PRECISION_BF16};
    static const double times[] = {0, 1e-300, .6, 1, 1.2, 1e6};
    known_row row = {
        .c = predict_configuration(1 + (int64_t)next_random(random, v->batches), gpus[next_random(random, v->gpus)])};
    row.c.gpu_count = 1 + (int64_t)next_random(random, v->counts);
    row.c.precision = precisions[next_random(random, v->precisions)];
    row.c.torch = (uint32_t)(v->versions > 1 ? 100 + next_random(random, v->versions) : 0);
    row.c.optimizer = next_random(random, v->optimizers) ? MDOT_OPTIMIZER_ADAM : MDOT_OPTIMIZER_SGD;
    mdot_prediction p = predict_one(&s->f, job, &row.c);
    double least = fmax(.5 * p.compute_share, .125 * p.memory_share); /* of a possible step */
    double time = times[2 + next_random(random, 4)], memory = times[next_random(random, 6)];
    if (memory > 0 && next_random(random, 3) == 0) time = 0;
    *out = (mdot_measurement){.struct_size = sizeof *out,
                              .job = job,
                              .step_ms = time > 0 ? fmax(time, 1.01 * least) * p.step_ms : 0,
                              .memory_bytes = memory * (double)p.peak_memory_bytes};
    if (next_random(random, 4) == 0) { /* the caller brings a prediction */
        p.gpu_ms = p.step_ms *= 1.25;
        p.gpu_upper_ms = p.upper_ms *= 1.5;
        row.given = p;
    }
    bool waits = time > 0 && next_random(random, 5) == 0;
    if (waits) row.c.loader_rate = 1;
    if (waits) row.c.loader_rate = predict_one(&s->f, job, &row.c).loader_ms / out->step_ms;
    const char *name = NULL;
    assert_int_equal(rt_calibration_step(&row.c, &row.step, &name, NULL), MDOT_OK);
    rt_state_deviations(&p, &row.step);
    row.step.host_share = p.host_share;
    row.gpu = name;
    row.digest = job->analysis->identity.digest;
    row.is_measured[RT_QUANTITY_TIME] = time > 0 && !waits;
    row.is_measured[RT_QUANTITY_MEMORY] = memory > 0;
    const double measured[] = {out->step_ms, out->memory_bytes}, predicted[] = {p.step_ms, (double)p.peak_memory_bytes};
    for (int q = 0; q < RT_QUANTITIES; q++)
        row.residual[q] =
            fmin(fmax(log(measured[q] / predicted[q]), -RT_CALIBRATION_MOST_RESIDUAL), RT_CALIBRATION_MOST_RESIDUAL);
    return row;
}

/* Any rows in any order become the anchors that the reference makes, and at most as many as a file holds. */
static void rows_become_the_reference_s_anchors(void **state)
{
    calibration_site *s = *state;
    static const variety varieties[] = {
        {40, 3, 4, 2, 3, 4, 2, 3},       /* equal steps */
        {500, 5, 6, 3, 3, 3, 2, 2},      /* the same, many */
        {1500, 2, 900, 1, 1, 1, 1, 1},   /* near batches */
        {1500, 8, 60, 1, 3, 2, 2, 1},    /* all batches */
        {1400, 4, 3, 2000, 2, 4, 2, 1},  /* all configurations; versions and GPU counts alternate */
        {900, 1, 1, 5000, 2, 1, 1, 1},   /* the same, of one job */
        {1600, 600, 1, 1, 1, 1, 1, 1},   /* too many jobs */
        {1600, 400, 9, 3000, 3, 4, 1, 1} /* the same in many configurations */
    };
    mdot_job **jobs = calloc(MOST_JOBS, sizeof *jobs);
    known_row *rows = calloc(MOST_ROWS, sizeof *rows);
    mdot_measurement *measured = calloc(MOST_ROWS, sizeof *measured);
    assert_true(jobs != NULL && rows != NULL && measured != NULL);
    for (size_t i = 0, count = 1, period = 1; i < MOST_JOBS; i++, period++) {
        if (period > count) count++, period = 1;
        jobs[i] = predict_job(count, period);
    }
    uint64_t random = 52;
    for (size_t k = 0; k < sizeof varieties / sizeof *varieties; k++) {
        const variety *v = &varieties[k];
        size_t memories = 0;
        for (size_t i = 0; i < v->rows; i++) {
            /* every job has a row, so that all of them take part */
            const mdot_job *job = jobs[i < v->jobs ? i : next_random(&random, v->jobs)];
            rows[i] = draw_row(s, job, v, &random, &measured[i]);
            memories += measured[i].memory_bytes > 0;
        }
        for (size_t i = 0; i < v->rows; i++) {
            measured[i].configuration = &rows[i].c;
            measured[i].prediction = rows[i].given.struct_size > 0 ? &rows[i].given : NULL;
        }
        mdot_calibration *c = calloc(1, sizeof *c);
        mdot_error err = {0};
        assert_non_null(c);
        if (rt_calibration_read_rows(s->f.context, measured, v->rows, "test", c, &err) != MDOT_OK)
            fail_msg("%s", err.message);
        assert_int_equal(c->memory_row_count, memories);
        for (size_t g = 0; g < c->gpu_count; g++) assert_compare(c->gpus[g].anchor_count, <=, MOST);
        assert_anchors(c, rows, v->rows);
        rt_calibration_free(c);
    }
    for (size_t i = 0; i < MOST_JOBS; i++) mdot_job_destroy(jobs[i]);
    free(jobs);
    free(rows);
    free(measured);
}

/* ---- Limits ------------------------------------------------------------------------------------------------------ */

/* Bounds that ascend from above 0 state a deviation. All others get the least one. */
static void deviations_follow_from_the_bounds(void **state)
{
    (void)state;
    static const double bounds[] = {0, 1e-300, 1e-3, .995, 1, 1.02, 2, 7, 1e6, 1e300};
    enum { COUNT = sizeof bounds / sizeof *bounds };
    for (size_t i = 0; i < COUNT * COUNT; i++) {
        double lower = bounds[i % COUNT], upper = bounds[i / COUNT];
        bool has_bounds = lower > 0 && lower < upper;
        double stated = has_bounds ? log(upper / lower) / 3.2897072 : 0; /* between the 5 % and 95 % quantiles */
        rt_step step = {0};
        mdot_prediction p = {.warnings = i % 2 ? MDOT_WARN_GPU_NOT_MEASURED : MDOT_WARN_FALLBACK};
        p.gpu_lower_ms = lower, p.gpu_upper_ms = upper;
        p.memory_lower_bytes = (uint64_t)fmin(lower, 1e18), p.memory_upper_bytes = (uint64_t)fmin(upper, 1e18);
        rt_state_deviations(&p, &step);
        assert_within(step.deviation[RT_QUANTITY_TIME], fmin(fmax(stated, .005), 4), 1e-6);
        assert_int_equal(step.is_new_gpu, i % 2);
        lower = (double)p.memory_lower_bytes, upper = (double)p.memory_upper_bytes;
        stated = lower > 0 && lower < upper ? log(upper / lower) / 3.2897072 : 0;
        assert_within(step.deviation[RT_QUANTITY_MEMORY], fmin(fmax(stated, .005), 4), 1e-6);
    }
}

/* A step that takes half of its FLOPs' time and an eighth of its bytes' time at peak rates is possible, a shorter one
 * is not. A step waits if its data loaders take more than nine tenths of it. */
static void limits_of_a_row_are_inclusive(void **state)
{
    calibration_site *s = *state;
    for (int64_t batch = 1; batch <= 4096; batch *= 2) {
        mdot_configuration c = calibration_site_configure(batch % 3 == 1 ? "T4" : "A100", batch);
        mdot_prediction p = predict_one(&s->f, s->jobs[batch % 2], &c);
        double least = p.step_ms * fmax(.5 * p.compute_share, .125 * p.memory_share);
        for (int k = 0; k < 2; k++) {
            mdot_calibration *made = NULL;
            mdot_error err = {0};
            const mdot_measurement row = {.struct_size = sizeof row,
                                          .job = s->jobs[batch % 2],
                                          .configuration = &c,
                                          .step_ms = k ? nextafter(least, 0) : least};
            mdot_status status = mdot_calibrate_measured(s->f.context, &row, 1, &made, &err);
            if (status != (k ? MDOT_INVALID_ARGUMENT : MDOT_OK)) fail_msg("batch %d: %s", (int)batch, err.message);
            mdot_calibration_destroy(made);
        }
        c.loader_rate = 1000;
        double loader_ms = predict_one(&s->f, s->jobs[batch % 2], &c).loader_ms, equal = loader_ms / .9;
        while (.9 * equal < loader_ms) equal = nextafter(equal, INFINITY);
        if (.9 * equal > loader_ms) continue; /* no step is exactly at the limit */
        if (equal < 2 * least) continue;
        for (int k = 0; k < 2; k++) {
            mdot_calibration *made = calloc(1, sizeof *made);
            const mdot_measurement row = {.struct_size = sizeof row,
                                          .job = s->jobs[batch % 2],
                                          .configuration = &c,
                                          .step_ms = k ? nextafter(equal, 0) : equal};
            assert_non_null(made);
            assert_int_equal(rt_calibration_read_rows(s->f.context, &row, 1, "test", made, NULL), MDOT_OK);
            bool waits = .9 * row.step_ms < loader_ms;
            assert_int_equal(made->jobs[0].waits, waits);
            assert_int_equal(made->gpus[0].row_count[RT_PRECISION_FULL], !waits);
            rt_calibration_free(made);
        }
    }
}

/* A prediction that the caller brings succeeded, and has six positive and finite numbers, of which both bounds enclose
 * their middle, and the step's upper one is the largest. */
static void given_predictions_are_valid(void **state)
{
    calibration_site *s = *state;
    static const double numbers[] = {-1, 0, 1, 2, 3, INFINITY, NAN};
    mdot_configuration c = calibration_site_configure("T4", 8);
    const mdot_prediction answer = predict_one(&s->f, s->jobs[0], &c);
    uint64_t random = 5;
    int valid = 0;
    for (int i = 0; i < 6000; i++) {
        double n[6] = {1, 2, 3, 1, 2, 3};
        for (int change = 0; change < i % 4; change++) n[next_random(&random, 6)] = numbers[next_random(&random, 7)];
        mdot_prediction given = answer;
        given.lower_ms = n[0], given.step_ms = n[1], given.upper_ms = n[2];
        given.gpu_lower_ms = n[3], given.gpu_ms = n[4], given.gpu_upper_ms = n[5];
        given.loader_ms = i % 3 ? 1e-3 : 0;
        if (i % 5 == 0) given.peak_memory_bytes = 0; /* unknown: memory is not corrected */
        given.status = i % 7 == 3 ? MDOT_UNSUPPORTED : MDOT_OK;
        bool is_valid = given.status == MDOT_OK && n[0] > 0 && n[0] <= n[1] && n[1] <= n[2] && n[2] <= 3;
        if (i % 3) is_valid = is_valid && n[3] > 0 && n[3] <= n[4] && n[4] <= n[5] && n[5] <= n[2];
        const mdot_measurement row = {.struct_size = sizeof row,
                                      .job = s->jobs[0],
                                      .configuration = &c,
                                      .step_ms = 100,
                                      .memory_bytes = 2 * (double)answer.peak_memory_bytes,
                                      .prediction = &given};
        mdot_calibration *made = calloc(1, sizeof *made);
        mdot_error err = {0};
        assert_non_null(made);
        mdot_status status = rt_calibration_read_rows(s->f.context, &row, 1, "test", made, &err);
        if (status != (is_valid ? MDOT_OK : MDOT_INVALID_ARGUMENT)) fail_msg("case %d: %s", i, err.message);
        if (!is_valid) expect_contains(err.message, "row 0: its prediction of ");
        if (is_valid) {
            assert_within(made->gpus[0].anchors[0].residual[0], log(100 / n[i % 3 ? 4 : 1]), 1e-9);
            assert_within(made->gpus[0].anchors[0].residual[1], i % 5 ? log(2) : 0, 1e-9);
        }
        valid += is_valid;
        rt_calibration_free(made);
    }
    assert_in_range(valid, 1000, 4000);
}

/* 64 GPU models fit, each under its own name of up to 63 bytes, and no more. */
static void gpus_have_limits(void **state)
{
    calibration_site *s = *state;
    static mdot_gpu gpus[RT_CALIBRATION_MAX_GPUS + 1];
    static mdot_configuration c[RT_CALIBRATION_MAX_GPUS + 1];
    static mdot_measurement rows[RT_CALIBRATION_MAX_GPUS + 2];
    static char names[RT_CALIBRATION_MAX_GPUS + 1][128];
    for (size_t i = 0; i <= RT_CALIBRATION_MAX_GPUS; i++) {
        gpus[i] = (mdot_gpu)MDOT_INIT(mdot_gpu);
        assert_int_equal(mdot_gpu_find("T4", &gpus[i], NULL), MDOT_OK);
        memset(names[i], 'a' + (int)(i % 26), i + 1); /* i + 1 bytes, each another name within the limit */
        names[i][0] = (char)('0' + i);
        gpus[i].name = names[i];
        c[i] = calibration_site_configure("T4", 8);
        c[i].gpu = NULL;
        c[i].gpu_spec = &gpus[i];
    }
    for (size_t count = 1; count <= RT_CALIBRATION_MAX_GPUS + 1; count += count < 62 ? 7 : 1) {
        mdot_calibration *made = calloc(1, sizeof *made);
        mdot_error err = {0};
        assert_non_null(made);
        for (size_t i = 0; i <= count; i++) /* the last row has the first GPU again */
            rows[i] = (mdot_measurement){
                .struct_size = sizeof *rows, .job = s->jobs[0], .configuration = &c[i < count ? i : 0], .step_ms = 1e6};
        mdot_status status = rt_calibration_read_rows(s->f.context, rows, count + 1, "test", made, &err);
        if (count > RT_CALIBRATION_MAX_GPUS) {
            assert_int_equal(status, MDOT_OUT_OF_RANGE);
            expect_contains(err.message, "row 64: a calibration holds at most 64 GPUs");
        } else {
            assert_int_equal(status, MDOT_OK);
            assert_int_equal(made->gpu_count, count);
            assert_int_equal(made->gpus[0].row_count[RT_PRECISION_FULL], 2);
        }
        for (size_t i = 0; i < made->gpu_count; i++) {
            const rt_calibration_gpu *found = rt_calibration_find_gpu(made, names[i]);
            assert_ptr_equal(found, &made->gpus[i]);
            assert_int_equal(strlen(found->name), fmin(63, (double)i + 1));
            char shorter[128];
            snprintf(shorter, sizeof shorter, "%.*s", (int)i, names[i]);
            assert_ptr_equal(rt_calibration_find_gpu(made, shorter), i == 63 ? found : NULL);
        }
        rt_calibration_free(made);
    }
}

/* A predictor's name is kept up to 127 bytes, cut between characters, and printable. */
/* Options do not take anything from the GPU model, and each option counts. */
static void equal_options_are_equal_on_every_gpu(void **state)
{
    (void)state;
    static const double links[] = {0, 5, 6, 300};
    uint64_t hash[16];
    for (size_t i = 0; i < 16; i++) {
        size_t found = 0;
        for (const char *const *gpu = mdot_gpu_names(); *gpu != NULL; gpu++) {
            mdot_configuration c = calibration_site_configure(*gpu, 8);
            rt_step step;
            const char *name = NULL;
            c.gpu_count = 4;
            c.link_gbps = links[i % 4];
            c.optimizer = i / 4 % 2 == 0 ? MDOT_OPTIMIZER_SGD : MDOT_OPTIMIZER_ADAM;
            c.network_gbps = i / 8 == 0 ? 0 : 7;
            if (rt_calibration_step(&c, &step, &name, NULL) != MDOT_OK) continue;
            if (found++ == 0) hash[i] = step.others;
            if (step.others != hash[i]) fail_msg("case %zu on %s", i, *gpu);
        }
        assert_compare(found, >, 20);
        for (size_t k = 0; k < i; k++) assert_true(hash[k] != hash[i]);
    }
}

static void predictor_names_are_cut_between_characters(void **state)
{
    (void)state;
    enum { MOST_NAME = 160 };
    static const int64_t buckets[] = {PREDICT_SMALL_BUCKET};
    static const int lengths[] = {1, 63, 125, 126, 127, 128, 129, MOST_NAME};
    char *folder = process_make_folder(), model[512], path[512];
    snprintf(model, sizeof model, "%s/predict.onnx", folder);
    snprintf(path, sizeof path, "%s/model.mdot", folder);
    FILE *file = fopen(model, "wb");
    pb_buffer bytes = onnx_finish(predict_bandwidth_model());
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
    assert_int_equal(fclose(file), 0);
    pb_free(&bytes);
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++) {
        char name[MOST_NAME + 4] = "", expected[MOST_NAME + 4];
        int length = lengths[i / 2];
        memset(name, 'n', (size_t)length);
        if (i % 2) memcpy(name + length - 1, "\xc3\xa9", 2); /* one byte more: é */
        memcpy(expected, name, sizeof expected);
        expected[2 * RT_CALIBRATION_NAME_BYTES - 1] = '\0';
        if (i % 2 && length == 127) expected[126] = '\0'; /* é does not fit */
        const mdotc_entry entry = {sizeof entry, "predict", model};
        const mdotc_options options = {
            .struct_size = sizeof options, .buckets = buckets, .bucket_count = 1, .name = name};
        predict_fixture f = {0};
        mdot_calibration *made = NULL;
        mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
        mdot_error err = {0};
        mdot_status status = mdotc_compile(&entry, 1, path, &options, &err);
        if (status == MDOT_OK) status = mdot_predictor_open(path, NULL, &f.predictor, &err);
        if (status == MDOT_OK) status = mdot_context_create(f.predictor, &f.context, &err);
        if (status == MDOT_OK) status = mdot_calibrate_measured(f.context, NULL, 0, &made, &err);
        if (status != MDOT_OK) fail_msg("%s", err.message);
        assert_int_equal(mdot_calibration_get_info(made, &info), MDOT_OK);
        assert_string_equal(info.predictor, expected);
        mdot_calibration_destroy(made);
        predict_close(&f);
    }
    process_remove_folder(folder);
}

static int open_site(void **state)
{
    calibration_site *s = *state = calibration_site_open();
    if (s == NULL) return -1;
    s->jobs[0] = predict_job(20, 20);
    s->jobs[1] = predict_job(9, 3);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_become_the_reference_s_anchors),
        cmocka_unit_test(deviations_follow_from_the_bounds),
        cmocka_unit_test(limits_of_a_row_are_inclusive),
        cmocka_unit_test(given_predictions_are_valid),
        cmocka_unit_test(gpus_have_limits),
        cmocka_unit_test(equal_options_are_equal_on_every_gpu),
        cmocka_unit_test(predictor_names_are_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, open_site, calibration_site_close);
}
