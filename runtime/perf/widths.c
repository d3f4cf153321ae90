/* widths.c — bytes per element of the tensors that belong to parameters.
 *
 *   precision            weights  master  compute  gradients  reduced  state
 *   fp32, tf32, amp      4        -       4        4          4        4
 *   bf16                 2        -       2        2          2        2       also amp over a program in bf16
 *   mixed, ZeRO 0 to 2   2        4       2        2          2        4       DeepSpeed; Megatron with fp32 gradients
 *   mixed, ZeRO 3        4        -       2        4          2        4       FSDP: MixedPrecision(param_dtype)
 *
 * fp32 gradients that are summed in half precision are those of DeepSpeed's BF16_Optimizer, which keeps the
 * half-precision ones of each pass, too (peak_memory.c).
 */
#include "runtime/perf/resolved_configuration.h"

enum { FULL_BYTES = 4, HALF_BYTES = 2 };

static double width_of(mdot_number type, double by_default)
{
    return type == MDOT_NUMBER_FP32 ? FULL_BYTES : type == MDOT_NUMBER_HALF ? HALF_BYTES : by_default;
}

rt_widths rt_widths_of(const mdot_configuration *c, bool has_half_weights)
{
    rt_widths w = {FULL_BYTES, 0, FULL_BYTES, FULL_BYTES, FULL_BYTES, FULL_BYTES};
    if (c->precision == MDOT_PRECISION_BF16 || (has_half_weights && rt_is_autocast(c->precision)))
        w = (rt_widths){HALF_BYTES, 0, HALF_BYTES, HALF_BYTES, HALF_BYTES, HALF_BYTES};
    if (rt_is_mixed(c->precision))
        w = c->zero_stage < 3 ? (rt_widths){HALF_BYTES, FULL_BYTES, HALF_BYTES, HALF_BYTES, HALF_BYTES, FULL_BYTES}
                              : (rt_widths){FULL_BYTES, 0, HALF_BYTES, FULL_BYTES, HALF_BYTES, FULL_BYTES};
    w.gradients = width_of(c->gradient_type, w.gradients);
    /* Megatron sums its main gradients as they are. */
    if (c->gradient_type == MDOT_NUMBER_FP32 && c->zero_stage < 3) w.reduced = FULL_BYTES;
    w.reduced = width_of(c->reduce_type, w.reduced);
    return w;
}

/* bitsandbytes. LLM.int8() has an fp32 scale per row of at least 1024 weights. NF4 has an 8-bit scale for 64 weights,
 * and an fp32 scale for 256 of these (QLoRA, section 3: .127 bits per weight). Without double quantisation
 * (bnb_4bit_use_double_quant=False), the scale of 64 weights is fp32. */
#define INT8_BYTES (1 + 4.0 / 1024)
#define NF4_BYTES (0.5 + 1 / 64.0 + 4 / (64.0 * 256))
#define NF4_SINGLE_BYTES (0.5 + 4 / 64.0)

double rt_frozen_width(const mdot_configuration *c, double unchanged)
{
    static const double bytes[] = {
        [MDOT_FROZEN_INT8] = INT8_BYTES, [MDOT_FROZEN_NF4] = NF4_BYTES, [MDOT_FROZEN_NF4_SINGLE] = NF4_SINGLE_BYTES};
    return c->frozen_weights != MDOT_FROZEN_UNCHANGED ? bytes[c->frozen_weights] : unchanged;
}
