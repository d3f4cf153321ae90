/* onnx_builder.c — ONNX models for tests (see onnx_builder.h). The field numbers are those of ONNX's onnx.proto. */
#include "tests/support/onnx_builder.h"

#include <stdlib.h>
#include <string.h>

/* ---- Wire format ------------------------------------------------------------------------------------------------- */

void pb_raw(pb_buffer *b, const void *bytes, size_t size)
{
    if (size > b->capacity - b->size) {
        while (size > b->capacity - b->size) b->capacity = b->capacity ? 2 * b->capacity : 64;
        b->data = realloc(b->data, b->capacity);
        if (!b->data) abort();
    }
    if (size) memcpy(b->data + b->size, bytes, size);
    b->size += size;
}

void pb_varint(pb_buffer *b, uint64_t value)
{
    do {
        unsigned char byte = (unsigned char)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));
        pb_raw(b, &byte, 1);
        value >>= 7;
    } while (value);
}

static void tag(pb_buffer *b, int field, int wire_type) { pb_varint(b, (uint64_t)field << 3 | (uint64_t)wire_type); }

void pb_int(pb_buffer *b, int field, int64_t value)
{
    tag(b, field, 0);
    pb_varint(b, (uint64_t)value);
}

void pb_float(pb_buffer *b, int field, float value)
{
    tag(b, field, 5);
    pb_raw(b, &value, sizeof value);
}

void pb_bytes(pb_buffer *b, int field, const void *bytes, size_t size)
{
    tag(b, field, 2);
    pb_varint(b, size);
    pb_raw(b, bytes, size);
}

void pb_text(pb_buffer *b, int field, const char *text) { pb_bytes(b, field, text, strlen(text)); }

void pb_message(pb_buffer *b, int field, pb_buffer *content)
{
    pb_bytes(b, field, content->data, content->size);
    pb_free(content);
}

void pb_free(pb_buffer *b)
{
    free(b->data);
    *b = (pb_buffer){0};
}

/* ---- Text lists -------------------------------------------------------------------------------------------------- */

/* Copies the next part of a list up to `separator` into `part`. Returns NULL at the end. */
static const char *next_part(const char *list, char separator, char part[256])
{
    if (!list) return NULL;
    const char *end = strchr(list, separator);
    size_t length = end ? (size_t)(end - list) : strlen(list);
    if (length >= 256) abort();
    memcpy(part, list, length);
    part[length] = '\0';
    return end ? end + 1 : list + length;
}

static void put_names(pb_buffer *b, int field, const char *names)
{
    char name[256];
    while (*names) {
        const char *end = next_part(names, ',', name);
        pb_text(b, field, name);
        if (!*end && end[-1] == ',') pb_text(b, field, ""); /* "a," ends with an absent name */
        names = end;
    }
}

/* "domain:name:overload" or "name". */
static void put_operator(pb_buffer *b, const char *text, int name_field, int domain_field, int overload_field)
{
    char part[256];
    const char *rest = next_part(text, ':', part);
    if (!*rest) {
        pb_text(b, name_field, part);
        return;
    }
    pb_text(b, domain_field, part);
    rest = next_part(rest, ':', part);
    pb_text(b, name_field, part);
    if (*rest) pb_text(b, overload_field, rest);
}

static bool is_number(const char *text) { return *text && strspn(text, "-0123456789") == strlen(text); }

/* ---- Tensors and types ------------------------------------------------------------------------------------------- */

pb_buffer onnx_tensor_head(const char *name, int dtype, const char *shape)
{
    pb_buffer t = {0};
    char dim[256];
    while (*shape) {
        shape = next_part(shape, ',', dim);
        pb_int(&t, 1, strtoll(dim, NULL, 10));
    }
    pb_int(&t, 2, dtype);
    if (*name) pb_text(&t, 8, name);
    return t;
}

pb_buffer onnx_tensor(const char *name, mdot_dtype dtype, const char *shape, const void *data)
{
    pb_buffer t = onnx_tensor_head(name, dtype, shape);
    size_t size = mdot_dtype_size_bytes(dtype);
    char dim[256];
    while (*shape) {
        shape = next_part(shape, ',', dim);
        size *= (size_t)strtoll(dim, NULL, 10);
    }
    void *zeros = data ? NULL : calloc(size ? size : 1, 1);
    pb_bytes(&t, 9, data ? data : zeros, size);
    free(zeros);
    return t;
}

