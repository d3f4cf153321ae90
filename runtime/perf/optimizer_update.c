/* optimizer_update.c — the state of an optimizer on one GPU, and the memory and time of its update.
 *
 * State, in elements per parameter:
 *
 *   sgd-plain             none
 *   sgd, lion             1
 *   adam, adamw           2
 *   adam8bit, adamw8bit   2 of one byte each, with an fp32 scale for 256 (bitsandbytes, block-wise quantisation)
 *   adafactor             rows and columns of each matrix; 1 for other parameters. It has no first moment, which is the
 *                         default of PyTorch and of the library transformers
 *   muon                  1 for matrices in blocks; 2 for other parameters, which AdamW updates
 *
 * Temporary memory of the update. Adam over lists of tensors (foreach) holds the square roots of all second moments
 * (torch/optim/adam.py, _multi_tensor_adam). A loop over tensors holds those of one tensor. Fused kernels hold none.
 * Adafactor and Lion loop over tensors, and hold two and one of the largest tensor's size. Muon holds three bf16
 * tensors of the largest matrix's size. In mixed precision, gradients in half precision are copied into one tensor,
 * which is then converted to fp32 (DeepSpeed's single_partition_of_fp32_groups). Both exist during the conversion.
 *
 * Time. Memory traffic is that of mdot_optimizer_load, which counts each tensor once, as a fused kernel moves it: 7
 * tensors by Adam and AdamW, 5 by SGD with momentum. Kernels over lists of tensors read and write temporary tensors
 * between their operations: Adam 18 tensors in all, AdamW 20, SGD 8. A loop over tensors moves as many. The kernels of
 * paged optimizers (bitsandbytes) are fused. Muon's matmuls run in bf16: five Newton-Schulz iterations for each matrix
 * (update_parts.c). Other parameters move as many tensors by AdamW as matrices by Muon (optimizer_load.c), so that one
 * traffic serves both. A gradient scaler reads and writes each gradient once, and a fused kernel writes it once more
 * (torch/amp/grad_scaler.py, ATen/native/cuda/fused_adam_utils.cuh). Fused kernels skip an infinite step themselves.
 * For others, the host reads whether there is one.
 */
#include "runtime/job/job_model.h"
#include "runtime/perf/analysis.h"
#include "runtime/perf/framework.h"
#include "runtime/perf/step_time.h"

#include <math.h>

enum { FULL_BYTES = 4, HALF_BYTES = 2, EMA_TENSORS = 3, UNSCALED_TENSORS = 2 };

#define QUANTISED_BYTES (1 + 4.0 / 256)
#define LAUNCH_MS 0.005 /* host time of a PyTorch operator with a small kernel */
#define READ_MS 0.02    /* a number's way to the host, and the launch of the next kernel; an assumption */
#define FLOPS_PER_MS 1e9

typedef struct update_rule {
    double elements;       /* state per parameter; 0: none, or by matrix, as for Adafactor and Muon */
    double bytes_of_state; /* per element; 0: the configuration's */
    double listed;         /* traffic of kernels over tensor lists relative to a fused kernel's */
    double list_update;    /* temporary elements per parameter, in kernels over tensor lists */
    double loop_update;    /* temporary elements per parameter of the largest tensor, in a loop over tensors */
    int launches;          /* kernels per tensor in a loop over tensors */
    bool has_kernels;      /* optimizer_kernels applies; otherwise the optimizer loops over tensors */
} update_rule;

static const update_rule rules[] = {
    [MDOT_OPTIMIZER_SGD] = {.elements = 1, .listed = 8 / 5.0, .launches = 3, .has_kernels = true},
    [MDOT_OPTIMIZER_ADAM] =
        {.elements = 2, .listed = 18 / 7.0, .list_update = 1, .loop_update = 1, .launches = 8, .has_kernels = true},
    [MDOT_OPTIMIZER_ADAMW] =
        {.elements = 2, .listed = 20 / 7.0, .list_update = 1, .loop_update = 1, .launches = 9, .has_kernels = true},
    [MDOT_OPTIMIZER_SGD_PLAIN] = {.elements = 0, .listed = 1, .launches = 1, .has_kernels = true},
    [MDOT_OPTIMIZER_ADAM8BIT] = {.elements = 2, .bytes_of_state = QUANTISED_BYTES, .launches = 1},
    [MDOT_OPTIMIZER_ADAMW8BIT] = {.elements = 2, .bytes_of_state = QUANTISED_BYTES, .launches = 1},
    [MDOT_OPTIMIZER_ADAFACTOR] = {.loop_update = 2, .launches = 12},
    [MDOT_OPTIMIZER_LION] = {.elements = 1, .loop_update = 1, .launches = 7},
    [MDOT_OPTIMIZER_MUON] = {.launches = 30},
};

