/* sharding_borders.c — the largest block, and the widest border between two blocks. */
#include "runtime/job/job_model.h"
#include "runtime/perf/operator_traits.h"
#include "runtime/perf/sharding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void find_largest_block(const mdot_job *job, rt_sharding *out, const double *weights)
{
    uint32_t largest = 0;
    for (uint32_t b = 1; b <= job->info.block_count; b++) {
        if (weights[b] <= out->largest_block_parameters) continue;
        out->largest_block_parameters = weights[b];
        largest = b;
    }
    for (size_t i = 0; largest > 0 && i < job->info.operator_count; i++)
        if (job->operators[i].block == largest && out->experts.is_expert[i])
            out->largest_block_experts += rt_weights_of(&job->operators[i]);
}

/* A result that is read in a later block crosses every border in between. `sums` has block_count + 2 zeros. */
static void measure_blocks(const mdot_job *job, rt_sharding *out, double *sums, uint32_t *last_block)
{
    size_t count = job->info.operator_count;
    for (size_t i = 0; i < count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        last_block[i] = op->block;
        for (size_t k = 0; k < op->input_count; k++)
            if (op->block > last_block[op->inputs[k]]) last_block[op->inputs[k]] = op->block;
        sums[op->block] += rt_weights_of(op);
    }
    find_largest_block(job, out, sums);
    memset(sums, 0, (job->info.block_count + 2) * sizeof *sums);
    for (size_t i = 0; i < count; i++) {
        uint32_t block = job->operators[i].block;
        if (block == 0 || last_block[i] == block) continue;
        sums[block] += rt_result_bytes(&job->operators[i]);
        sums[last_block[i]] -= rt_result_bytes(&job->operators[i]);
    }
    double crossing = 0;
    for (uint32_t b = 1; b <= job->info.block_count; b++) {
        crossing += sums[b];
        out->border_bytes = fmax(out->border_bytes, crossing);
    }
}

bool rt_measure_sharding_borders(const mdot_job *job, rt_sharding *out)
{
    double *sums = calloc((size_t)job->info.block_count + 2, sizeof *sums);
    uint32_t *last_block = calloc(job->info.operator_count, sizeof *last_block);
    bool allocated = sums != NULL && last_block != NULL;
    if (allocated) measure_blocks(job, out, sums, last_block);
    free(sums);
    free(last_block);
    return allocated;
}
