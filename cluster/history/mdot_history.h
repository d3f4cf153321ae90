/* mdot_history.h — a job's duration, from the jobs completed at a site. The interface of libmdot_history, which serves
 * only programs in this project and is not installed.
 *
 * A history is for jobs without a known step count. Each completed job is added under several keys, from the coarsest
 * (all jobs) to the finest (the same user, name and resources). An estimate begins at the coarsest key and moves
 * towards the durations at each finer key with data. The distance depends on the key's job count, and on the key's
 * success at earlier jobs. Old jobs lose weight.
 *
 *     mdot_history_job job = {.struct_size = sizeof job, .user = "anna", .name = "resnet50-lr0.1", .gpus = 4};
 *     mdot_history_estimate e = MDOT_INIT(mdot_history_estimate);
 *     mdot_history_ask(history, &job, &e, &err);
 *     double limit_s = mdot_history_quantile_s(&e, 0.95);
 *
 * Threads: a history may be asked from several threads at once, but mdot_history_add excludes all other calls on it. */
#ifndef MDOT_HISTORY_H
#define MDOT_HISTORY_H

#include "mdot/mdot_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mdot_history mdot_history;

typedef struct mdot_history_options {
    size_t struct_size;
    size_t most_keys;      /* number of keys, 64 to 2^24; the least recently used one makes room. 0: 65536, about 8
                            * MB */
    double half_life_s;    /* time after which a job counts half as much, at least 60; 0: 30 days */
    uint64_t hash_seed[2]; /* random numbers, if users may choose names that disturb other users' keys */
} mdot_history_options;

/* Job properties known at the submission. Unknown texts may be NULL or empty, and unknown numbers 0. The first 1024
 * bytes of a text count. */
typedef struct mdot_history_job {
    size_t struct_size;
    const char *user, *group; /* group: account, project or virtual cluster */
    const char *name;         /* job name, or another text shared by recurring jobs */
    const char *gpu_type;
    uint64_t digest; /* from the training job's operators */
    int gpus;        /* 0 to 2^20 */
    double submit_s; /* seconds since 1970, or on any other clock: at most 1e12 */
} mdot_history_job;

/* A job's end. mdot-durations prints the value. */
typedef enum mdot_ended {
    MDOT_ENDED_COMPLETED = 0,
    MDOT_ENDED_FAILED = 1,
    MDOT_ENDED_CANCELLED = 2, /* cancelled by the user or the site */
    MDOT_ENDED_TIMED_OUT = 3  /* ended by the time limit */
} mdot_ended;

/* Keys, from the coarsest to the finest. */
typedef enum mdot_history_key {
    MDOT_HISTORY_KEY_ALL = 0,       /* all jobs */
    MDOT_HISTORY_KEY_RESOURCES = 1, /* GPU count and GPU type */
    MDOT_HISTORY_KEY_HOUR = 2,      /* submission time in the week */
    MDOT_HISTORY_KEY_GROUP = 3,
    MDOT_HISTORY_KEY_USER = 4,
    MDOT_HISTORY_KEY_USER_RESOURCES = 5, /* user, GPUs */
    MDOT_HISTORY_KEY_NAME = 6,           /* name without digits, dates and hashes */
    MDOT_HISTORY_KEY_DIGEST = 7,
    MDOT_HISTORY_KEY_USER_NAME = 8,              /* user, name */
    MDOT_HISTORY_KEY_USER_NAME_RESOURCES = 9,    /* user, name with its networks' digits ("resnet18"), GPUs */
    MDOT_HISTORY_KEY_USER_DIGEST_RESOURCES = 10, /* user, digest, GPUs */
    MDOT_HISTORY_KEY_USER_EXACT_NAME = 11        /* user, unchanged name, GPUs */
} mdot_history_key;

/* A duration's distribution. The logarithm has Student's t distribution on either side of the median, with one scale
 * per side and common degrees of freedom. */
