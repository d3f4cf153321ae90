/* flatten.h — the parts of flattening that functions.c shares with inline_loops.c: scopes of names, and the lists that
 * grow. Private to these files. */
#ifndef FE_FLATTEN_H
#define FE_FLATTEN_H

#include "frontend/onnx/flat.h"

/* The place of nodes: the graph itself, one call of a function, a branch of an If, or the body of a loop in any of
 * them. */
typedef struct fe_scope {
    const struct fe_scope *caller; /* NULL: the graph */
    const struct fe_scope *around; /* of a branch or a body: the scope whose names it also sees; NULL: none */
    const Onnx__FunctionProto *function;
    const fe_node *call;
    const fe_branch *branch; /* the innermost branch, for a predictor; NULL: none */
    bool is_in_loop;         /* in the body of a loop that was not unrolled */
    fe_names *names;         /* name → value number + 1; 0 marks an input that the call omits */
    int64_t opset;
    int depth;
} fe_scope;

typedef struct fe_flattener {
    const fe_context *context;
    const Onnx__ModelProto *model;
    fe_names *functions; /* domain, name and overload → index in model->functions */
    fe_flat *flat;
} fe_flattener;

mdot_status fe_add_value(const fe_context *context, fe_flat *flat, const char *name, int *out_value);
mdot_status fe_add_flat_node(const fe_context *context, fe_flat *flat, const fe_node *node);
/* The number of the value that a name means here. A new name belongs to the graph or the function. */
mdot_status fe_lookup(const fe_flattener *f, const fe_scope *in, const char *name, int *out_value);
/* Gives a branch or a body its own values for the names that its nodes define. */
mdot_status fe_add_names(const fe_flattener *f, const fe_scope *in, const Onnx__GraphProto *graph);
mdot_status fe_flatten_nodes(const fe_flattener *f, const fe_scope *in, size_t count, Onnx__NodeProto *const *nodes);

#endif
