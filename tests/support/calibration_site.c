/* calibration_site.c — a site with a small predictor, jobs and measured steps, for tests of calibrations. */
#include "tests/support/calibration_site.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

calibration_site *calibration_site_open(void)
{
    calibration_site *s = calloc(1, sizeof *s);
    if (s != NULL) predict_open_explained(&s->f, predict_bandwidth_model(), predict_bandwidth_explained());
    return s;
}

int calibration_site_close(void **state)
{
    calibration_site *s = *state;
    for (size_t i = 0; i < CALIBRATION_SITE_JOBS; i++) mdot_job_destroy(s->jobs[i]);
    predict_close(&s->f);
    free(s);
    return 0;
}

int calibration_site_forget_rows(void **state)
{
    calibration_site *s = *state;
    s->count = 0;
    s->seed = 1;
    return 0;
}

mdot_configuration calibration_site_configure(const char *gpu, int64_t batch)
{
    mdot_configuration c = predict_configuration(batch, gpu);
    c.attention = MDOT_ATTENTION_EAGER;
    c.precision = MDOT_PRECISION_FP32;
    return c;
}

void calibration_site_add(calibration_site *s, const mdot_job *job, mdot_configuration c, double times, double more)
{
    size_t i = s->count++;
    assert_compare(i, <, CALIBRATION_SITE_ROWS);
    mdot_prediction p = predict_one(&s->f, job, &c);
    s->c[i] = c;
    s->rows[i] = (mdot_measurement){.struct_size = sizeof s->rows[i],
                                    .job = job,
                                    .configuration = &s->c[i],
                                    .step_ms = times * p.step_ms,
                                    .memory_bytes = more * (double)p.peak_memory_bytes};
}

mdot_calibration *calibration_site_calibrate(calibration_site *s)
{
    mdot_calibration *calibration = NULL;
    mdot_error err = {0};
    if (mdot_calibrate_measured(s->f.context, s->rows, s->count, &calibration, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return calibration;
}

mdot_calibration_factors calibration_site_factors(calibration_site *s, const mdot_calibration *calibration,
                                                  const mdot_job *job, mdot_configuration c)
{
    mdot_explanation *explanation = NULL;
    mdot_calibration_factors factors = MDOT_INIT(mdot_calibration_factors);
    mdot_prediction p = predict_one(&s->f, job, &c);
    assert_int_equal(mdot_explain(s->f.context, job, &c, &explanation, NULL), MDOT_OK);
    assert_int_equal(mdot_calibration_explain(calibration, &c, explanation, &p, &factors, NULL), MDOT_OK);
    mdot_explanation_destroy(explanation);
    return factors;
}
