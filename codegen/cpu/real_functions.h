/* real_functions.h — functions of real numbers, without calls outside the module. */
#pragma once

#include "codegen/cpu/emit.h"

/* math.c: for scalars or vectors, f32 or f64, without calls outside the module. Each definition states the error. */
cg_unary_fn cg_floor, cg_exp, cg_log, cg_sin, cg_cos, cg_tanh, cg_erf, cg_sigmoid;
extern const double cg_log2_e;
/* 2^x and e^x in f32 for x <= 0, for softmax; at least 2^-100, or NaN. */
cg_unary_fn cg_exp2_negative, cg_exp_negative;
/* f32, any x, for softmax weights in bf16. The result's upper sixteen bits are 2^x with a relative error up to 5.6e-3,
 * including 3.9e-3 from rounding to bf16. 0 for -infinity, infinity for infinity, and NaN for NaN. */
LLVMValueRef cg_exp2_before_truncation(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_pow(cg_emitter *e, LLVMValueRef x, LLVMValueRef y);

/* gelu.c: for scalars or vectors, f32 or f64. Each definition states the error. */
LLVMValueRef cg_gelu(cg_emitter *e, LLVMValueRef x);
/* For a result that the caller rounds to bf16: the absolute error is below 4e-6. On levels without a table look-up,
 * it is cg_gelu. */
LLVMValueRef cg_gelu_to_bf16(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_gelu_tanh(cg_emitter *e, LLVMValueRef x);

/* large_angle.c: exact reduction of angles that are too large for sine and cosine's three parts of π/2. */
typedef struct cg_angle { /* quadrant · π/2 + rest, |rest| <= π/4 */
    LLVMValueRef quadrant, rest;
} cg_angle;

/* Replaces the angle in every finite lane of x (f64, a scalar or a vector) with a magnitude from 2^40 on. There the
 * quadrant is 0 to 3, and the rest has a relative error below 2^-51. Code without such a lane takes one branch. */
void cg_reduce_large_angles(cg_emitter *e, LLVMValueRef x, cg_angle *angle);
