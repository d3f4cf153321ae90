/* roofline_inputs.c — roofline inputs: each operator group in a few words, computed with the job. A prediction then
 * reads them sequentially, instead of a kilobyte per operator. */
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/operator_traits.h"

#include <stdlib.h>
#include <string.h>

enum { FP8_MULTIPLE = 16 };

/* A matmul by parameters in FP8: its sides are multiples, and it is no head behind the blocks, which Megatron, and
 * torchtitan's recipes, keep in bf16. */
static bool is_linear(const mdot_job_operator *op, uint8_t position)
{
    if (position == RT_PIPELINE_AFTER) return false;
    int64_t channels_in = op->setting[MDOT_SETTING_CHANNELS_IN], channels_out = op->setting[MDOT_SETTING_CHANNELS_OUT];
    return op->parameters + op->frozen_parameters > 0 && channels_in > 0 && channels_out > 0 &&
           channels_in % FP8_MULTIPLE == 0 && channels_out % FP8_MULTIPLE == 0;
}

static rt_rate rate_of(const mdot_job_operator *op, uint8_t position)
{
    if (!rt_uses_tensor_cores(op)) return RT_RATE_VECTOR;
    if (op->setting[MDOT_SETTING_KERNEL_W] == 0) return is_linear(op, position) ? RT_RATE_LINEAR : RT_RATE_MATMUL;
    int64_t groups = op->setting[MDOT_SETTING_GROUPS];
    bool is_depthwise = groups > 1 && groups == op->setting[MDOT_SETTING_CHANNELS_IN];
    return is_depthwise ? RT_RATE_VECTOR : RT_RATE_CONVOLUTION;
}

rt_work rt_work_of(const mdot_job_operator *op)
{
    if (!rt_uses_tensor_cores(op)) return RT_WORK_OTHER;
    if (op->setting[MDOT_SETTING_KERNEL_W] > 0) return RT_WORK_CONVOLUTION;
    return op->setting[MDOT_SETTING_HEAD_SIZE] > 0 ? RT_WORK_ATTENTION : RT_WORK_LINEAR;
}

static rt_grouping grouping_of(const mdot_job_operator *op)
{
    int64_t groups = op->setting[MDOT_SETTING_GROUPS];
    if (groups <= 1) return RT_GROUPING_DENSE;
    return groups == op->setting[MDOT_SETTING_CHANNELS_IN] ? RT_GROUPING_DEPTHWISE : RT_GROUPING_SOME;
}

/* How often the backward pass runs the operator again. */
static uint8_t recomputations_of(const mdot_job_operator *op)
{
    bool recomputed = op->flags & MDOT_OPERATOR_RECOMPUTED, once_more = op->flags & MDOT_OPERATOR_ONCE_MORE;
    bool twice_more = op->flags & MDOT_OPERATOR_TWICE_MORE;
    return (uint8_t)(recomputed + once_more + 2 * twice_more);
}

/* `bytes` are those at batch 1. */
static double fused_at(const mdot_job_operator *op, double bytes, const rt_shard *shard)
{
    double squares = 2 * op->per_square[MDOT_PHASE_FORWARD].bytes_written;
    return bytes > 0 && squares > 0 ? bytes + (shard->square_batch - 1) * squares : bytes;
}

