/* policies.c — the table of policies for --policy. */
#include "simulator/policy/policies.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
const sc_policy *const sc_policies[] = {
    &sc_policy_fifo,
    &sc_policy_fjf,
    &sc_policy_srtf,
    &sc_policy_srsf,
    &sc_policy_las,
    &sc_policy_dlas,
    &sc_policy_tiresias,
    &sc_policy_qssf,
    &sc_policy_easy,
    &sc_policy_conservative,
    &sc_policy_yarn,
    &sc_policy_drf,
    &sc_policy_gavel,
    &sc_policy_gavel_ftf,
    &sc_policy_gavel_makespan,
    &sc_policy_gavel_pairs,
    &sc_policy_gavel_pairs_ftf,
    &sc_policy_gavel_pairs_makespan,
    &sc_policy_isolated,
    &sc_policy_allox,
    &sc_policy_elasticflow,
    &sc_policy_edf,
    &sc_policy_edf_admit,
    &sc_policy_themis,
    &sc_policy_hare,
    &sc_policy_hydra,
    &sc_policy_chronus,
    &sc_policy_powerflow,
    &sc_policy_elastic,
    &sc_policy_pollux,
    &sc_policy_sia,
    &sc_policy_muxflow,
    &sc_policy_cognn,
    &sc_policy_mps,
    &sc_policy_miso,
    &sc_policy_gandiva,
    &sc_policy_smd,
    &sc_policy_synergy,
    &sc_policy_shockwave,
    &sc_policy_optimus,
    &sc_policy_hypersched,
    &sc_policy_hived,
    &sc_policy_kubeshare,
    &sc_policy_mlfs,
    NULL,
};
/* clang-format on */

mdot_status sc_policy_find(const char *name, const sc_policy **out_policy, mdot_error *err)
{
    char names[512] = "";
    size_t used = 0;
    for (size_t i = 0; sc_policies[i] != NULL; i++) {
        if (strcmp(sc_policies[i]->name, name) == 0) {
            *out_policy = sc_policies[i];
            return MDOT_OK;
        }
        if (used < sizeof names)
            used +=
                (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "", sc_policies[i]->name);
    }
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "unknown policy \"%s\"; known are %s", name, names);
}
