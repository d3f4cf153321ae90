/* cpu_attention.h — one head of attention while its code is emitted, for both forms of the kernel. cpu_attention.c
 * iterates over batches and heads and selects the form:
 *
 *   cpu_attention_stream.c  streams over keys with queries in the lanes: any size
 *   cpu_attention_lanes.c   its transpositions between rows in memory and lanes
 *   cpu_attention_small.c   few queries and keys, channels in the lanes, all in registers
 *   cpu_attention_bf16.c    bf16 pairs for the stream: queries, keys and values
 *   cpu_attention_amx.c     the stream's products with matrix tiles
 *   cpu_attention_scores.c  scores and masks, common to both forms
 */
#pragma once

#include "codegen/cpu/emit.h"
#include "codegen/cpu/tiles.h"
#include "plan/plan.h"

/* One batch and head: pointers to position 0; strides between positions, in elements. */
typedef struct cg_attention_head {
    const pl_plan *plan;
    const pl_attention *k;
    bool use_bf16_dot;          /* use bf16 dot products: over channels for scores, over keys for contexts */
    bool tiles;                 /* compute them with matrix tiles */
    LLVMValueRef queries, keys; /* counts */
    cg_range slice;             /* the call's query range; whole blocks, except at the last query */
    LLVMValueRef q, key, value, out;
    LLVMValueRef q_stride, key_stride, value_stride, out_stride;
    LLVMValueRef mask[PL_MAX_MASKS], mask_stride[PL_MAX_MASKS]; /* stride between queries */
} cg_attention_head;

/* ---- cpu_attention_scores.c: scores and masks, common to both forms of attention --------------------------------- */

/* The unit of a score, as a factor in its scale. Without a mask, scores are in base two: the factor is log2(e). Scores
 * beside a mask are the model's: the dot product is complete and scaled before the mask's element is added in f32, so
 * that a row whose keys are all masked by -1e9 gets the weights of the rounded sums, as in every implementation. */
double cg_score_unit(const pl_attention *k);

/* Initial value of the running maximum: below every score. */
extern const double cg_no_maximum;

/* A mask element in base-two scores. Masks of about -FLT_MAX stay finite; -inf and NaN stay as they are. */
LLVMValueRef cg_scale_mask(cg_emitter *e, LLVMValueRef value);

/* Caps a scaled score, and adds each mask's element, or replaces the score by it where the mask requires that. */
LLVMValueRef cg_finish_score(cg_emitter *e, const pl_attention *k, LLVMValueRef score, const LLVMValueRef *mask);
/* e^difference in the scores' unit, for a score minus the maximum. */
LLVMValueRef cg_softmax_power(cg_emitter *e, const pl_attention *k, LLVMValueRef difference);

/* A query's context factor, given the weight sum. If all keys are masked, it is 0, or NaN if a score is NaN. Without a
 * mask, a query with all scores -inf has the factor NaN. */
LLVMValueRef cg_context_factor(cg_emitter *e, const pl_attention *k, LLVMValueRef sum);

/* Are the products of the kernel's attention computed from 16-bit factors on the target? */
bool cg_attention_uses_bf16(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target);

/* ---- cpu_attention_bf16.c: bf16 pairs for streaming attention. Scratch consists of words, each a pair. Pointers are
 * as in the stream. */

/* `count` pairs of a query's channels, from pair `pair` on, as bits in f32. */
LLVMValueRef cg_query_bf16(cg_emitter *e, const cg_attention_head *head, LLVMValueRef row, LLVMValueRef pair,
                           int count);
/* Key rows from first_key on, in bfloat16: in place or, after rounding, in `to`. */
typedef struct cg_key_rows {
    LLVMValueRef first, stride; /* in bfloat16 elements */
} cg_key_rows;
cg_key_rows cg_bf16_keys(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_key, LLVMValueRef key_count,
                         LLVMValueRef to);
/* Stores the values of keys 2 i and 2 i + 1, interleaved by channel, in row i of `to`; zero for a key after the
 * last. */
void cg_interleave_values(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_key, LLVMValueRef key_count,
                          LLVMValueRef to);
/* Sixteen channels from a key's value in bfloat16, each in a word's low half. */
LLVMValueRef cg_value_bf16(cg_emitter *e, const cg_attention_head *head, LLVMValueRef key, LLVMValueRef channel);
/* Packs two finite, non-negative softmax weight vectors into one with pairs. */
LLVMValueRef cg_interleave_weights(cg_emitter *e, LLVMValueRef low, LLVMValueRef high);
/* The same by truncation, for results of cg_exp2_before_truncation: the weight represented by bf16, and a pair of
 * them. */
LLVMValueRef cg_truncate_weight(cg_emitter *e, LLVMValueRef weight);
LLVMValueRef cg_pair_weights(cg_emitter *e, LLVMValueRef low, LLVMValueRef high);

/* ---- cpu_attention_amx.c: the matmuls of streaming attention with matrix tiles ----------------------------------- */

/* Keys and channels are processed in steps: the number that fits a tile. */
enum { CG_AMX_STEP = 32 };

typedef struct cg_amx_head { /* a head's packed keys and values, in scratch */
    LLVMValueRef keys;       /* one row per key, padded to steps of channels */
    int64_t key_bytes;       /* bytes per row */
    LLVMValueRef values;     /* one row per channel, padded to steps of keys; zeros after the last key */
    LLVMValueRef value_bytes;
    LLVMValueRef end; /* behind the keys: memory whose offset depends on the length */
} cg_amx_head;
int64_t cg_amx_head_bytes(const pl_plan *plan, const pl_attention *k);
cg_amx_head cg_amx_pack_head(cg_emitter *e, const cg_attention_head *head, LLVMValueRef to);

