/* leases.h — Chronus' program: leases are slots of equal length, and a job that runs in one holds its GPUs for all of
 * it. Which jobs run when, so that each has its leases before its deadline? */
#ifndef SC_LEASES_H
#define SC_LEASES_H

#include "mdot/mdot_base.h"

typedef struct sc_lease_job {
    int gpus;
    size_t needed; /* leases */
    size_t until;  /* its last one is before this one, counted from 0 */
} sc_lease_job;

/* Fills runs[i][t], of jobs[i] and t < until, with 1 where it runs.
 * OUT_OF_RANGE: there is none; DEVICE: none within the time; UNSUPPORTED: built without a solver of whole numbers.
 * `runs` is untouched then. */
mdot_status sc_leases_solve(const sc_lease_job *jobs, size_t job_count, int gpus, double limit_s,
                            unsigned char *const *runs, mdot_error *err);

#endif
