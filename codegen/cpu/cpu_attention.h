/* cpu_attention.h — what the two forms of the attention kernel share. cpu_attention.c walks batches and heads and picks
 * the form:
 *
 *   cpu_attention_stream.c  streams over keys with queries in the lanes: any size
 *   cpu_attention_lanes.c   its way from rows of memory to lanes and back
 *   cpu_attention_small.c   a handful of queries and keys, channels in the lanes, all in registers
 *   cpu_attention_bf16.c   what the stream multiplies as pairs of bfloat16: queries, keys and values as such
 *   cpu_attention_amx.c     its products by matrix tiles
 *   cpu_attention_scores.c                scores and masks, as both compute them
 */
#ifndef CG_CPU_ATTENTION_H
#define CG_CPU_ATTENTION_H

#include "codegen/cpu/bf16.h"

/* One batch and head: pointers to position 0, strides from position to position in elements. */
typedef struct attention_head {
    const pl_plan *plan;
    const pl_attention *k;
    bool pairs;                 /* of bfloat16 are multiplied: channels for scores, keys for contexts … */
    bool tiles;                 /* … by matrix tiles */
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

/* Whether scores are more than products on top of masks: capped, or replaced by some of the mask's elements. */
bool cg_scores_are_finished(const pl_attention *k);
/* Such a score from its product, and the mask's element that cg_scale_mask gave (NULL: no mask). */
LLVMValueRef cg_finish_score(cg_emitter *e, const pl_attention *k, LLVMValueRef product, LLVMValueRef mask);

void cg_attention_stream(cg_emitter *e, const attention_head *head, LLVMValueRef scratch);
/* Queries of its widest block: a share's grain. */
int64_t cg_attention_stream_grain(const cg_cpu_target *target);
int64_t cg_attention_stream_scratch_bytes(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target);
bool cg_attention_is_half(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target);

/* cpu_attention_bf16.c. Scratch is of words, each a pair; pointers as those of the stream. */

/* `count` pairs of a query's channels, from pair `pair` on, as bits in f32. */
LLVMValueRef cg_query_bf16(cg_emitter *e, const attention_head *head, LLVMValueRef row, LLVMValueRef pair, int count);
/* Rows first_key … of the keys as rows of bfloat16: they themselves or, rounded, in `to`. */
typedef struct cg_key_rows {
    LLVMValueRef first, stride; /* in bfloat16 */
} cg_key_rows;
cg_key_rows cg_keys_in_half(cg_emitter *e, const attention_head *head, LLVMValueRef first_key, LLVMValueRef key_count,
                            LLVMValueRef to);
bool cg_copies_keys(const cg_cpu_target *target, const pl_plan *plan, const pl_attention *k);
/* The values of keys 2 i and 2 i + 1, channel by channel, in row i of `to`; zero for a key beyond the last. */
void cg_pair_values(cg_emitter *e, const attention_head *head, LLVMValueRef first_key, LLVMValueRef key_count,
                    LLVMValueRef to);
/* Sixteen channels of a key's value in bfloat16, each in the low half of a word. */
LLVMValueRef cg_value_words(cg_emitter *e, const attention_head *head, LLVMValueRef key, LLVMValueRef channel);
/* Two vectors of softmax weights, which are finite and not negative, as one of pairs. */
LLVMValueRef cg_pair_of_weights(cg_emitter *e, LLVMValueRef low, LLVMValueRef high);

/* cpu_attention_amx.c. Keys and channels come in steps: what a tile holds of them. */
enum { CG_AMX_STEP = 32 };

typedef struct cg_amx_head { /* a head's keys and values, in scratch */
    LLVMValueRef keys;       /* a row a key, of steps of channels */
    int64_t key_bytes;       /* of a row */
    LLVMValueRef values;     /* a row a channel, of steps of keys; zeros beyond the last key */
    LLVMValueRef value_bytes;
} cg_amx_head;
int64_t cg_amx_head_bytes(const pl_plan *plan, const pl_attention *k);
cg_amx_head cg_amx_pack_head(cg_emitter *e, const attention_head *head, LLVMValueRef to);

typedef struct cg_amx_block { /* of keys, and of queries; matrices in scratch are of rows of `width` words */
    const cg_amx_head *head;
    int width; /* queries */
    int64_t channels;
    LLVMValueRef first_key, key_count; /* the first at a step */
    LLVMValueRef q_turned;             /* pairs of channels, in steps */
    LLVMValueRef weights, context;
} cg_amx_block;
/* weights[key, query] = the product of key and query, for steps of keys. */
void cg_amx_scores(cg_emitter *e, const cg_amx_block *block);
/* context[channel, query] += the channel's values times weights, which are pairs now; in steps of keys. */
void cg_amx_contexts(cg_emitter *e, const cg_amx_block *block);

bool cg_attention_is_small(const pl_attention *k, const cg_cpu_target *target);
void cg_attention_small(cg_emitter *e, const attention_head *head);

#endif
