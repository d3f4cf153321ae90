/* recognise_attention.h — the one form of Attention that reaches the planner. The recogniser (recognise_attention.c)
 * and the expansion of ONNX's operator (expand_attention.c) share it.
 *
 * Attention (ONNX, domain "") with inputs Q, K, V and optionally attn_mask, one output, f32 throughout:
 *   3-D  Q [B, N, heads · D], K [B, M, kv_heads · D], V [B, M, kv_heads · Dv], result [B, N, heads · Dv], or
 *   4-D  Q [B, heads, N, D], K [B, kv_heads, M, D], V [B, kv_heads, M, Dv], result [B, heads, N, Dv];
 *   attn_mask: f32, added to the scaled scores, [1|B, 1|heads, 1|N, M];
 *   attributes q_num_heads, kv_num_heads and scale, always present; softcap; IR_ATTENTION_REPLACES;
 *   is_causal = 1 only if M = N, so that "up to the query's own position" and "up to i + M - N" mean the same;
 *   a window is excluded.
 */
#ifndef IR_PASSES_ATTENTION_H
#define IR_PASSES_ATTENTION_H

#include "ir/passes/builder.h"

typedef struct ir_attention_spec {
    ir_value *q, *k, *v; /* all 3-D or all 4-D, as above */
    ir_value *mask;      /* NULL: absent */
    int64_t heads, kv_heads;
    double scale;
    double softcap;  /* 0: no cap */
    double replaces; /* negative: elements of the mask up to this number replace the score; 0: always add */
    bool causal;
} ir_attention_spec;

ir_value *ir_build_attention(ir_builder *b, const ir_attention_spec *spec);

/* [B, heads, rows, D] → [B, rows, heads · D], and the reverse. */
ir_value *ir_build_join_heads(ir_builder *b, ir_value *value);
ir_value *ir_build_split_heads(ir_builder *b, ir_value *value, int64_t heads);
/* Exchanges the last two dimensions. */
ir_value *ir_build_swap_last(ir_builder *b, ir_value *value);

/* Expands `mask`, broadcastable to scores [batch, heads, N, keys], to four dimensions and all keys. */
ir_value *ir_build_attention_mask(ir_builder *b, ir_value *mask, ir_dim keys);

#endif
