/* cpu_stream_state.h — the state of streaming attention while the code of one head is emitted. */
#ifndef CG_CPU_STREAM_STATE_H
#define CG_CPU_STREAM_STATE_H

#include "codegen/cpu/cpu_attention_amx.h"
#include "codegen/cpu/cpu_attention_bf16.h"
#include "codegen/cpu/cpu_attention_scores.h"
#include "codegen/cpu/register_tile.h"

typedef struct cg_stream {
    const cg_attention_head *head;
    int vectors; /* vectors of a block of queries */
    int64_t width;
    LLVMValueRef first_query, last_query; /* first query of the block; last query of all */
    LLVMValueRef q_transposed;            /* scratch: dim rows of `width`, or half as many rows of pairs */
    int64_t block;                        /* keys per block: KEYS or KEYS_BY_AMX */
    LLVMValueRef weights;                 /* scratch: `block` rows; first the scores, then the weights */
    LLVMValueRef mask;                    /* scratch: as many rows of initial scores; shares `weights` except with
                                           * AMX */
    LLVMValueRef context;                 /* scratch: value_dim rows */
    LLVMValueRef keys_copy, value_pairs;  /* scratch, in pairs: cg_bf16_keys, cg_interleave_values */
    cg_key_rows keys;                     /* keys of the block in bf16 */
    cg_amx_head packed;                   /* scratch: packed keys and values of the head */

    LLVMValueRef first_key, key_count; /* of the block of keys */
    LLVMValueRef key_mask;             /* the mask of the current key, if it is in a register; otherwise NULL */
    LLVMValueRef maximum[CG_MAX_TILE_VECTORS], rescale[CG_MAX_TILE_VECTORS];
} cg_stream;

static inline LLVMTypeRef cg_lanes_type(cg_emitter *e)
{
    return cg_vector(e, e->f32, e->target->lanes);
}

static inline unsigned cg_lanes_bytes(const cg_emitter *e)
{
    return 4 * (unsigned)e->target->lanes;
}

/* Scale of scores in base two. */
static inline LLVMValueRef cg_stream_scale(cg_emitter *e, const cg_stream *s)
{
    return cg_const(e, cg_lanes_type(e), s->head->k->scale * cg_log2_e);
}

#endif
