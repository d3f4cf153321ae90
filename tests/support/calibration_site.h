/* calibration_site.h — a site with a small predictor, jobs and measured steps, for tests of calibrations. */
#pragma once

#include "tests/support/predict_fixture.h"

enum { CALIBRATION_SITE_JOBS = 24, CALIBRATION_SITE_ROWS = 4 * CALIBRATION_SITE_JOBS };

typedef struct calibration_site {
    predict_fixture f;
    mdot_job *jobs[CALIBRATION_SITE_JOBS]; /* set by the test, from the first on */
    mdot_configuration c[CALIBRATION_SITE_ROWS];
    mdot_measurement rows[CALIBRATION_SITE_ROWS];
    size_t count;
    uint32_t seed; /* of the test's random numbers */
} calibration_site;

/* A site without jobs and rows. NULL if memory runs out. */
calibration_site *calibration_site_open(void);
/* Destroys the jobs, too. A cmocka teardown. */
int calibration_site_close(void **state);
/* Removes all rows and resets the seed. A cmocka setup. */
int calibration_site_forget_rows(void **state);

/* Steps in fp32, with eager attention. */
mdot_configuration calibration_site_configure(const char *gpu, int64_t batch);
/* Adds a row: `times` times the predicted time, and `more` times the predicted memory; 0: not measured. */
void calibration_site_add(calibration_site *s, const mdot_job *job, mdot_configuration c, double times, double more);
/* Both fail the running test if the call fails. */
mdot_calibration *calibration_site_calibrate(calibration_site *s);
mdot_calibration_factors calibration_site_factors(calibration_site *s, const mdot_calibration *calibration,
                                                  const mdot_job *job, mdot_configuration c);
