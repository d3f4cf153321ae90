/* cpu_attention_bf16.c — queries, keys and values as bfloat16 pairs, for streaming attention on targets with bf16 dot
 * products: see cpu_attention.h.
 *
 * The plan guarantees a channel count in multiples of sixteen, so a query or key row in memory has whole channel pairs.
 * Contexts sum over keys, so two value rows are interleaved into one row of pairs, in scratch. */
#include "codegen/cpu/cpu_attention.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"

#include "codegen/cpu/cpu_target.h"

enum { CHANNELS = 16 };

LLVMValueRef cg_query_bf16(cg_emitter *e, const cg_attention_head *head, LLVMValueRef row, LLVMValueRef pair, int count)
{
    LLVMTypeRef stored = cg_stored_type(e, head->plan, head->k->q.buffer), words = cg_vector(e, e->f32, count);
    LLVMValueRef source = cg_at(e, stored, row, cg_imul(e, pair, cg_int(e, 2)));
    if (stored == e->i16) return cg_load(e, words, source, 2);
    LLVMValueRef wide = cg_load_elements(e, head->plan, head->k->q.buffer, source, 2 * count);
    return LLVMBuildBitCast(e->builder, cg_f32_to_bf16(e, wide), words, "");
}

cg_key_rows cg_bf16_keys(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_key, LLVMValueRef key_count,
                         LLVMValueRef target)
{
    const pl_attention *k = head->k;
    LLVMTypeRef stored = cg_stored_type(e, head->plan, k->k.buffer);
    LLVMValueRef first = cg_at(e, stored, head->key, cg_imul(e, first_key, head->key_stride));
    if (stored == e->i16) return (cg_key_rows){first, head->key_stride};
    CG_FOR_NONEMPTY (e, key, cg_int(e, 0), key_count, 1) {
        LLVMValueRef row = cg_at(e, stored, first, cg_imul(e, key.index, head->key_stride));
        LLVMValueRef copy = cg_at(e, e->i16, target, cg_imul(e, key.index, cg_int(e, k->dim)));
        CG_FOR_NONEMPTY (e, channel, cg_int(e, 0), cg_int(e, k->dim), CHANNELS) {
            LLVMValueRef wide =
                cg_load_elements(e, head->plan, k->k.buffer, cg_at(e, stored, row, channel.index), CHANNELS);
            LLVMValueRef narrow = cg_f32_to_bf16(e, wide);
            cg_store(e, narrow, cg_at(e, e->i16, copy, channel.index), 0);
        }
    }
    return (cg_key_rows){target, cg_int(e, k->dim)};
}

LLVMValueRef cg_value_bf16(cg_emitter *e, const cg_attention_head *head, LLVMValueRef key, LLVMValueRef channel)
{
    int buffer = head->k->v.buffer;
    LLVMTypeRef stored = cg_stored_type(e, head->plan, buffer);
    LLVMValueRef row = cg_at(e, stored, head->value, cg_imul(e, key, head->value_stride));
    LLVMValueRef source = cg_at(e, stored, row, channel), half;
    if (stored == e->i16)
        half = cg_load(e, cg_vector(e, e->i16, CHANNELS), source, 0);
    else
        half = cg_f32_to_bf16(e, cg_load_elements(e, head->plan, buffer, source, CHANNELS));
    return LLVMBuildZExt(e->builder, half, cg_vector(e, e->i32, CHANNELS), "");
}

/* With an odd number of keys, the last pair has only the first key. */
static void pair_two_values(cg_emitter *e, const cg_attention_head *head, LLVMValueRef key, LLVMValueRef row,
                            bool first_alone)
{
    CG_FOR_NONEMPTY (e, channel, cg_int(e, 0), cg_int(e, head->k->value_dim), CHANNELS) {
        LLVMValueRef pairs = cg_value_bf16(e, head, key, channel.index);
        if (!first_alone) {
            LLVMValueRef second = cg_value_bf16(e, head, cg_iadd(e, key, cg_int(e, 1)), channel.index);
            second = LLVMBuildShl(e->builder, second, cg_const_int(LLVMTypeOf(second), 16), "");
            pairs = LLVMBuildOr(e->builder, pairs, second, "");
        }
        cg_store(e, pairs, cg_at(e, e->i32, row, channel.index), 0);
    }
}

