/* analysis.c — analyses a job, in the order in which the results build on each other. */
#include "runtime/perf/analysis.h"

#include <stdlib.h>

/* Returns false if memory runs out. */
static bool fill(const mdot_job *job, rt_analysis *a)
{
    if (!rt_measure_op_costs(job, &a->op_costs)) return false;
    const rt_fusing *fusing = a->op_costs.fusing;
    if (!rt_find_sharding(job, a->op_costs.cost, &a->sharding)) return false;
    rt_sum_inner_tensors(job, &a->sharding, a->op_costs.inner, a->inner);
    if (!rt_group_operators(job, NULL, NULL, &a->groups)) return false;
    if (!rt_group_operators(job, &a->sharding, fusing, &a->sharded_groups)) return false;
    a->roofline_inputs = rt_collect_roofline_inputs(job, &a->sharding, fusing, &a->sharded_groups);
    if (a->roofline_inputs == NULL) return false;
    a->roofline_sums = rt_sum_roofline_inputs(a->roofline_inputs, a->sharded_groups.count, &a->roofline_sum_count);
    if (a->roofline_sums == NULL) return false;
    a->chained_part = rt_chained_part(a->roofline_inputs, a->sharded_groups.count);
    a->update_parts = rt_find_update_parts(job, &a->sharding);
    rt_identify_job(job, a->op_costs.cost, &a->identity);
    a->totals = rt_sum_job(job, a->op_costs.cost);
    const rt_job_totals *t = &a->totals;
    if (t->has_squares || t->has_constants)
        return rt_measure_activations_of_terms(job, &a->sharding, t->logits, t->has_squares, &a->activations);
    return rt_measure_activations(job, &a->sharding, t->logits, &a->activations);
}

static void destroy(rt_analysis *analysis)
{
    rt_free_op_costs(&analysis->op_costs);
    rt_free_sharding(&analysis->sharding);
    rt_free_operator_groups(&analysis->groups);
    rt_free_operator_groups(&analysis->sharded_groups);
    free(analysis->roofline_inputs);
    free(analysis->roofline_sums);
    free(analysis);
}

static rt_analysis *create(const mdot_job *job)
{
    rt_analysis *analysis = calloc(1, sizeof *analysis);
    if (analysis == NULL || fill(job, analysis)) return analysis;
    destroy(analysis);
    return NULL;
}

static double activation_bytes(const rt_analysis *analysis, mdot_precision precision, mdot_attention attention,
                               mdot_recompute recompute)
{
    return analysis->activations.of[rt_activation_type_of(precision)][attention][recompute].all;
}

const rt_job_analyzer rt_perf_analyzer = {create, destroy, activation_bytes};
