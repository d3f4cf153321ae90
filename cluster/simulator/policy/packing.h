/* packing.h — nodes for the GPUs that a policy gives to its jobs, for policies that change widths. */
#ifndef SC_PACKING_H
#define SC_PACKING_H

#include "simulator/core/policy.h"

/* What a policy gives to a job. */
typedef struct sc_share {
    uint32_t job;
    unsigned type;
    int gpus;     /* at least 1 */
    double batch; /* 0: the job's own */
} sc_share;

/* Grants all shares, which must fit the types' GPUs. A job whose type and width stay the same keeps its nodes. Others
 * get as few nodes as possible: first jobs that fill whole nodes, wide ones first, then the fullest node that still
 * holds a job. If a job would be on more nodes than necessary, all jobs of its type are placed anew, because moves may
 * let it fit. Otherwise it gets fragments. */
mdot_status sc_pack(const sc_view *view, sc_plan *plan, const sc_share *shares, size_t count, mdot_error *err);

#endif