typedef struct cg_amx_block { /* a block of keys and queries; scratch matrices have `width` words per row */
    const cg_amx_head *head;
    int width; /* query count */
    int64_t channels;
    LLVMValueRef first_key, key_count; /* first_key is a multiple of a step */
    LLVMValueRef q_transposed;         /* pairs of channels, in steps */
    LLVMValueRef weights, context;
} cg_amx_block;
/* weights[key, query] = key · query, for steps of keys. */
void cg_amx_scores(cg_emitter *e, const cg_amx_block *block);
/* context[channel, query] += values times weights, which are now pairs; in steps of keys. */
void cg_amx_contexts(cg_emitter *e, const cg_amx_block *block);

/* ---- cpu_attention_small.c: attention of one head with few queries and keys, all in registers -------------------- */

bool cg_attention_is_small(const pl_attention *k, const cg_cpu_target *target);
void cg_attention_small(cg_emitter *e, const cg_attention_head *head);

/* ---- the state of streaming attention while the code of one head is emitted -------------------------------------- */

typedef struct cg_stream {
    const cg_attention_head *head;
    int vectors; /* vectors per query block */
    int64_t width;
    LLVMValueRef first_query, last_query; /* the block's first query; the last query overall */
    LLVMValueRef q_transposed;            /* scratch: dim rows of `width`, or half as many pair rows */
    int64_t block;                        /* keys per block: KEYS or KEYS_BY_AMX */
    LLVMValueRef weights;                 /* scratch: `block` rows; first the scores, then the weights */
    LLVMValueRef mask[PL_MAX_MASKS]; /* scratch: as many rows of masks; the first shares `weights` except with AMX */
    double unit;                     /* cg_score_unit; log2(e) in the pipeline */
    LLVMValueRef context;            /* scratch: value_dim rows */
    LLVMValueRef keys_copy, value_pairs; /* scratch, in pairs: cg_bf16_keys, cg_interleave_values */
    cg_key_rows keys;                    /* keys of the block in bf16 */
    cg_amx_head packed;                  /* scratch: packed keys and values of the head */

    LLVMValueRef first_key, key_count;   /* of the key block */
    LLVMValueRef key_mask[PL_MAX_MASKS]; /* the masks of the current key, if they are in registers; otherwise NULL */
    LLVMValueRef maximum[CG_MAX_TILE_VECTORS], rescale[CG_MAX_TILE_VECTORS];
} cg_stream;

static inline LLVMTypeRef cg_lanes_type(cg_emitter *e) { return cg_vector(e, e->f32, e->target->lanes); }

static inline unsigned cg_lanes_bytes(const cg_emitter *e) { return 4 * (unsigned)e->target->lanes; }

/* Scale of the scores in their unit. */
static inline LLVMValueRef cg_stream_scale(cg_emitter *e, const cg_stream *s)
{
    return cg_const(e, cg_lanes_type(e), s->head->k->scale * s->unit);
}

/* ---- cpu_attention_lanes.c: transpositions of streaming attention between rows in memory and lanes --------------- */

/* Stores a query block as columns of q_transposed; scaled, except as pairs. */
void cg_load_queries(cg_emitter *e, const cg_stream *s);
/* Stores contexts times `factors` in the queries' result rows. `factors` has a vector per query group, in memory. */
void cg_store_context(cg_emitter *e, const cg_stream *s, LLVMValueRef factors);
/* Fills s->mask[i] with the block's mask, as [key, query], in the scores' unit. */
void cg_load_mask(cg_emitter *e, const cg_stream *s, int i);
/* True if each query has a separate mask i. */
bool cg_mask_varies_by_query(const pl_attention *k, int i);
/* Keys visible to the last of `width` queries. Later keys are skipped. With fewer keys than queries it may be
 * negative. */
LLVMValueRef cg_visible_keys(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_query, int64_t width);

/* ---- cpu_attention_pipeline.c: streaming attention with matrix tiles as one pipeline, without maxima ------------- */

/* True if the pipeline computes the kernel: its contexts fit the tiles, and a score is a product plus one mask. */
bool cg_attention_is_pipelined(const pl_attention *k);
/* Scratch. The first part is of fixed size, and free again after the pipeline has ended. The second one, behind the
 * packed head, grows with the length. It has masks and the result. Buckets share the code, so only its size may depend
 * on the plan's length. */
int64_t cg_pipeline_bytes(const pl_attention *k);
int64_t cg_pipeline_length_bytes(const pl_plan *plan, const pl_attention *k);

/* Computes the slice's queries in groups of CG_AMX_ROWS. Returns the address of an i32 per group: nonzero if the group
 * must be computed again, with maxima. */
LLVMValueRef cg_attention_pipeline(cg_emitter *e, const cg_attention_head *head, const cg_amx_head *packed,
                                   LLVMValueRef scratch);
/* A query's group, counted from the slice's first. */
LLVMValueRef cg_pipeline_group(cg_emitter *e, const cg_attention_head *head, LLVMValueRef query);

/* ---- cpu_attention_stream.c: attention of one head, streaming over keys: any size -------------------------------- */

void cg_attention_stream(cg_emitter *e, const cg_attention_head *head, LLVMValueRef scratch);
/* Queries in the widest block: the unit of a call's slice. */
int64_t cg_attention_stream_grain(const cg_cpu_target *target);
int64_t cg_attention_stream_scratch_bytes(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target);
