/* onnx.h — ONNX bytes → ir_graph.
 *
 * read (bytes checked on the wire, then protobuf-c) → inline local functions → import (values, initializers,
 * attributes) → upgrade every node to the newest opset's form. Nothing is inferred or folded here.
 */
#ifndef FE_ONNX_H
#define FE_ONNX_H

#include "ir/graph.h"

typedef struct fe_options {
    const mdot_dim_binding *bindings;
    size_t binding_count;
    /* Concrete shapes for the inputs, in the graph's order (the shapes of a test's data); NULL: take the file's. An
     * input's entry of rank -1 means the file's. */
    const ir_type *input_types;
    size_t input_type_count;
    const char *output; /* a file that will be written from the model: refused where the model or its external data is
                           that file, or it is none that can be written (bs_check_replaces); NULL: none */
    bool skip_weights;  /* leave the data of large initializers unread (ir_tensor.data NULL) */
    /* The model is a training job, to be looked at and not to be run. Every dimension becomes a number: the batch (a
     * symbol that leads the first input, that only ever leads, or that is called a batch) 1, the others by `bindings`,
     * or INVALID_ARGUMENT lists them. Inputs that are no tensors, or have no shape, are taken as scalars with a
     * warning. Values get the types that the file's value_info gives them, where it does. Branches of an If stand among
     * the nodes around it: behind its condition it reads the results of the first and then those of the second. */
    bool job;
    /* Calls of local functions that the caller understands better than their bodies; NULL: none. PyTorch's dynamo
     * exporter spells a view in another memory format element by element, in a loop that no rule can type. */
    bool (*stays_call)(const char *domain, const char *op_type);
    void (*warning)(void *user, const char *message);
    void *user;
} fe_options;

/* An attribute that a job's nodes have, 1, into which an exporter says it has folded a BatchNormalization. */
#define FE_FOLDED_NORMALISATION "mdot.folded_normalisation"

/* No file may take more memory to read than a generous multiple of its size: an arena without a limit of its own gets
 * one here, which holds from then on, for what is worked out of the graph, too. OUT_OF_MEMORY because of that limit
 * says so, with file and limit; every other status stays as it is. */
mdot_status fe_explain_memory(const ir_arena *arena, const char *name, mdot_status status, mdot_error *err);

/* Imports the model at `path` into the arena. What is mapped or opened is released with the arena. Nodes whose operator
 * is not in the table are kept with op = NULL: ir_check_supported reports them all. graph->symbol is set when one
 * symbolic dimension is left. With several left: those that occur only as the first dimension of inputs are bound to 1
 * with a warning if exactly one other remains; else INVALID_ARGUMENT lists them and says how to bind them. */
mdot_status fe_import(const char *path, const fe_options *options, ir_arena *arena, ir_graph **out_graph,
                      mdot_error *err);

/* The same from memory; `name` stands for the file in messages, external data is looked for in `folder` (NULL:
 * refused). The bytes must outlive the arena's content. */
mdot_status fe_import_bytes(const void *bytes, size_t size_bytes, const char *name, const char *folder,
                            const fe_options *options, ir_arena *arena, ir_graph **out_graph, mdot_error *err);

/* A TensorProto file, as in ONNX's test data sets. */
mdot_status fe_read_tensor(const char *path, ir_arena *arena, ir_tensor **out_tensor, const char **out_name,
                           mdot_error *err);

#endif
