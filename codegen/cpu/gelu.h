/* gelu.h — GELU in approximations of its own, without calls outside the module. */
#ifndef CG_CPU_GELU_H
#define CG_CPU_GELU_H

#include "codegen/cpu/emit.h"

/* For a scalar or vector of f32 or f64. Each definition states its error. */
LLVMValueRef cg_gelu(cg_emitter *e, LLVMValueRef x);
LLVMValueRef cg_gelu_tanh(cg_emitter *e, LLVMValueRef x);

#endif
