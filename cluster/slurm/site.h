/* site.h — mdot.conf, which configures a cluster's use of predictions, and the files trusted by slurmctld. */
#ifndef SL_SITE_H
#define SL_SITE_H

#include "mdot/mdot.h"
#include "mdot/mdot_base.h"

#include "slurm/partition.h"

/* mdot.conf configures a cluster's use of predictions. It stands beside slurm.conf; README.md explains each line. */

enum { SL_MAX_PLACES = 64, SL_PATH_BYTES = 1024 };

/* A place to run jobs: GPUs of one type in a partition. */
typedef struct sl_place {
    char partition[SL_PARTITION_BYTES];
    char type[SL_GRES_TYPE_BYTES]; /* Slurm's type name, in lower case; empty: any type in the partition */
    char gpu[64];                  /* mdot's GPU name */
    double price;                  /* per GPU and hour, in any currency; 0: unspecified */
    double most_s; /* longest limit to set there, at most the partition's own; INFINITY: the partition's own */
} sl_place;

/* Criteria for a place and for a short job. */
typedef enum sl_choice { SL_CHOOSE_NOT, SL_CHOOSE_TIME, SL_CHOOSE_COST } sl_choice;
typedef enum sl_order { SL_ORDER_TIME, SL_ORDER_SERVICE } sl_order;

typedef struct sl_site {
    char predictor[SL_PATH_BYTES];
    char calibration[SL_PATH_BYTES]; /* file from `mdot calibrate`; may be empty */
    char outcomes[SL_PATH_BYTES];    /* user record file (user_records.h); empty: the plugin's default */
    char history[SL_PATH_BYTES];     /* job duration file (user_records.h); empty: the plugin's default */
    char trees[SL_PATH_BYTES];       /* trees that correct durations (mdot_history.h); may be empty */
    size_t most_job_bytes;
    size_t most_work;             /* one prediction's operators times places */
    double user_ms;               /* a user's prediction time per minute */
    double patience_ms;           /* a submission's longest wait for a prediction */
    double quantile;              /* training time quantile for the limit */
    double margin;                /* factor on the limit */
    double startup_s;             /* added to the limit */
    bool limits_doubtful;         /* also set limits for jobs outside the predictor's training data */
    bool limits_by_history;       /* also set limits by the user's earlier jobs with this name, if steps are unknown */
    double priority_weight;       /* the shortest job's priority; 0: leave priorities as they are */
    sl_order order;               /* measure for a short job: time, or time multiplied by GPUs */
    double shortest_s, longest_s; /* lengths that get the full weight and zero */
    sl_choice choice;
    sl_place places[SL_MAX_PLACES];
    size_t place_count;
} sl_site;

/* NOT_FOUND and IO for the file; MALFORMED, with file and line, for its contents; INVALID_ARGUMENT, with file and line,
 * for an unknown GPU. */
mdot_status sl_site_read(const char *path, sl_site *out_site, mdot_error *err);

/* Parses Slurm's time forms: MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS[:MINUTES[:SECONDS]], and
 * INFINITE or UNLIMITED. */
bool sl_read_time_s(const char *text, double *out_s);

/* ---- Trust ------------------------------------------------------------------------------------------------------- */

/* Checks that only root and this process's user can change the file: they own it and its folder, and neither is
 * writable by others. A folder with the sticky bit may be. A group with write permission must be root's or this
 * process's. INVALID_ARGUMENT names the file and the reason; NOT_FOUND. A predictor is native code, and mdot.conf names
 * one. */
mdot_status sl_check_trusted(const char *path, mdot_error *err);

#endif
