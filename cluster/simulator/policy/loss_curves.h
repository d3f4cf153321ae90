/* loss_curves.h — the losses that jobs have reached, for policies that schedule by convergence.
 *
 * A job ends when its loss is at a target. Traces have no losses, so each job has a curve that falls from 1 to .1 along
 * its work, as (steps + shift)^-exponent above an asymptote. The exponent, .5 to 2, and the noise of each point, 2 %,
 * follow from the job's number. Policies see the points up to a job's progress, and the target. */
#ifndef SC_LOSS_CURVES_H
#define SC_LOSS_CURVES_H

#include "simulator/core/policy.h"

/* Returns the true loss at a part of a job's planned work, 0 to 1. */
double sc_loss_at(uint32_t job, double part);

/* A job's fitted convergence. All zero: nothing is known. */
typedef struct sc_loss_fit {
    double fitted_part; /* progress at the last fit */
    double total_part;  /* predicted work to the target over the true planned work; 0: unknown */
} sc_loss_fit;

/* Fits the job's points by mdot_steps_to_loss, again after each tenth of further progress. Returns predicted over true
 * remaining work; 1 while there are less than ten points, which a job has at 5 % of its work. */
double sc_loss_left_ratio(const sc_view *view, uint32_t job, sc_loss_fit *io_fit);

#endif
