/* slurmctld.h — takes the place of slurmctld for the plugin job_submit/mdot, whose code the test program contains. The
 * test sets partitions, nodes, jobs and clocks, and decides when the plugin's thread looks at them. */
#ifndef TESTS_FAKE_SLURMCTLD_H
#define TESTS_FAKE_SLURMCTLD_H

#include <stdbool.h>

#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>

/* The plugin's functions, and slurmctld's variables that it reads. */
int init(void);
void fini(void);
int job_submit(job_desc_msg_t *request, uint32_t user, char **out_message);
int job_modify(job_desc_msg_t *request, void *job, uint32_t user, char **out_message);
extern slurm_conf_t slurm_conf;
extern char *default_part_name;

/* The answers to the plugin's requests. They may change while the thread is idle, which is after a round. */
typedef struct fake_slurmctld {
    partition_info_t partitions[8];
    node_info_t nodes[8];
    slurm_job_info_t jobs[8];
    reserve_info_t reservations[4];
    slurmdb_assoc_rec_t associations[8];
    slurmdb_qos_rec_t qos[4];
    uint32_t partition_count, node_count, job_count, reservation_count, association_count, qos_count;
    int update_result;      /* of slurm_update_job */
    bool has_no_partitions; /* the requests fail */
    bool has_no_nodes;
    bool has_no_jobs;
    bool has_no_reservations;
    bool has_no_accounting;
    time_t now_s;       /* the result of time() */
    double monotonic_s; /* CLOCK_MONOTONIC, which stands still */
} fake_slurmctld;
extern fake_slurmctld fake;

/* The plugin's actions. */
typedef struct fake_calls {
    int partitions, nodes, jobs; /* requests that succeeded */
    int unfreed;                 /* their unfreed messages */
    bool blocks_signals;         /* all signals are blocked in the plugin's thread */
    double waited_s;             /* the time that the thread last wanted to wait */
    int updates;
    job_desc_msg_t update; /* the last one */
    char log[16384];
} fake_calls;
extern fake_calls calls;

/* Waits until the thread has finished the round that init, a first request or a modification began. */
void fake_wait_for_round(void);
/* Modifies a job, and waits until the thread has looked at all jobs. */
void fake_modify(void);
/* Lets the time pass for which the thread wants to wait, and waits until it has looked at the cluster. */
void fake_pass_time(void);

#endif
