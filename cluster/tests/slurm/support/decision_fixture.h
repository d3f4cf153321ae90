/* decision_fixture.h — a site, a cluster and decisions with the shipped predictor. */
#ifndef SL_TESTS_DECISION_FIXTURE_H
#define SL_TESTS_DECISION_FIXTURE_H

#include "slurm/decision.h"

#include <math.h>

/* Opened by decision_set_up, closed by decision_tear_down. */
extern mdot_context *context;
extern mdot_job *job;
extern mdot_calibration *calibration; /* applied by `decide` unless NULL */
/* Partitions of the cluster: usable, open to everybody, without time limits, and with a default limit of seven
 * minutes. */
#define NODES(type_name) .gpus = {{type_name, 4, 8, 32}}, .type_count = 1, .usable_nodes = 4
#define OPEN(name_text)                                                                                                \
    .name = name_text, .most_minutes = SL_UNLIMITED, .default_minutes = 7, .most_nodes = 8, .is_up = true,             \
    .is_open = true, .reserved_s = INFINITY, .least_cpus = 64, .least_memory_mib = 256000
extern sl_cluster cluster;
extern const sl_site site;
#define ON(...)                                                                                                        \
    {                                                                                                                  \
        .cluster = &cluster, __VA_ARGS__                                                                               \
    }

int decision_set_up(void **state);
int decision_tear_down(void **state);

mdot_status decide(const sl_site *s, const char *settings, const sl_submission *submission, sl_decision *out,
                   mdot_error *err);
/* The same; a failure ends the test. */
sl_decision decides(const sl_site *s, const char *settings, const sl_submission *submission);

#endif
