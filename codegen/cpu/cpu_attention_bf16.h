/* cpu_attention_bf16.h — bf16 pairs for streaming attention. Scratch consists of words, each a pair. Pointers are as
 * in the stream. */
#ifndef CG_CPU_ATTENTION_BF16_H
#define CG_CPU_ATTENTION_BF16_H

#include "codegen/cpu/cpu_attention_head.h"

/* `count` pairs of a query's channels, from pair `pair` on, as bits in f32. */
LLVMValueRef cg_query_bf16(cg_emitter *e, const cg_attention_head *head, LLVMValueRef row, LLVMValueRef pair,
                           int count);
/* Rows first_key … of the keys as rows of bfloat16: in place or, after rounding, in `to`. */
typedef struct cg_key_rows {
    LLVMValueRef first, stride; /* in bfloat16 elements */
} cg_key_rows;
cg_key_rows cg_bf16_keys(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_key, LLVMValueRef key_count,
                         LLVMValueRef to);
bool cg_attention_copies_keys(const cg_cpu_target *target, const pl_plan *plan, const pl_attention *k);
/* Stores the values of keys 2 i and 2 i + 1, interleaved by channel, in row i of `to`; zero for a key after the
 * last. */
void cg_interleave_values(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_key, LLVMValueRef key_count,
                          LLVMValueRef to);
/* Sixteen channels of a key's value in bfloat16, each in the low half of a word. */
LLVMValueRef cg_value_bf16(cg_emitter *e, const cg_attention_head *head, LLVMValueRef key, LLVMValueRef channel);
/* Packs two vectors of softmax weights, which are finite and non-negative, into one of pairs. */
LLVMValueRef cg_interleave_weights(cg_emitter *e, LLVMValueRef low, LLVMValueRef high);
/* The same by truncation, for results of cg_exp2_before_truncation: the weight that bf16 represents, and the pair of
 * two such weights. */
LLVMValueRef cg_truncate_weight(cg_emitter *e, LLVMValueRef weight);
LLVMValueRef cg_pair_weights(cg_emitter *e, LLVMValueRef low, LLVMValueRef high);

#endif
