/* cpu_attention_pipeline.h — streaming attention with matrix tiles as one pipeline, without maxima. */
#ifndef CG_CPU_ATTENTION_PIPELINE_H
#define CG_CPU_ATTENTION_PIPELINE_H

#include "codegen/cpu/cpu_attention_amx.h"
#include "codegen/cpu/cpu_attention_head.h"

/* True if the pipeline computes the kernel: its contexts fit the tiles, and a score is a product plus a mask. */
bool cg_attention_is_pipelined(const pl_attention *k);
/* Scratch. The first part is of fixed size, and free again after the pipeline has ended. The second one, behind the
 * packed head, grows with the length. It has masks and the result. Buckets share the code, so that only its size may
 * depend on the plan's length. */
int64_t cg_pipeline_bytes(const pl_attention *k);
int64_t cg_pipeline_length_bytes(const pl_plan *plan, const pl_attention *k);

/* Computes the slice's queries in groups of CG_AMX_ROWS. Returns the address of an i32 per group: nonzero if the group
 * must be computed again, with maxima. */
LLVMValueRef cg_attention_pipeline(cg_emitter *e, const cg_attention_head *head, const cg_amx_head *packed,
                                   LLVMValueRef scratch);
/* The group of a query, counted from the first one of the slice. */
LLVMValueRef cg_pipeline_group(cg_emitter *e, const cg_attention_head *head, LLVMValueRef query);

#endif
