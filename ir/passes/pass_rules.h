/* pass_rules.h — rules shared by a pass's files. */
#pragma once

#include "ir/passes/graph_builder.h"

/* ---- expand.c: rules that rewrite one operator into others that have a kernel. The table is in expand.c. A rule
 * leaves a node unchanged if its kernel can express it directly. */

ir_rule_fn ir_expand_softmax, ir_expand_layer_norm, ir_expand_rms_norm, ir_expand_group_norm, ir_expand_instance_norm,
    ir_expand_batch_norm, ir_expand_mean_variance_norm, ir_expand_lp_norm, ir_expand_log_sum_exp;    /* expand_norm.c */
ir_rule_fn ir_expand_convolution, ir_expand_max_pool, ir_expand_average_pool, ir_expand_global_pool; /* …_windows.c */
/* Each in the file of its name. */
ir_rule_fn ir_expand_variadic, ir_expand_attention, ir_expand_recurrent, ir_expand_conv_transpose, ir_expand_resize;
ir_rule_fn ir_expand_rotary_embedding; /* expand_rotary.c */

/* ---- lower_contrib.c: rules that rewrite ONNX Runtime's contributed operators (domain com.microsoft) in terms of
 * ONNX's. The table is in lower_contrib.c. Definitions: ONNX Runtime, docs/ContribOperators.md.
 */

ir_rule_fn ir_contrib_attention, ir_contrib_multi_head_attention; /* lower_contrib_attention.c */

/* ---- bound_nonzero.c: what the three files of the pass bound_nonzero share --------------------------------------- */

/* The elements that one NonZero selects. */
typedef struct ir_selection ir_selection;
struct ir_selection {
    const char *name;  /* of the node */
    ir_value *source;  /* the operand of NonZero */
    ir_dim bound;      /* number of the elements */
    ir_value *mask;    /* bool [bound]: is this element selected? */
    ir_value *indices; /* i64 [rank, bound] */
    ir_value *order;   /* i64 [bound]: permutation that puts selected elements first; NULL: they keep their places */
    ir_value *count;   /* i64 [1]: number of selected elements; NULL without an order */
    /* If the mask repeats another one along new last axes, as in x[mask] = y for rows of x: */
    const ir_selection *rows; /* the selection of the other mask; NULL otherwise */
    ir_dim width;             /* element count of a row */
    ir_selection *next;
};

/* How a value depends on a selection. */
enum { IR_MARK_NUMBER = -1 }; /* not an axis: contains the number of selected elements, as part of a shape */
typedef struct ir_mark {
    const ir_selection *of; /* NULL: it does not depend on one */
    int axis;               /* along this axis, there is one element for each element of the mask */
} ir_mark;

typedef struct ir_bounding {
    ir_builder b;
    ir_selection *selections;
    ir_mark *marks; /* by value id */
    int mark_count;
    bool has_scatter; /* the graph has one */
} ir_bounding;

enum { IR_MARKED_INPUTS = 64 };

/* Follows a selection through a typed node (bound_nonzero_axes.c). `in` has the marks of the inputs, of which at least
 * one is set, all for the same selection. Sets *out_mark for all outputs, or ends the selection. Returns the reason why
 * it cannot, which is followed by ", which NonZero selects", or NULL. */
const char *ir_follow_selection(ir_bounding *w, ir_node *node, const ir_mark *mark, ir_mark *out_mark);

/* Refuses the model, because the node combines elements in a way that needs their number. */
void ir_refuse_selection(ir_builder *b, const ir_node *node, const ir_selection *s, const char *reason);

/* Gives elements outside the mask a neutral number, so the results do not depend on them (bound_nonzero_ends.c).
 * `reduced` has an element for each axis. */
void ir_end_selection_in_reduction(ir_bounding *w, ir_node *node, const ir_mark *m, const bool *reduced);
/* Lets a scatter write selected elements only. */
void ir_end_selection_in_scatter(ir_bounding *w, ir_node *node, const ir_mark *m);
