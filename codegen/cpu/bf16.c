/* bf16.c — see dot_products.h.
 *
 * vdpbf16ps (Intel SDM volume 2) rounds after each of its two products, the odd elements' first. It treats denormal
 * operands as zero and flushes denormal results to zero. In plain vectors it becomes two fused multiply-adds in that
 * order, which differ from it only in denormals. bfdot (Arm ARM, FEAT_BF16) rounds the sum of the two products to odd
 * and adds it to the accumulator, rounding to odd again; denormals are flushed, too.
 */
#include "codegen/cpu/dot_products.h"

#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/cpu_values.h"
#include "codegen/cpu/emit.h"
#include "plan/kernel_kind.h"

mdot_dtype cg_stored_dtype(const cg_cpu_target *target, const pl_buffer *buffer)
{
    bool narrows =
        buffer->kind == PL_WEIGHT ? target->matmul != CG_MATMUL_F32 : target->matmul > CG_MATMUL_BF16_WEIGHTS;
    return narrows && pl_is_half(buffer) ? MDOT_DTYPE_BF16 : buffer->type.dtype;
}

bool cg_multiplies_bf16(const cg_cpu_target *target, const pl_plan *plan, const pl_kernel *kernel)
{
    return target->matmul > CG_MATMUL_BF16_WEIGHTS && pl_is_matrix(plan, kernel);
}

static bool has_instructions(const cg_emitter *e)
{
    return e->target->matmul >= CG_MATMUL_BF16 && !e->target->use_generic_vectors;
}

LLVMValueRef cg_f32_to_bf16(cg_emitter *e, LLVMValueRef value)
{
    if (!has_instructions(e) || cg_lanes(value) != e->target->lanes) return cg_to_storage(e, value, MDOT_DTYPE_BF16);
    LLVMValueRef narrow = LLVMBuildFPTrunc(e->builder, value, cg_with_element(LLVMTypeOf(value), e->bf16), "");
    return LLVMBuildBitCast(e->builder, narrow, cg_with_element(LLVMTypeOf(value), e->i16), "");
}

LLVMTypeRef cg_stored_type(cg_emitter *e, const pl_plan *plan, int buffer)
{
    return cg_storage_type(e, cg_stored_dtype(e->target, &plan->buffers[buffer]));
}

static bool is_narrow(const cg_emitter *e, const pl_plan *plan, int buffer)
{
    return cg_stored_dtype(e->target, &plan->buffers[buffer]) == MDOT_DTYPE_BF16;
}

LLVMValueRef cg_load_elements(cg_emitter *e, const pl_plan *plan, int buffer, LLVMValueRef address, int lanes)
{
    LLVMValueRef stored = cg_load(e, cg_vector(e, cg_stored_type(e, plan, buffer), lanes), address, 0);
    return is_narrow(e, plan, buffer) ? cg_from_storage(e, stored, MDOT_DTYPE_BF16) : stored;
}

void cg_store_elements(cg_emitter *e, const pl_plan *plan, int buffer, LLVMValueRef value, LLVMValueRef address)
{
    cg_store(e, is_narrow(e, plan, buffer) ? cg_f32_to_bf16(e, value) : value, address, 0);
}

static LLVMValueRef as_f32(cg_emitter *e, LLVMValueRef bits)
{
    return LLVMBuildBitCast(e->builder, bits, cg_with_element(LLVMTypeOf(bits), e->f32), "");
}

LLVMValueRef cg_low_of_bf16(cg_emitter *e, LLVMValueRef pairs)
{
    return as_f32(e, LLVMBuildShl(e->builder, pairs, cg_const_int(LLVMTypeOf(pairs), 16), ""));
}

LLVMValueRef cg_high_of_bf16(cg_emitter *e, LLVMValueRef pairs)
{
    return as_f32(e, LLVMBuildAnd(e->builder, pairs, cg_const_int(LLVMTypeOf(pairs), 0xffff0000), ""));
}

LLVMValueRef cg_bf16_dot(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef acc)
{
    if (has_instructions(e)) {
        LLVMTypeRef halves = cg_vector(e, e->bf16, 2 * e->target->lanes);
        LLVMValueRef args[] = {acc, LLVMBuildBitCast(e->builder, a, halves, ""),
                               LLVMBuildBitCast(e->builder, b, halves, "")};
        if (e->target->machine == &cg_machine_aarch64)
            return cg_intrinsic_overloaded(e, "llvm.aarch64.neon.bfdot", (LLVMTypeRef[]){LLVMTypeOf(acc), halves}, 2,
                                           args, 3);
        return cg_intrinsic(e, "llvm.x86.avx512bf16.dpbf16ps.512", NULL, args, 3);
    }
    LLVMValueRef high_a = cg_high_of_bf16(e, a), high_b = cg_high_of_bf16(e, b);
    acc = cg_fma(e, high_a, high_b, acc);
    LLVMValueRef low_a = cg_low_of_bf16(e, a), low_b = cg_low_of_bf16(e, b);
    return cg_fma(e, low_a, low_b, acc);
}
