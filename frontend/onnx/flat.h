/* flat.h — a model between its messages and the graph: one list of nodes without local functions, whose inputs and
 * outputs are numbered values instead of names. Private to frontend/.
 *
 * Numbers make scopes cheap: a value inside an inlined function has a number of its own and needs no unique name.
 */
#ifndef FE_FLAT_H
#define FE_FLAT_H

#include "frontend/onnx/context.h"
#include "frontend/onnx/names.h"

enum { FE_NO_VALUE = -1 }; /* an optional input or output that is absent */

/* An attribute as its node has it: a reference to a function's attribute is resolved. */
typedef struct fe_attribute {
    const char *name;
    const Onnx__AttributeProto *proto;
} fe_attribute;

/* A node of an If's branch counts where the condition is known not to take the other one. */
typedef struct fe_branch {
    int condition; /* a value's number */
    bool when;     /* what the condition is for this branch */
    const struct fe_branch *around;
} fe_branch;

typedef struct fe_node {
    const char *domain; /* "" for ai.onnx */
    const char *op_type;
    const char *name; /* for messages; that of an inlined node starts with its call's */
    int64_t opset;    /* of domain "" where the node stands; 0 where it imports none */
    int input_count, output_count, attribute_count;
    int *inputs, *outputs;   /* value numbers or FE_NO_VALUE */
    const fe_branch *branch; /* NULL: it stands in none, or both of the If are read (jobs) */
    bool folds;              /* its metadata say that a BatchNormalization was folded into it */
    fe_attribute *attributes;
} fe_node;

/* What defines a value. A node's index, or: */
enum { FE_UNDEFINED = -1, FE_BY_INPUT = -2, FE_BY_INITIALIZER = -3 };

typedef struct fe_value {
    const char *name; /* for messages and for the graph's inputs and outputs */
    int definer;
    int output; /* which of the definer's outputs */
} fe_value;

typedef struct fe_flat {
    fe_node *nodes;
    int node_count, node_capacity;
    fe_value *values;
    int value_count, value_capacity;
    fe_names *names; /* of the graph's own scope */
    int *order;      /* node indices, every value defined before its use */
} fe_flat;

/* ---- metadata.c ------------------------------------------------------------------------------------------------- */

/* onnxscript says which of its rules made a node, and of which modules and ATen operators: "torch.nn.modules.batchnorm
 * .BatchNorm2d/batch_norm: aten.batch_norm.default". */
bool fe_says_folded(const Onnx__NodeProto *proto);
/* The module that a node was exported from, "layers.0.attn", in the scratch arena; NULL where nothing says so, and for
 * the network itself. */
mdot_status fe_said_module(const fe_context *context, const Onnx__NodeProto *proto, const char **out_module);

/* ---- functions.c: inlines ModelProto.functions, nested ones too. ------------------------------------------------ */

enum { FE_MAX_CALL_DEPTH = 64 };

/* The nodes of the model's graph. Values are numbered, not yet defined. */
mdot_status fe_flatten(const fe_context *context, const Onnx__ModelProto *model, fe_flat *out_flat);
/* The number of a value in the graph's scope, fresh when the name is new. */
mdot_status fe_flat_value(const fe_context *context, fe_flat *flat, const char *name, int *out_value);

/* ---- topological_order.c ---------------------------------------------------------------------------------------------------- */

/* Defines values: first the graph's initializers and inputs, then every node's outputs. MALFORMED for a second
 * definition of one value. */
mdot_status fe_define_values(const fe_context *context, const Onnx__GraphProto *graph, fe_flat *flat);
/* Sets `order`: the file's where that is topological. MALFORMED for inputs that nothing defines and for cycles. */
mdot_status fe_order_nodes(const fe_context *context, fe_flat *flat);

#endif
