/* test_calibration_model.c — properties of the hierarchical calibration: jobs, configurations, precisions and memory.
 * One row corrects its job. Row order, names and batches do not matter. */
#include "runtime/predict/calibration.h"
#include "tests/support/assertions.h"
#include "tests/support/calibration_site.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/process.h"

typedef calibration_site site;

/* Two jobs with different operators. */
static int open_site(void **state)
{
    calibration_site *s = *state = calibration_site_open();
    if (s == NULL) return -1;
    s->jobs[0] = predict_job(20, 20);
    s->jobs[1] = predict_job(9, 3);
    return 0;
}

static void one_row_corrects_its_job_at_other_batches(void **state)
{
    site *s = *state;
    calibration_site_add(s, s->jobs[0], calibration_site_configure("T4", 16), 1.4, 0);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    double last = 1.41;
    for (int64_t batch = 16; batch <= 128; batch *= 2) {
        mdot_calibration_factors f =
            calibration_site_factors(s, calibration, s->jobs[0], calibration_site_configure("T4", batch));
        if (!(f.factor > 1.2 && f.factor <= last + 1e-9)) fail_msg("%d: %g", (int)batch, f.factor);
        assert_compare(f.interval, <, 1);
        assert_int_equal(f.job_row_count, 1);
        last = f.factor;
    }
    mdot_calibration_factors other =
        calibration_site_factors(s, calibration, s->jobs[1], calibration_site_configure("T4", 16));
    assert_compare(other.factor, >, 1);
    assert_compare(other.factor, <, last);
    assert_int_equal(other.job_row_count, 0);
    assert_int_equal(other.row_count, 1);
    mdot_calibration_destroy(calibration);
}

static void a_row_of_exactly_the_prediction_changes_nothing(void **state)
{
    site *s = *state;
    calibration_site_add(s, s->jobs[0], calibration_site_configure("T4", 16), 1, 1);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    static const char *const gpus[] = {"T4", "A100"};
    const mdot_job *jobs[] = {s->jobs[0], s->jobs[1]};
    for (int k = 0; k < 4; k++) {
        mdot_configuration c = calibration_site_configure(gpus[k / 2], 32);
        mdot_prediction before = predict_one(&s->f, jobs[k % 2], &c), after = before;
        assert_int_equal(mdot_calibration_apply_to_job(calibration, jobs[k % 2], &c, &after, NULL), MDOT_OK);
        predict_assert_close(after.step_ms, before.step_ms);
        assert_compare(fabs((double)after.peak_memory_bytes - (double)before.peak_memory_bytes), <=, 1);
        assert_compare(after.lower_ms, >=, before.lower_ms * (1 - 1e-9));
        assert_compare(after.upper_ms, <=, before.upper_ms * (1 + 1e-9));
    }
    mdot_calibration_destroy(calibration);
}

static mdot_configuration configure_several(int64_t batch, uint32_t gpu_count)
{
    mdot_configuration c = calibration_site_configure("T4", batch);
    c.gpu_count = gpu_count;
    return c;
}

/* A row far outside its interval has two possible causes: the job, and the communication. */
static void an_outlier_on_several_gpus_corrects_one_gpu_by_a_part(void **state)
{
    site *s = *state;
    calibration_site_add(s, s->jobs[0], configure_several(16, 2), 8, 0);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    double several = log(calibration_site_factors(s, calibration, s->jobs[0], configure_several(16, 4)).factor);
    double one = log(calibration_site_factors(s, calibration, s->jobs[0], configure_several(16, 1)).factor);
    if (!(several > 0.9 * log(8) && one > 0.3 * several && one < 0.7 * several)) fail_msg("%g, %g", several, one);
    mdot_calibration_destroy(calibration);
}

