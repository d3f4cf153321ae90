/* site.h — mdot.conf, which configures how a cluster uses predictions, and the files that slurmctld may believe. */
#ifndef SL_SITE_H
#define SL_SITE_H

#include "mdot/mdot.h"
#include "mdot/mdot_base.h"

#include "slurm/partition.h"

/* Mdot.conf, which configures how a cluster uses predictions. It stands beside slurm.conf; README.md
 * explains each line.
 */

enum { SL_MAX_PLACES = 64, SL_PATH_BYTES = 1024 };

/* A place to run jobs: GPUs of one type in a partition. */
typedef struct sl_place {
    char partition[SL_PARTITION_BYTES];
    char type[SL_GRES_TYPE_BYTES]; /* Slurm's type name, in lower case; empty: any type in the partition */
    char gpu[64];                  /* mdot's name of the GPU */
    double price;                  /* per GPU and hour, in any currency; 0: unspecified */
    double most_s; /* longest limit to set there, at most the partition's own; INFINITY: the partition's own */
} sl_place;

/* Criteria for a place and for a short job. */
typedef enum sl_choice { SL_CHOOSE_NOT, SL_CHOOSE_TIME, SL_CHOOSE_COST } sl_choice;
typedef enum sl_order { SL_ORDER_TIME, SL_ORDER_SERVICE } sl_order;

typedef struct sl_site {
    char predictor[SL_PATH_BYTES];
    char calibration[SL_PATH_BYTES]; /* file of `mdot calibrate`; may be empty */
    char outcomes[SL_PATH_BYTES];    /* file of the users' records (outcomes.h); empty: the plugin's default */
    char history[SL_PATH_BYTES];     /* file of the jobs' durations (durations.h); empty: the plugin's default */
    size_t most_job_bytes;
    size_t most_work;             /* operators times places of one prediction */
    double user_ms;               /* prediction time that a user may take per minute */
    double patience_ms;           /* longest wait of a submission for its prediction */
    double quantile;              /* quantile of the training time that becomes the limit */
    double margin;                /* factor on the limit */
    double startup_s;             /* added to the limit */
    bool limits_doubtful;         /* also set limits for jobs outside of the predictor's training data */
    bool limits_by_history;       /* also set limits by the user's earlier jobs of this name, if steps are unknown */
    double priority_weight;       /* priority of the shortest job; 0: leave priorities as they are */
    sl_order order;               /* measure of a short job: time, or time multiplied by GPUs */
    double shortest_s, longest_s; /* lengths that get the full weight and zero */
    sl_choice choice;
    sl_place places[SL_MAX_PLACES];
    size_t place_count;
} sl_site;

/* NOT_FOUND and IO for the file; MALFORMED, with file and line, for its contents; INVALID_ARGUMENT, with file and line,
 * for an unknown GPU. */
mdot_status sl_site_read(const char *path, sl_site *out_site, mdot_error *err);

/* Parses Slurm's forms of a time: MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS[:MINUTES[:SECONDS]],
 * and INFINITE or UNLIMITED. */
bool sl_read_time_s(const char *text, double *out_s);

/* ---- Trust ------------------------------------------------------------------------------------------------------- */

/* Checks that only root and this process's user can change the file: they own it and its folder, and neither is
 * writable by others. A folder with the sticky bit may be. A group with write permission must be root's or this
 * process's. INVALID_ARGUMENT names the file and the reason; NOT_FOUND. A predictor is native code, and mdot.conf names
 * one. */
mdot_status sl_check_trusted(const char *path, mdot_error *err);

#endif
