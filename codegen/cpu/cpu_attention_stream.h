/* cpu_attention_stream.h — attention of one head, streaming over keys: any size. */
#ifndef CG_CPU_ATTENTION_STREAM_H
#define CG_CPU_ATTENTION_STREAM_H

#include "codegen/cpu/cpu_attention_head.h"

void cg_attention_stream(cg_emitter *e, const cg_attention_head *head, LLVMValueRef scratch);
/* Queries in its widest block: the unit of a call's slice. */
int64_t cg_attention_stream_grain(const cg_cpu_target *target);
int64_t cg_attention_stream_scratch_bytes(const pl_plan *plan, const pl_attention *k, const cg_cpu_target *target);

#endif
