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
    int body_count; /* for a LoopEnd: the nodes of its loop, which stand in front of it in the flat list; else 0 */
    bool folds;     /* the metadata state that a BatchNormalization was folded into it */
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
    fe_names *names;        /* of the graph's own scope */
    int64_t unrolled_count; /* nodes that unrolled loops have added */
    int *order;             /* node indices, sorted so that each value is defined before its use */
} fe_flat;

#endif
