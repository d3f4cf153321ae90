/* onnx.h — reads ONNX bytes into an ir_graph.
 *
 * read (bytes checked on the wire, then protobuf-c) → inline local functions → import (values, initializers,
 * attributes) → upgrade every node to the newest opset's form. Type inference and folding happen later.
 */
#pragma once

#include "ir/graph.h"

typedef struct fe_options {
    const mdot_dim_binding *bindings;
    size_t binding_count;
    /* Concrete shapes for the inputs, in the graph's order (the shapes of a test's data); NULL: use the file's. An
     * entry of rank -1 also means the file's. */
    const ir_type *input_types;
    size_t input_type_count;
    const char *output; /* the output file; NULL: none. Refused if it is the model or external data, or unwritable
                         * (bs_check_replaces) */
    bool skip_weights;  /* leave the data of large initializers unread (ir_tensor.data NULL) */
    /* Called before data in other files is read, with the number of float elements of the constants that nodes read.
     * A failure ends the import. NULL: any number is accepted. */
    mdot_status (*check_weights)(const void *weights_user, const char *file, double elements, mdot_error *err);
    const void *weights_user;
    /* The model is a training job, which is analysed but not run. Every dimension becomes a number. The batch becomes
     * 1: a symbol that leads the first input, that occurs only as a leading dimension, or that is named as a batch.
     * `bindings` set the others; INVALID_ARGUMENT lists those that remain. Inputs that are not tensors, or that have
     * no shape, become scalars with a warning. Values get the types that the file's value_info states. Branches of an
     * If are inlined among the nodes around it: the If reads its condition, the results of the first branch, then
     * those of the second. */
    bool job;
    int64_t batch; /* of a job: another size for the batch than 1, also if `bindings` set it; 0: none */
    /* Local functions that the caller understands better than the bodies; NULL: none. For example, PyTorch's dynamo
     * exporter writes a view in another memory format element by element, in a loop that no rule can type. */
    bool (*keep_call)(const char *domain, const char *op_type);
    void (*warning)(void *user, const char *message);
    void *user;
} fe_options;

/* Attribute of a job's node, with value 1: an exporter folded a BatchNormalization into the node. */
#define FE_FOLDED_NORMALISATION "mdot.folded_normalisation"

/* Reading a file may use memory up to a generous multiple of the file size. An arena without a limit gets one here. The
 * limit stays in force for everything computed from the graph later. If OUT_OF_MEMORY is due to this limit, the message
 * names the file and the limit. Every other status stays as it is. */
mdot_status fe_explain_memory(const ir_arena *arena, const char *name, mdot_status status, mdot_error *err);

/* Imports the model at `path` into the arena. Mappings and open files are released with the arena. A node whose
 * operator is not in the table is kept with op = NULL; ir_check_supported reports them all. graph->symbol is set if
 * one symbolic dimension remains. If several remain and all but one occur only as the first dimension of inputs,
 * these are bound to 1 with a warning. Otherwise INVALID_ARGUMENT lists the dimensions and the ways to bind them. */
mdot_status fe_import(const char *path, const fe_options *options, ir_arena *arena, ir_graph **out_graph,
                      mdot_error *err);

/* Imports from memory. `name` replaces the file name in messages. External data is looked up in `folder` (NULL:
 * refused). The bytes must outlive the arena's content. */
mdot_status fe_import_bytes(const void *bytes, size_t size_bytes, const char *name, const char *folder,
                            const fe_options *options, ir_arena *arena, ir_graph **out_graph, mdot_error *err);

/* Reads a TensorProto file, as in ONNX's test data sets. */
mdot_status fe_read_tensor(const char *path, ir_arena *arena, ir_tensor **out_tensor, const char **out_name,
                           mdot_error *err);
