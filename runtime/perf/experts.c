/* experts.c — which operators of a job are a mixture's experts, and what passes to them and back (sharding.h).
 *
 * Experts are products of one operand with several equally large matrices, behind a router: an operator TopK in their
 * block, by which each token chooses some of them. Without it several matrices are no more than a product over groups.
 * Exporters that write a loop over experts, or what data decides, leave none to be recognised.
 *
 * Expert parallelism is GShard's (Lepikhin et al., 2020) as Megatron-LM and DeepSpeed-MoE have it: every GPU keeps some
 * of the experts of each layer, and tokens travel to the experts that they chose and back, an all-to-all each way, in
 * the backward pass their gradients again. Tokens count as evenly spread, as the router's auxiliary loss has it, so
 * that a GPU's experts do as much work as all of them did on its own tokens, and read fewer weights for it.
 */
#include "runtime/job/job_model.h"

#include <stdlib.h>
#include <string.h>

/* Matrices of the product's parameters; 0: it is none of one operand, or they are not a whole number of them. */
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

static void find_experts(const mdot_job *job, rt_sharding *d)
{
    int64_t routed = -1; /* the block of the last router */
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        if (strcmp(op->type, "TopK") == 0) routed = op->block;
        uint64_t matrices = routed == op->block ? matrices_of(op) : 0;
        if (matrices < 2) continue;
        d->is_expert[i] = 1;
        d->experts = rt_common_divisor(d->experts, matrices);
    }
}

/* Within a layer a value reaches the next product of an expert through operators of its block that look nothing up:
 * tokens are dealt out and collected by look-ups. */
static bool passes(const mdot_job *job, size_t from, size_t to)
{
    const mdot_job_operator *reader = &job->operators[to];
    return reader->block == job->operators[from].block && (reader->traits.traits & MDOT_TRAIT_PICKS) == 0;
}

enum { BEHIND = 1, BEFORE = 2, DEALT_OUT = 4 };

/* Marks what lies behind an expert and what before one, in its layer. */
static void mark_neighbours(const mdot_job *job, const rt_sharding *d, uint8_t *marks)
{
    size_t count = job->info.operator_count;
    for (size_t i = 0; i < count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        for (size_t k = 0; k < op->input_count; k++) {
            size_t from = op->inputs[k];
            bool is_behind = d->is_expert[from] || (marks[from] & BEHIND) != 0;
            if (is_behind && passes(job, from, i)) marks[i] |= BEHIND;
        }
    }
    for (size_t i = count; i-- > 0;) {
        const mdot_job_operator *op = &job->operators[i];
        bool is_before = d->is_expert[i] || (marks[i] & BEFORE) != 0;
        for (size_t k = 0; is_before && k < op->input_count; k++)
            if (passes(job, op->inputs[k], i)) marks[op->inputs[k]] |= BEFORE;
    }
}

/* What the first products of a layer's experts read is dealt out, once where several read it, and what the last ones
 * write is collected. */
static void count_exchanges(const mdot_job *job, rt_sharding *d, uint8_t *marks)
{
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        const mdot_load *sample = &op->per_sample[MDOT_PHASE_FORWARD];
        if (!d->is_expert[i]) continue;
        uint8_t *operand = &marks[op->inputs[0]];
        if ((marks[i] & BEHIND) == 0 && (*operand & DEALT_OUT) == 0) {
            *operand |= DEALT_OUT;
            d->exchanged_bytes += sample->bytes_read;
            d->exchange_count++;
        }
        if ((marks[i] & BEFORE) == 0) {
            d->exchanged_bytes += sample->bytes_written;
            d->exchange_count++;
        }
    }
}

bool rt_job_find_experts(mdot_job *job)
{
    rt_sharding *d = &job->division;
    uint8_t *marks = calloc(job->info.operator_count, sizeof *marks);
    d->is_expert = calloc(job->info.operator_count, sizeof *d->is_expert);
    bool allocated = marks != NULL && d->is_expert != NULL;
    if (allocated) {
        find_experts(job, d);
        mark_neighbours(job, d, marks);
        count_exchanges(job, d, marks);
    }
    free(marks);
    return allocated;
}
