/* communication.c — the data that the GPUs of a step exchange, and the time that the step waits for it.
 *
 *   data parallelism    Gradients are summed over the workers once per step: 2 (n - 1) / n of their bytes. The sum
 *                       overlaps the last backward pass. The step waits for the rest, at least a tenth: the last
 *                       bucket. ZeRO 1 and 2 scatter gradients, and gather updated weights behind the update, which
 *                       Transformer Engine's frameworks do under the next forward pass. At stage 3 every pass gathers
 *                       weights forward and backward (only forward with keep_gathered) and scatters gradients:
 *                       3 (n - 1) / n. With whole_gradients, only the last pass scatters them. Quantised weights are
 *                       gathered as they are stored. Adapters have exchanges of their own.
 *   tensor parallelism  The step waits for every sum (sharding_roles.c): 2 (n - 1) / n of its bytes and a start-up
 *                       cost. With sequence parallelism, Transformer Engine overlaps half of them with matmuls. If
 *                       blocks are recomputed, forward sums run again.
 *   expert parallelism  Tokens are sent to experts and collected (experts.c): (n - 1) / n of their bytes and a
 *                       start-up cost each way. Their gradients return the same way. If blocks are recomputed, the
 *                       forward exchanges run again. Gradients of experts are summed over data-parallel workers
 *                       only, all other gradients over both degrees.
 *   context parallelism Keys and values of each attention pass around a ring: (n - 1) / n of their bytes forward, and
 *                       twice as much backward, with their gradients. They overlap attention; the step waits for the
 *                       rest, at least a tenth. Gradients are summed over these GPUs, too.
 *   pipeline            Bytes that cross the border of two stages, both ways, for every micro-batch that the step
 *                       waits for, and for each virtual stage.
 *
 *   parameter servers   Each worker pushes gradients to all servers, and pulls weights. With BSP, all do so at once,
 *                       and the links of the servers or of a worker bound them. With ASP, a worker has the servers to
 *                       itself, unless the traffic of all workers takes longer than the backward pass.
 *
 * widths.c has the width of weights and gradients. Activations have the precision's width. An exchange within one node
 * uses its link. An exchange that spans nodes uses the slower of link and network. A sum uses one network port for each
 * of its GPUs in a node, because NCCL lays a ring through each. A point-to-point transfer uses the sender's port only.
 */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/framework.h"
#include "runtime/perf/step_time.h"

#include <math.h>

/* An NCCL all-reduce of a few KB takes 10, 14 and 22 µs on two, four and eight A100s of a node; 6, 10 and 16 µs on
 * H100s. An all-reduce of 2 MB takes 38 µs (A100) and 22 µs (H100) more than its bytes at the link's rate, one of 32
 * MB 103 and 70 µs more, because rings fill gradually (aiconfigurator's measured collectives, NCCL 2.23 to 2.27). */
#define START_MS 0.005
#define START_OF_EACH_MS 0.002
#define FILLING 0.14 /* ms per square root of a transfer's ms: the time to fill the rings */
enum { MOST_TO_START = 8 };
/* of Python's hooks and the collective: on two and four A100s, the 256 factors beside Mistral 7B's attention take about
 * 200 ms a step for four exchanges each */
enum { LAUNCHES_OF_UNIT = 4 };
#define LEAST_WAITED 0.1
#define FP8_SUM 0.75
#define BACKWARD_FLOPS 2.5 /* fused attention's, relative to the forward pass */

typedef struct exchange {
    const mdot_job *job;
    const mdot_configuration *c;
    const rt_sharding *sharding;
    const rt_shard *shard;
    const rt_widths *widths;
    double byte_ratio; /* bytes relative to fp32: 0.5 or 1 */
    double micro_batch, micro_steps;
    double part;        /* samples per micro-batch; a sample counts as the GPU's part of a sequence */
    double ms_per_flop; /* of a matmul */
    double unit_ms;     /* of the host, to gather or scatter a unit of ZeRO stage 3 */
    bool gathers_again; /* blocks are recomputed outside of their shard's module */
} exchange;

/* Rate in bytes/ms of a group whose members are `stride` GPUs apart and use `ports` network ports in a node. */
static double rate_through(const exchange *e, double members, double stride, double ports)
{
    double in_node = (double)e->c->gpu_count / e->c->node_count;
    bool spans_nodes = members * stride > in_node;
    return RT_BYTES_PER_MS * (spans_nodes ? fmin(e->c->link_gbps, e->c->network_gbps * ports) : e->c->link_gbps);
}

static double sum_rate(const exchange *e, double members, double stride)
{
    return rate_through(e, members, stride, fmax(e->c->gpu_count / (e->c->node_count * stride), 1));
}

static double send_rate(const exchange *e, double members, double stride)
{
    return rate_through(e, members, stride, 1);
}