typedef struct mdot_history_estimate {
    size_t struct_size;
    double median_s;
    double lower_scale, upper_scale; /* for the natural logarithm, above 0 */
    double degrees;                  /* degrees of freedom: 1, 2, 4 or INFINITY; few are heavy tails */
    /* Probability of a failure or cancellation before half the median, 0 to 1. The fields above assume neither. */
    double early_failure;
    double failure_s;     /* usual time until an early failure, a geometric mean */
    mdot_history_key key; /* finest key with data */
    double weight;        /* jobs with this key, less for old ones; 0: nothing is known */
} mdot_history_estimate;

/* Creates an empty history. `options` may be NULL for the defaults. INVALID_ARGUMENT names the option. The caller
 * destroys the history; NULL is allowed. */
mdot_status mdot_history_create(const mdot_history_options *options, mdot_history **out_history, mdot_error *err);
void mdot_history_destroy(mdot_history *history);

/* Adds a job that ended at `end_s` after `duration_s` seconds (0 to 1e12; less than 1 ms counts as 1 ms). A job that
 * was cut off counts as longer than it ran, and an early failure counts only as a failure. INVALID_ARGUMENT for a
 * number out of range; the history then stays unchanged. Takes constant time. */
mdot_status mdot_history_add(mdot_history *history, const mdot_history_job *job, mdot_ended outcome, double duration_s,
                             double end_s, mdot_error *err);

/* Estimates a job's duration at its submission. An empty history gives 1 h with wide scales. Takes constant time and
 * allocates nothing. */
mdot_status mdot_history_ask(const mdot_history *history, const mdot_history_job *job,
                             mdot_history_estimate *out_estimate, mdot_error *err);

/* Returns a duration quantile in seconds; `probability` is clamped to 0.001 … 0.999. */
double mdot_history_quantile_s(const mdot_history_estimate *estimate, double probability);

/* Returns a quantile of the remaining time, above 0, after `executed_s` seconds. It grows with `executed_s` in a heavy
 * tail. */
double mdot_history_remaining_s(const mdot_history_estimate *estimate, double executed_s, double probability);

enum { MDOT_HISTORY_NAME_BYTES = 128 };

/* Writes a job's name as the keys use it: lower-case words, without digits, dates, hashes and identifiers, joined by
 * "-". For example "ResNet50_lr0.1-20240501-9f3ac2e1" becomes "resnet-lr". `name` may be NULL. */
void mdot_history_normalise_name(const char *name, char out_name[MDOT_HISTORY_NAME_BYTES]);

/* Write and read the history. A file is replaced as a whole. NOT_FOUND if there is no file; MALFORMED, with the line,
 * for other contents. The options come from the file, except for most_keys. */
mdot_status mdot_history_save(const mdot_history *history, const char *path, mdot_error *err);
mdot_status mdot_history_load(const char *path, const mdot_history_options *options, mdot_history **out_history,
                              mdot_error *err);

/* Boosted trees that correct estimates: an artefact with an input numbers, f32 [1, 13], and an output log_s, f32 [1, 3]
 * (history_trees.c; lab/mdot_lab/durations trains them). The caller closes the trees; NULL is allowed there. One thread
 * may use them at a time.
 *
 * @errors those of mdot_predictor_open, those of mdot_run for another artefact, and MALFORMED if a row of zeros has no
 * finite answer */
typedef struct hs_row_model mdot_history_trees;

mdot_status mdot_history_trees_open(const char *path, mdot_history_trees **out_trees, mdot_error *err);
void mdot_history_trees_close(mdot_history_trees *trees);
/* Corrects an estimate for the job in about a microsecond. Leaves it as it is if the trees give no numbers. */
void mdot_history_trees_correct(const mdot_history_trees *trees, const mdot_history_job *job,
                                mdot_history_estimate *io_estimate);

#ifdef __cplusplus
}
#endif

#endif
