/* cpu_attention_scores.c — scores for both forms of attention, and when to use bf16 dot products; see
 * cpu_attention.h. */
#include "codegen/cpu/cpu_attention.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"

#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/real_functions.h"

#include <float.h>
#include <math.h>

const double cg_no_maximum = -FLT_MAX;

double cg_score_unit(const pl_attention *k) { return k->mask_count > 0 ? 1 : cg_log2_e; }

LLVMValueRef cg_scale_mask(cg_emitter *e, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef never = cg_const(e, type, -INFINITY);
    LLVMValueRef scaled = cg_fmul(e, value, cg_const(e, type, cg_log2_e));
    LLVMValueRef finite = cg_fmax(e, cg_const(e, type, 0.5 * cg_no_maximum), scaled); /* keeps NaN */
    return cg_select(e, LLVMBuildFCmp(e->builder, LLVMRealOEQ, value, never, ""), never, finite);
}

LLVMValueRef cg_finish_score(cg_emitter *e, const pl_attention *k, LLVMValueRef score, const LLVMValueRef *mask)
{
    LLVMTypeRef type = LLVMTypeOf(score);
    if (k->softcap > 0) {
        double cap = k->softcap * cg_score_unit(k);
        score = cg_fmul(e, cg_tanh(e, cg_fmul(e, score, cg_const(e, type, 1 / cap))), cg_const(e, type, cap));
    }
    for (int i = 0; i < k->mask_count; i++) {
        score = cg_fadd(e, score, mask[i]);
        if (!(k->replaces[i] < 0)) continue;
        LLVMValueRef limit = cg_const(e, type, k->replaces[i]);
        score = cg_select(e, LLVMBuildFCmp(e->builder, LLVMRealOLE, mask[i], limit, ""), mask[i], score);
    }
    return score;
}

LLVMValueRef cg_softmax_power(cg_emitter *e, const pl_attention *k, LLVMValueRef difference)
{
    return k->mask_count > 0 ? cg_exp_negative(e, difference) : cg_exp2_negative(e, difference);
}

LLVMValueRef cg_context_factor(cg_emitter *e, const pl_attention *k, LLVMValueRef sum)
{
    LLVMTypeRef type = LLVMTypeOf(sum);
    /* The greatest score has the weight 1, and one of -inf at most 2^-100. */
    LLVMValueRef seen = LLVMBuildFCmp(e->builder, LLVMRealOGE, sum, cg_const(e, type, 0.5), "");
    LLVMValueRef zero = cg_const(e, type, 0), unseen = cg_fmul(e, sum, zero);
    if (k->mask_count == 0 && !k->causal) {
        LLVMValueRef has_keys = LLVMBuildFCmp(e->builder, LLVMRealUNE, sum, zero, "");
        unseen = cg_select(e, has_keys, cg_const(e, type, NAN), zero);
    }
    return cg_select(e, seen, cg_fdiv(e, cg_const(e, type, 1), sum), unseen);
}

bool cg_attention_uses_bf16(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target)
{
    return cg_multiplies_bf16(target, plan, &(pl_kernel){.kind = PL_ATTENTION, .attention = *k});
}