static void more_rows_narrow_the_interval(void **state)
{
    site *s = *state;
    double last = 1;
    for (int64_t batch = 8; batch <= 128; batch *= 2) {
        calibration_site_add(s, s->jobs[0], calibration_site_configure("T4", batch), 1.2, 0);
        mdot_calibration *calibration = calibration_site_calibrate(s);
        double interval =
            calibration_site_factors(s, calibration, s->jobs[0], calibration_site_configure("T4", 48)).interval;
        if (!(interval <= last + 1e-9)) fail_msg("batch %d: %g after %g", (int)batch, interval, last);
        last = interval;
        mdot_calibration_destroy(calibration);
    }
    assert_compare(last, <, 0.6);
}

static void the_order_of_rows_does_not_matter(void **state)
{
    site *s = *state;
    static const double times[] = {1.5, 0.7, 1.1, 2, 1.3, 0.9, 1.2, 1.6};
    enum { ROWS = sizeof times / sizeof *times };
    for (int i = 0; i < ROWS; i++) /* the last two are equal steps with different times */
        calibration_site_add(s, i % 3 == 0 ? s->jobs[1] : s->jobs[0],
                             calibration_site_configure(i % 2 == 0 ? "T4" : "A100", 8 + 8 * (i % 6)), times[i],
                             times[ROWS - 1 - i]);
    mdot_calibration *first = calibration_site_calibrate(s);
    for (int turn = 1; turn < ROWS; turn++) {
        mdot_measurement front = s->rows[0];
        memmove(&s->rows[0], &s->rows[1], (ROWS - 1) * sizeof *s->rows);
        s->rows[ROWS - 1] = front;
        mdot_calibration *turned = calibration_site_calibrate(s);
        mdot_calibration_factors a =
            calibration_site_factors(s, first, s->jobs[0], calibration_site_configure("T4", 20));
        mdot_calibration_factors b =
            calibration_site_factors(s, turned, s->jobs[0], calibration_site_configure("T4", 20));
        assert_memory_equal(&a, &b, sizeof a); /* to the last bit */
        mdot_calibration_destroy(turned);
    }
    mdot_calibration_destroy(first);
}

static void a_row_of_another_gpu_leaves_a_measured_gpu_unchanged(void **state)
{
    site *s = *state;
    calibration_site_add(s, s->jobs[0], calibration_site_configure("T4", 16), 1.4, 1.2);
    mdot_calibration *alone = calibration_site_calibrate(s);
    calibration_site_add(s, s->jobs[0], calibration_site_configure("A100", 16), 0.5, 2);
    calibration_site_add(s, s->jobs[1], calibration_site_configure("A100", 16), 3, 2);
    mdot_calibration *both = calibration_site_calibrate(s);
    mdot_calibration_factors a = calibration_site_factors(s, alone, s->jobs[0], calibration_site_configure("T4", 32));
    mdot_calibration_factors b = calibration_site_factors(s, both, s->jobs[0], calibration_site_configure("T4", 32));
    assert_memory_equal(&a, &b, sizeof a);
    /* A job's factor applies only to GPUs with rows. */
    mdot_calibration_factors none =
        calibration_site_factors(s, both, s->jobs[0], calibration_site_configure("V100", 16));
    assert_compare(none.by_effect[MDOT_CALIBRATION_EFFECT_JOB], ==, 1);
    assert_compare(none.by_effect[MDOT_CALIBRATION_EFFECT_CONFIGURATION], ==, 1);
    assert_compare(none.factor, >, 0.9);
    assert_compare(none.factor, <, 1.1);
    mdot_calibration_destroy(alone);
    mdot_calibration_destroy(both);
}

