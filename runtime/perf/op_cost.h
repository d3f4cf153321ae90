/* op_cost.h — the cost of each operator, and the traffic that fusing it saves. */
#ifndef RT_OP_COST_H
#define RT_OP_COST_H

#include "runtime/job/job_model.h"

/* Arrays indexed by operator. */
typedef struct rt_op_costs {
    double *cost;        /* only for comparing operators with each other */
    double *fused_bytes; /* per sample: bytes of writing and reading the operator's result, if a fusable operator is its
                          * only reader and the operator itself is fusable; otherwise 0 */
} rt_op_costs;

/* Returns false if memory runs out. The caller frees the arrays in either case. */
bool rt_measure_op_costs(const mdot_job *job, rt_op_costs *out_costs);
void rt_free_op_costs(rt_op_costs *costs);

#endif
