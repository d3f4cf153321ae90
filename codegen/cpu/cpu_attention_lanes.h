/* cpu_attention_lanes.h — transpositions of streaming attention between rows in memory and lanes. */
#ifndef CG_CPU_ATTENTION_LANES_H
#define CG_CPU_ATTENTION_LANES_H

#include "codegen/cpu/cpu_stream_state.h"

/* Stores a block of queries as columns of q_transposed; scaled, except as pairs. */
void cg_load_queries(cg_emitter *e, const cg_stream *s);
/* Stores contexts times `factors` in the queries' rows of the result. `factors` has a vector per group of queries,
 * in memory. */
void cg_store_context(cg_emitter *e, const cg_stream *s, LLVMValueRef factors);
/* Fills s->mask with the mask of the block, as [key, query]: the initial values of the scores. */
void cg_load_mask(cg_emitter *e, const cg_stream *s);
/* True if each query has a mask of its own. */
bool cg_mask_varies_by_query(const pl_attention *k);
/* Number of keys that the last of `width` queries may attend to. Later keys are skipped. With fewer keys than queries
 * it may be negative. */
LLVMValueRef cg_visible_keys(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_query, int64_t width);

#endif
