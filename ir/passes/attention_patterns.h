/* attention_patterns.h — attention in the graph: the one form that reaches the planner, and the operators from which it
 * is recognised. */
#pragma once

#include "ir/graph.h"
#include "ir/ops/attention.h"
#include "ir/passes/graph_builder.h"

/* ---- recognise_attention.c: the one form of Attention that reaches the planner. The recogniser
 * (recognise_attention.c) and the expansion of ONNX's operator (expand_attention.c) share it.
 *
 * Attention (ONNX, domain "") with inputs Q, K, V and optionally attn_mask, one output, f32 throughout:
 *   3-D  Q [B, N, heads · D], K [B, M, kv_heads · D], V [B, M, kv_heads · Dv], result [B, N, heads · Dv], or
 *   4-D  Q [B, heads, N, D], K [B, kv_heads, M, D], V [B, kv_heads, M, Dv], result [B, heads, N, Dv];
 *   attn_mask: f32, added to the scaled scores, [1|B, 1|heads, 1|N, M]; then further masks (ir_mask_input);
 *   attributes q_num_heads, kv_num_heads and scale, always present; softcap; ir_attention_replaces;
 *   is_causal = 1 only if M = N, so that "up to the query's own position" and "up to i + M - N" mean the same;
 *   a window is excluded.
 */

typedef struct ir_attention_spec {
    ir_value *q, *k, *v;          /* all 3-D or all 4-D, as above */
    ir_value *mask[IR_MAX_MASKS]; /* applied in this order */
    double
        replaces[IR_MAX_MASKS]; /* negative: the mask's elements up to this number replace the score; 0: always add */
    int mask_count;
    int64_t heads, kv_heads;
    double scale;
    double softcap; /* 0: no cap */
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

/* ---- attention_scores.c: reads the operators between the two matmuls of attention from the graph ----------------- */

typedef struct ir_bounds {
    double least, greatest; /* infinite: unknown */
} ir_bounds;

typedef struct ir_mask {
    ir_value *condition; /* NULL: an additive mask */
    ir_value *added;     /* additive mask: its values */
    double number;       /* with a condition: the number selected rather than the score */
    bool masks_where;    /* the condition marks the number's places rather than the score's */
    bool subtracted;     /* an additive mask that is subtracted */
    bool joined;         /* the mask applies to scores [batch · heads, N, M] */
    double factor;       /* factor of the scale behind the mask; `number` already includes it */
    ir_bounds bounds;    /* of the added numbers, with the factor */
} ir_mask;

/* softmax(masks on softcap * tanh(scale * q k_transposed / softcap)) v. */
typedef struct ir_scores {
    ir_value *q, *k_transposed, *v;
    double scale;
    double softcap; /* 0: no cap */
    int mask_count;
    ir_mask masks[IR_MAX_MASKS]; /* outermost mask first */
    const ir_type *split;        /* scores as [batch, heads, N, M] if the matmuls see batch · heads as one dimension;
                                  * NULL: they see two, or the operators in between leave it open */
} ir_scores;

/* Reads downwards from the second matmul. False: the pattern is not attention, or an operator in between has other
 * readers. */
bool ir_read_attention(const ir_node *matmul, ir_scores *out);

/* The Softmax over the last axis, guarded or not, that computes these weights and has one reader; NULL if there is
 * none. */
const ir_node *ir_softmax_behind(ir_value *probabilities);

/* Removes factors: x·c, c·x and x/c become x, any number of times. *scale is multiplied by them. */
ir_value *ir_without_scale(ir_value *value, double *scale);
