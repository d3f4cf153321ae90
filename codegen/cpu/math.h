/* math.h — functions of real numbers, without calls outside the module. */
#ifndef CG_CPU_MATH_H
#define CG_CPU_MATH_H

#include "codegen/cpu/emit.h"

/* For a scalar or vector of f32 or f64, without calls outside the module. Each definition states its
 * error. */
LLVMValueRef cg_exp(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_exp2_negative(cg_emitter *e, LLVMValueRef x); /* f32, x <= 0, for softmax; at least 2^-100, or NaN */
LLVMValueRef cg_log(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_sin(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_cos(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_tanh(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_erf(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_pow(cg_emitter *e, LLVMValueRef x, LLVMValueRef y);
LLVMValueRef cg_sigmoid(cg_emitter *e, LLVMValueRef x);

#endif
