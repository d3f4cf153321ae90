/* site.h — mdot.conf, which says what a cluster makes of predictions. It stands beside slurm.conf; README.md has it
 * line by line. */
#ifndef SL_SITE_H
#define SL_SITE_H

#include "mdot/mdot.h"

#include "integrations/slurm/gres.h"

enum { SL_MAX_PLACES = 64, SL_PARTITION_BYTES = 64, SL_PATH_BYTES = 1024 };

/* Where jobs run: GPUs of one type in a partition. */
typedef struct sl_place {
    char partition[SL_PARTITION_BYTES];
    char type[SL_GRES_TYPE_BYTES]; /* Slurm's name of it, in small letters; empty: whatever the partition has */
    char gpu[64];                  /* mdot's name */
    double price;                  /* of a GPU and hour, in any currency; 0: not said */
    double most_s;                 /* the partition's longest time limit; INFINITY */
} sl_place;

/* What a time limit and a place are taken by. */
typedef enum sl_choice { SL_CHOOSE_NOT, SL_CHOOSE_TIME, SL_CHOOSE_COST } sl_choice;
typedef enum sl_order { SL_ORDER_TIME, SL_ORDER_SERVICE } sl_order;

typedef struct sl_site {
    char predictor[SL_PATH_BYTES];
    char calibration[SL_PATH_BYTES]; /* of `mdot calibrate`; empty: none */
    size_t most_job_bytes;
    double patience_ms;           /* what a submission may wait for its prediction */
    double quantile;              /* of the training's time, that the limit is */
    double margin;                /* that it is multiplied by */
    double startup_s;             /* that is added to it */
    bool limits_doubtful;         /* sets limits of what the predictor was not trained on, too */
    double priority_weight;       /* of the shortest job; 0: priorities are left alone */
    sl_order order;               /* what counts as short: time, or time by GPUs */
    double shortest_s, longest_s; /* what gets all of the weight, and none */
    sl_choice choice;
    sl_place places[SL_MAX_PLACES];
    size_t place_count;
} sl_site;

/* NOT_FOUND and IO for the file; MALFORMED, with file and line, for what stands in it; INVALID_ARGUMENT, likewise, for
 * a GPU that mdot does not know. */
mdot_status sl_site_read(const char *path, sl_site *out_site, mdot_error *err);

/* Slurm's spellings of a time, MINUTES, MINUTES:SECONDS, HOURS:MINUTES:SECONDS, DAYS-HOURS[:MINUTES[:SECONDS]], and
 * INFINITE or UNLIMITED. */
bool sl_read_time_s(const char *text, double *out_s);

#endif
