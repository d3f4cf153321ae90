/* quota.h — what the running jobs of each account hold, against its quotas. */
#ifndef SC_QUOTA_H
#define SC_QUOTA_H

#include "simulator/core/accounts.h"

typedef struct sc_quota {
    const sc_accounts *accounts; /* NULL: no quotas */
    int *gpus;                   /* held by each account */
    double *gpu_s;               /* that its running jobs may still use */
} sc_quota;

/* The accounts must outlive it, and may be NULL. */
mdot_status sc_quota_create(const sc_accounts *accounts, sc_quota *out_quota, mdot_error *err);
void sc_quota_free(sc_quota *quota);

/* Forgets all jobs. */
void sc_quota_reset(sc_quota *quota);
/* Counts a job of so many GPUs that may run for so many seconds. */
void sc_quota_take(sc_quota *quota, uint32_t job, int gpus, double seconds);
/* Returns whether the job would stay within the quotas of its user and of all accounts above. */
bool sc_quota_allows(const sc_quota *quota, uint32_t job, int gpus, double seconds);

#endif
