/* quota.c — sums over the ancestors of a job's user. */
#include "simulator/policy/backfill.h"

#include <string.h>

void sc_quota_reset(sc_quota *quota)
{
    if (quota->accounts == NULL) return;
    memset(quota->gpus, 0, quota->accounts->count * sizeof *quota->gpus);
    memset(quota->gpu_s, 0, quota->accounts->count * sizeof *quota->gpu_s);
}

void sc_quota_take(sc_quota *quota, uint32_t job, int gpus, double seconds)
{
    if (quota->accounts == NULL) return;
    for (uint32_t entry = quota->accounts->users[job]; entry != SC_NONE; entry = quota->accounts->items[entry].parent) {
        quota->gpus[entry] += gpus;
        quota->gpu_s[entry] += gpus * seconds;
    }
}

bool sc_quota_allows(const sc_quota *quota, uint32_t job, int gpus, double seconds)
{
    if (quota->accounts == NULL) return true;
    for (uint32_t entry = quota->accounts->users[job]; entry != SC_NONE; entry = quota->accounts->items[entry].parent) {
        const sc_account *account = &quota->accounts->items[entry];
        if (account->most_gpus > 0 && quota->gpus[entry] + gpus > account->most_gpus) return false;
        if (account->most_gpu_s > 0 && quota->gpu_s[entry] + gpus * seconds > account->most_gpu_s) return false;
    }
    return true;
}
