/* operator_groups.h — groups of equal operators of a job. */
#ifndef RT_OPERATOR_GROUPS_H
#define RT_OPERATOR_GROUPS_H

#include "runtime/perf/sharding.h"

/* A group of operators with the same type id, settings, loads and parameters. */
typedef struct rt_operator_group {
    uint32_t first, count; /* index of the first operator; number of operators */
} rt_operator_group;

typedef struct rt_operator_groups {
    rt_operator_group *items; /* in the order of their first operators */
    size_t count;
    uint32_t *of; /* indexed by operator: its group's index in `items` */
} rt_operator_groups;

/* Both return false if memory runs out. The caller frees the arrays in either case. In the second list, the operators
 * of a group are also sharded and fused alike. */
bool rt_group_operators(const mdot_job *job, rt_operator_groups *out_groups);
bool rt_group_sharded_operators(const mdot_job *job, const rt_sharding *sharding, const double *fused_bytes,
                                rt_operator_groups *out_groups);
void rt_free_operator_groups(rt_operator_groups *groups);

/* Hash of the fields that make operators equal. */
uint64_t rt_hash_operator(const mdot_job_operator *op);

#endif