static pb_buffer shape_message(const char *shape)
{
    pb_buffer message = {0};
    char text[256];
    while (*shape) {
        shape = next_part(shape, ',', text);
        pb_buffer dim = {0};
        if (is_number(text))
            pb_int(&dim, 1, strtoll(text, NULL, 10));
        else if (strcmp(text, "?") != 0)
            pb_text(&dim, 2, text);
        pb_message(&message, 1, &dim);
    }
    return message;
}

static pb_buffer value_info(const char *name, mdot_dtype dtype, const char *shape)
{
    pb_buffer tensor = {0}, type = {0}, info = {0};
    pb_int(&tensor, 1, dtype);
    if (shape) {
        pb_buffer message = shape_message(shape);
        pb_message(&tensor, 2, &message);
    }
    pb_message(&type, 1, &tensor);
    pb_text(&info, 1, name);
    pb_message(&info, 2, &type);
    return info;
}

/* ---- Models ------------------------------------------------------------------------------------------------------ */

struct onnx_builder {
    pb_buffer model, graph;
    pb_buffer node;     /* the last node, still open for attributes */
    pb_buffer function; /* the function under construction */
    bool in_node, in_function;
};

static void end_node(onnx_builder *b)
{
    if (!b->in_node) return;
    if (b->in_function)
        pb_message(&b->function, 7, &b->node);
    else
        pb_message(&b->graph, 1, &b->node);
    b->in_node = false;
}

static pb_buffer opset(const char *domain, int version)
{
    pb_buffer message = {0};
    if (*domain) pb_text(&message, 1, domain);
    pb_int(&message, 2, version);
    return message;
}

void onnx_import(onnx_builder *b, const char *domain, int version)
{
    pb_buffer message = opset(domain, version);
    pb_message(&b->model, 8, &message);
}

onnx_builder *onnx_begin(int version)
{
    onnx_builder *b = calloc(1, sizeof *b);
    if (!b) abort();
    pb_int(&b->model, 1, 8); /* IR version */
    if (version) onnx_import(b, "", version);
    return b;
}

pb_buffer onnx_finish(onnx_builder *b)
{
    end_node(b);
    pb_message(&b->model, 7, &b->graph);
    pb_buffer model = b->model;
    free(b);
    return model;
}

void onnx_input(onnx_builder *b, const char *name, mdot_dtype dtype, const char *shape)
{
    pb_buffer info = value_info(name, dtype, shape);
    pb_message(&b->graph, 11, &info);
}

void onnx_output(onnx_builder *b, const char *name)
{
    pb_buffer info = {0};
    pb_text(&info, 1, name);
    pb_message(&b->graph, 12, &info);
}

void onnx_initializer(onnx_builder *b, const char *name, mdot_dtype dtype, const char *shape, const void *data)
{
    pb_buffer tensor = onnx_tensor(name, dtype, shape, data);
    pb_message(&b->graph, 5, &tensor);
}

void onnx_initializer_elsewhere(onnx_builder *b, const char *name, mdot_dtype dtype, const char *shape)
{
    pb_buffer tensor = onnx_tensor_head(name, dtype, shape), place = {0};
    pb_text(&place, 1, "location");
    pb_text(&place, 2, "weights-left-out");
    pb_message(&tensor, 13, &place);
    pb_int(&tensor, 14, 1);
    pb_message(&b->graph, 5, &tensor);
}

void onnx_node(onnx_builder *b, const char *op_type, const char *inputs, const char *outputs)
{
    end_node(b);
    b->in_node = true;
    put_names(&b->node, 1, inputs);
    put_names(&b->node, 2, outputs);
    put_operator(&b->node, op_type, 4, 7, 8);
}

void onnx_node_name(onnx_builder *b, const char *name) { pb_text(&b->node, 3, name); }

void onnx_node_metadata(onnx_builder *b, const char *key, const char *value)
{
    pb_buffer entry = {0};
    pb_text(&entry, 1, key);
    pb_text(&entry, 2, value);
    pb_message(&b->node, 9, &entry);
}

/* ---- Attributes: the type's number is field 20 ------------------------------------------------------------------- */

static pb_buffer attribute(const char *name, int type)
{
    pb_buffer message = {0};
    pb_text(&message, 1, name);
    pb_int(&message, 20, type);
    return message;
}

