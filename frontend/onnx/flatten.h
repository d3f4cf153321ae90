/* flatten.h — scopes of names, and the lists that grow while functions.c and inline_loops.c flatten a model. */
#pragma once

#include "frontend/onnx/flat.h"
#include "onnx.pb-c.h"

#include <stdbool.h>

/* A place for nodes: the graph itself, a function call, a branch of an If, or a loop body in any of them. */
typedef struct fe_scope {
    const struct fe_scope *caller; /* NULL: the graph */
    const struct fe_scope *around; /* of a branch or a body: the scope whose names it also sees; NULL: none */
    const Onnx__FunctionProto *function;
    const fe_node *call;
    const fe_branch *branch; /* the innermost branch, for a predictor; NULL: none */
    bool is_in_loop;         /* in a rolled loop's body */
    fe_names *names;         /* name → value number + 1; 0 marks an input that the call omits */
    int64_t opset;
    int depth;
} fe_scope;

typedef struct fe_flattener {
    const fe_context *context;
    const Onnx__ModelProto *model;
    fe_names *functions; /* domain, name and overload → index in model->functions */
    fe_flat *flat;
    /* Adds a body's nodes: functions.c, which calls inline_loops.c, because bodies contain calls and loops. */
    mdot_status (*flatten_nodes)(const struct fe_flattener *f, const fe_scope *scope, size_t count,
                                 Onnx__NodeProto *const *nodes);
} fe_flattener;

mdot_status fe_add_value(const fe_context *context, fe_flat *flat, const char *name, int *out_value);
mdot_status fe_add_flat_node(const fe_context *context, fe_flat *flat, const fe_node *node);
/* A name's value number here. A new name belongs to the graph or the function. */
mdot_status fe_lookup(const fe_flattener *f, const fe_scope *scope, const char *name, int *out_value);
/* Gives a branch or a body separate values for the names defined inside. */
mdot_status fe_add_names(const fe_flattener *f, const fe_scope *scope, const Onnx__GraphProto *graph);

/* ---- functions.c: inlines ModelProto.functions, including nested calls ------------------------------------------- */

enum { FE_MAX_CALL_DEPTH = 64 };

/* Lists the graph's nodes. Values are numbered; definitions follow in fe_define_values. */
mdot_status fe_flatten(const fe_context *context, const Onnx__ModelProto *model, fe_flat *out_flat);
/* A value's number in the graph's scope; a new name gets a new number. */
mdot_status fe_flat_value(const fe_context *context, fe_flat *flat, const char *name, int *out_value);

/* ---- inline_loops.c: Loop and Scan in a predictor.
 *
 * If the number of steps is constant and at most FE_MOST_UNROLLED_NODES nodes result, the body is inlined once for each
 * step. Otherwise it is inlined once, between an mdot.LoopBegin and an mdot.LoopEnd (ir/ops.h). The number of
 * steps of a Loop then comes from a node LoopSteps, which is replaced when the graph is imported (rewrites.h).
 *
 * States that the body passes on unchanged are no states: the body reads their initial values.
 */

enum {
    FE_MOST_UNROLLED_NODES = 512,   /* of one loop: steps times the body's nodes */
    FE_MOST_UNROLLED_TOTAL = 16384, /* of all loops of a model, so nested ones cannot exhaust memory */
};

bool fe_is_loop(const fe_node *node);
/* Adds the loop's nodes to the flat model. A form that mdot lacks is added as one node, whose type states the
 * reason. */
mdot_status fe_inline_loop(const fe_flattener *f, const fe_scope *scope, const fe_node *node);

/* Adds a Constant for each initializer of a branch or a body. */
mdot_status fe_add_initializers(const fe_flattener *f, const fe_scope *scope, const Onnx__GraphProto *graph);

/* ---- loops.c: recognises PyTorch's EmbeddingBag in an ONNX file: a Loop over bags, each the sum of some rows of a
 * table.
 *
 * For each bag, the TorchScript exporter writes Slice (its indices) → Gather (rows of a table outside the loop) →
 * ReduceSum, ReduceMean or ReduceMax. The dynamo exporter gathers the rows of all bags before the loop and collects
 * the bags in a list: Slice → one of the three reductions, chosen by branches on a constant mode → SequenceInsert.
 * The job reader rewrites the loop in frontend/job/embedding_bag.c.
 */

typedef struct fe_embedding_bags {
    /* Names of values outside the loop. `count` is the bag count; NULL: the loop's trip count. `rows` holds the rows of
     * all bags; NULL: `indices` select them from `table`. */
    const char *count, *rows, *table, *indices;
    const char *op_type; /* the loop's operator type from then on: job_only_ops.def */
} fe_embedding_bags;

/* Is the loop an EmbeddingBag? */
bool fe_find_embedding_bags(const Onnx__GraphProto *body, fe_embedding_bags *out_bags);
