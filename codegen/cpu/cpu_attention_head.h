/* cpu_attention_head.h — one head of attention while its code is emitted, for both forms of the kernel. cpu_attention.c
 * iterates over batches and heads and selects the form:
 *
 *   cpu_attention_stream.c  streams over keys with queries in the lanes: any size
 *   cpu_attention_lanes.c   its transpositions between rows in memory and lanes
 *   cpu_attention_small.c   few queries and keys, channels in the lanes, all in registers
 *   cpu_attention_bf16.c    bf16 pairs for the stream: queries, keys and values
 *   cpu_attention_amx.c     the stream's products with matrix tiles
 *   cpu_attention_scores.c  scores and masks, common to both forms
 */
#ifndef CG_CPU_ATTENTION_HEAD_H
#define CG_CPU_ATTENTION_HEAD_H

#include "codegen/cpu/emit.h"
#include "plan/plan.h"

/* One batch and head: pointers to position 0; strides between positions, in elements. */
typedef struct cg_attention_head {
    const pl_plan *plan;
    const pl_attention *k;
    bool use_bf16_dot;          /* use bf16 dot products: over channels for scores, over keys for contexts */
    bool tiles;                 /* compute them with matrix tiles */
    LLVMValueRef queries, keys; /* counts */
    cg_range slice;             /* range of queries that the call computes; whole blocks, except at the last query */
    LLVMValueRef q, key, value, out;
    LLVMValueRef q_stride, key_stride, value_stride, out_stride;
    LLVMValueRef mask, mask_stride; /* stride between queries; unset if there is no mask */
} cg_attention_head;

#endif
