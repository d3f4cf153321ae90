/* policies.h — the list of all policies, and a search by name. */
#ifndef SC_POLICIES_H
#define SC_POLICIES_H

#include "simulator/core/policy.h"

/* All policies in the order of the list, terminated by NULL. */
extern const sc_policy *const sc_policies[];

/* INVALID_ARGUMENT, with all names, if the name is unknown. */
mdot_status sc_policy_find(const char *name, const sc_policy **out_policy, mdot_error *err);

/* All policies in the order of the list. One file per policy, except that fifo.c, shortest.c, easy.c, gavel.c, edf.c,
 * capacity.c, elastic.c and cognn.c have several. */
/* clang-format off */
#define SC_POLICY_MAP(X) \
    X(fifo) X(fjf) X(srtf) X(srsf) X(las) X(dlas) X(tiresias) X(qssf) X(easy) X(conservative) X(yarn) X(drf) \
    X(gavel) X(gavel_ftf) X(gavel_makespan) X(gavel_groups) X(gavel_cost) X(gavel_pairs) X(gavel_pairs_ftf) X(gavel_pairs_makespan) X(isolated) \
    X(allox) X(elasticflow) X(edf) X(edf_admit) X(themis) X(hare) X(hydra) X(chronus) X(cynthia) X(genie) X(powerflow) X(elastic) \
    X(pollux) X(sia) X(muxflow) X(horus) X(cognn) X(mps) X(miso) X(gandiva) X(smd) X(synergy) X(shockwave) X(optimus) \
    X(hypersched) X(hived) X(kubeshare) X(mlfs)
/* clang-format on */

#define SC_POLICY_DECLARATION(name) extern const sc_policy sc_policy_##name;
SC_POLICY_MAP(SC_POLICY_DECLARATION)
#undef SC_POLICY_DECLARATION

#endif
