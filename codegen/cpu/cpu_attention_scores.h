/* cpu_attention_scores.h — scores and masks, common to both forms of attention. */
#ifndef CG_CPU_ATTENTION_SCORES_H
#define CG_CPU_ATTENTION_SCORES_H

#include "codegen/cpu/cpu_attention_head.h"

/* Scores and masks are in base two: log2(e) is folded into the queries' scale and into the mask. */
extern const double cg_log2_e;

/* Initial value of the running maximum: below every score. */
extern const double cg_no_maximum;

/* A mask value in base-two scores. Masks of about -FLT_MAX stay finite, so that a row of only such masks is an
 * average, as its definition requires. -inf still excludes the key, and NaN stays NaN. */
LLVMValueRef cg_scale_mask(cg_emitter *e, LLVMValueRef value);

/* Are products added to the mask's element? Otherwise cg_finish_score adds it: behind a cap, or where it is read again
 * to replace scores. A mask that is the same for all queries is read once per key, so it is cheaper as the start. */
bool cg_scores_start_at_mask(const pl_attention *k);
/* Caps a scaled score, and replaces it where the mask requires that. `score` includes the mask's element if it starts
 * at it. `mask`: the element returned by cg_scale_mask; NULL: no mask. */
LLVMValueRef cg_finish_score(cg_emitter *e, const pl_attention *k, LLVMValueRef score, LLVMValueRef mask);

/* The factor of a query's context, given the maximum and the sum of its weights. If all keys are masked, it is 0, or
 * NaN if a score is NaN. Without a mask, a query for which all scores are -inf has the factor NaN. */
LLVMValueRef cg_context_factor(cg_emitter *e, const pl_attention *k, LLVMValueRef maximum, LLVMValueRef sum);

/* Are the products of the kernel's attention computed from 16-bit factors on the target? */
bool cg_attention_uses_bf16(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target);

#endif
