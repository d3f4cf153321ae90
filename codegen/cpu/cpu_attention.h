/* cpu_attention.h — what the two forms of the attention kernel share. cpu_attention.c walks batches and heads and picks
 * the form:
 *
 *   cpu_attention_stream.c  streams over keys with queries in the lanes: any size
 *   cpu_attention_small.c   a handful of queries and keys, channels in the lanes, all in registers
 *   scores.c                scores and masks, as both compute them
 */
#ifndef CG_CPU_ATTENTION_H
#define CG_CPU_ATTENTION_H

#include "codegen/cpu/emit.h"

/* One batch and head: pointers to position 0, strides from position to position in elements. */
typedef struct attention_head {
    const pl_attention *k;
    LLVMValueRef queries, keys; /* counts */
    cg_range share;             /* of the queries: what the call does; whole blocks but for the last query's */
    LLVMValueRef q, key, value, out;
    LLVMValueRef q_stride, key_stride, value_stride, out_stride;
    LLVMValueRef mask, mask_stride; /* from query to query; unset without a mask */
} attention_head;

/* Scores and masks are in base two: log2(e) is folded into the queries' scale and into the mask. */
extern const double cg_log2_e;

/* The running maximum before any key: below every score. */
extern const double cg_no_maximum;

/* A mask value in base-two scores. Masks of about -FLT_MAX stay finite, so that a row of them alone is an average as
 * its definition says, while -inf keeps its meaning: not this key. */
LLVMValueRef cg_scale_mask(cg_emitter *e, LLVMValueRef value);

void cg_attention_stream(cg_emitter *e, const attention_head *head, LLVMValueRef scratch);
/* Queries of its widest block: a share's grain. */
int64_t cg_attention_stream_grain(const cg_cpu_target *target);
int64_t cg_attention_stream_scratch_bytes(const pl_attention *k, const cg_cpu_target *target);

bool cg_attention_is_small(const pl_attention *k, const cg_cpu_target *target);
void cg_attention_small(cg_emitter *e, const attention_head *head);

#endif