void cg_interleave_values(cg_emitter *e, const cg_attention_head *head, LLVMValueRef first_key, LLVMValueRef key_count,
                          LLVMValueRef target)
{
    LLVMValueRef stride = cg_int(e, head->k->value_dim), whole = cg_round_down(e, key_count, 2);
    CG_FOR (e, key, cg_int(e, 0), whole, 2) {
        LLVMValueRef pair = LLVMBuildLShr(e->builder, key.index, cg_int(e, 1), "");
        LLVMValueRef row = cg_at(e, e->i32, target, cg_imul(e, pair, stride));
        pair_two_values(e, head, cg_iadd(e, first_key, key.index), row, false);
    }
    CG_IF (e, LLVMBuildICmp(e->builder, LLVMIntSLT, whole, key_count, "")) {
        LLVMValueRef last_value = LLVMBuildLShr(e->builder, whole, cg_int(e, 1), "");
        LLVMValueRef row = cg_at(e, e->i32, target, cg_imul(e, last_value, stride));
        pair_two_values(e, head, cg_iadd(e, first_key, whole), row, true);
    }
}

/* Rounds half up, in four integer instructions. The exact conversion would take six. */
LLVMValueRef cg_interleave_weights(cg_emitter *e, LLVMValueRef low, LLVMValueRef high)
{
    LLVMTypeRef words = cg_with_element(LLVMTypeOf(low), e->i32);
    LLVMValueRef half = cg_const_int(words, 0x8000);
    low = LLVMBuildAdd(e->builder, LLVMBuildBitCast(e->builder, low, words, ""), half, "");
    high = LLVMBuildAdd(e->builder, LLVMBuildBitCast(e->builder, high, words, ""), half, "");
    low = LLVMBuildLShr(e->builder, low, cg_const_int(words, 16), "");
    high = LLVMBuildAnd(e->builder, high, cg_const_int(words, 0xffff0000), "");
    return LLVMBuildOr(e->builder, low, high, "");
}

LLVMValueRef cg_truncate_weight(cg_emitter *e, LLVMValueRef weight)
{
    LLVMTypeRef type = LLVMTypeOf(weight), words = cg_with_element(type, e->i32);
    LLVMValueRef bits = LLVMBuildBitCast(e->builder, weight, words, "");
    return LLVMBuildBitCast(e->builder, LLVMBuildAnd(e->builder, bits, cg_const_int(words, 0xffff0000), ""), type, "");
}

/* LLVM would turn the shift and the merge into vpermt2w, whose three operations compete with the tiles' port. */
LLVMValueRef cg_pair_weights(cg_emitter *e, LLVMValueRef low, LLVMValueRef high)
{
    enum { SELECT_BY_THIRD = 0xd8 };
    LLVMTypeRef words = cg_with_element(LLVMTypeOf(low), e->i32);
    LLVMValueRef upper = cg_const_int(words, 0xffff0000);
    low = LLVMBuildLShr(e->builder, LLVMBuildBitCast(e->builder, low, words, ""), cg_const_int(words, 16), "");
    high = LLVMBuildBitCast(e->builder, high, words, "");
    if (e->target->use_generic_vectors || cg_lanes(low) != 16) return LLVMBuildOr(e->builder, low, high, "");
    LLVMValueRef merge[] = {low, high, upper, cg_const_int(e->i32, SELECT_BY_THIRD)};
    return cg_intrinsic(e, "llvm.x86.avx512.pternlog.d.512", NULL, merge, 4);
}
