/* cpu_attention_small.h — attention of one head with few queries and keys, all in registers. */
#ifndef CG_CPU_ATTENTION_SMALL_H
#define CG_CPU_ATTENTION_SMALL_H

#include "codegen/cpu/cpu_attention_head.h"

bool cg_attention_is_small(const pl_attention *k, const cg_cpu_target *target);
void cg_attention_small(cg_emitter *e, const cg_attention_head *head);

#endif