rt_roofline_inputs rt_roofline_inputs_of(const mdot_job *job, const rt_sharding *sharding, const rt_fusing *fusing,
                                         size_t index, const rt_shard *shard)
{
    mdot_job_operator buffer;
    const mdot_job_operator *op = rt_sharded_operator(job, sharding, index, shard, &buffer);
    double part = sharding->role[index] == RT_ROLE_SHARDED ? 1 / shard->tensor : 1;
    rt_roofline_inputs inputs = {.count = 1,
                                 .score_bytes = rt_score_bytes(op),
                                 .fused_bytes = part * fused_at(op, fusing[index].saved, shard),
                                 .kernel_bytes = {part * fusing[index].forward, part * fusing[index].backward},
                                 .weights = op->parameters + op->frozen_parameters,
                                 .frozen_weights = op->frozen_parameters,
                                 .operand = op->per_sample[MDOT_PHASE_FORWARD].bytes_read / sizeof(float),
                                 .result = op->per_sample[MDOT_PHASE_FORWARD].bytes_written / sizeof(float),
                                 .work = (uint8_t)rt_work_of(op),
                                 .grouping = (uint8_t)grouping_of(op)};
    inputs.kind = (rt_roofline_kind){.rate = (uint8_t)rate_of(op, sharding->position[index]),
                                     .position = sharding->position[index],
                                     .is_fp32 = op->traits.autocast == MDOT_AUTOCAST_FULL,
                                     .uses_tensor_cores = rt_uses_tensor_cores(op),
                                     .is_in_block = op->block > 0,
                                     .is_replicated = op->block > 0 && sharding->role[index] == RT_ROLE_REPLICATED,
                                     .is_loss = rt_is_loss(op),
                                     .is_selected = op->known && !rt_uses_tensor_cores(op),
                                     .recomputations = recomputations_of(op),
                                     .ran_in_other_type = rt_ran_in_other_type(op)};
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        const mdot_load *sample = &op->per_sample[phase], *step = &op->per_step[phase];
        inputs.sample[phase] = (rt_flops_and_bytes){sample->flops, sample->bytes_read + sample->bytes_written};
        inputs.step[phase] = (rt_flops_and_bytes){step->flops, step->bytes_read + step->bytes_written};
    }
    return inputs;
}

rt_roofline_inputs *rt_collect_roofline_inputs(const mdot_job *job, const rt_sharding *sharding,
                                               const rt_fusing *fusing, const rt_operator_groups *groups)
{
    rt_roofline_inputs *inputs = calloc(RT_STORED_SHARDS * groups->count, sizeof *inputs);
    for (size_t k = 0; inputs != NULL && k < RT_STORED_SHARDS * groups->count; k++) {
        const rt_shard shard = {.tensor = 1 << k / groups->count, .experts = 1, .of = {1, 1, 1}};
        if (sharding->common % (uint64_t)shard.tensor != 0) break;
        inputs[k] = rt_roofline_inputs_of(job, sharding, fusing, groups->items[k % groups->count].first, &shard);
        inputs[k].count = groups->items[k % groups->count].count;
    }
    return inputs;
}

static bool equal_kinds(const rt_roofline_inputs *a, const rt_roofline_inputs *b)
{
    return memcmp(&a->kind, &b->kind, sizeof a->kind) == 0 && (a->score_bytes > 0) == (b->score_bytes > 0);
}

static void add_inputs(rt_roofline_inputs *sum, const rt_roofline_inputs *inputs)
{
    double count = inputs->count;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        sum->sample[phase].flops += count * inputs->sample[phase].flops;
        sum->sample[phase].bytes += count * inputs->sample[phase].bytes;
        sum->step[phase].flops += count * inputs->step[phase].flops;
        sum->step[phase].bytes += count * inputs->step[phase].bytes;
    }
    sum->score_bytes += count * inputs->score_bytes;
    sum->fused_bytes += count * inputs->fused_bytes;
    for (int k = 0; k < 2; k++) sum->kernel_bytes[k] += count * inputs->kernel_bytes[k];
    sum->weights += count * inputs->weights;
    sum->frozen_weights += count * inputs->frozen_weights;
    sum->operand += count * inputs->operand;
    sum->result += count * inputs->result;
}

rt_roofline_inputs *rt_sum_roofline_inputs(const rt_roofline_inputs *inputs, size_t count, size_t *out_count)
{
    rt_roofline_inputs *sums = calloc(count, sizeof *sums);
    *out_count = 0;
    for (size_t i = 0; sums != NULL && i < count; i++) {
        size_t k = 0;
        while (k < *out_count && !equal_kinds(&sums[k], &inputs[i])) k++;
        if (k == *out_count) sums[(*out_count)++] = (rt_roofline_inputs){.count = 1, .kind = inputs[i].kind};
        add_inputs(&sums[k], &inputs[i]);
    }
    return sums;
}

double rt_chained_part(const rt_roofline_inputs *inputs, size_t count)
{
    double all = 0, chained = 0;
    for (size_t i = 0; i < count; i++)
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            if (inputs[i].sample[phase].bytes + inputs[i].step[phase].bytes <= 0) continue;
            all += inputs[i].count;
            if (inputs[i].fused_bytes > 0) chained += inputs[i].count;
        }
    return all > 0 ? chained / all : 0;
}