double rt_zero_part(const mdot_configuration *c, rt_elements elements)
{
    double copies = rt_copies(c);
    return elements.others / (copies * c->expert_parallel) + elements.experts / copies;
}

/* The part of its shard's elements that a GPU updates. */
static double updated_of(const mdot_configuration *c, rt_elements elements)
{
    return c->zero_stage >= 1 ? rt_zero_part(c, elements) : rt_sum_elements(elements);
}

static double updated(const mdot_configuration *c, const rt_parts *parts, const rt_shard *shard)
{
    return updated_of(c, rt_part_of(parts, shard));
}

double rt_updated_parameters(const mdot_configuration *c, const mdot_job *job, const rt_shard *shard)
{
    return updated_of(c, rt_trained_part(&job->analysis->sharding, shard));
}

bool rt_updates_on_host(const mdot_configuration *c)
{
    return c->offload == MDOT_OFFLOAD_OPTIMIZER || c->offload == MDOT_OFFLOAD_PARAMETERS || c->servers > 0;
}

static mdot_optimizer_kernels kernels_of(const mdot_configuration *c)
{
    if (rules[c->optimizer].has_kernels && c->offload == MDOT_OFFLOAD_PAGES) return MDOT_OPTIMIZER_KERNELS_FUSED;
    if (!rules[c->optimizer].has_kernels || c->step_in_backward != 0) return MDOT_OPTIMIZER_KERNELS_FOR_LOOP;
    if (c->optimizer_kernels != MDOT_OPTIMIZER_KERNELS_DEFAULT) return c->optimizer_kernels;
    bool is_fused = rt_is_mixed(c->precision) && c->zero_stage < 3;
    return is_fused ? MDOT_OPTIMIZER_KERNELS_FUSED : MDOT_OPTIMIZER_KERNELS_FOREACH;
}

double rt_list_traffic(const mdot_configuration *c)
{
    bool is_listed = rules[c->optimizer].has_kernels && kernels_of(c) != MDOT_OPTIMIZER_KERNELS_FUSED;
    return is_listed ? rules[c->optimizer].listed : 1;
}

rt_optimizer_memory rt_optimizer_memory_of(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    const mdot_configuration *c = &resolved->configuration.c;
    const rt_shard *shard = &resolved->shard;
    const rt_update_parts *parts = &job->analysis->update_parts;
    const update_rule *rule = &rules[c->optimizer];
    rt_widths w = resolved->widths;
    double parameters = rt_updated_parameters(c, job, shard), tensor = shard->tensor;
    double width = rule->bytes_of_state > 0 ? rule->bytes_of_state : w.state;
    double matrices = updated(c, &parts->matrices, shard), elements = rule->elements * parameters, listed = parameters;
    double loop = w.state * rule->loop_update * parts->largest / tensor;
    if (c->optimizer == MDOT_OPTIMIZER_ADAFACTOR) elements = updated(c, &parts->factored, shard);
    if (c->optimizer == MDOT_OPTIMIZER_MUON) {
        elements = matrices + 2 * (parameters - matrices);
        listed = parameters - matrices;
        loop = fmax(3 * HALF_BYTES * parts->largest_matrix / tensor, w.state * listed);
    }
    rt_optimizer_memory out = {.state = width * elements + w.master * parameters, .moments = width * elements};
    mdot_optimizer_kernels kernels = kernels_of(c);
    if (kernels == MDOT_OPTIMIZER_KERNELS_FOREACH) out.update = w.state * rule->list_update * listed;
    if (kernels == MDOT_OPTIMIZER_KERNELS_FOR_LOOP) out.update = loop;
    if (w.master > 0 && w.gradients < FULL_BYTES) out.flat = (HALF_BYTES + FULL_BYTES) * parameters;
    out.update += out.flat;
    return out;
}

