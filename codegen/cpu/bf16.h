/* bf16.h — bfloat16 in CPU kernels: what of a plan is kept in it, and how it is made, widened and multiplied. */
#ifndef CG_CPU_BF16_H
#define CG_CPU_BF16_H

#include "codegen/cpu/emit.h"

/* The type of a buffer's elements in memory: its own or, where the plan keeps it in 16 bits and the target's kernels
 * take it so, BF16. */
mdot_dtype cg_stored_dtype(const cg_cpu_target *target, const pl_buffer *buffer);

/* Whether a kernel rounds both factors of its products to 16 bits there. */
bool cg_multiplies_half(const cg_cpu_target *target, const pl_plan *plan, const pl_kernel *kernel);

/* Elements of an f32 buffer, whichever of the two they are in memory: where one lies, and `lanes` from there on. */
LLVMTypeRef cg_stored_type(cg_emitter *e, const pl_plan *plan, int buffer);
LLVMValueRef cg_load_elements(cg_emitter *e, const pl_plan *plan, int buffer, LLVMValueRef address, int lanes);
void cg_store_elements(cg_emitter *e, const pl_plan *plan, int buffer, LLVMValueRef value, LLVMValueRef address);

/* Between f32 and bfloat16 as memory holds it (i16), scalar or vector: to the nearest, half to even. */
LLVMValueRef cg_narrow(cg_emitter *e, LLVMValueRef value);
LLVMValueRef cg_widen(cg_emitter *e, LLVMValueRef stored);

/* Vectors of pairs: an i32 a lane, the first of the pair in its low half. */
LLVMValueRef cg_low_of_bf16(cg_emitter *e, LLVMValueRef pairs); /* f32 */
LLVMValueRef cg_high_of_bf16(cg_emitter *e, LLVMValueRef pairs);
/* acc + high(a) * high(b) + low(a) * low(b), lane by lane, acc in f32. */
LLVMValueRef cg_bf16_dot(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef acc);

#endif
