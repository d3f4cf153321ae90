/* cpu_attention.h — declarations shared by the two forms of the attention kernel. cpu_attention.c iterates over
 * batches and heads and selects the form:
 *
 *   cpu_attention_stream.c  streams over keys with queries in the lanes: any size
 *   cpu_attention_lanes.c   its transpositions between rows in memory and lanes
 *   cpu_attention_small.c   few queries and keys, channels in the lanes, all in registers
 *   cpu_attention_bf16.c   bf16 pairs for the stream: queries, keys and values
 *   cpu_attention_amx.c     the stream's products with matrix tiles
 *   cpu_attention_scores.c                scores and masks, common to both forms
 */
#ifndef CG_CPU_ATTENTION_H
#define CG_CPU_ATTENTION_H

#include "codegen/cpu/bf16.h"

/* One batch and head: pointers to position 0; strides between positions, in elements. */
typedef struct attention_head {
    const pl_plan *plan;
    const pl_attention *k;
    bool pairs;                 /* use bf16 dot products: over channels for scores, over keys for contexts */
    bool tiles;                 /* compute them with matrix tiles */
    LLVMValueRef queries, keys; /* counts */
    cg_range share;             /* range of queries that the call computes; whole blocks, except at the last query */
    LLVMValueRef q, key, value, out;
    LLVMValueRef q_stride, key_stride, value_stride, out_stride;
    LLVMValueRef mask, mask_stride; /* stride between queries; unset if there is no mask */
} attention_head;

/* Scores and masks are in base two: log2(e) is folded into the queries' scale and into the mask. */
extern const double cg_log2_e;

/* Initial value of the running maximum: below every score. */
extern const double cg_no_maximum;

/* A mask value in base-two scores. Masks of about -FLT_MAX stay finite, so that a row of only such masks is an
 * average, as its definition requires. -inf still excludes the key. */
LLVMValueRef cg_scale_mask(cg_emitter *e, LLVMValueRef value);

/* True if scores need more than products plus masks: they are capped, or replaced at some of the mask's elements. */
bool cg_scores_are_finished(const pl_attention *k);
/* Such a score, from its product and the mask's element returned by cg_scale_mask (NULL: no mask). */
LLVMValueRef cg_finish_score(cg_emitter *e, const pl_attention *k, LLVMValueRef product, LLVMValueRef mask);

void cg_attention_stream(cg_emitter *e, const attention_head *head, LLVMValueRef scratch);
/* Queries in its widest block: the unit of a call's share. */
int64_t cg_attention_stream_grain(const cg_cpu_target *target);
int64_t cg_attention_stream_scratch_bytes(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target);
bool cg_attention_is_half(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target);

/* cpu_attention_bf16.c. Scratch consists of words, each a pair. Pointers are as in the stream. */

/* `count` pairs of a query's channels, from pair `pair` on, as bits in f32. */
LLVMValueRef cg_query_bf16(cg_emitter *e, const attention_head *head, LLVMValueRef row, LLVMValueRef pair, int count);
/* Rows first_key … of the keys as rows of bfloat16: in place or, after rounding, in `to`. */
typedef struct cg_key_rows {
    LLVMValueRef first, stride; /* in bfloat16 elements */
} cg_key_rows;
cg_key_rows cg_keys_in_half(cg_emitter *e, const attention_head *head, LLVMValueRef first_key, LLVMValueRef key_count,
                            LLVMValueRef to);
bool cg_copies_keys(const cg_cpu_target *target, const pl_plan *plan, const pl_attention *k);
/* Stores the values of keys 2 i and 2 i + 1, interleaved by channel, in row i of `to`; zero for a key after the
 * last. */
void cg_pair_values(cg_emitter *e, const attention_head *head, LLVMValueRef first_key, LLVMValueRef key_count,
                    LLVMValueRef to);
/* Sixteen channels of a key's value in bfloat16, each in the low half of a word. */
LLVMValueRef cg_value_words(cg_emitter *e, const attention_head *head, LLVMValueRef key, LLVMValueRef channel);
/* Packs two vectors of softmax weights, which are finite and non-negative, into one of pairs. */
LLVMValueRef cg_pair_of_weights(cg_emitter *e, LLVMValueRef low, LLVMValueRef high);

/* cpu_attention_amx.c. Keys and channels are processed in steps: the number that fits a tile. */
enum { CG_AMX_STEP = 32 };

typedef struct cg_amx_head { /* a head's packed keys and values, in scratch */
    LLVMValueRef keys;       /* one row per key, padded to steps of channels */
    int64_t key_bytes;       /* bytes per row */
    LLVMValueRef values;     /* one row per channel, padded to steps of keys; zeros after the last key */
    LLVMValueRef value_bytes;
} cg_amx_head;
int64_t cg_amx_head_bytes(const pl_plan *plan, const pl_attention *k);
cg_amx_head cg_amx_pack_head(cg_emitter *e, const attention_head *head, LLVMValueRef to);

typedef struct cg_amx_block { /* a block of keys and queries; matrices in scratch have rows of `width` words */
    const cg_amx_head *head;
    int width; /* number of queries */
    int64_t channels;
    LLVMValueRef first_key, key_count; /* first_key is a multiple of a step */
    LLVMValueRef q_turned;             /* pairs of channels, in steps */
    LLVMValueRef weights, context;
} cg_amx_block;
/* weights[key, query] = dot product of key and query, for steps of keys. */
void cg_amx_scores(cg_emitter *e, const cg_amx_block *block);
/* context[channel, query] += the channel's values times weights, which are now pairs; in steps of keys. */
void cg_amx_contexts(cg_emitter *e, const cg_amx_block *block);

bool cg_attention_is_small(const pl_attention *k, const cg_cpu_target *target);
void cg_attention_small(cg_emitter *e, const attention_head *head);

#endif