static void the_factors_multiply_to_the_correction(void **state)
{
    site *s = *state;
    calibration_site_add(s, s->jobs[0], calibration_site_configure("T4", 16), 1.4, 1.2);
    calibration_site_add(s, s->jobs[1], calibration_site_configure("T4", 16), 1.1, 0.9);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    mdot_configuration c = calibration_site_configure("T4", 64);
    mdot_calibration_factors f = calibration_site_factors(s, calibration, s->jobs[0], c);
    double product = 1, memory = 1;
    for (int e = 0; e < MDOT_CALIBRATION_EFFECT_COUNT; e++) {
        product *= f.by_effect[e];
        memory *= f.memory_by_effect[e];
        assert_compare(f.believed[e], >=, 0);
        assert_compare(f.believed[e], <=, 1);
        assert_compare(f.memory_believed[e], >=, 0);
        assert_compare(f.memory_believed[e], <=, 1);
    }
    predict_assert_close(product, f.factor);
    predict_assert_close(memory, f.memory_factor);
    assert_compare(f.believed[MDOT_CALIBRATION_EFFECT_JOB], >, 0);
    assert_compare(f.believed[MDOT_CALIBRATION_EFFECT_SEVERAL], ==, 0);
    mdot_prediction p = predict_one(&s->f, s->jobs[0], &c), before = p;
    assert_int_equal(mdot_calibration_apply_to_job(calibration, s->jobs[0], &c, &p, NULL), MDOT_OK);
    predict_assert_close(p.step_ms, before.step_ms * f.factor);
    predict_assert_close((double)p.peak_memory_bytes, (double)before.peak_memory_bytes * f.memory_factor);
    predict_assert_close(p.weight_bytes + p.gradient_bytes + p.optimizer_bytes + p.activation_bytes,
                         (double)p.peak_memory_bytes);
    mdot_calibration_destroy(calibration);
}

/* Another job's correction from three rows of one job. `warnings` are the rows' prediction warnings. */
static double correct_other(site *s, uint32_t warnings)
{
    mdot_prediction predictions[3];
    s->count = 0;
    for (size_t i = 0; i < 3; i++) {
        calibration_site_add(s, s->jobs[0], calibration_site_configure("T4", 16 << i), 1.3, 0);
        predictions[i] = predict_one(&s->f, s->jobs[0], &s->c[i]);
        predictions[i].warnings = warnings;
        s->rows[i].prediction = &predictions[i];
    }
    mdot_calibration *calibration = calibration_site_calibrate(s);
    assert_int_equal(mdot_calibration_save(calibration, "test_new_gpu.cal", NULL), MDOT_OK);
    double factor = calibration_site_factors(s, calibration, s->jobs[1], calibration_site_configure("T4", 16)).factor;
    mdot_calibration_destroy(calibration);
    assert_int_equal(mdot_calibration_load("test_new_gpu.cal", &calibration, NULL), MDOT_OK);
    predict_assert_close(
        calibration_site_factors(s, calibration, s->jobs[1], calibration_site_configure("T4", 16)).factor, factor);
    mdot_calibration_destroy(calibration);
    remove("test_new_gpu.cal");
    return factor;
}

/* Residuals on a GPU model in the training data belong to jobs, because the predictor has learned the rest. */
static void a_new_gpu_is_corrected_more_than_one_of_the_training_data(void **state)
{
    double known = correct_other(*state, 0), new = correct_other(*state, MDOT_WARN_GPU_NOT_MEASURED);
    if (!(known > 1)) fail_msg("%g", known);
    if (!(new - 1 > 2 * (known - 1) && new < 1.3)) fail_msg("%g %g", new, known);
}

static void an_outlier_in_one_layout_corrects_the_other_by_a_part(void **state)
{
    site *s = *state;
    mdot_configuration measured = calibration_site_configure("T4", 16), other = measured;
    measured.layout = MDOT_LAYOUT_NCHW;
    other.layout = MDOT_LAYOUT_NHWC;
    calibration_site_add(s, s->jobs[0], measured, 4, 0);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    double same = log(calibration_site_factors(s, calibration, s->jobs[0], measured).factor);
    double part = log(calibration_site_factors(s, calibration, s->jobs[0], other).factor) / same;
    if (!(same > 0.9 * log(4) && part > 0.3 && part < 0.7)) fail_msg("%g %g", same, part);
    mdot_calibration_destroy(calibration);
}

/* A training step has a backward pass besides the forward pass that inference measures. The inference interval is
 * wider, so an inference row corrects training less than the other way round. */
