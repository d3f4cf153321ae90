/* bf16.h — bfloat16 in CPU kernels: the buffers stored in it, conversions, and bf16 dot products. */
#ifndef CG_CPU_BF16_H
#define CG_CPU_BF16_H

#include "codegen/cpu/emit.h"

/* Element type of a buffer in memory: BF16 if the plan keeps it in 16 bits and the target's kernels read that,
 * otherwise the buffer's own type. */
mdot_dtype cg_stored_dtype(const cg_cpu_target *target, const pl_buffer *buffer);

/* True if a kernel rounds both factors of its products to 16 bits on the target. */
bool cg_multiplies_half(const cg_cpu_target *target, const pl_plan *plan, const pl_kernel *kernel);

/* Elements of an f32 buffer in either stored type: the type, and loads and stores of `lanes` elements. */
LLVMTypeRef cg_stored_type(cg_emitter *e, const pl_plan *plan, int buffer);
LLVMValueRef cg_load_elements(cg_emitter *e, const pl_plan *plan, int buffer, LLVMValueRef address, int lanes);
void cg_store_elements(cg_emitter *e, const pl_plan *plan, int buffer, LLVMValueRef value, LLVMValueRef address);

/* Converts f32 to bfloat16 in memory (i16), scalar or vector; rounds to nearest, half to even. */
LLVMValueRef cg_narrow(cg_emitter *e, LLVMValueRef value);

/* Vectors of pairs: one i32 per lane, with the first element of the pair in the low half. The results are f32. */
LLVMValueRef cg_low_of_bf16(cg_emitter *e, LLVMValueRef pairs);
LLVMValueRef cg_high_of_bf16(cg_emitter *e, LLVMValueRef pairs);
/* acc + high(a) * high(b) + low(a) * low(b), lane by lane, acc in f32. */
LLVMValueRef cg_bf16_dot(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef acc);

#endif
