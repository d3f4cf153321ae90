/* cpu_attention_pipeline.h — streaming attention with matrix tiles as one pipeline, without maxima. */
#ifndef CG_CPU_ATTENTION_PIPELINE_H
#define CG_CPU_ATTENTION_PIPELINE_H

#include "codegen/cpu/cpu_attention_amx.h"
#include "codegen/cpu/cpu_attention_head.h"

/* True if the pipeline computes the kernel: its contexts fit the tiles, and a score is a product plus a mask. */
bool cg_attention_is_pipelined(const pl_attention *k);
/* Scratch. The pipeline's own part is free again after it has ended; the results remain. */
int64_t cg_pipeline_bytes(const pl_plan *plan, const pl_attention *k);
int64_t cg_pipeline_result_bytes(const pl_plan *plan, const pl_attention *k);

/* Computes the slice's queries in groups of CG_AMX_ROWS, and stores an i32 per group in `unsafe`: nonzero if the group
 * must be computed again, with maxima. */
void cg_attention_pipeline(cg_emitter *e, const cg_attention_head *head, const cg_amx_head *packed,
                           LLVMValueRef scratch, LLVMValueRef unsafe);

#endif
