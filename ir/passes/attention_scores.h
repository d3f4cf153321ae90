/* attention_scores.h — what stands between the two matrix products of attention, read off the graph. */
#ifndef IR_PASSES_ATTENTION_SCORES_H
#define IR_PASSES_ATTENTION_SCORES_H

#include "ir/graph.h"

enum { IR_MAX_MASKS = 3 };

typedef struct ir_mask {
    ir_value *condition; /* NULL: an additive mask */
    ir_value *added;     /* additive: the values */
    double number;       /* with a condition: what it selects instead of the score */
    bool masks_where;    /* the condition says where the number goes, not where the score stays */
    bool subtracted;     /* an additive mask that is taken away */
    bool joined;         /* it masks scores [batch · heads, N, M] */
    double factor;       /* of the scale behind the mask; numbers have it already */
} ir_mask;

/* softmax(masks on softcap * tanh(scale * q k_transposed / softcap)) v. */
typedef struct ir_scores {
    ir_value *q, *k_transposed, *v;
    double scale;
    double softcap;  /* 0: none */
    double replaces; /* the greatest number that a condition selects where adding it is not as good: a score is to be
                        replaced by elements of the mask up to it; 0: none */
    int mask_count;
    ir_mask masks[IR_MAX_MASKS]; /* the outermost first */
    const ir_type *split; /* the scores as [batch, heads, N, M], where the products see batch · heads as one; NULL: they
                             do not, or nothing in between says so */
} ir_scores;

/* Reads downwards from the second product, a MatMul. False: it is no attention, or something in between is read
 * elsewhere, too. */
bool ir_read_attention(const ir_node *product, ir_scores *out);

/* The Softmax over the last axis, guarded or not, that alone makes these weights, which one reads; NULL: none does. */
const ir_node *ir_softmax_behind(ir_value *probabilities);

/* x·c, c·x and x/c → x; *scale takes the factor. Any number of them. */
ir_value *ir_without_scale(ir_value *value, double *scale);

#endif
