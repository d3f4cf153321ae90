/* host_memory.c — the time that a step waits for host memory, if parts of the training's state are there.
 *
 *   optimizer    Gradients move to the host during the backward pass. The host updates its fp32 weights. Updated
 *                weights then move to the GPU. The step waits for both, and for the gradients that the backward pass
 *                does not hide.
 *   parameters   The same gradients and update. Each pass reads the GPU's shard of the weights from the host instead,
 *                while it computes.
 *   pages        The GPU updates the optimizer's state in managed memory. The part that does not fit beside the
 *                reserved memory moves to the GPU for its update and back, and the step waits for both (bitsandbytes
 *                fetches the pages of a tensor before its update, and the driver evicts others).
 *   activations  Saved tensors move to the host during the forward pass, and back during the backward pass. The step
 *                waits for the part that takes longer than the pass.
 *
 * The update moves 28 bytes per parameter and reaches 112 GB/s of a host: DeepSpeed's CPUAdam updates 10^9 parameters
 * in .25 s (ZeRO-Offload, arXiv 2101.06840, table 4: .22 to .26 s for 1, 2 and 4 · 10^9). The GPUs of a node share it.
 * Transfers from pinned memory reach .8 of the slot's rate (25 GB/s of 31.5 in NVIDIA's bandwidthTest).
 */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/peak_memory.h"
#include "runtime/perf/step_time.h"

#include <math.h>

#define HOST_GBPS 112.0
#define PCIE_EFFICIENCY 0.8
#define HOST_TFLOPS 2.0 /* .4 (assumed) of 64 cores' 5.0: a core of an EPYC 7003 takes torch.mm at 79 GFLOP/s */

static double pcie_rate(const rt_resolved_configuration *resolved)
{
    return PCIE_EFFICIENCY * resolved->configuration.gpu.pcie_gbps * RT_BYTES_PER_MS;
}

static double pages_ms(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    rt_memory memory = rt_measure_memory(job, resolved);
    rt_reserved reserved = rt_reserve_memory(job, resolved, &memory);
    double pages = rt_optimizer_memory_of(job, resolved).moments, taken = (double)rt_sum_reserved(&memory, &reserved);
    double evicted = fmax(taken + pages - (double)rt_usable_memory(&resolved->configuration.gpu), 0);
    return 2 * fmin(evicted, pages) / pcie_rate(resolved);
}

/* Time of a host's update that moves `bytes`. */
static double host_update_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double bytes)
{
    double flops = rt_orthogonalisation_flops(job, resolved, &resolved->shard);
    return bytes / (HOST_GBPS * RT_BYTES_PER_MS) + flops / (HOST_TFLOPS * 1e9);
}

/* Each server adds up the gradients of its part, and updates it. */
static double servers_ms(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    const mdot_configuration *c = &resolved->configuration.c;
    double updated = rt_updated_parameters(c, job, &resolved->shard),
           sums = c->sync == MDOT_SYNC_BSP ? c->gpu_count : 1;
    mdot_load load = mdot_optimizer_load(c->optimizer, updated);
    double bytes = load.bytes_read + load.bytes_written + sums * resolved->widths.reduced * updated;
    return host_update_ms(job, resolved, bytes) / c->servers;
}

static double state_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double forward_ms,
                       double backward_ms)
{
    const mdot_configuration *c = &resolved->configuration.c;
    if (c->servers > 0) return servers_ms(job, resolved);
    if (c->offload == MDOT_OFFLOAD_NOTHING) return 0;
    if (c->offload == MDOT_OFFLOAD_PAGES) return pages_ms(job, resolved);
    rt_elements weights = rt_weights_part(&job->analysis->sharding, &resolved->shard);
    rt_widths w = resolved->widths;
    double updated = rt_updated_parameters(c, job, &resolved->shard);
    mdot_load load = mdot_optimizer_load(c->optimizer, updated);
    double in_node = (double)c->gpu_count / c->node_count;
    double update_ms = host_update_ms(job, resolved, load.bytes_read + load.bytes_written) * in_node;
    double pcie = pcie_rate(resolved);
    double gradients_ms = w.gradients * updated / pcie, weights_ms = w.compute * updated / pcie;
    if (c->offload == MDOT_OFFLOAD_OPTIMIZER) return fmax(gradients_ms - backward_ms, 0) + update_ms + weights_ms;
    double pass_ms = (double)c->accumulate * w.weights * rt_zero_part(c, weights) / pcie;
    return fmax(pass_ms - forward_ms, 0) + fmax(pass_ms + gradients_ms - backward_ms, 0) + update_ms;
}

static double activations_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double forward_ms,
                             double backward_ms)
{
    if (resolved->configuration.c.offload_activations == 0) return 0;
    double bytes = (double)resolved->configuration.micro_batch * resolved->steps * rt_offloaded_bytes(job, resolved);
    double ms = bytes / pcie_rate(resolved);
    return fmax(ms - forward_ms, 0) + fmax(ms - backward_ms, 0);
}

double rt_host_memory_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double forward_ms,
                         double backward_ms)
{
    return state_ms(job, resolved, forward_ms, backward_ms) + activations_ms(job, resolved, forward_ms, backward_ms);
}
