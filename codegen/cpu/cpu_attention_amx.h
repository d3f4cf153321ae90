/* cpu_attention_amx.h — the matmuls of streaming attention with matrix tiles. */
#ifndef CG_CPU_ATTENTION_AMX_H
#define CG_CPU_ATTENTION_AMX_H

#include "codegen/cpu/cpu_attention_head.h"

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

typedef struct cg_amx_block { /* a block of keys and queries; matrices in scratch have rows of `width` words */
    const cg_amx_head *head;
    int width; /* number of queries */
    int64_t channels;
    LLVMValueRef first_key, key_count; /* first_key is a multiple of a step */
    LLVMValueRef q_transposed;         /* pairs of channels, in steps */
    LLVMValueRef weights, context;
} cg_amx_block;
/* weights[key, query] = dot product of key and query, for steps of keys. */
void cg_amx_scores(cg_emitter *e, const cg_amx_block *block);
/* context[channel, query] += the channel's values times weights, which are now pairs; in steps of keys. */
void cg_amx_contexts(cg_emitter *e, const cg_amx_block *block);

#endif
