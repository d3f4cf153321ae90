/* onnx_builder.h — ONNX models in a few lines of a test, written byte by byte, without the frontend's own protobuf
 * code.
 *
 *     onnx_builder *b = onnx_begin(17);
 *     onnx_input(b, "x", MDOT_DTYPE_F32, "1,N,4");
 *     onnx_initializer(b, "w", MDOT_DTYPE_F32, "4,4", weights);
 *     onnx_node(b, "MatMul", "x,w", "y");
 *     onnx_node(b, "Softmax", "y", "z");
 *     onnx_attr_int(b, "axis", -1);
 *     onnx_output(b, "z");
 *     pb_buffer model = onnx_finish(b);
 *     … fe_import_bytes(model.data, model.size, …)
 *     pb_free(&model);
 *
 * Shapes are text: numbers, names of symbolic dimensions, "?" for an unknown dimension. "" is a scalar, NULL an
 * unknown shape. Lists of names are separated by commas. An empty name is an absent input or output. If memory runs
 * out, the program aborts.
 */
#pragma once

#include "mdot/mdot_base.h"

/* ---- Protobuf's wire format -------------------------------------------------------------------------------------- */

typedef struct pb_buffer {
    unsigned char *data;
    size_t size, capacity;
} pb_buffer;

void pb_raw(pb_buffer *b, const void *bytes, size_t size);
void pb_varint(pb_buffer *b, uint64_t value);
/* Whole fields: tag and content. */
void pb_int(pb_buffer *b, int field, int64_t value);
void pb_float(pb_buffer *b, int field, float value);
void pb_bytes(pb_buffer *b, int field, const void *bytes, size_t size);
void pb_text(pb_buffer *b, int field, const char *text);
/* Appends `content` as a nested message and frees it. */
void pb_message(pb_buffer *b, int field, pb_buffer *content);
void pb_free(pb_buffer *b);

/* ---- Models ------------------------------------------------------------------------------------------------------ */

typedef struct onnx_builder onnx_builder;

/* A model with this opset of ai.onnx; 0 = without an import. */
onnx_builder *onnx_begin(int opset);
/* Returns the model's bytes and destroys the builder. */
pb_buffer onnx_finish(onnx_builder *b);

void onnx_import(onnx_builder *b, const char *domain, int version);
void onnx_input(onnx_builder *b, const char *name, mdot_dtype dtype, const char *shape);
void onnx_output(onnx_builder *b, const char *name);
/* `data` has the shape's elements and becomes raw_data; NULL = zeros. */
void onnx_initializer(onnx_builder *b, const char *name, mdot_dtype dtype, const char *shape, const void *data);
/* The data are in another file, which is absent. */
void onnx_initializer_elsewhere(onnx_builder *b, const char *name, mdot_dtype dtype, const char *shape);
/* "MatMul", or "com.microsoft:Gelu". Subsequent attributes and a name belong to this node. */
void onnx_node(onnx_builder *b, const char *op_type, const char *inputs, const char *outputs);
void onnx_node_name(onnx_builder *b, const char *name);
void onnx_node_metadata(onnx_builder *b, const char *key, const char *value);

void onnx_attr_int(onnx_builder *b, const char *name, int64_t value);
void onnx_attr_float(onnx_builder *b, const char *name, float value);
void onnx_attr_string(onnx_builder *b, const char *name, const char *value);
void onnx_attr_ints(onnx_builder *b, const char *name, int count, const int64_t *values);
void onnx_attr_floats(onnx_builder *b, const char *name, int count, const float *values);
/* Texts separated by commas. */
void onnx_attr_strings(onnx_builder *b, const char *name, const char *texts);
void onnx_attr_tensor(onnx_builder *b, const char *name, mdot_dtype dtype, const char *shape, const void *data);
/* An attribute with the value of attribute `reference` in the function's call. */
void onnx_attr_reference(onnx_builder *b, const char *name, const char *reference);
/* Another builder's graph as a branch or a body; destroys that builder. */
void onnx_attr_graph(onnx_builder *b, const char *name, onnx_builder *graph);
/* Frees `content`, an AttributeProto. */
void onnx_attr_raw(onnx_builder *b, pb_buffer *content);

/* The nodes between begin and end are the function's body. `name` is as in onnx_node, with an overload after a second
 * colon. */
void onnx_begin_function(onnx_builder *b, const char *name, const char *inputs, const char *outputs, int opset);
void onnx_function_attr(onnx_builder *b, const char *name);
void onnx_function_attr_int(onnx_builder *b, const char *name, int64_t fallback);
void onnx_end_function(onnx_builder *b);

/* Adds a ModelProto or GraphProto field beyond the functions above. Frees `content`. */
void onnx_model_raw(onnx_builder *b, int field, pb_buffer *content);
void onnx_graph_raw(onnx_builder *b, int field, pb_buffer *content);
/* Adds an entry to the metadata of the model. */
void onnx_metadata(onnx_builder *b, const char *key, const char *value);

/* A TensorProto with raw_data (NULL: zeros). */
pb_buffer onnx_tensor(const char *name, mdot_dtype dtype, const char *shape, const void *data);
/* The start of a TensorProto: name, type and dims. The caller adds the data. */
pb_buffer onnx_tensor_head(const char *name, int dtype, const char *shape);
