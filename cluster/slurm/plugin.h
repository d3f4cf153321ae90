/* plugin.h — the parts of the plugin job_submit/mdot that depend on Slurm. */
#ifndef SL_PLUGIN_H
#define SL_PLUGIN_H

#include "slurm/controller.h"

#include <slurm/slurm.h>
#include <slurm/slurmdb.h>

/* Slurm before 24.05 spells it otherwise. Its lists are struct xlist in all versions; their typedef's name changed. */
#ifndef RESERVE_REOCCURRING
#define RESERVE_REOCCURRING RESERVE_REOCCURING
#endif

/* Symbols in slurmctld and its library, absent from Debian's headers. */
extern slurm_conf_t slurm_conf;
extern char *default_part_name;
extern void slurm_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern int slurm_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
extern char *slurm_xstrdup(const char *text);
extern void slurm_xfree(void **memory);

/* Read by slurmctld. */
extern const char plugin_name[], plugin_type[];
extern const uint32_t plugin_version;

extern sl_controller *sl_plugin_controller; /* NULL while the plugin is not loaded */

/* Asks slurmctld for partitions, nodes, reservations and the limits of accounting; call it without slurmctld's locks.
 * NULL without an answer. `read_s`: the monotonic clock now. */
sl_cluster *sl_plugin_read_cluster(double read_s);

/* Reads the number behind " KEY=" in the plugin's comment. */
bool sl_plugin_read_comment(const char *comment, const char *key, double *out);

/* A job as it is requested now. */
sl_submission sl_plugin_submission(const slurm_job_info_t *job);

/* Looks at the priorities and limits of waiting jobs, and corrects those that a change has made wrong. The watching
 * thread calls it without slurmctld's locks. */
void sl_plugin_watch_waiting(const job_info_msg_t *jobs);

/* Shortens the plugin's limit with a change to another partition, account, QOS, reservation or deadline. */
void sl_plugin_keep_limit_acceptable(job_desc_msg_t *request);

#endif
