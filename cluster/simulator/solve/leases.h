/* leases.h — the integer program of Chronus. Leases are slots of equal length, and a job that runs in a lease holds
 * its GPUs for all of it. The program finds the leases of each job so that all of them precede its deadline. */
#ifndef SC_LEASES_H
#define SC_LEASES_H

#include "mdot/mdot_base.h"

typedef struct sc_lease_job {
    int gpus;
    size_t needed; /* number of leases */
    size_t until;  /* its last lease must precede this one, counted from 0 */
} sc_lease_job;

/* Sets runs[i][t] to 1 if jobs[i] runs in lease t, for t < until. OUT_OF_RANGE: there is no solution. DEVICE: no
 * solution was found in time. UNSUPPORTED: this build lacks an integer solver. After a failure `runs` stays as it
 * was. */
mdot_status sc_leases_solve(const sc_lease_job *jobs, size_t job_count, int gpus, double limit_s,
                            unsigned char *const *runs, mdot_error *err);

#endif
