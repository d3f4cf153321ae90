/* cpu_attention_stream.h — what the files of streaming attention share: one head's state (cpu_attention_stream.c), and
 * its way from rows of memory to lanes and back (cpu_attention_lanes.c).
 */
#ifndef CG_CPU_ATTENTION_STREAM_H
#define CG_CPU_ATTENTION_STREAM_H

#include "codegen/cpu/cpu_attention.h"
#include "codegen/cpu/register_tile.h"

typedef struct cg_stream {
    const attention_head *head;
    int vectors; /* of the block of queries */
    int64_t width;
    LLVMValueRef first_query, last_query; /* of the block; of all */
    LLVMValueRef q_turned;                /* scratch: dim rows of `width`, or half as many of pairs */
    int64_t block;                        /* keys of a block: KEYS, KEYS_BY_AMX */
    LLVMValueRef weights;                 /* scratch: `block` rows; scores, then the same as weights */
    LLVMValueRef mask;                    /* scratch: as many rows of what scores start from: weights, but for AMX */
    LLVMValueRef context;                 /* scratch: value_dim rows */
    LLVMValueRef keys_copy, value_pairs;  /* scratch, of pairs: cg_keys_in_half, cg_pair_values */
    cg_key_rows keys;                     /* of the block, as pairs */
    cg_amx_head packed;                   /* scratch: the head's */

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

/* Of scores in base two. */
static inline LLVMValueRef cg_stream_scale(cg_emitter *e, const cg_stream *s)
{
    return cg_const(e, cg_lanes_type(e), s->head->k->scale * cg_log2_e);
}

/* cpu_attention_lanes.c. A block of queries, scaled but for pairs, as columns of q_turned. */
void cg_load_queries(cg_emitter *e, const cg_stream *s);
/* Contexts times `factors`, which are in memory, a vector a group of queries, to the queries' rows of the result. */
void cg_store_context(cg_emitter *e, const cg_stream *s, LLVMValueRef factors);
/* Fills s->mask with the mask of the block, as [key, query]: the scores start from it. */
void cg_load_mask(cg_emitter *e, const cg_stream *s);

#endif