static void an_outlier_in_one_mode_corrects_the_other_by_a_part(void **state)
{
    site *s = *state;
    mdot_configuration training = calibration_site_configure("T4", 16), inference = training;
    inference.mode = MDOT_MODE_INFERENCE;
    const mdot_configuration pairs[][2] = {{inference, training}, {training, inference}};
    for (int i = 0; i < 2; i++) {
        s->count = 0;
        calibration_site_add(s, s->jobs[0], pairs[i][0], 4, 0);
        mdot_calibration *calibration = calibration_site_calibrate(s);
        assert_int_equal(mdot_calibration_save(calibration, "test_mode.cal", NULL), MDOT_OK);
        double same = log(calibration_site_factors(s, calibration, s->jobs[0], pairs[i][0]).factor);
        double other = log(calibration_site_factors(s, calibration, s->jobs[0], pairs[i][1]).factor),
               part = other / same;
        if (!(same > 0.9 * log(4) && part > 0.2 && part < 0.7)) fail_msg("%g %g", same, part);
        mdot_calibration_destroy(calibration);
        assert_int_equal(mdot_calibration_load("test_mode.cal", &calibration, NULL), MDOT_OK);
        predict_assert_close(log(calibration_site_factors(s, calibration, s->jobs[0], pairs[i][1]).factor), other);
        mdot_calibration_destroy(calibration);
        remove("test_mode.cal");
    }
}

/* A step kind without rows has only the shared part of an outlier's variance. A row four times off would else give an
 * interval from a tenth of the median to ten times it. */
static void an_outlier_in_one_mode_bounds_the_interval_of_the_other(void **state)
{
    site *s = *state;
    mdot_configuration training = calibration_site_configure("T4", 16), inference = training;
    inference.mode = MDOT_MODE_INFERENCE;
    calibration_site_add(s, s->jobs[0], inference, 4, 0);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    mdot_calibration_factors one = calibration_site_factors(s, calibration, s->jobs[0], training);
    mdot_calibration_destroy(calibration);
    calibration_site_add(s, s->jobs[0], training, 4, 0);
    calibration = calibration_site_calibrate(s);
    mdot_calibration_factors both = calibration_site_factors(s, calibration, s->jobs[0], training);
    mdot_calibration_destroy(calibration);
    if (!(one.interval > both.interval && one.interval < 2)) fail_msg("%g %g", one.interval, both.interval);
    assert_compare(one.believed[MDOT_CALIBRATION_EFFECT_JOB], >, 0);
    assert_compare(one.believed[MDOT_CALIBRATION_EFFECT_JOB], <, 1);
}

static void an_outlier_of_one_pytorch_corrects_another_by_a_part(void **state)
{
    site *s = *state;
    mdot_configuration measured = calibration_site_configure("T4", 16), other = measured;
    measured.torch = 111;
    other.torch = 112;
    calibration_site_add(s, s->jobs[0], measured, 4, 0);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    double same = log(calibration_site_factors(s, calibration, s->jobs[0], measured).factor);
    double part = log(calibration_site_factors(s, calibration, s->jobs[0], other).factor) / same;
    if (!(same > 0.9 * log(4) && part > 0.8 && part < 0.95)) fail_msg("%g %g", same, part);
    mdot_calibration_destroy(calibration);
}

/* A step that waits for the host is weaker evidence for steps that never wait. Its memory is full evidence. */
static void configurations_share_less_time_if_their_host_shares_differ(void **state)
{
    (void)state;
    rt_step a = {.job = 0, .gpu_count = 1, .batch = 8, .share = (float[RT_WORK_CLASSES]){1}}, b = a;
    double time[3][RT_TERMS], memory[3][RT_TERMS];
    for (int k = 0; k < 3; k++) {
        b.host_share = 0.5 * k;
        rt_common_terms(&a, &b, RT_QUANTITY_TIME, 1, time[k]);
        rt_common_terms(&a, &b, RT_QUANTITY_MEMORY, 1, memory[k]);
    }
    for (int k = 1; k < 3; k++) {
        double part = time[k][RT_TERM_CONFIGURATION] / time[k][RT_TERM_JOB];
        double before = time[k - 1][RT_TERM_CONFIGURATION] / time[k - 1][RT_TERM_JOB];
        if (!(part > 0 && part < 0.6 * before)) fail_msg("%g %g", part, before);
        predict_assert_close(memory[k][RT_TERM_CONFIGURATION] / memory[k][RT_TERM_JOB],
                             memory[0][RT_TERM_CONFIGURATION] / memory[0][RT_TERM_JOB]);
    }
}

