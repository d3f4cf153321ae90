/* cpu_attention_scores.c — scores for both forms of attention, and when to use bf16 dot products; see
 * cpu_attention.h. */
#include "codegen/cpu/cpu_attention.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"

#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/real_functions.h"

#include <float.h>
#include <math.h>

const double cg_log2_e = 1.4426950408889634;
const double cg_no_maximum = -FLT_MAX;

LLVMValueRef cg_scale_mask(cg_emitter *e, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef never = cg_const(e, type, -INFINITY);
    LLVMValueRef scaled = cg_fmul(e, value, cg_const(e, type, cg_log2_e));
    LLVMValueRef finite = cg_fmax(e, cg_const(e, type, 0.5 * cg_no_maximum), scaled); /* keeps NaN */
    return cg_select(e, LLVMBuildFCmp(e->builder, LLVMRealOEQ, value, never, ""), never, finite);
}

bool cg_scores_start_at_mask(const pl_attention *k)
{
    return k->mask >= 0 && !(k->softcap > 0) && (!(k->replaces < 0) || ir_dim_is(k->mask_query, 0));
}

LLVMValueRef cg_finish_score(cg_emitter *e, const pl_attention *k, LLVMValueRef score, LLVMValueRef mask)
{
    LLVMTypeRef type = LLVMTypeOf(score);
    if (k->softcap > 0) {
        LLVMValueRef part = cg_fmul(e, score, cg_const(e, type, 1 / (k->softcap * cg_log2_e)));
        score = cg_fmul(e, cg_tanh(e, part), cg_const(e, type, k->softcap * cg_log2_e));
    }
    if (mask == NULL) return score;
    if (!cg_scores_start_at_mask(k)) score = cg_fadd(e, score, mask);
    if (!(k->replaces < 0)) return score;
    LLVMValueRef limit = cg_scale_mask(e, cg_const(e, type, k->replaces));
    return cg_select(e, LLVMBuildFCmp(e->builder, LLVMRealOLE, mask, limit, ""), mask, score);
}

LLVMValueRef cg_context_factor(cg_emitter *e, const pl_attention *k, LLVMValueRef maximum, LLVMValueRef sum)
{
    LLVMTypeRef type = LLVMTypeOf(sum);
    LLVMValueRef seen = LLVMBuildFCmp(e->builder, LLVMRealOGT, maximum, cg_const(e, type, cg_no_maximum), "");
    LLVMValueRef zero = cg_const(e, type, 0), unseen = cg_fmul(e, sum, zero);
    if (k->mask < 0 && !k->causal) {
        LLVMValueRef has_keys = LLVMBuildFCmp(e->builder, LLVMRealUNE, sum, zero, "");
        unseen = cg_select(e, has_keys, cg_const(e, type, NAN), zero);
    }
    return cg_select(e, seen, cg_fdiv(e, cg_const(e, type, 1), sum), unseen);
}

bool cg_attention_uses_bf16(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target)
{
    return cg_multiplies_bf16(target, plan, &(pl_kernel){.kind = PL_ATTENTION, .attention = *k});
}
