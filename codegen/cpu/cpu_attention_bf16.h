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
cg_key_rows cg_keys_in_half(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_key,
                            LLVMValueRef key_count, LLVMValueRef to);
/* Stores the values of keys 2 i and 2 i + 1, interleaved by channel, in row i of `to`; zero for a key after the
 * last. */
void cg_pair_values(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_key, LLVMValueRef key_count,
                    LLVMValueRef to);
/* Sixteen channels of a key's value in bfloat16, each in the low half of a word. */
LLVMValueRef cg_value_words(cg_emitter *e, const cg_attention_head *head, LLVMValueRef key, LLVMValueRef channel);
/* Packs two vectors of softmax weights, which are finite and non-negative, into one of pairs. */
LLVMValueRef cg_pair_of_weights(cg_emitter *e, LLVMValueRef low, LLVMValueRef high);

#endif
