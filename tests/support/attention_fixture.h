/* attention_fixture.h — holds the attention kernel to softmax in double, on shapes that a test describes. The buffers
 * end or start at inaccessible memory. */
#pragma once

#include "ir/graph.h"

typedef enum attention_mask {
    MASK_NONE,
    MASK_KEYS,      /* one row for all queries: 0 or -1e9 */
    MASK_BATCHES,   /* one row per batch item: 0 or -inf */
    MASK_QUERIES,   /* a matrix for all heads, any values */
    MASK_EVERYTHING /* a matrix per batch item and head, of -FLT_MAX, -inf and small values */
} attention_mask;

/* Values beyond ordinary numbers, in the middle query, key or element of the mask. */
typedef enum attention_poison {
    POISON_NONE,
    POISON_QUERY,   /* NaN */
    POISON_KEY,     /* NaN */
    POISON_MASK,    /* NaN */
    POISON_NO_MASK, /* +inf in the mask */
    POISON_LOGITS,  /* scores of one key overflow to +inf for some queries and -inf for others */
    POISON_ALL      /* scores of all keys overflow to -inf */
} attention_poison;

typedef struct attention_shape {
    ir_dim batch, queries, keys;
    int64_t heads, kv_heads, dim, value_dim;
    attention_mask mask;
    bool causal;
    bool fused;   /* q, k and v are column ranges of one matrix, heads side by side, as one projection makes them */
    bool aligned; /* fused, and as bf16 requires: heads and rows start at multiples of sixteen channels */
    bool half;    /* the plan stores q, k, v and out in 16 bits */
    int64_t hide; /* MASK_KEYS, MASK_BATCHES: number of masked keys at each row's start; -1 = all */
    double softcap, replaces;
    double scale; /* 0: 1 / sqrt(dim) */
    bool sums; /* run with each masked number from -1e4 to -inf beside scores of 1 to 8192, which are exact in f32 and
                    * bf16 */
    double masked; /* number of masked keys; 0: as the mask kind says */
    double logits; /* magnitude of exact scores; 0: ordinary random operands */
    attention_poison poison;
} attention_shape;

/* Self-attention of one item over as many positions as the length. */
attention_shape attention_square(int64_t heads, int64_t dim, attention_mask mask);

/* Runs the kernel at each length on every CPU level and asserts the result. fp32 only, because all kernels except
 * matrix kernels are the same in every precision. */
void attention_check(const attention_shape *s, const int64_t *lengths, int count);
/* The same for the targets that multiply in bf16. */
void attention_check_bf16(const attention_shape *s, const int64_t *lengths, int count);

/* Does the plan run the shape as a matrix kernel? */
bool attention_is_matrix(const attention_shape *s);
