/* fused_kernels.c — the memory traffic of operators outside matmuls if neighbours run in one kernel, as compiled code
 * and frameworks with fused kernels run them.
 *
 * A kernel holds the operators between two matmuls, attentions or look-ups that depend on the same ones (equal level).
 * It reads each tensor of another kernel once and writes the results that other kernels read. Backward, it reads these
 * tensors again and a gradient from each reader, and writes a gradient for each tensor. Views cost nothing.
 *
 * Tensors inside of a kernel stay for the backward pass if each operator has a kernel of its own. A fused kernel
 * computes them again from what it reads. Networks of transformers compose RMSNorm in fp32, and then keep an fp32 copy
 * of the operand in its place.
 */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/operator_traits.h"
#include "runtime/perf/peak_memory.h"

#include <math.h>
#include <stdlib.h>

bool rt_can_fuse(const mdot_job_operator *op)
{
    return op->known && !rt_uses_tensor_cores(op) && !rt_has_trait(op, MDOT_TRAIT_PICKS);
}

typedef struct kernel_operator {
    uint32_t source, level; /* the operator whose memory a view shows, otherwise itself; matmuls before it */
    uint32_t reader;        /* 1 + level of the last kernel that read the result */
    bool is_written;        /* another kernel reads the result */
    bool trains, is_kept;   /* a gradient passes; an operator of the same kernel keeps the result */
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
        of[i].trains = of[i].trains || of[op->inputs[k]].trains;
    }
    if (!rt_can_fuse(op)) of[i].level++;
    of[i].trains = of[i].trains || op->parameters > 0 || rt_phase_flops(op, MDOT_PHASE_WEIGHT_GRADIENT) > 0;
}

static bool keeps(const mdot_job_operator *op, uint32_t tensors)
{
    return op->traits.saved_fused == 0 || (op->traits.saved_fused & tensors) != 0;
}

/* Operator i reads the result of operator `source`. */
static void read_result(const mdot_job *job, kernel_operator *of, uint32_t i, uint32_t source, rt_fusing *fusing)
{
    const mdot_job_operator *op = &job->operators[i];
    bool fuses = rt_can_fuse(op), is_fused = rt_can_fuse(&job->operators[source]);
    if (fuses && is_fused && of[i].level == of[source].level) {
        bool is_factor = op->input_count > 1 || op->parameters > 0;
        of[source].is_kept = of[source].is_kept || keeps(op, MDOT_SAVES_INPUTS | (is_factor ? MDOT_SAVES_FACTORS : 0));
        return;
    }
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

/* The operator combines a tensor of another kernel with a much smaller one inside of its own, as composed norms do. */
static bool scales(const mdot_job *job, const kernel_operator *of, uint32_t i)
{
    enum { CHANNELS = 8 };
    const mdot_job_operator *op = &job->operators[i];
    bool reads_small = false, reads_other = false;
    for (size_t k = 0; k < op->input_count; k++) {
        const kernel_operator *operand = &of[of[op->inputs[k]].source];
        bool is_inside = !operand->is_written && operand->level == of[i].level;
        bool is_small = CHANNELS * result_bytes(&job->operators[operand->source]) <= result_bytes(op);
        reads_small = reads_small || (is_small && is_inside);
        reads_other = reads_other || (!is_small && !is_inside);
    }
    return reads_small && reads_other;
}

static rt_inner_tensors inner_of(const mdot_job *job, const kernel_operator *of, uint32_t i)
{
    const mdot_job_operator *op = &job->operators[i];
    rt_inner_tensors inner = {0};
    bool is_inside = rt_can_fuse(op) && of[i].source == i && !of[i].is_written;
    if (op->block == 0 || !is_inside || !of[i].trains) return inner;
    if (of[i].is_kept || keeps(op, MDOT_SAVES_RESULT)) inner.bytes = rt_result_bytes(op);
    if (scales(job, of, i)) inner.copied_bytes = rt_result_bytes(op);
    return inner;
}

bool rt_measure_fused_kernels(const mdot_job *job, rt_fusing *fusing, rt_inner_tensors *inner)
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
        inner[i] = inner_of(job, of, i);
        if (rt_can_fuse(op) && of[i].is_written) fusing[i].forward += result_bytes(op);
        if (rt_can_fuse(op)) continue;
        fusing[i].forward = forward->bytes_read + forward->bytes_written;
        for (int phase = MDOT_PHASE_DATA_GRADIENT; phase < MDOT_PHASE_COUNT; phase++)
            fusing[i].backward += op->per_sample[phase].bytes_read + op->per_sample[phase].bytes_written;
    }
    free(of);
    return true;
}

void rt_sum_inner_tensors(const mdot_job *job, const rt_sharding *sharding, const rt_inner_tensors *inner,
                          rt_inner_tensors out_sums[2])
{
    for (size_t i = 0; i < job->info.operator_count; i++) {
        rt_inner_tensors *sum = &out_sums[sharding->role[i] == RT_ROLE_SHARDED];
        sum->bytes += inner[i].bytes;
        sum->copied_bytes += inner[i].copied_bytes;
    }
}

double rt_inner_bytes(const mdot_job *job, const rt_resolved_configuration *resolved, bool has_copies)
{
    const rt_activation_case *activation_case = &resolved->activation_case;
    const mdot_configuration *c = &resolved->configuration.c;
    bool is_fused = resolved->fused > 0 && c->compiled == 0 && !job->analysis->totals.is_convolutional;
    if (!is_fused || activation_case->is_inference || c->recompute == MDOT_RECOMPUTE_SELECTIVE) return 0;
    bool recomputes = c->recompute == MDOT_RECOMPUTE_BLOCKS || resolved->recomputes_as_program;
    double blocks = recomputes ? job->info.block_count : 1, bytes[2];
    double width = activation_case->type == RT_ACTIVATION_FP32 ? 1 : 0.5, copied = has_copies ? 1 - width : 0;
    for (int i = 0; i < 2; i++)
        bytes[i] = width * job->analysis->inner[i].bytes + copied * job->analysis->inner[i].copied_bytes;
    return (bytes[0] / resolved->replicated + bytes[1] / resolved->shard.tensor) / resolved->sequence / fmax(blocks, 1);
}
