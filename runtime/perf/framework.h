/* framework.h — the frameworks that launch kernels. */
#pragma once

#include "runtime/job/configuration.h"
#include "runtime/job/gpus.h"

/* Host time of a launch, in microseconds, where the configuration leaves it open. */
double rt_framework_launch_us(const rt_configuration *configuration);
/* Megatron's host time beyond launches of kernels: of a step, and of a micro-step with `expert_blocks` and
 * `attentions` on a GPU. */
double rt_framework_step_ms(const rt_configuration *configuration);
double rt_framework_pass_ms(const rt_configuration *configuration, double expert_blocks, double attentions);
/* Host time of launches. */
double rt_framework_launches_ms(const rt_configuration *configuration, double launches);
/* Host time of kernels that cast operands to FP8. */
double rt_framework_casts_ms(const rt_configuration *configuration, double casts);
/* True if Trainer, with fused kernels or without, recomputes blocks outside of FSDP's modules, by the
 * configuration or by the program. */
bool rt_framework_recomputes_outside(const mdot_configuration *c, bool by_program);
/* True if matmuls and attention are Transformer Engine's. */
bool rt_framework_is_engine(const mdot_configuration *c);
/* Time of fused attention relative to the learned one, forward or backward, if a causal mask covers a part of it. */
double rt_framework_attention(const rt_configuration *configuration, bool is_forward, double causal);
/* The part of tensor parallelism's exchanges that a step waits for. */
double rt_framework_waited_sums(const mdot_configuration *c);
/* Bytes per element of a cast from bf16 to FP8, for a precision with FP8. */
double rt_framework_cast_bytes(const mdot_configuration *c);
/* The part of the traffic that compiled code saves by fusion and that the kernels save, 0 to 1. */
double rt_framework_fused(const mdot_configuration *c);
