/* flat.h — the form of a model between its messages and the graph. It is one list of nodes with local functions
 * inlined, whose inputs and outputs are numbered values instead of names. Private to frontend/.
 *
 * Numbers make scopes cheap, because a value inside an inlined function has its own number and needs no unique name.
 */
#ifndef FE_FLAT_H
#define FE_FLAT_H

#include "frontend/onnx/context.h"
#include "frontend/onnx/names.h"

enum { FE_NO_VALUE = -1 }; /* an optional input or output that is absent */

/* An attribute of a node, after references to a function's attributes are resolved. */
typedef struct fe_attribute {
    const char *name;
    const Onnx__AttributeProto *proto;
} fe_attribute;

/* A branch of an If. Its nodes count unless the condition is known to select the other branch. */
typedef struct fe_branch {
    int condition; /* value number */
    bool when;     /* the value of the condition that selects this branch */
    const struct fe_branch *around;
} fe_branch;

typedef struct fe_node {
    const char *domain; /* "" for ai.onnx */
    const char *op_type;
    const char *name; /* for messages; the name of an inlined node starts with that of its call */
    int64_t opset;    /* opset of domain "" at this node; 0: not imported */
    int input_count, output_count, attribute_count;
    int *inputs, *outputs;   /* value numbers or FE_NO_VALUE */
    const fe_branch *branch; /* NULL: outside of branches, or both branches of the If are read (jobs) */
    bool folds;              /* the metadata state that a BatchNormalization was folded into it */
    fe_attribute *attributes;
} fe_node;

/* The definer of a value: the index of a node, or one of these. */
enum { FE_UNDEFINED = -1, FE_BY_INPUT = -2, FE_BY_INITIALIZER = -3 };

typedef struct fe_value {
    const char *name; /* for messages and for the graph's inputs and outputs */
    int definer;
    int output; /* index among the definer's outputs */
} fe_value;

typedef struct fe_flat {
    fe_node *nodes;
    int node_count, node_capacity;
    fe_value *values;
    int value_count, value_capacity;
    fe_names *names; /* of the graph's own scope */
    int *order;      /* node indices, sorted so that each value is defined before its use */
} fe_flat;

/* ---- metadata.c ------------------------------------------------------------------------------------------------- */

/* onnxscript names the rule that made a node, and the modules and ATen operators that it came from, for example
 * "torch.nn.modules.batchnorm.BatchNorm2d/batch_norm: aten.batch_norm.default". */
bool fe_says_folded(const Onnx__NodeProto *proto);
/* The module that a node was exported from, for example "layers.0.attn", in the scratch arena. NULL: unknown, or the
 * network itself. */
mdot_status fe_said_module(const fe_context *context, const Onnx__NodeProto *proto, const char **out_module);

/* ---- functions.c: inlines ModelProto.functions, including nested calls ------------------------------------------ */

enum { FE_MAX_CALL_DEPTH = 64 };

/* Lists the nodes of the model's graph. Values are numbered; their definitions follow in fe_define_values. */
mdot_status fe_flatten(const fe_context *context, const Onnx__ModelProto *model, fe_flat *out_flat);
/* The number of a value in the graph's scope; a new name gets a new number. */
mdot_status fe_flat_value(const fe_context *context, fe_flat *flat, const char *name, int *out_value);

/* ---- topological_order.c ---------------------------------------------------------------------------------------------------- */

/* Defines values: first the graph's initializers and inputs, then the outputs of every node. MALFORMED if a value has
 * a second definition. */
mdot_status fe_define_values(const fe_context *context, const Onnx__GraphProto *graph, fe_flat *flat);
/* Sets `order`; a topological order in the file is kept. MALFORMED for undefined inputs and for cycles. */
mdot_status fe_order_nodes(const fe_context *context, fe_flat *flat);

#endif
