/* framework.c — the frameworks that launch kernels: host time of a launch, and fused operators.
 *
 * A launch is one phase of an operator, with all work in interpreter, framework and driver. Hosts of newer GPU models
 * are faster: PyTorch takes 45 to 80 µs beside GPUs up to Ampere (torchvision's benchmark, SuperBench, vTrain), and 25
 * to 45 beside Hopper (NeuSight, our own records, a LoRA of half a billion parameters). Megatron's modules take twice
 * as long: its tests with 12 layers of 512 channels wait for the host alone (lab/notes/accuracy.md). By the number of
 * blocks and micro-steps, their steps have a constant part, too (scaling, norms, logging), and parts for each block
 * with experts (router, permutations), each exchange between virtual stages, and each attention of context
 * parallelism.
 *
 * Fused operators pass results on without memory traffic, as compiled code does. The part that a framework saves of
 * torch.compile's saving is an estimate from the operators that it fuses: bias, activation and gate, dropout and sum,
 * rotary embedding, and normalisation.
 */
#include "runtime/perf/framework.h"

#define US_PER_MS 1e3
#define INFERENCE_PART 0.75 /* an evaluation records no gradients: 27 of 36 µs on an H200 (weights/data) */

static const struct {
    double launch_us[3]; /* beside GPU models before Hopper, Hopper, later ones */
    double fused;
    bool is_engine; /* has the kernels of Transformer Engine */
} frameworks[] = {
    [MDOT_FRAMEWORK_PYTORCH] = {{50, 35, 30}, 0, false},  [MDOT_FRAMEWORK_HF_TRAINER] = {{50, 35, 30}, 0, false},
    [MDOT_FRAMEWORK_LIGER] = {{50, 35, 30}, 1, false},    [MDOT_FRAMEWORK_TRANSFORMER_ENGINE] = {{60, 50, 45}, 1, true},
    [MDOT_FRAMEWORK_MEGATRON] = {{115, 92, 70}, 1, true},
};

static mdot_framework framework_of(const mdot_configuration *c)
{
    return c->framework != MDOT_FRAMEWORK_PROGRAM ? c->framework : MDOT_FRAMEWORK_PYTORCH;
}

double rt_framework_launch_us(const rt_configuration *configuration)
{
    double capability = configuration->gpu.compute_capability;
    bool is_old = capability < RT_HOPPER_CAPABILITY || rt_gpu_is_from_amd(&configuration->gpu);
    int years = is_old ? 0 : capability < RT_BLACKWELL_CAPABILITY ? 1 : 2;
    double launch_us = frameworks[framework_of(&configuration->c)].launch_us[years];
    return configuration->c.mode == MDOT_MODE_INFERENCE ? INFERENCE_PART * launch_us : launch_us;
}

double rt_framework_launches_ms(const rt_configuration *configuration, double launches)
{
    double us = configuration->c.host_launch_us;
    return launches * (us > 0 ? us : rt_framework_launch_us(configuration)) / US_PER_MS;
}

enum { LAUNCHES_OF_STEP = 120, LAUNCHES_OF_EXPERTS = 42, LAUNCHES_OF_VIRTUAL_STAGE = 28, LAUNCHES_OF_RING = 16 };

static double megatron_ms(const rt_configuration *configuration, double launches)
{
    const mdot_configuration *c = &configuration->c;
    if (c->framework != MDOT_FRAMEWORK_MEGATRON || c->mode == MDOT_MODE_INFERENCE) return 0;
    return rt_framework_launches_ms(configuration, launches);
}

double rt_framework_step_ms(const rt_configuration *configuration)
{
    return megatron_ms(configuration, LAUNCHES_OF_STEP);
}

double rt_framework_pass_ms(const rt_configuration *configuration, double expert_blocks, double attentions)
{
    double stages = configuration->c.virtual_stages > 1 ? configuration->c.virtual_stages : 0;
    double rings = configuration->c.context_parallel > 1 ? attentions : 0;
    return megatron_ms(configuration, LAUNCHES_OF_EXPERTS * expert_blocks + LAUNCHES_OF_VIRTUAL_STAGE * stages +
                                          LAUNCHES_OF_RING * rings);
}

