/* math.h — functions of real numbers, without calls outside the module. */
#ifndef CG_CPU_MATH_H
#define CG_CPU_MATH_H

#include "codegen/cpu/emit.h"

/* For a scalar or vector of f32 or f64, without calls outside the module. Each definition states its
 * error. */
LLVMValueRef cg_exp(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_exp2_negative(cg_emitter *e, LLVMValueRef x); /* f32, x <= 0, for softmax; at least 2^-100, or NaN */
/* f32, any x, for softmax weights that bf16 stores. The upper sixteen bits of the result are 2^x with a relative error
 * of at most 5.6e-3, of which the rounding to bf16 is 3.9e-3. 0 for -infinity, infinity for infinity, and NaN for
 * NaN. */
LLVMValueRef cg_exp2_before_truncation(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_log(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_sin(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_cos(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_tanh(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_erf(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_pow(cg_emitter *e, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cg_sigmoid(cg_emitter *e, LLVMValueRef x);

#endif
