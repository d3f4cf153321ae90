/* roofline_inputs.c — the inputs of the roofline: each group of operators in a few words, computed with the job. A prediction
 * then reads them sequentially instead of operators of a kilobyte each. */
#include "runtime/job/job_model.h"

#include <stdlib.h>

static rt_rate rate_of(const mdot_job_operator *op)
{
    if (!rt_uses_tensor_cores(op)) return RT_RATE_VECTOR;
    if (op->setting[MDOT_SETTING_KERNEL_W] == 0) return RT_RATE_MATMUL;
    int64_t groups = op->setting[MDOT_SETTING_GROUPS];
    bool is_depthwise = groups > 1 && groups == op->setting[MDOT_SETTING_CHANNELS_IN];
    return is_depthwise ? RT_RATE_VECTOR : RT_RATE_CONVOLUTION;
}

rt_roofline_inputs rt_roofline_inputs_of(const mdot_job *job, size_t index, const rt_shard *share)
{
    mdot_job_operator room;
    const mdot_job_operator *op = rt_sharded_operator(job, index, share, &room);
    double part = job->division.role[index] == RT_ROLE_SHARDED ? 1 / share->tensor : 1;
    rt_roofline_inputs work = {.count = 1,
                               .score_bytes = rt_score_bytes(op),
                               .fused_bytes = part * job->fused_bytes[index],
                               .weights = op->parameters + op->frozen_parameters,
                               .rate = (uint8_t)rate_of(op),
                               .place = job->division.place[index],
                               .is_kept = op->traits.autocast == MDOT_AUTOCAST_FULL,
                               .is_product = rt_uses_tensor_cores(op),
                               .is_in_block = op->block > 0,
                               .is_selected = op->known && !rt_uses_tensor_cores(op)};
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        const mdot_load *sample = &op->per_sample[phase], *step = &op->per_step[phase];
        work.sample[phase] = (rt_moved){sample->flops, sample->bytes_read + sample->bytes_written};
        work.step[phase] = (rt_moved){step->flops, step->bytes_read + step->bytes_written};
    }
    return work;
}

bool rt_job_collect_roofline_inputs(mdot_job *job)
{
    const rt_shard whole = {1, 1, {1, 1, 1}};
    job->work = calloc(job->sharded_groups.count, sizeof *job->work);
    if (job->work == NULL) return false;
    for (size_t i = 0; i < job->sharded_groups.count; i++) {
        job->work[i] = rt_roofline_inputs_of(job, job->sharded_groups.items[i].first, &whole);
        job->work[i].count = job->sharded_groups.items[i].count;
    }
    return true;
}

const rt_roofline_inputs *rt_get_roofline_inputs(const mdot_job *job, size_t i, const rt_shard *share,
                                                 rt_roofline_inputs *room)
{
    if (share->tensor == 1 && share->experts == 1) return &job->work[i];
    *room = rt_roofline_inputs_of(job, job->sharded_groups.items[i].first, share);
    room->count = job->sharded_groups.items[i].count;
    return room;
}