void onnx_attr_graph(onnx_builder *b, const char *name, onnx_builder *graph)
{
    pb_buffer attr = {0};
    end_node(graph);
    pb_text(&attr, 1, name);
    pb_message(&attr, 6, &graph->graph);
    pb_int(&attr, 20, 5); /* AttributeProto.GRAPH */
    onnx_attr_raw(b, &attr);
    pb_buffer rest = onnx_finish(graph);
    pb_free(&rest);
}

void onnx_attr_raw(onnx_builder *b, pb_buffer *content) { pb_message(&b->node, 5, content); }

void onnx_attr_float(onnx_builder *b, const char *name, float value)
{
    pb_buffer a = attribute(name, 1);
    pb_float(&a, 2, value);
    onnx_attr_raw(b, &a);
}

void onnx_attr_int(onnx_builder *b, const char *name, int64_t value)
{
    pb_buffer a = attribute(name, 2);
    pb_int(&a, 3, value);
    onnx_attr_raw(b, &a);
}

void onnx_attr_string(onnx_builder *b, const char *name, const char *value)
{
    pb_buffer a = attribute(name, 3);
    pb_text(&a, 4, value);
    onnx_attr_raw(b, &a);
}

void onnx_attr_tensor(onnx_builder *b, const char *name, mdot_dtype dtype, const char *shape, const void *data)
{
    pb_buffer a = attribute(name, 4), tensor = onnx_tensor("", dtype, shape, data);
    pb_message(&a, 5, &tensor);
    onnx_attr_raw(b, &a);
}

void onnx_attr_floats(onnx_builder *b, const char *name, int count, const float *values)
{
    pb_buffer a = attribute(name, 6);
    for (int i = 0; i < count; i++) pb_float(&a, 7, values[i]);
    onnx_attr_raw(b, &a);
}

void onnx_attr_ints(onnx_builder *b, const char *name, int count, const int64_t *values)
{
    pb_buffer a = attribute(name, 7);
    for (int i = 0; i < count; i++) pb_int(&a, 8, values[i]);
    onnx_attr_raw(b, &a);
}

void onnx_attr_strings(onnx_builder *b, const char *name, const char *texts)
{
    pb_buffer a = attribute(name, 8);
    for (const char *end; *texts != '\0'; texts = *end == ',' ? end + 1 : end) {
        end = strchr(texts, ',');
        if (end == NULL) end = texts + strlen(texts);
        pb_bytes(&a, 9, texts, (size_t)(end - texts));
    }
    onnx_attr_raw(b, &a);
}

void onnx_attr_reference(onnx_builder *b, const char *name, const char *reference)
{
    pb_buffer a = attribute(name, 2);
    pb_text(&a, 21, reference);
    onnx_attr_raw(b, &a);
}

/* ---- Functions --------------------------------------------------------------------------------------------------- */

void onnx_begin_function(onnx_builder *b, const char *name, const char *inputs, const char *outputs, int version)
{
    end_node(b);
    b->in_function = true;
    put_operator(&b->function, name, 1, 10, 13);
    put_names(&b->function, 4, inputs);
    put_names(&b->function, 5, outputs);
    pb_buffer message = opset("", version);
    pb_message(&b->function, 9, &message);
}

void onnx_function_attr(onnx_builder *b, const char *name) { pb_text(&b->function, 6, name); }

void onnx_function_attr_int(onnx_builder *b, const char *name, int64_t fallback)
{
    pb_buffer a = attribute(name, 2);
    pb_int(&a, 3, fallback);
    pb_message(&b->function, 11, &a);
}

void onnx_end_function(onnx_builder *b)
{
    end_node(b);
    b->in_function = false;
    pb_message(&b->model, 25, &b->function);
}

void onnx_model_raw(onnx_builder *b, int field, pb_buffer *content) { pb_message(&b->model, field, content); }
void onnx_metadata(onnx_builder *b, const char *key, const char *value)
{
    pb_buffer entry = {0};
    pb_text(&entry, 1, key);
    pb_text(&entry, 2, value);
    onnx_model_raw(b, 14, &entry); /* ModelProto.metadata_props */
}
void onnx_graph_raw(onnx_builder *b, int field, pb_buffer *content) { pb_message(&b->graph, field, content); }
