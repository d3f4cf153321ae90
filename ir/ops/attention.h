/* attention.h — scaled dot product attention in double, on which the evaluator of every attention operator is built. */
#pragma once

#include "ir/ops/operands.h"

/* Queries, keys, values or results: channel d of position n of head h of batch b is at data[b * batch + h * head + n
 * * row + d]. */
typedef struct ir_heads {
    double *data;
    int64_t batch, head, row;
} ir_heads;

/* Strides of a dense tensor: of shape (batch, heads, rows, channels), or (batch, rows, heads * channels). */
ir_heads ir_heads_of_4d(double *data, int64_t heads, int64_t rows, int64_t channels);
ir_heads ir_heads_of_3d(double *data, int64_t heads, int64_t rows, int64_t channels);

/* A mask by batch, head, query and key. It is `width` keys wide; keys beyond that are masked. */
typedef struct ir_attention_mask {
    const ir_wide *tensor; /* NULL: absent */
    int64_t stride[4];     /* 0 for dimensions that repeat */
    int64_t width;
} ir_attention_mask;

/* Aligns a tensor of rank 1 … 4 at the end with batch, heads, queries, keys. The last dimension is its width. */
ir_attention_mask ir_attention_mask_of(const ir_wide *tensor);

/* The content of the optional scores output. */
typedef enum ir_score_stage { IR_SCORE_RAW, IR_SCORE_CAPPED, IR_SCORE_BIASED, IR_SCORE_PROBABILITY } ir_score_stage;

typedef struct ir_attention {
    int64_t batch, heads, kv_heads, queries, keys, dim, value_dim;
    double scale, softcap;             /* softcap 0: no cap */
    ir_heads q, k, v, out;             /* query head h reads key head h / (heads / kv_heads) */
    ir_attention_mask keep;            /* of integers or bool: keys at zeros are masked */
    ir_attention_mask bias;            /* of floats: added to the scores */
    ir_attention_mask more[2];         /* further ones, in this order */
    const int64_t *key_counts;         /* per sequence: keys from this number on are masked; NULL: absent */
    double replaces[3];                /* of bias and more; negative: an element that is at most this number replaces
                                        * the score; 0: all are added */
    double masked;                     /* the number that a mask adds: -inf, or a large negative number */
    bool causal;                       /* query i reads keys up to i + offset */
    int64_t left_window, right_window; /* number of keys that query i reads before and after i + offset; -1: all */
    int64_t offset;                    /* number of keys before the first query */
    bool offset_by_count;              /* the offset is the sequence's key count minus the queries instead */
    double *scores;                    /* (batch, heads, queries, keys); NULL: not requested */
    ir_score_stage stage;
    bool rounds; /* set by ir_attend: scores are rounded to f32 with the bias */
} ir_attention;

/* Additional attributes and inputs of Attention, set by passes only: `replaces` above, and masks that are added after
 * the first. Beside it, all keys have an element. */
enum { IR_MAX_MASKS = 3 };
extern const char *const ir_attention_replaces[IR_MAX_MASKS];
static inline int ir_mask_input(int mask) { return mask == 0 ? 3 : 6 + mask; }

/* Errors name the node: OUT_OF_RANGE for an invalid key count, OUT_OF_MEMORY for a row of scores. A query whose keys
 * are all masked has probabilities of 0, and therefore a result of 0 (ONNX Attention 24 and later). */
mdot_status ir_attend(const ir_attention *attention, ir_arena *arena, const ir_node *node, mdot_error *err);

/* Two FLOPs per multiply-add of both matmuls, and five per score for the softmax. */
double ir_attention_flops(double batch, double heads, double queries, double keys, double dim, double value_dim);