/* Time for `count` exchanges between n GPUs; `ms` is the total time at the link's or network's full rate. */
static double started_ms(double n, double count, double ms)
{
    if (count == 0) return 0;
    return ms + count * (START_MS + START_OF_EACH_MS * fmin(n, MOST_TO_START) + FILLING * sqrt(ms / count));
}

/* ZeRO stages 1 and 2 gather updated weights behind the update. */
static bool gathers_updated(const mdot_configuration *c) { return c->zero_stage == 1 || c->zero_stage == 2; }

/* Gathers of ZeRO stage 3: forward, backward unless weights are kept, and for a block that is recomputed outside of its
 * shard's module (huggingface/transformers issue 30404). */
static double gathers_of(const exchange *e) { return e->c->keep_gathered != 0 ? 1 : e->gathers_again ? 3 : 2; }

/* Time to sum the gradients of `parameters` over n workers and, at ZeRO stage 3, to gather `weights`. */
static double gradients_ms(const exchange *e, double n, double stride, double parameters, double weights)
{
    const rt_widths *w = e->widths;
    double bytes = 2 * w->reduced * parameters;
    if (gathers_updated(e->c)) bytes = w->reduced * parameters;
    if (e->c->zero_stage >= 3) bytes = gathers_of(e) * w->compute * weights + w->reduced * parameters;
    return (n - 1) / n * bytes / sum_rate(e, n, stride);
}

/* Weights in elements of the computation's width: quantised ones count as their stored bytes. */
static rt_elements gathered_part(const exchange *e)
{
    rt_elements part = rt_weights_part(&e->job->analysis->sharding, e->shard);
    if (e->c->frozen_weights == MDOT_FROZEN_UNCHANGED) return part;
    rt_elements quantised = rt_part_of(&e->job->analysis->update_parts.frozen_matmuls, e->shard);
    double saved = 1 - rt_frozen_width(e->c, e->widths->compute) / e->widths->compute;
    return (rt_elements){part.others - saved * quantised.others, part.experts - saved * quantised.experts};
}

/* The part of an exchange that a backward pass leaves visible. */
static double waited_ms(double ms, double backward_ms) { return fmax(LEAST_WAITED * ms, ms - backward_ms); }

/* Tensors that stage 3 shards apart, each with exchanges of its own that no other work hides: the trained ones of a
 * mostly frozen network, by peft's policy. fms-acceleration's fused adapters of quantised weights stay whole. */
static double adapters_of(const exchange *e)
{
    const mdot_job_info *info = &e->job->info;
    bool are_whole = e->c->framework == MDOT_FRAMEWORK_LIGER && e->c->frozen_weights != MDOT_FROZEN_UNCHANGED;
    if (e->c->zero_stage < 3 || are_whole || info->frozen_parameters <= info->parameters) return 0;
    return e->job->analysis->update_parts.tensors;
}

/* The part of a backward pass that hides exchanges. A gather starts two units ahead, so that it overlaps only matmuls
 * without adapters, of which there are two for each other one. Gathers of a second recomputation keep the others from
 * overlapping (pytorch/pytorch issue 105635). */
static double hiding_part(const exchange *e, double adapters)
{
    if (e->gathers_again) return 0;
    return fmax(1 - adapters / (2 * fmax(e->job->analysis->update_parts.frozen_count, 1)), 0);
}

/* Time to sum the gradients of `trained` elements and to gather `weights`, over workers and over those of experts. */
static double exchanges_ms(const exchange *e, rt_elements trained, rt_elements weights)
{
    double copies = rt_copies(e->c), experts = e->c->expert_parallel, stride = e->c->tensor_parallel;
    return gradients_ms(e, copies * experts, stride, trained.others, weights.others) +
           gradients_ms(e, copies, stride * experts, trained.experts, weights.experts);
}

static double workers_ms(const exchange *e, double pass_ms)
{
    double adapters = adapters_of(e), backward_ms = hiding_part(e, adapters) * pass_ms;
    rt_elements parameters = rt_trained_part(&e->job->analysis->sharding, e->shard), weights = gathered_part(e);
    double passes = e->c->zero_stage >= 3 ? (double)e->c->accumulate : 1,
           sums = e->c->whole_gradients != 0 ? 1 : passes;
    double ms = exchanges_ms(e, parameters, weights), gathers_ms = exchanges_ms(e, (rt_elements){0}, weights);
    double waited = sums * waited_ms(ms, backward_ms) + (passes - sums) * waited_ms(gathers_ms, backward_ms) +
                    adapters * e->unit_ms * (passes * gathers_of(e) + sums);
    if (!gathers_updated(e->c)) return waited;
    return waited + (rt_framework_is_engine(e->c) ? LEAST_WAITED : 1) * ms * e->widths->compute / e->widths->reduced;
}

