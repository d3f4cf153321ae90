/* controller_fixture.h — an mdot.conf with the shipped predictor, its controller, and submissions of a small job.
 * Programs with it are linked with --wrap=pthread_cond_timedwait. */
#ifndef SL_TESTS_CONTROLLER_FIXTURE_H
#define SL_TESTS_CONTROLLER_FIXTURE_H

#include <stdatomic.h>

#include "slurm/controller.h"

/* Group fixtures: a folder, the path of mdot.conf there, and the small job as a variable MDOT_JOB_1=…. */
int controller_set_up(void **state);
int controller_tear_down(void **state);
extern char *folder;
extern char site_path[512];
extern char job_text[1 << 16];

/* Replaces mdot.conf, which has the partition "a" with T4; `more` are further lines. */
void write_site(const char *predictor, const char *more);
/* Writes mdot.conf, and makes a controller that has read it. */
sl_controller *make_controller(const char *more);
/* A cluster with the partition "a", whose default limit is five minutes, as it was at the time `read_s`. */
sl_cluster *make_cluster(double read_s);
/* The monotonic clock. */
double now_s(void);

/* A submission waits for the answer, so a slow machine gives the same answers as a fast one. A test of the limit
 * MaxMilliseconds clears `is_patient`. */
extern atomic_bool is_patient;
/* Submits the small job, each time as another user, so that no user exhausts the prediction time. */
mdot_status submit_job(sl_controller *c, const char *settings, sl_decision *out, mdot_error *err);

#endif
