/* history_learning.h — the hierarchical estimate, and the knowledge about keys that it learns from its own errors.
 *
 * An estimate starts with one hour and goes through the keys from the coarsest to the finest. At a key with n jobs of
 * mean logarithm y, it moves from m to (n y + k m) / (n + k). The number k says how many jobs of the key outweigh the
 * coarser keys. For each key, k is the candidate that made the smallest absolute errors at completed jobs so far; each
 * job is estimated before it is added. The key HOUR cuts across the others, and therefore its mean is that of
 * deviations from m. Finer keys move a second time, towards the mean of the most recent jobs.
 *
 * The scale of an estimate is the usual absolute error of estimates whose finest key and weight are alike, times the
 * relative errors of the job's own keys, shrunk in the same way. Where few such estimates were made, the usual error is
 * that of estimates that stop at this key for the sake of comparison.
 */
#ifndef HS_LEARNING_H
#define HS_LEARNING_H

#include "history/history_nodes.h"
#include "history/history_shape.h"

enum { HS_STEPS = 2 * HS_KEYS, HS_CANDIDATES = 9, HS_WEIGHT_CLASSES = 4, HS_ERROR_CLASSES = 5 };

typedef struct hs_learning {
    double losses[HS_STEPS][HS_CANDIDATES];      /* decayed sums of absolute errors above those of the best */
    double usual[HS_KEYS][HS_WEIGHT_CLASSES][2]; /* weight and mean of absolute errors, by finest key and its weight */
    double passing[HS_KEYS][2]; /* the same of estimates that stop at this key, although finer keys had data */
    /* Relative to scales: of jobs with a known name or digest, by the weight of the finest key; and of all others. */
    hs_errors errors[HS_ERROR_CLASSES];
} hs_learning;

/* An estimate before its form is known, and the steps that led to it. */
typedef struct hs_forecast {
    double log_s;        /* logarithm of the estimated seconds */
    double usual, scale; /* usual absolute error, and that of the job's keys */
    double early_failure, failure_log_s;
    int key, weight_class, error_class; /* of the finest key with data */
    double weight;
    struct {
        double weight; /* 0: the step was left out */
        double before, towards, after;
    } steps[HS_STEPS];
} hs_forecast;

void hs_learning_begin(hs_learning *learning);

/* Estimates a job from the keys that had data at `known_s`, with weights as of `now_s`. */
hs_forecast hs_forecast_of(const hs_learning *learning, const hs_nodes *nodes, const hs_keys *keys, double half_life_s,
                           double known_s, double now_s);

/* Learns from the logarithm of a job's duration, given its forecast. */
void hs_learn(hs_learning *learning, const hs_forecast *forecast, double log_s);

/* Weight that remains of one that was complete at `at_s`. */
double hs_decay(double half_life_s, double at_s, double now_s);

#endif