static double servers_ms(const exchange *e, double backward_ms)
{
    rt_elements trained = rt_trained_part(&e->job->analysis->sharding, e->shard);
    double elements = trained.others + trained.experts, rate = e->c->network_gbps * RT_BYTES_PER_MS;
    double pushed_ms = e->widths->reduced * elements / rate, pulled_ms = e->widths->compute * elements / rate;
    double each = (double)e->c->gpu_count / e->c->servers; /* workers of a server's link */
    if (e->c->sync == MDOT_SYNC_BSP) return waited_ms(fmax(each, 1) * (pushed_ms + pulled_ms), backward_ms);
    return fmax(waited_ms(pushed_ms + pulled_ms, backward_ms), each * fmax(pushed_ms, pulled_ms) - backward_ms);
}

static double tokens_ms(const exchange *e)
{
    double n = e->c->expert_parallel;
    if (n == 1) return 0;
    const rt_experts *experts = &e->sharding->experts;
    double ways = e->c->recompute == MDOT_RECOMPUTE_BLOCKS ? 3 : 2;
    double bytes = e->byte_ratio * e->part * experts->exchanged_bytes;
    double stride = (double)e->c->tensor_parallel * e->c->context_parallel;
    double ms = started_ms(n, experts->exchange_count, (n - 1) / n * bytes / send_rate(e, n, stride));
    return e->micro_steps * ways * ms * e->shard->of[RT_PIPELINE_BLOCKS];
}

static double sums_ms(const exchange *e)
{
    double n = e->c->tensor_parallel;
    if (n == 1) return 0;
    const rt_sharding *sharding = e->sharding;
    bool again = e->c->recompute == MDOT_RECOMPUTE_BLOCKS;
    double bytes =
        e->byte_ratio * e->part * (sharding->summed_forward_bytes * (again ? 2 : 1) + sharding->summed_backward_bytes);
    /* a sum over divided sequences gathers one half in the type of the matmul behind it */
    if (e->c->sequence_parallel != 0 && rt_is_fp8(e->c->precision)) bytes *= FP8_SUM;
    double count = sharding->summed_count * (again ? 1.5 : 1); /* half of the sums are forward */
    double ms = started_ms(n, count, 2 * (n - 1) / n * bytes / sum_rate(e, n, 1));
    return e->micro_steps * rt_framework_waited_sums(e->c) * ms * e->shard->of[RT_PIPELINE_BLOCKS];
}

static double borders_ms(const exchange *e)
{
    double stages = e->c->pipeline_parallel;
    if (stages == 1) return 0;
    double stride = rt_copies(e->c) * e->c->tensor_parallel * e->c->expert_parallel;
    double bytes = 2 * e->byte_ratio * e->part * e->sharding->border_bytes;
    /* each GPU sends its part of a sequence; parts of an interleaved pipeline are sent while another one computes */
    if (e->c->sequence_parallel != 0) bytes /= e->c->tensor_parallel;
    if (e->c->virtual_stages > 1) bytes *= LEAST_WAITED;
    return e->micro_steps * e->c->virtual_stages * bytes / send_rate(e, stages, stride);
}

/* Keys and values pass around a ring once forward, and with their gradients backward, while attention computes. */
static double ring_ms(const exchange *e)
{
    double n = e->c->context_parallel;
    const rt_job_totals *totals = &e->job->analysis->totals;
    double forward = e->c->recompute == MDOT_RECOMPUTE_BLOCKS ? 2 : 1, times = forward + 2;
    double bytes = times * e->byte_ratio * e->micro_batch * totals->key_value_bytes / e->c->tensor_parallel;
    double count = times * totals->attention_count * (n - 1);
    double ms = started_ms(n, count, (n - 1) / n * bytes / send_rate(e, n, e->c->tensor_parallel));
    double flops = (forward + BACKWARD_FLOPS) * e->micro_batch * totals->attention_flops / (n * e->c->tensor_parallel);
    double waited = fmax(LEAST_WAITED * ms, ms - flops * e->ms_per_flop);
    return e->micro_steps * waited * e->shard->of[RT_PIPELINE_BLOCKS];
}

double rt_communication_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double backward_ms)
{
    const mdot_configuration *c = &resolved->configuration.c;
    exchange e = {.job = job,
                  .c = c,
                  .sharding = &job->analysis->sharding,
                  .shard = &resolved->shard,
                  .widths = &resolved->widths,
                  .byte_ratio = rt_is_half(c->precision) ? 0.5 : 1,
                  .micro_batch = (double)resolved->configuration.micro_batch,
                  .part = (double)resolved->configuration.micro_batch / resolved->sequence,
                  .ms_per_flop = resolved->rates.ms_per_flop[RT_RATE_MATMUL],
                  .unit_ms = rt_framework_launches_ms(&resolved->configuration, LAUNCHES_OF_UNIT),
                  .gathers_again = rt_framework_recomputes_outside(c, resolved->recomputes_as_program),
                  .micro_steps = resolved->micro_steps};
    if (c->servers > 0) return servers_ms(&e, backward_ms);
    return workers_ms(&e, backward_ms) + sums_ms(&e) + tokens_ms(&e) + borders_ms(&e) + ring_ms(&e);
}
