/* test_calibrate_explained.c — explanations of corrections, for random rows of two jobs on several GPUs. */
#include "runtime/predict/calibration.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* An explanation multiplies to the correction, and counts the rows behind it: of the GPU, and of the explained job. A
 * GPU with rows has no site's factor besides its own. */
static void explanations_account_for_corrections(void **state)
{
    (void)state;
    predict_fixture fixture;
    static const char *const gpus[] = {"T4", "A100", "V100"};
    mdot_job *own = predict_job(20, 20), *other = predict_job(9, 9);
    uint32_t seed = 7;
    predict_open_explained(&fixture, predict_bandwidth_model(), predict_bandwidth_explained());
    for (int round = 0; round < 60; round++) {
        enum { MOST = 6 };
        mdot_measurement rows[MOST];
        mdot_configuration c[MOST];
        size_t count = 1 + (size_t)round % MOST, of_gpu[3] = {0}, timed[3] = {0}, of_job[3][2] = {{0}};
        for (size_t i = 0; i < count; i++) {
            seed = seed * 1664525 + 1013904223;
            size_t gpu = seed >> 16 & 1, job = seed >> 20 & 1; /* V100 has no rows */
            c[i] = predict_configuration(4 << i, gpus[gpu]);
            mdot_prediction p = predict_one(&fixture, job != 0 ? other : own, &c[i]);
            bool has_time = round % 4 != 3 || (seed >> 22 & 1) != 0; /* or its memory alone */
            rows[i] = (mdot_measurement){.struct_size = sizeof rows[i],
                                         .job = job != 0 ? other : own,
                                         .configuration = &c[i],
                                         .step_ms = has_time ? p.step_ms * (1 + (double)(seed >> 24) / 256) : 0,
                                         .memory_bytes = round % 2 != 0 ? 1.1 * (double)p.peak_memory_bytes : 0};
            of_gpu[gpu]++;
            timed[gpu] += has_time;
            of_job[gpu][job]++;
        }
        mdot_calibration *calibration = NULL;
        mdot_error err = {0};
        if (mdot_calibrate_measured(fixture.context, rows, count, &calibration, &err) != MDOT_OK)
            fail_msg("%s", err.message);
        for (size_t i = 0; i < 12; i++) {
            size_t gpu = i % 3, job = i / 3 % 2;
            const mdot_job *asked = job != 0 ? other : own;
            mdot_configuration question = predict_configuration(i < 6 ? 8 : 300, gpus[gpu]);
            mdot_prediction before = predict_one(&fixture, asked, &question), after = before;
            mdot_explanation *explanation = NULL;
            mdot_calibration_factors f = MDOT_INIT(mdot_calibration_factors), plain = f;
            assert_int_equal(mdot_explain(fixture.context, asked, &question, &explanation, &err), MDOT_OK);
            assert_int_equal(mdot_calibration_explain(calibration, &question, explanation, &before, &f, &err), MDOT_OK);
            assert_int_equal(mdot_calibration_explain(calibration, &question, NULL, &before, &plain, &err), MDOT_OK);
            assert_int_equal(mdot_calibration_apply_to_job(calibration, asked, &question, &after, &err), MDOT_OK);
            mdot_prediction flagged = before; /* the rows decide whether the GPU model is new to the predictor */
            flagged.warnings ^= MDOT_WARN_GPU_NOT_MEASURED;
            assert_int_equal(mdot_calibration_apply_to_job(calibration, asked, &question, &flagged, &err), MDOT_OK);
            assert_true(flagged.gpu_ms == after.gpu_ms && flagged.peak_memory_bytes == after.peak_memory_bytes);
            assert_true(flagged.upper_ms == after.upper_ms && flagged.lower_ms == after.lower_ms);
            double times = 1, memory = 1;
            for (size_t k = 0; k < MDOT_CALIBRATION_EFFECT_COUNT; k++) {
                times *= f.by_effect[k];
                memory *= f.memory_by_effect[k];
                assert_true(f.believed[k] >= 0 && f.believed[k] <= 1);
                assert_true(f.memory_believed[k] >= 0 && f.memory_believed[k] <= 1);
            }
            predict_assert_close(times, f.factor);
            predict_assert_close(after.gpu_ms, f.factor * before.gpu_ms);
            /* the work and the average power stay */
            predict_assert_close(after.compute_share * after.step_ms, before.compute_share * before.step_ms);
            predict_assert_close(after.memory_share * after.step_ms, before.memory_share * before.step_ms);
            predict_assert_close(after.energy_joules / after.step_ms, before.energy_joules / before.step_ms);
            predict_assert_close(memory, f.memory_factor);
            predict_assert_close((double)after.peak_memory_bytes, f.memory_factor * (double)before.peak_memory_bytes);
            if (timed[0] + timed[1] > 0) assert_true((f.by_effect[RT_TERM_SITE] == 1) == (timed[gpu] > 0));
            assert_true(round % 2 != 0 || f.memory_factor == 1);
            assert_int_equal(f.row_count, of_gpu[gpu]);
            assert_int_equal(f.job_row_count, of_job[gpu][job]);
            assert_int_equal(plain.row_count, of_gpu[gpu]);
            assert_int_equal(plain.job_row_count, 0);
            mdot_explanation_destroy(explanation);
        }
        mdot_calibration_destroy(calibration);
    }
    mdot_job_destroy(own);
    mdot_job_destroy(other);
    predict_close(&fixture);
}

