/* gpu_rates.c — a GPU's rates, from spec values.
 *
 * Matmuls run on tensor cores at the precision's rate. All other operators, and convolutions with one channel per
 * group, run outside them. PyTorch's default computes only convolutions in TF32. bf16 has fp16's rate from compute
 * capability 8.0 on, and the fp32 rate before. FP8 applies to matmuls by parameters with sides in multiples of 16.
 * Under autocast, fp32 tensors are widened and narrowed again, which takes twice fp32's bytes. */
#include "runtime/perf/resolved_configuration.h"

#define FLOPS_PER_MS 1e9          /* FLOPs/ms of 1 TFLOPS */
#define FIRST_TF32_CAPABILITY 8.0 /* tensor cores have TF32 and bf16 from Ampere on */
/* Before Blackwell, whose tensor cores apply scales of blocks, CUDA cores add up the blocks' products: a Mixtral layer
 * on eight H100 takes .85 to .88 of bf16's time (Megatron-LM, tests of MoE layers, December 2025). */
#define BLOCKWISE_RATE 0.625

rt_rates rt_rates_of(const rt_configuration *configuration)
{
    const mdot_gpu *gpu = &configuration->gpu;
    bool has_tf32 = gpu->compute_capability >= FIRST_TF32_CAPABILITY;
    double matmul = gpu->fp32_tflops, convolution = matmul;
    switch (configuration->c.precision) {
    case MDOT_PRECISION_FP32: break;
    case MDOT_PRECISION_TF32: matmul = convolution = has_tf32 ? gpu->tf32_tflops : gpu->fp32_tflops; break;
    case MDOT_PRECISION_PYTORCH: convolution = has_tf32 ? gpu->tf32_tflops : gpu->fp32_tflops; break;
    case MDOT_PRECISION_AMP:
    case MDOT_PRECISION_MIXED_FP16: matmul = convolution = gpu->fp16_tflops; break;
    case MDOT_PRECISION_AMP_BF16:
    case MDOT_PRECISION_BF16:
    case MDOT_PRECISION_MIXED_BF16:
    case MDOT_PRECISION_FP8:
    case MDOT_PRECISION_FP8_ROWWISE:
    case MDOT_PRECISION_FP8_BLOCKWISE:
    case MDOT_PRECISION_MXFP8: matmul = convolution = has_tf32 ? gpu->fp16_tflops : gpu->fp32_tflops; break;
    }
    double linear = rt_is_fp8(configuration->c.precision) ? gpu->fp8_tflops : matmul;
    if (configuration->c.precision == MDOT_PRECISION_FP8_BLOCKWISE && gpu->compute_capability < RT_BLACKWELL_CAPABILITY)
        linear *= BLOCKWISE_RATE;
    bool half = rt_is_half(configuration->c.precision), autocast = rt_is_autocast(configuration->c.precision);
    return (rt_rates){.ms_per_flop = {[RT_RATE_VECTOR] = 1 / (gpu->fp32_tflops * FLOPS_PER_MS),
                                      [RT_RATE_MATMUL] = 1 / (matmul * FLOPS_PER_MS),
                                      [RT_RATE_LINEAR] = 1 / (linear * FLOPS_PER_MS),
                                      [RT_RATE_CONVOLUTION] = 1 / (convolution * FLOPS_PER_MS)},
                      .ms_per_byte = 1 / (gpu->memory_gbps * RT_BYTES_PER_MS),
                      .half_byte_ratio = half ? 0.5 : 1,
                      .fp32_byte_ratio = autocast ? 2
                                         : half   ? 0.5
                                                  : 1};
}