bool rt_framework_recomputes_outside(const mdot_configuration *c, bool by_program)
{
    enum { FIXED = 208 }; /* transformers 4.53 is as old as PyTorch 2.7 */
    bool is_trainer = c->framework == MDOT_FRAMEWORK_HF_TRAINER || c->framework == MDOT_FRAMEWORK_LIGER;
    bool recomputes = c->recompute == MDOT_RECOMPUTE_BLOCKS || by_program;
    return recomputes && is_trainer && c->zero_stage >= 3 && c->torch > 0 && c->torch < FIXED;
}

bool rt_framework_is_engine(const mdot_configuration *c) { return frameworks[framework_of(c)].is_engine; }

/* Outside compiled code, a cast takes about five kernels of 5 to 10 µs each (rt_framework_cast_bytes), as long as a
 * launch. Transformer Engine's launches contain its casts: NeMo's steps in FP8 on H100 leave no room for more. */
double rt_framework_casts_ms(const rt_configuration *configuration, double casts)
{
    bool is_launched = configuration->c.compiled == 0 && !rt_framework_is_engine(&configuration->c);
    return is_launched ? rt_framework_launches_ms(configuration, casts) : 0;
}

/* FlashAttention 2, in PyTorch since version 2.2, skips masked scores. Times on Ampere were learned from Triton's
 * kernel. It takes .60 to .85 of these forward, by 20 sizes on an A100 (attention.csv.gz), and .44 to .62 backward,
 * where its FLOP rate is .87 to .99 of the forward one on two Ampere boards (Dao-AILab/flash-attention issue 416,
 * gpu-mode/ring-attention issue 10). On Hopper, Transformer Engine calls cuDNN's asynchronous kernels: forward about
 * 600 instead of 400 TFLOP/s, and backward 450 instead of 300 (arXiv 2407.08608). */
double rt_framework_attention(const rt_configuration *configuration, bool is_forward, double causal)
{
    enum { FLASH_2 = 202 };
    const mdot_configuration *c = &configuration->c;
    double capability = configuration->gpu.compute_capability;
    if (c->attention != MDOT_ATTENTION_FLASH || rt_gpu_is_from_amd(&configuration->gpu)) return 1;
    if (capability >= RT_HOPPER_CAPABILITY) return rt_framework_is_engine(c) ? 2 / 3.0 : 1;
    bool skips = capability >= 8 && rt_is_half(c->precision) && (c->torch == 0 || c->torch >= FLASH_2);
    return skips ? 1 - causal * (is_forward ? 0.3 : 0.4) : 1;
}

double rt_framework_waited_sums(const mdot_configuration *c)
{
    return c->sequence_parallel != 0 && rt_framework_is_engine(c) ? 0.5 : 1;
}

double rt_framework_fused(const mdot_configuration *c)
{
    return c->compiled != 0 ? 1 : frameworks[framework_of(c)].fused;
}

/* Transformer Engine's kernel reads a tensor once, with the largest element of earlier steps or of the kernel before,
 * and writes the cast and its transpose. Compiled code reads the tensor for its largest element, unless groups of 32
 * have their own, and reads it again to write the cast. Scales of rows need casts along rows and along columns, and
 * slower matmuls, which together cost as if a cast moved 10 bytes: torchtitan's Llama 3 8B on eight H100 then has 1.12
 * of bf16's tokens a second (measured 1.11; with a scale of the tensor 1.26 and 1.25). Otherwise abs, max, the product
 * with the scale, the clamp and the cast are kernels of their own; the last three work in fp32. */
double rt_framework_cast_bytes(const mdot_configuration *c)
{
    if (rt_framework_is_engine(c)) return 4;
    if (c->compiled == 0) return 25;
    return c->precision == MDOT_PRECISION_FP8_ROWWISE ? 10 : c->precision == MDOT_PRECISION_FP8 ? 5 : 3;
}