/* A correction of memory belongs to the activations, unless less is left than the other parts need, which then shrink
 * alike. Reserved memory moves with the peak and the rounding; bounds keep their ratio to the peak to the power of the
 * interval; a quantity without rows stays. */
static void corrected_memory_keeps_its_parts(void **state)
{
    (void)state;
    predict_fixture fixture;
    static const double times[] = {0, .03, .4, .9, 1, 1.2, 2.5};
    enum { TIMES = sizeof times / sizeof *times };
    mdot_job *job = predict_job(20, 20), *other = predict_job(9, 9);
    predict_open_explained(&fixture, predict_bandwidth_model(), predict_bandwidth_explained());
    for (int i = 0; i < TIMES * 3 * 4; i++) {
        mdot_configuration c[3];
        mdot_measurement rows[3];
        for (int k = 0; k < 3; k++) {
            c[k] = predict_configuration(8 << k, "T4");
            mdot_prediction p = predict_one(&fixture, job, &c[k]);
            rows[k] = (mdot_measurement){.struct_size = sizeof *rows,
                                         .job = job,
                                         .configuration = &c[k],
                                         .step_ms = 1.5 * p.step_ms,
                                         .memory_bytes = times[i % TIMES] * (double)p.peak_memory_bytes};
        }
        mdot_calibration *calibration = NULL;
        assert_int_equal(mdot_calibrate_measured(fixture.context, rows, 1 + (size_t)i / TIMES % 3, &calibration, NULL),
                         MDOT_OK);
        mdot_calibration_factors f = MDOT_INIT(mdot_calibration_factors);
        const mdot_job *asked = i % 5 == 4 ? other : job;
        mdot_configuration question = predict_configuration(16, i % 7 == 6 ? "A100" : "T4");
        mdot_prediction before = predict_one(&fixture, asked, &question);
        double peak = (double)before.peak_memory_bytes;
        before.weight_bytes = .2 * peak, before.gradient_bytes = .1 * peak;
        before.optimizer_bytes = .15 * peak, before.activation_bytes = .55 * peak;
        before.rounding_bytes = .03 * peak;
        if (i / TIMES % 4 == 1) before.memory_lower_bytes = 0;
        if (i / TIMES % 4 == 2) before.memory_upper_bytes = 0;
        if (i / TIMES % 4 == 3) before.peak_memory_bytes = 0;
        mdot_explanation *explanation = NULL;
        assert_int_equal(mdot_explain(fixture.context, asked, &question, &explanation, NULL), MDOT_OK);
        assert_int_equal(mdot_calibration_explain(calibration, &question, explanation, &before, &f, NULL), MDOT_OK);
        mdot_prediction after = before;
        assert_int_equal(mdot_calibration_apply_to_job(calibration, asked, &question, &after, NULL), MDOT_OK);
        const double factor = before.peak_memory_bytes > 0 ? f.memory_factor : 1, fixed = .45 * peak;
        const double scale = factor * peak > fixed ? 1 : factor, reserved = (double)before.reserved_bytes;
        if (times[i % TIMES] == 0 && f.memory_interval == 1) assert_compare(f.memory_factor, ==, 1);
        assert_within((double)after.peak_memory_bytes, factor * (double)before.peak_memory_bytes, .51);
        assert_within(after.weight_bytes, scale * before.weight_bytes, 1e-3);
        assert_within(after.gradient_bytes, scale * before.gradient_bytes, 1e-3);
        assert_within(after.optimizer_bytes, scale * before.optimizer_bytes, 1e-3);
        assert_within(after.weight_bytes + after.gradient_bytes + after.optimizer_bytes + after.activation_bytes,
                      factor * peak, 1e-3);
        assert_within(after.rounding_bytes, factor * before.rounding_bytes, 1e-3);
        assert_within((double)after.reserved_bytes,
                      fmax(reserved + (factor - 1) * (before.rounding_bytes + (double)before.peak_memory_bytes), 0), 1);
        const uint64_t *bounds[] = {&before.memory_lower_bytes, &before.memory_upper_bytes},
                       *changed[] = {&after.memory_lower_bytes, &after.memory_upper_bytes};
        for (int k = 0; k < 2 && before.peak_memory_bytes > 0 && f.memory_factor != 1; k++) {
            double ratio = pow((double)*bounds[k] / peak, f.memory_interval);
            assert_within((double)*changed[k], *bounds[k] > 0 ? factor * peak * ratio : 0, .51);
        }
        assert_int_equal(after.fits, after.reserved_bytes <= after.usable_bytes);
        before.usable_bytes = after.reserved_bytes - (before.peak_memory_bytes > 0 && i % 2); /* at the limit */
        mdot_calibration_apply_to_job(calibration, asked, &question, &before, NULL);
        if (before.peak_memory_bytes > 0 && f.memory_factor != 1) assert_int_equal(before.fits, i % 2 == 0);
        mdot_explanation_destroy(explanation);
        mdot_calibration_destroy(calibration);
    }
    mdot_job_destroy(job);
    mdot_job_destroy(other);
    predict_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(explanations_account_for_corrections),
                                       cmocka_unit_test(corrected_memory_keeps_its_parts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
