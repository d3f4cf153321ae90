/* bound_nonzero.h — what the three files of the pass bound_nonzero share. */
#ifndef IR_PASSES_BOUND_NONZERO_H
#define IR_PASSES_BOUND_NONZERO_H

#include "ir/passes/builder.h"

/* The elements that one NonZero selects. */
typedef struct ir_selection ir_selection;
struct ir_selection {
    const char *name; /* of the node */
    ir_value *source; /* the operand of NonZero */
    int rank;         /* of the operand */
    ir_dim bound;     /* number of its elements */
    ir_value *mask;   /* bool [bound]: is this element selected? */
    ir_value *indices;
    /* If the mask repeats another one along new last axes, as in x[mask] = y for rows of x: */
    const ir_selection *rows; /* the selection of the other mask; NULL otherwise */
    ir_dim width;             /* number of elements of a row */
    ir_selection *next;
};

/* How a value depends on a selection. */
enum { IR_MARK_NUMBER = -1 }; /* in place of an axis: it contains the number of selected elements, as part of a shape */
typedef struct ir_mark {
    const ir_selection *of; /* NULL: it does not depend on one */
    int axis;               /* along this axis, there is one element for each element of the mask */
    bool is_distinct;       /* along the axis are indices of the mask, of which no two are equal */
} ir_mark;

typedef struct ir_bounding {
    ir_builder b;
    ir_selection *selections;
    ir_mark *marks; /* by value id */
    int mark_count;
} ir_bounding;

enum { IR_MARKED_INPUTS = 64 };

/* Follows a selection through a typed node (bound_nonzero_axes.c). `in` has the marks of the inputs, of which at least
 * one is set, all for the same selection. Sets *out_mark for all outputs, or ends the selection. Returns the reason why
 * it cannot, which is followed by ", which NonZero selects", or NULL. */
const char *ir_follow_selection(ir_bounding *w, ir_node *node, const ir_mark *in, ir_mark *out_mark);

/* Refuses the model, because the node combines elements in a way that needs their number. */
void ir_refuse_selection(ir_builder *b, const ir_node *node, const ir_selection *s, const char *reason);

/* Give elements outside of the mask a neutral number, so that the results do not depend on them
 * (bound_nonzero_ends.c). `reduced` has an element for each axis. `is_distinct`: no two of the indices are equal. */
void ir_end_selection_in_reduction(ir_bounding *w, ir_node *node, const ir_mark *m, const bool *reduced);
void ir_end_selection_in_scatter(ir_bounding *w, ir_node *node, const ir_mark *m, bool is_distinct);

#endif
