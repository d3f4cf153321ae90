/* flat.h — the form of a model between its messages and the graph. It is one list of nodes with local functions
 * inlined, whose inputs and outputs are numbered values rather than names. Private to frontend/.
 *
 * Numbers make scopes cheap, because a value inside an inlined function has its own number and needs no unique name. */
#pragma once

#include "frontend/onnx/import_context.h"
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
    bool when;     /* the condition's value for this branch */
    const struct fe_branch *around;
} fe_branch;

typedef struct fe_node {
    const char *domain; /* "" for ai.onnx */
    const char *op_type;
    const char *name; /* for messages; an inlined node's name starts with the call's name */
    int64_t opset;    /* opset of domain "" at this node; 0: not imported */
    int input_count, output_count, attribute_count;
    int *inputs, *outputs;   /* value numbers or FE_NO_VALUE */
    const fe_branch *branch; /* NULL: outside branches, or both branches of the If are read (jobs) */
    int body_count;          /* for a LoopEnd: the loop's nodes, listed before it; else 0 */
    bool folds;              /* the metadata state that a BatchNormalization was folded into it */
    fe_attribute *attributes;
} fe_node;

/* The definer of a value: a node's index, or one of these. */
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
    fe_names *names;        /* of the graph's own scope */
    int64_t unrolled_count; /* nodes that unrolled loops have added */
    int *order;             /* node indices, definitions before uses */
} fe_flat;

/* ---- metadata.c: metadata of nodes, as onnxscript writes it ------------------------------------------------------ */

/* onnxscript names a node's rule, source modules and ATen operators, for example
 * "torch.nn.modules.batchnorm.BatchNorm2d/batch_norm: aten.batch_norm.default". */
bool fe_is_folded_node(const Onnx__NodeProto *proto);
/* The module that a node was exported from, for example "layers.0.attn", in the scratch arena. NULL: unknown, or the
 * network itself. */
mdot_status fe_node_module(const fe_context *context, const Onnx__NodeProto *proto, const char **out_module);

/* ---- onnx_attributes.c: AttributeProto → ir_attr, and Constant nodes → constant data ----------------------------- */

/* Converts the attributes of `source` into attributes of `node`. Graphs, types and lists of tensors become
 * IR_ATTR_GRAPH with empty content; mdot's operators do without them. */
mdot_status fe_import_attributes(const fe_context *context, const fe_node *source, ir_node *node);

/* A Constant node's tensor, from any attribute. */
mdot_status fe_import_constant(const fe_context *context, const fe_node *source, const ir_tensor **out_tensor);

/* ---- stated_weights.c: how many weights a model has, from the shapes in its file --------------------------------- */

/* Adds up the elements of the float initializers and constants that nodes read. A node inside a branch of an If does
 * not count, because the branch may be left out. Needs the definitions of fe_define_values. */
mdot_status fe_count_stated_weights(const fe_context *context, const Onnx__GraphProto *graph, const fe_flat *flat,
                                    double *out_elements);

/* ---- topological_order.c: definitions and order of the nodes of a flat graph ------------------------------------- */

/* Defines values: first the graph's initializers and inputs, then every node's outputs. MALFORMED if a value has a
 * second definition. */
mdot_status fe_define_values(const fe_context *context, const Onnx__GraphProto *graph, fe_flat *flat);
/* Sets `order`; a topological order in the file is kept. MALFORMED for undefined inputs and for cycles. */
mdot_status fe_order_nodes(const fe_context *context, fe_flat *flat);