/* A job without rows may be an outlier, too, if measured jobs are. */
static void an_outlier_widens_the_interval_of_jobs_without_rows(void **state)
{
    site *s = *state;
    double interval[2];
    for (int k = 0; k < 2; k++) {
        s->count = 0;
        calibration_site_add(s, s->jobs[0], calibration_site_configure("T4", 16), k == 0 ? 1.01 : 8, 0);
        mdot_calibration *calibration = calibration_site_calibrate(s);
        interval[k] =
            calibration_site_factors(s, calibration, s->jobs[1], calibration_site_configure("T4", 16)).interval;
        mdot_calibration_destroy(calibration);
    }
    if (!(interval[0] < 1 && interval[1] > 1.1)) fail_msg("%g %g", interval[0], interval[1]);
}

/* Operators identify a job, at another batch and under other names. */
static void jobs_are_recognised_by_their_operators(void **state)
{
    site *s = *state;
    enum { OPERATORS = 3 };
    mdot_job_operator operators[OPERATORS];
    mdot_job *jobs[3];
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < OPERATORS; i++) {
            operators[i] = predict_operator(i);
            operators[i].module = k == 1 ? "renamed" : NULL;
        }
        if (k == 2) operators[0].setting[MDOT_SETTING_CHANNELS_OUT] += 1;
        const mdot_job_description d = {
            .struct_size = sizeof d, .operators = operators, .operator_count = OPERATORS, .batch = k == 1 ? 64 : 8};
        assert_int_equal(mdot_job_create(&d, &jobs[k], NULL), MDOT_OK);
    }
    calibration_site_add(s, jobs[0], calibration_site_configure("T4", 16), 1.4, 0);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    assert_int_equal(
        calibration_site_factors(s, calibration, jobs[1], calibration_site_configure("T4", 16)).job_row_count, 1);
    mdot_calibration_factors changed =
        calibration_site_factors(s, calibration, jobs[2], calibration_site_configure("T4", 16));
    assert_int_equal(changed.job_row_count, 0);
    assert_compare(changed.by_effect[MDOT_CALIBRATION_EFFECT_JOB], >, 1); /* a relative */
    assert_compare(changed.by_effect[MDOT_CALIBRATION_EFFECT_CONFIGURATION], >, 1);
    assert_compare(changed.factor, <,
                   calibration_site_factors(s, calibration, jobs[0], calibration_site_configure("T4", 16)).factor);
    mdot_calibration_destroy(calibration);
    for (int k = 0; k < 3; k++) mdot_job_destroy(jobs[k]);
}

static void memory_is_corrected_without_a_time(void **state)
{
    site *s = *state;
    mdot_configuration c = calibration_site_configure("T4", 16);
    calibration_site_add(s, s->jobs[0], c, 0, 1.5);
    mdot_calibration *calibration = calibration_site_calibrate(s);
    mdot_prediction before = predict_one(&s->f, s->jobs[0], &c), after = before;
    assert_int_equal(mdot_calibration_apply_to_job(calibration, s->jobs[0], &c, &after, NULL), MDOT_OK);
    assert_compare(after.step_ms, ==, before.step_ms);
    assert_compare(after.lower_ms, ==, before.lower_ms);
    double factor = (double)after.peak_memory_bytes / (double)before.peak_memory_bytes;
    if (!(factor > 1.3 && factor < 1.51)) fail_msg("%g", factor);
    assert_compare(after.reserved_bytes, >, before.reserved_bytes);
    assert_compare(after.memory_lower_bytes, <=, after.peak_memory_bytes);
    assert_compare(after.peak_memory_bytes, <=, after.memory_upper_bytes);
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    assert_int_equal(mdot_calibration_get_info(calibration, &info), MDOT_OK);
    assert_int_equal(info.memory_row_count, 1);
    assert_int_equal(info.job_count, 1);
    mdot_calibration_destroy(calibration);
}

