/* fused_kernels.c — the memory traffic of operators outside matmuls if neighbours run in one kernel, as compiled code
 * and frameworks with fused kernels run them.
 *
 * A kernel holds the operators between two matmuls, attentions or look-ups that depend on the same ones (equal level).
 * It reads each tensor of another kernel once and writes the results that other kernels read. Backward, it reads these
 * tensors again and a gradient from each reader, and writes a gradient for each tensor. Views cost nothing.
 */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/operator_traits.h"

#include <stdlib.h>

bool rt_can_fuse(const mdot_job_operator *op)
{
    return op->known && !rt_uses_tensor_cores(op) && !rt_has_trait(op, MDOT_TRAIT_PICKS);
}

typedef struct kernel_operator {
    uint32_t source, level; /* the operator whose memory a view shows, otherwise itself; matmuls before it */
    uint32_t reader;        /* 1 + level of the last kernel that read the result */
    bool is_written;        /* another kernel reads the result */
} kernel_operator;

static double result_bytes(const mdot_job_operator *op)
{
    return rt_result_bytes(op) + op->per_square[MDOT_PHASE_FORWARD].bytes_written;
}

static bool is_view(const mdot_job_operator *op)
{
    return rt_can_fuse(op) && op->input_count > 0 && rt_has_trait(op, MDOT_TRAIT_VIEW) &&
           !rt_has_trait(op, MDOT_TRAIT_PARTS);
}

static void place(const mdot_job *job, kernel_operator *of, uint32_t i)
{
    const mdot_job_operator *op = &job->operators[i];
    of[i].source = is_view(op) ? of[op->inputs[0]].source : i;
    for (size_t k = 0; k < op->input_count; k++) {
        uint32_t level = of[op->inputs[k]].level;
        if (level > of[i].level) of[i].level = level;
    }
    if (!rt_can_fuse(op)) of[i].level++;
}

/* Operator i reads the result of operator `source`. */
static void read_result(const mdot_job *job, kernel_operator *of, uint32_t i, uint32_t source, rt_fusing *fusing)
{
    bool fuses = rt_can_fuse(&job->operators[i]), is_fused = rt_can_fuse(&job->operators[source]);
    if (fuses && is_fused && of[i].level == of[source].level) return;
    double bytes = result_bytes(&job->operators[source]);
    bool is_first = !fuses || of[source].reader != of[i].level + 1;
    if (!is_first) return;
    of[source].is_written = true;
    if (is_fused) fusing[source].backward += bytes;
    if (!fuses) return;
    of[source].reader = of[i].level + 1;
    fusing[i].forward += bytes;
    fusing[i].backward += 2 * bytes;
}

bool rt_measure_fused_kernels(const mdot_job *job, rt_fusing *fusing)
{
    uint32_t count = (uint32_t)job->info.operator_count;
    kernel_operator *of = calloc(count + 1, sizeof *of);
    if (of == NULL) return false;
    for (uint32_t i = 0; i < count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        place(job, of, i);
        if (is_view(op)) continue;
        for (size_t k = 0; k < op->input_count; k++) read_result(job, of, i, of[op->inputs[k]].source, fusing);
    }
    for (uint32_t i = 0; i < count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        const mdot_load *forward = &op->per_sample[MDOT_PHASE_FORWARD];
        if (rt_can_fuse(op) && of[i].is_written) fusing[i].forward += result_bytes(op);
        if (rt_can_fuse(op)) continue;
        fusing[i].forward = forward->bytes_read + forward->bytes_written;
        for (int phase = MDOT_PHASE_DATA_GRADIENT; phase < MDOT_PHASE_COUNT; phase++)
            fusing[i].backward += op->per_sample[phase].bytes_read + op->per_sample[phase].bytes_written;
    }
    free(of);
    return true;
}
