/* cpu_attention_stream.h — declarations shared by the files of streaming attention: one head's state
 * (cpu_attention_stream.c), and the transpositions between rows in memory and lanes (cpu_attention_lanes.c). */
#ifndef CG_CPU_ATTENTION_STREAM_H
#define CG_CPU_ATTENTION_STREAM_H

#include "codegen/cpu/cpu_attention.h"
#include "codegen/cpu/register_tile.h"

typedef struct cg_stream {
    const attention_head *head;
    int vectors; /* vectors of a block of queries */
    int64_t width;
    LLVMValueRef first_query, last_query; /* first query of the block; last query of all */
    LLVMValueRef q_turned;                /* scratch: dim rows of `width`, or half as many rows of pairs */
    int64_t block;                        /* keys per block: KEYS or KEYS_BY_AMX */
    LLVMValueRef weights;                 /* scratch: `block` rows; first the scores, then the weights */
    LLVMValueRef mask;                    /* scratch: as many rows of initial scores; shares `weights` except with
                                           * AMX */
    LLVMValueRef context;                 /* scratch: value_dim rows */
    LLVMValueRef keys_copy, value_pairs;  /* scratch, in pairs: cg_keys_in_half, cg_pair_values */
    cg_key_rows keys;                     /* keys of the block, as pairs */
    cg_amx_head packed;                   /* scratch: packed keys and values of the head */

    LLVMValueRef first_key, key_count; /* of the block of keys */
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

/* cpu_attention_lanes.c. Stores a block of queries as columns of q_turned; scaled, except as pairs. */
void cg_load_queries(cg_emitter *e, const cg_stream *s);
/* Stores contexts times `factors` in the queries' rows of the result. `factors` has a vector per group of queries,
 * in memory. */
void cg_store_context(cg_emitter *e, const cg_stream *s, LLVMValueRef factors);
/* Fills s->mask with the mask of the block, as [key, query]: the initial values of the scores. */
void cg_load_mask(cg_emitter *e, const cg_stream *s);

#endif