double rt_picked_elements(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    const rt_sparse_tables *sparse = &job->analysis->sharding.sparse;
    double samples = (double)resolved->configuration.micro_batch * resolved->steps;
    return fmin(sparse->parameters, samples * sparse->picked) / resolved->shard.tensor;
}

/* Sparse gradients are coalesced, which moves 2 tensors of their rows. SGD then adds them to the rows (3), after
 * momentum (4). SparseAdam moves 40 tensors (torch/optim/_functional.py). */
double rt_sparse_update_ms(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    enum { PLAIN_TENSORS = 5, MOMENTUM_TENSORS = 9, ADAM_TENSORS = 42 };
    const mdot_configuration *c = &resolved->configuration.c;
    if (rt_updates_on_host(c) || c->mode == MDOT_MODE_INFERENCE) return 0;
    double tensors = c->optimizer == MDOT_OPTIMIZER_SGD_PLAIN ? PLAIN_TENSORS
                     : c->optimizer == MDOT_OPTIMIZER_SGD     ? MOMENTUM_TENSORS
                                                              : ADAM_TENSORS;
    double bytes = tensors * resolved->widths.state * rt_picked_elements(job, resolved);
    return bytes / (resolved->configuration.gpu.memory_gbps * RT_BYTES_PER_MS);
}

static double traffic(mdot_optimizer optimizer, double parameters)
{
    mdot_load load = mdot_optimizer_load(optimizer, parameters);
    return load.bytes_read + load.bytes_written;
}

double rt_orthogonalisation_flops(const mdot_job *job, const rt_resolved_configuration *resolved, const rt_shard *shard)
{
    const mdot_configuration *c = &resolved->configuration.c;
    bool has_matmuls = c->optimizer == MDOT_OPTIMIZER_MUON && c->mode != MDOT_MODE_INFERENCE;
    return has_matmuls ? updated(c, &job->analysis->update_parts.orthogonalisation, shard) : 0;
}

double rt_orthogonalisation_ms(const mdot_job *job, const rt_resolved_configuration *resolved, const rt_shard *shard)
{
    if (rt_updates_on_host(&resolved->configuration.c)) return 0;
    double rate = resolved->configuration.gpu.fp16_tflops * FLOPS_PER_MS;
    return rt_orthogonalisation_flops(job, resolved, shard) / rate;
}

double rt_optimizer_ms(const mdot_job *job, const rt_resolved_configuration *resolved, const rt_shard *shard)
{
    const mdot_configuration *c = &resolved->configuration.c;
    const mdot_gpu *gpu = &resolved->configuration.gpu;
    rt_widths w = resolved->widths;
    if (rt_updates_on_host(c)) return 0; /* host_memory.c has the time of the host */
    if (c->mode == MDOT_MODE_INFERENCE) return 0;
    double parameters = rt_updated_parameters(c, job, shard);
    double bytes = traffic(c->optimizer, parameters) * w.state / FULL_BYTES;
    bytes *= rt_list_traffic(c);
    if (w.master > 0) bytes += w.weights * parameters;
    double unscaled = UNSCALED_TENSORS + (kernels_of(c) == MDOT_OPTIMIZER_KERNELS_FUSED);
    if (c->grad_scaler != 0) bytes += unscaled * w.gradients * parameters;
    if (c->ema != 0) bytes += EMA_TENSORS * FULL_BYTES * parameters;
    return bytes / (gpu->memory_gbps * RT_BYTES_PER_MS) + rt_orthogonalisation_ms(job, resolved, shard);
}

double rt_launch_ms(const mdot_job *job, const rt_resolved_configuration *resolved, double update_ms)
{
    const mdot_configuration *c = &resolved->configuration.c;
    double step_ms = rt_framework_step_ms(&resolved->configuration);
    if (c->mode == MDOT_MODE_INFERENCE || rt_updates_on_host(c)) return step_ms;
    if (c->grad_scaler != 0 && kernels_of(c) != MDOT_OPTIMIZER_KERNELS_FUSED) step_ms += READ_MS;
    if (kernels_of(c) != MDOT_OPTIMIZER_KERNELS_FOR_LOOP) return step_ms;
    double tensors = job->analysis->update_parts.tensors * resolved->shard.of[RT_PIPELINE_BLOCKS];
    return step_ms + fmax(LAUNCH_MS * rules[c->optimizer].launches * tensors - update_ms, 0);
}
