/* attention_scores.h — reads the operators between the two matmuls of attention from the graph. */
#ifndef IR_PASSES_ATTENTION_SCORES_H
#define IR_PASSES_ATTENTION_SCORES_H

#include "ir/graph.h"

enum { IR_MAX_MASKS = 3 };

typedef struct ir_mask {
    ir_value *condition; /* NULL: an additive mask */
    ir_value *added;     /* additive mask: its values */
    double number;       /* with a condition: the number selected instead of the score */
    bool masks_where;    /* the condition marks the places of the number rather than those of the score */
    bool subtracted;     /* an additive mask that is subtracted */
    bool joined;         /* the mask applies to scores [batch · heads, N, M] */
    double factor;       /* factor of the scale behind the mask; `number` already includes it */
} ir_mask;

/* softmax(masks on softcap * tanh(scale * q k_transposed / softcap)) v. */
typedef struct ir_scores {
    ir_value *q, *k_transposed, *v;
    double scale;
    double softcap;  /* 0: no cap */
    double replaces; /* scores are replaced where the mask is at most this number, which separates the numbers that
                      * conditions select from sums of added masks; 0: always add */
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

#endif
