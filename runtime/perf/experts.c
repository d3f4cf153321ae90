/* experts.c — finds the operators of a job that are the experts of a mixture, and the bytes sent to them and back.
 *
 * Experts are matmuls of one operand with several equally large matrices, after a router: an operator TopK in their
 * block, by which each token chooses some of them. Several matrices without a router are a matmul over groups. Some
 * exporters write a loop over experts or a data-dependent branch; experts in such graphs remain undetected.
 *
 * Expert parallelism follows GShard (Lepikhin et al., 2020) as implemented in Megatron-LM and DeepSpeed-MoE. Every
 * GPU keeps some of the experts of each layer. Tokens travel to the experts that they chose and back, an all-to-all
 * each way, and so do their gradients in the backward pass. Tokens are assumed to be evenly distributed, as the
 * router's auxiliary loss encourages. Therefore a GPU's experts do as much work as all of them did on its own
 * tokens, and read fewer weights for it.
 */
#include "runtime/job/job_model.h"
#include "runtime/perf/operator_traits.h"
#include "runtime/perf/sharding.h"

#include <stdlib.h>
#include <string.h>

/* Number of matrices in the matmul's parameters. 0 if the operator has several operands, is another kind of operator,
 * or if the parameters are a fractional number of matrices. */
static uint64_t matrices_of(const mdot_job_operator *op)
{
    const int64_t *setting = op->setting;
    bool multiplies = setting[MDOT_SETTING_CHANNELS_IN] > 0 && setting[MDOT_SETTING_CHANNELS_OUT] > 0;
    if (!op->known || !multiplies || setting[MDOT_SETTING_KERNEL_W] > 0 || op->input_count != 1) return 0;
    double rows = (double)setting[MDOT_SETTING_CHANNELS_IN] + (setting[MDOT_SETTING_BIAS] != 0 ? 1 : 0);
    double matrices = (op->parameters + op->frozen_parameters) / (rows * (double)setting[MDOT_SETTING_CHANNELS_OUT]);
    uint64_t whole = (uint64_t)matrices;
    return (double)whole == matrices ? whole : 0;
}

static void find_experts(const mdot_job *job, rt_experts *experts)
{
    int64_t routed = -1; /* block of the last router */
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        if (strcmp(op->type, "TopK") == 0) routed = op->block;
        uint64_t matrices = routed == op->block ? matrices_of(op) : 0;
        if (matrices < 2) continue;
        experts->is_expert[i] = 1;
        experts->common_count = rt_common_divisor(experts->common_count, matrices);
    }
}

/* Within a layer, a value reaches an expert's next matmul through operators of its block other than look-ups, because
 * look-ups send and collect tokens. */
static bool passes(const mdot_job *job, size_t source, size_t target)
{
    const mdot_job_operator *reader = &job->operators[target];
    return reader->block == job->operators[source].block && !rt_has_trait(reader, MDOT_TRAIT_PICKS);
}

enum { BEHIND = 1, BEFORE = 2, SENT = 4 };

/* Marks the operators after an expert and those before one, within its layer. */
static void mark_neighbours(const mdot_job *job, const uint8_t *is_expert, uint8_t *marks)
{
    size_t count = job->info.operator_count;
    for (size_t i = 0; i < count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        for (size_t k = 0; k < op->input_count; k++) {
            size_t operand = op->inputs[k];
            bool is_behind = is_expert[operand] || (marks[operand] & BEHIND) != 0;
            if (is_behind && passes(job, operand, i)) marks[i] |= BEHIND;
        }
    }
    for (size_t i = count; i-- > 0;) {
        const mdot_job_operator *op = &job->operators[i];
        bool is_before = is_expert[i] || (marks[i] & BEFORE) != 0;
        for (size_t k = 0; is_before && k < op->input_count; k++)
            if (passes(job, op->inputs[k], i)) marks[op->inputs[k]] |= BEFORE;
    }
}

/* The operands of the first matmuls of a layer's experts are sent, each once even if several matmuls read it. The
 * results of the last matmuls are collected. */
static void count_exchanges(const mdot_job *job, rt_experts *experts, uint8_t *marks)
{
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        const mdot_load *sample = &op->per_sample[MDOT_PHASE_FORWARD];
        if (!experts->is_expert[i]) continue;
        uint8_t *operand = &marks[op->inputs[0]];
        if ((marks[i] & BEHIND) == 0 && (*operand & SENT) == 0) {
            *operand |= SENT;
            experts->exchanged_bytes += sample->bytes_read;
            experts->exchange_count++;
        }
        if ((marks[i] & BEFORE) == 0) {
            experts->exchanged_bytes += sample->bytes_written;
            experts->exchange_count++;
        }
    }
}

bool rt_find_experts(const mdot_job *job, rt_experts *out_experts)
{
    uint8_t *marks = calloc(job->info.operator_count, sizeof *marks);
    out_experts->is_expert = calloc(job->info.operator_count, sizeof *out_experts->is_expert);
    bool allocated = marks != NULL && out_experts->is_expert != NULL;
    if (allocated) {
        find_experts(job, out_experts);
        mark_neighbours(job, out_experts->is_expert, marks);
        count_exchanges(job, out_experts, marks);
    }
    free(marks);
    return allocated;
}
