/* plugin_fixture.h — a cluster and requests for the plugin job_submit/mdot, in front of slurmctld.h. */
#ifndef TESTS_PLUGIN_FIXTURE_H
#define TESTS_PLUGIN_FIXTURE_H

#include "tests/slurm/fake/slurmctld.h"

enum { USER = 1000, LATE_USER = 2000, KNOWN_USER = 3000 };

/* The plugin's files: records of outcomes and durations. */
extern char outcomes_path[512], history_path[512];

/* Fixtures of a group and of a test. A test begins with the whole cluster, and without jobs. The thread continues from
 * test to test. */
int plugin_set_up(void **state);
int plugin_tear_down(void **state);
int plugin_reset(void **state);

/* The cluster: "a" has two nodes with two T4, "b" two with two A100, which are faster, and "m" one with two types.
 * Limits are 30 minutes by default, and 10,000 minutes at most. */
void plugin_reset_cluster(void);
/* Writes mdot.conf for this cluster, which chooses by time. */
void plugin_write_site(const char *predictor);

/* A request as slurm_init_job_desc_msg makes it, for one GPU in "a" or "b". Its texts are malloc'ed. */
job_desc_msg_t plugin_make_request(void);
void plugin_free_request(job_desc_msg_t *request);
/* Submits the request with ResNet-50 and settings, for USER or another user. */
void plugin_submit(const char *settings, job_desc_msg_t *request);
void plugin_submit_as(uint32_t user, const char *settings, job_desc_msg_t *request);
/* The number behind `key` in a request's comment; frees the request. */
double plugin_number_of(job_desc_msg_t *request, const char *key);

#endif