/* A stored prediction takes the place of today's. */
static void a_row_may_bring_its_prediction(void **state)
{
    site *s = *state;
    mdot_configuration c = calibration_site_configure("T4", 16);
    calibration_site_add(s, s->jobs[0], c, 1, 0);
    mdot_prediction stored = predict_one(&s->f, s->jobs[0], &c);
    stored.step_ms /= 1.3;
    stored.lower_ms /= 1.3;
    stored.upper_ms /= 1.3;
    s->rows[0].prediction = &stored;
    mdot_calibration *calibration = calibration_site_calibrate(s);
    double factor = calibration_site_factors(s, calibration, s->jobs[0], c).factor;
    assert_compare(factor, >, 1.2);
    assert_compare(factor, <, 1.31);
    mdot_calibration_destroy(calibration);
    calibration = NULL;
    stored.lower_ms = NAN;
    mdot_error err = {0};
    assert_int_equal(mdot_calibrate_measured(s->f.context, s->rows, 1, &calibration, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "row 0: its prediction of ");
}

static void a_gpu_keeps_many_steps(void **state)
{
    site *s = *state;
    enum { ROWS = 1500 };
    mdot_measurement *rows = calloc(ROWS, sizeof *rows);
    mdot_configuration *c = calloc(ROWS, sizeof *c);
    mdot_calibration *calibration = NULL;
    assert_non_null(rows);
    assert_non_null(c);
    for (int i = 0; i < ROWS; i++) {
        c[i] = calibration_site_configure("T4", 1 + i);
        mdot_prediction p = predict_one(&s->f, s->jobs[0], &c[i]);
        rows[i] = (mdot_measurement){
            .struct_size = sizeof rows[i], .job = s->jobs[0], .configuration = &c[i], .step_ms = 1.25 * p.step_ms};
    }
    assert_int_equal(mdot_calibrate_measured(s->f.context, rows, ROWS, &calibration, NULL), MDOT_OK);
    mdot_calibration_factors f =
        calibration_site_factors(s, calibration, s->jobs[0], calibration_site_configure("T4", 40));
    if (!(f.factor > 1.2 && f.factor < 1.26)) fail_msg("%g", f.factor);
    assert_int_equal(f.row_count, ROWS);
    mdot_calibration_destroy(calibration);
    free(rows);
    free(c);
}

/* More jobs than a GPU may keep: some keep a separate correction, the others share one, and the file stays readable. */
static void a_gpu_keeps_some_of_many_jobs(void **state)
{
    site *s = *state;
    enum { JOBS = 600, MOST = 256 };
    mdot_measurement *rows = calloc(JOBS, sizeof *rows);
    mdot_job **jobs = calloc(JOBS, sizeof(mdot_job *));
    mdot_configuration c = calibration_site_configure("T4", 16);
    mdot_calibration *calibration = NULL, *loaded = NULL;
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    char path[] = "calibration-XXXXXX";
    int fd = mkstemp(path);
    assert_non_null(rows);
    assert_non_null(jobs);
    assert_compare(fd, >=, 0);
    close(fd);
    for (size_t i = 0, count = 1, period = 1; i < JOBS; i++, period++) {
        if (period > count) {
            count++;
            period = 1;
        }
        jobs[i] = predict_job(count, period);
        mdot_prediction p = predict_one(&s->f, jobs[i], &c);
        rows[i] = (mdot_measurement){
            .struct_size = sizeof rows[i], .job = jobs[i], .configuration = &c, .step_ms = 1.25 * p.step_ms};
    }
    assert_int_equal(mdot_calibrate_measured(s->f.context, rows, JOBS, &calibration, NULL), MDOT_OK);
    assert_int_equal(mdot_calibration_get_info(calibration, &info), MDOT_OK);
    assert_int_equal(info.row_count, JOBS);
    assert_int_equal(info.job_count, MOST);
    assert_int_equal(mdot_calibration_save(calibration, path, NULL), MDOT_OK);
    mdot_error err = {0};
    if (mdot_calibration_load(path, &loaded, &err) != MDOT_OK) fail_msg("%s", err.message);
    size_t own = 0;
    for (size_t i = 0; i < JOBS; i++) {
        mdot_calibration_factors f = calibration_site_factors(s, calibration, jobs[i], c);
        mdot_calibration_factors g = calibration_site_factors(s, loaded, jobs[i], c);
        assert_within(f.factor, g.factor, 1e-6);
        assert_compare(f.factor, >, 1.1);
        assert_compare(f.factor, <, 1.3);
        own += f.job_row_count == 1;
    }
    assert_int_equal(own, MOST);
    unlink(path);
    mdot_calibration_destroy(loaded);
    mdot_calibration_destroy(calibration);
    for (size_t i = 0; i < JOBS; i++) mdot_job_destroy(jobs[i]);
    free(jobs);
    free(rows);
}

static void hostile_rows_are_refused(void **state)
{
    site *s = *state;
    static const struct {
        double ms, bytes;
        const char *message;
    } wrong[] = {
        {0, 0, "row 0: the measured time of 0 ms"},    {-1, 0, "row 0: the measured time of -1 ms"},
        {NAN, 5, "row 0: the measured time of "},      {INFINITY, 0, "row 0: the measured time of inf ms"},
        {5, -1, "row 0: the measured memory of -1 b"}, {5, INFINITY, "row 0: the measured memory of inf b"},
        {0, NAN, "row 0: the measured memory of "},
    };
    mdot_calibration *calibration = NULL;
    calibration_site_add(s, s->jobs[0], calibration_site_configure("T4", 16), 1, 1);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mdot_error err = {0};
        s->rows[0].step_ms = wrong[i].ms;
        s->rows[0].memory_bytes = wrong[i].bytes;
        assert_int_equal(mdot_calibrate_measured(s->f.context, s->rows, 1, &calibration, &err), MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, wrong[i].message);
        assert_null(calibration);
    }
    mdot_error err = {0};
    s->rows[0].step_ms = 1;
    s->rows[0].memory_bytes = 0;
    s->rows[0].job = NULL;
    assert_int_equal(mdot_calibrate_measured(s->f.context, s->rows, 1, &calibration, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "row 0: the job or the configuration is NULL");
    s->rows[0].job = s->jobs[0];
    s->rows[0].step_ms = 1e-300;
    assert_int_equal(mdot_calibrate_measured(s->f.context, s->rows, 1, &calibration, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "row 0: the measured step of 1e-300 ms is impossible");
    /* the accepted extremes give finite corrections */
    static const double extremes[] = {1e-300, 1e300};
    for (size_t i = 0; i < 2; i++) {
        s->rows[0].step_ms = i == 0 ? 0 : extremes[i];
        s->rows[0].memory_bytes = extremes[i];
        calibration = calibration_site_calibrate(s);
        mdot_calibration_factors f =
            calibration_site_factors(s, calibration, s->jobs[0], calibration_site_configure("T4", 16));
        assert_compare(f.factor, >=, 1 / 64.001);
        assert_compare(f.factor, <=, 64.001);
        assert_compare(f.interval, >, 0);
        assert_true(isfinite(f.interval));
        mdot_calibration_destroy(calibration);
    }
}

/* The rows in this file contradict each other so much: the site's factor was infinite. */
static void contradicting_rows_leave_factors_within_their_bounds(void **state)
{
    (void)state;
    static const char text[] =
        "mdot-calibration 5\n"
        "predictor predictor\n"
        "rows 3 1\n"
        "job 2b20dfe9d5dd0046 0 0 0 0 70 282 5 0 0 0 0 0 0 1501 5233 0 0 0 0 5 0 0 0 0 386 2519 0 0 0 0 0 0\n"
        "gpu 1 2 1 0 K80\n"
        "time 0.25 0.2\n"
        "memory 1 0\n"
        "step 2b20dfe9d5dd0046 0 0 204 1 0 1a5cbfbae8fb1dfe 32 0.927800294 1 0.262576709 0.165227101 0 0 0.192273209 0 "
        "0\n"
        "step 2b20dfe9d5dd0046 2 0 204 2 0 1a5cbfbae8fb1dfe 64 0.5 1 0.262576709 0.25 1.5 1 0.192273209 0.1 0\n"
        "step - 2 1 110 1 1 1a5cbfbae8fb1dfe 64 0.5 1 0.262576709 0.25 0 0 0.192273209 0 0\n"
        "gpu 0 0 0 1 V100-SXM-16GB\n"
        "time 1 0\n"
        "memory 1 0\n";
    mdot_calibration *calibration = NULL;
    assert_int_equal(mdot_calibration_parse(text, strlen(text), &calibration, NULL), MDOT_OK);
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    mdot_calibration_get_info(calibration, &info);
    assert_compare(info.factor, >=, 1.0 / 64);
    assert_compare(info.factor, <=, 64);
    assert_compare(info.interval, >, 0);
    assert_compare(info.interval, <=, 4);
    mdot_calibration_destroy(calibration);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_row_corrects_its_job_at_other_batches, calibration_site_forget_rows),
        cmocka_unit_test_setup(a_row_of_exactly_the_prediction_changes_nothing, calibration_site_forget_rows),
        cmocka_unit_test_setup(an_outlier_on_several_gpus_corrects_one_gpu_by_a_part, calibration_site_forget_rows),
        cmocka_unit_test_setup(more_rows_narrow_the_interval, calibration_site_forget_rows),
        cmocka_unit_test_setup(the_order_of_rows_does_not_matter, calibration_site_forget_rows),
        cmocka_unit_test_setup(a_row_of_another_gpu_leaves_a_measured_gpu_unchanged, calibration_site_forget_rows),
        cmocka_unit_test_setup(the_factors_multiply_to_the_correction, calibration_site_forget_rows),
        cmocka_unit_test_setup(a_new_gpu_is_corrected_more_than_one_of_the_training_data, calibration_site_forget_rows),
        cmocka_unit_test_setup(an_outlier_in_one_layout_corrects_the_other_by_a_part, calibration_site_forget_rows),
        cmocka_unit_test_setup(an_outlier_in_one_mode_corrects_the_other_by_a_part, calibration_site_forget_rows),
        cmocka_unit_test_setup(an_outlier_in_one_mode_bounds_the_interval_of_the_other, calibration_site_forget_rows),
        cmocka_unit_test_setup(an_outlier_of_one_pytorch_corrects_another_by_a_part, calibration_site_forget_rows),
        cmocka_unit_test(configurations_share_less_time_if_their_host_shares_differ),
        cmocka_unit_test_setup(an_outlier_widens_the_interval_of_jobs_without_rows, calibration_site_forget_rows),
        cmocka_unit_test_setup(jobs_are_recognised_by_their_operators, calibration_site_forget_rows),
        cmocka_unit_test_setup(memory_is_corrected_without_a_time, calibration_site_forget_rows),
        cmocka_unit_test_setup(a_row_may_bring_its_prediction, calibration_site_forget_rows),
        cmocka_unit_test_setup(a_gpu_keeps_many_steps, calibration_site_forget_rows),
        cmocka_unit_test_setup(a_gpu_keeps_some_of_many_jobs, calibration_site_forget_rows),
        cmocka_unit_test_setup(hostile_rows_are_refused, calibration_site_forget_rows),
        cmocka_unit_test(contradicting_rows_leave_factors_within_their_bounds),
    };
    return cmocka_run_group_tests(tests, open_site, calibration_site_close);
}
