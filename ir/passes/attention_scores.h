/* attention_scores.h — what stands between the two matrix products of attention, read off the graph. */
#ifndef IR_PASSES_ATTENTION_SCORES_H
#define IR_PASSES_ATTENTION_SCORES_H

#include "ir/graph.h"

enum { IR_MAX_MASKS = 3 };

typedef struct ir_mask {
    ir_value *condition; /* NULL: `added` is an additive mask */
    ir_value *added;     /* with a condition: the number that it selects instead of the score */
    bool masks_where;    /* the condition says where the number goes, not where the score stays */
    bool joined;         /* it masks scores [batch · heads, N, M] */
} ir_mask;

/* softmax(scale * q k_transposed + masks) v. */
typedef struct ir_scores {
    ir_value *q, *k_transposed, *v;
    double scale;
    int mask_count;
    ir_mask masks[IR_MAX_MASKS];
    const ir_type *split; /* the scores as [batch, heads, N, M], where the products see batch · heads as one; NULL: they
                             do not, or nothing in between says so */
} ir_scores;

/* Reads downwards from the second product, a MatMul. False: it is no attention, or something in between is read
 * elsewhere, too. */
bool ir_read_attention(const ir_node *product, ir_scores *out);

/* x·c, c·x and x/c → x; *scale takes the factor. Any number of them. */
ir_value *ir_without_scale(ir_value *value, double *scale);

#endif
