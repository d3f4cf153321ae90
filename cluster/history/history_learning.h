/* history_learning.h — estimates from a history: the error distribution, and the hierarchical estimate. */
#ifndef HS_LEARNING_H
#define HS_LEARNING_H

#include "base/struct_version.h"
#include "history/history_nodes.h"
#include "history/mdot_history.h"

/* The error distribution: a histogram, and a two-sided Student's t distribution fitted to it. */

enum { HS_BINS = 128 };

/* Relative error weights. Bins are equally wide in asinh(8 z). */
typedef struct hs_errors {
    double bins[HS_BINS];
} hs_errors;

/* The distribution fitted to the errors. */
typedef struct hs_shape {
    double center, lower, upper; /* median, and scales for both sides */
    double degrees;
} hs_shape;

/* Starts with 30 assumed jobs; the errors have two degrees of freedom. */
void hs_errors_begin(hs_errors *errors);
/* Adds a relative error; earlier ones lose 0.1 % weight. */
void hs_errors_add(hs_errors *errors, double z);
hs_shape hs_shape_fit(const hs_errors *errors);

/* Student's t distribution and its inverse, for 1, 2, 4 and infinitely many degrees of freedom (closed forms). */
double hs_t_probability(double degrees, double t);
double hs_t_quantile(double degrees, double probability);

/* ---- History learning -------------------------------------------------------------------------------------------- */

/* The hierarchical estimate, and the knowledge about keys learned from its errors.
 *
 * An estimate starts with one hour and goes through the keys from the coarsest to the finest. At a key with n jobs and
 * mean logarithm y, it moves from m to (n y + k m) / (n + k). k is the number of jobs that outweigh the coarser keys.
 * For each key, k is the candidate with the smallest absolute errors at completed jobs so far; each job is estimated
 * before it is added. The key HOUR cuts across the others, so its mean is over deviations from m. Finer keys move a
 * second time, towards the most recent jobs' mean.
 *
 * An estimate's scale is the usual absolute error at this finest key and weight, multiplied by the relative errors at
 * the job's own keys, shrunk in the same way. With few such estimates, the usual error comes from comparison estimates,
 * which stop at this key. */

enum { HS_STEPS = 2 * HS_KEYS, HS_CANDIDATES = 9, HS_WEIGHT_CLASSES = 4, HS_ERROR_CLASSES = 5 };

typedef struct hs_learning {
    double losses[HS_STEPS][HS_CANDIDATES];      /* decayed absolute error sums, minus the smallest sum */
    double usual[HS_KEYS][HS_WEIGHT_CLASSES][2]; /* weight and mean absolute error, by finest key and key weight */
    double passing[HS_KEYS][2];                  /* the same for estimates that stop here despite data at finer keys */
    /* Relative to scales: for jobs with a known name or digest, by the finest key's weight; and for all others. */
    hs_errors errors[HS_ERROR_CLASSES];
} hs_learning;

/* An estimate in unknown form, and the steps to it. */
typedef struct hs_forecast {
    double log_s;        /* log(estimated seconds) */
    double usual, scale; /* usual absolute error, in general and at the job's keys */
    double early_failure, failure_log_s;
    int key, weight_class, error_class; /* the finest key with data */
    double weight;
    struct {
        double weight; /* 0: the step was left out */
        double before, towards, after;
    } steps[HS_STEPS];
} hs_forecast;

void hs_learning_begin(hs_learning *learning);

/* Estimates a job from the keys with data at `known_s`, with weights as of `now_s`. */
hs_forecast hs_forecast_of(const hs_learning *learning, const hs_nodes *nodes, const hs_keys *keys, double half_life_s,
                           double known_s, double now_s);

void hs_learn(hs_learning *learning, const hs_forecast *forecast, double log_s);

/* Weight at `now_s` for a job that counted fully at `at_s`. */
double hs_decay(double half_life_s, double at_s, double now_s);

/* ---- History ----------------------------------------------------------------------------------------------------- */

struct mdot_history {
    mdot_history_options options; /* complete */
    hs_nodes *nodes;
    hs_learning learning;
};

#endif
