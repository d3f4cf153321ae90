/* op_cost.c — operator costs relative to each other, and the traffic that fusion saves. Both are independent of the
 * configuration. */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/operator_traits.h"

#include <stdlib.h>

/* Cost in bytes: bytes moved in a step of COST_BATCH samples, plus the bytes that the GPU could have moved while it
 * computed. GPUs of gpus.def do 12 to 82 fp32 operations per byte moved. The cost selects the neighbours that are
 * merged; it is never used as a time. */
enum { COST_BATCH = 64, FLOPS_PER_BYTE = 32 };

static double cost_of_load(const mdot_load *load)
{
    return load->bytes_read + load->bytes_written + load->flops / FLOPS_PER_BYTE;
}

static double cost_of(const mdot_job_operator *op)
{
    double cost = 0;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
        cost += COST_BATCH * cost_of_load(&op->per_sample[phase]) + cost_of_load(&op->per_step[phase]) +
                COST_BATCH * COST_BATCH * cost_of_load(&op->per_square[phase]);
    return cost;
}

static void measure_fusing(const mdot_job *job, rt_fusing *fusing)
{
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        for (size_t k = 0; k < op->input_count && rt_can_fuse(op); k++) {
            const mdot_job_operator *operand = &job->operators[op->inputs[k]];
            if (!rt_can_fuse(operand) || operand->out_degree > 1) continue;
            fusing[op->inputs[k]].saved = 2 * (operand->per_sample[MDOT_PHASE_FORWARD].bytes_written +
                                               operand->per_square[MDOT_PHASE_FORWARD].bytes_written);
        }
    }
}

bool rt_measure_op_costs(const mdot_job *job, rt_op_costs *out_costs)
{
    size_t count = job->info.operator_count;
    out_costs->cost = calloc(count, sizeof *out_costs->cost);
    out_costs->fusing = calloc(count, sizeof *out_costs->fusing);
    out_costs->inner = calloc(count, sizeof *out_costs->inner);
    if (out_costs->cost == NULL || out_costs->fusing == NULL || out_costs->inner == NULL) return false;
    for (size_t i = 0; i < count; i++) out_costs->cost[i] = cost_of(&job->operators[i]);
    measure_fusing(job, out_costs->fusing);
    return rt_measure_fused_kernels(job, out_costs->fusing, out_costs->inner);
}

void rt_free_op_costs(rt_op_costs *costs)
{
    free(costs->cost);
    free(costs->fusing);
    free(costs->inner);
}
