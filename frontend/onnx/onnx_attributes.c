/* onnx_attributes.c — converts the attributes of nodes through a table over AttributeProto's types (see flat.h). */
#include "frontend/onnx/flat.h"

#include "frontend/onnx/import_context.h"

#include <string.h>

/* Converters fill everything except the name. False: out of memory. */
typedef bool (*convert_fn)(ir_arena *arena, const Onnx__AttributeProto *proto, ir_attr *out);

static bool convert_float(ir_arena *arena, const Onnx__AttributeProto *proto, ir_attr *out)
{
    out->kind = IR_ATTR_FLOAT;
    out->f = proto->f;
    return true;
}

static bool convert_int(ir_arena *arena, const Onnx__AttributeProto *proto, ir_attr *out)
{
    out->kind = IR_ATTR_INT;
    out->i = proto->i;
    return true;
}

static const char *copy_text(ir_arena *arena, const ProtobufCBinaryData *text)
{
    return ir_arena_strndup(arena, text->len ? (const char *)text->data : "", text->len);
}

static bool convert_string(ir_arena *arena, const Onnx__AttributeProto *proto, ir_attr *out)
{
    out->kind = IR_ATTR_STRING;
    out->s = copy_text(arena, &proto->s);
    return out->s != NULL;
}

static bool convert_floats(ir_arena *arena, const Onnx__AttributeProto *proto, ir_attr *out)
{
    double *copy = IR_NEW_ARRAY(arena, double, proto->n_floats);
    if (copy == NULL) return false;
    for (size_t i = 0; i < proto->n_floats; i++) copy[i] = proto->floats[i];
    out->kind = IR_ATTR_FLOATS;
    out->count = (int)proto->n_floats;
    out->floats = copy;
    return true;
}

static bool convert_ints(ir_arena *arena, const Onnx__AttributeProto *proto, ir_attr *out)
{
    int64_t *copy = IR_NEW_ARRAY(arena, int64_t, proto->n_ints);
    if (copy == NULL) return false;
    if (proto->n_ints) memcpy(copy, proto->ints, proto->n_ints * sizeof *copy);
    out->kind = IR_ATTR_INTS;
    out->count = (int)proto->n_ints;
    out->ints = copy;
    return true;
}

static bool convert_strings(ir_arena *arena, const Onnx__AttributeProto *proto, ir_attr *out)
{
    const char **copy = IR_NEW_ARRAY(arena, const char *, proto->n_strings);
    if (copy == NULL) return false;
    for (size_t i = 0; i < proto->n_strings; i++) {
        copy[i] = copy_text(arena, &proto->strings[i]);
        if (copy[i] == NULL) return false;
    }
    out->kind = IR_ATTR_STRINGS;
    out->count = (int)proto->n_strings;
    out->strings = copy;
    return true;
}

static bool convert_opaque(ir_arena *arena, const Onnx__AttributeProto *proto, ir_attr *out)
{
    out->kind = IR_ATTR_GRAPH;
    return true;
}

#define TYPE(name) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##name

/* Indexed by AttributeType. TENSOR is converted separately, because reading its data can fail in more ways. */
static const convert_fn converters[] = {
    [TYPE(FLOAT)] = convert_float,           [TYPE(INT)] = convert_int,
    [TYPE(STRING)] = convert_string,         [TYPE(GRAPH)] = convert_opaque,
    [TYPE(FLOATS)] = convert_floats,         [TYPE(INTS)] = convert_ints,
    [TYPE(STRINGS)] = convert_strings,       [TYPE(TENSORS)] = convert_opaque,
    [TYPE(GRAPHS)] = convert_opaque,         [TYPE(SPARSE_TENSOR)] = convert_opaque,
    [TYPE(SPARSE_TENSORS)] = convert_opaque, [TYPE(TYPE_PROTO)] = convert_opaque,
    [TYPE(TYPE_PROTOS)] = convert_opaque,
};
enum { CONVERTER_COUNT = sizeof converters / sizeof *converters };

static mdot_status fail(const fe_context *context, const fe_node *node, const char *attribute, const char *reason)
{
    return mdot_fail(context->err, MDOT_MALFORMED, "%s: node '%s' (%s): attribute '%s' %s", context->file, node->name,
                     node->op_type, attribute, reason);
}

/* Until IR version 2 attributes had no type. It is derived from the field that is present. */
static int type_of(const Onnx__AttributeProto *proto)
{
    if (proto->has_type && proto->type != TYPE(UNDEFINED)) return (int)proto->type;
    if (proto->has_f) return TYPE(FLOAT);
    if (proto->has_i) return TYPE(INT);
    if (proto->has_s) return TYPE(STRING);
    if (proto->t != NULL) return TYPE(TENSOR);
    if (proto->g != NULL) return TYPE(GRAPH);
    if (proto->n_floats) return TYPE(FLOATS);
    if (proto->n_strings) return TYPE(STRINGS);
    if (proto->n_tensors) return TYPE(TENSORS);
    if (proto->n_graphs) return TYPE(GRAPHS);
    return TYPE(INTS); /* also an empty list of any type, because all empty lists read alike */
}

static mdot_status import_attribute(const fe_context *context, const fe_node *source, const fe_attribute *attribute,
                                    ir_attr *out)
{
    const Onnx__AttributeProto *proto = attribute->proto;
    int type = type_of(proto);
    out->name = ir_arena_strdup(context->arena, attribute->name);
    if (out->name == NULL) return fe_out_of_memory(context);
    if (type == TYPE(TENSOR)) {
        if (proto->t == NULL) return fail(context, source, attribute->name, "has no tensor");
        out->kind = IR_ATTR_TENSOR;
        return fe_import_tensor(context, proto->t, "attribute of node", source->name, &out->tensor);
    }
    if (type < 0 || type >= CONVERTER_COUNT || converters[type] == NULL)
        return fail(context, source, attribute->name, "has a type that is unknown to ONNX");
    return converters[type](context->arena, proto, out) ? MDOT_OK : fe_out_of_memory(context);
}

mdot_status fe_import_attributes(const fe_context *context, const fe_node *source, ir_node *node)
{
    ir_attr *attrs = IR_NEW_ARRAY(context->arena, ir_attr, source->attribute_count);
    if (attrs == NULL) return fe_out_of_memory(context);
    for (int i = 0; i < source->attribute_count; i++)
        BS_TRY(import_attribute(context, source, &source->attributes[i], &attrs[i]));
    node->attrs = attrs;
    node->attr_count = source->attribute_count;
    return MDOT_OK;
}

typedef enum constant_form {
    FORM_TENSOR,
    FORM_FLOAT,
    FORM_FLOATS,
    FORM_INT,
    FORM_INTS,
    FORM_STRING,
    FORM_STRINGS,
    FORM_SPARSE
} constant_form;

/* A node of Constant-12 has one of these attributes. */
static const struct {
    const char *name;
    constant_form form;
    int type;
} constant_forms[] = {
    {"value", FORM_TENSOR, TYPE(TENSOR)},           {"value_float", FORM_FLOAT, TYPE(FLOAT)},
    {"value_floats", FORM_FLOATS, TYPE(FLOATS)},    {"value_int", FORM_INT, TYPE(INT)},
    {"value_ints", FORM_INTS, TYPE(INTS)},          {"value_string", FORM_STRING, TYPE(STRING)},
    {"value_strings", FORM_STRINGS, TYPE(STRINGS)}, {"sparse_value", FORM_SPARSE, TYPE(SPARSE_TENSOR)},
};

/* Makes a tensor of a scalar (rank 0) or a list, with a copy of `data`. Strings have no data. */
static mdot_status make_tensor(const fe_context *context, mdot_dtype dtype, int rank, size_t count, const void *data,
                               const ir_tensor **out_tensor)
{
    size_t size_bytes = count * mdot_dtype_size_bytes(dtype);
    ir_tensor *tensor = IR_NEW(context->arena, ir_tensor);
    void *copy = dtype == MDOT_DTYPE_STRING ? NULL : ir_arena_alloc(context->arena, size_bytes, 1);
    if (tensor == NULL || (copy == NULL && dtype != MDOT_DTYPE_STRING)) return fe_out_of_memory(context);
    if (size_bytes) memcpy(copy, data, size_bytes);
    *tensor = (ir_tensor){.dtype = dtype, .rank = rank, .count = (int64_t)count, .data = copy};
    if (rank) tensor->dims[0] = (int64_t)count;
    *out_tensor = tensor;
    return MDOT_OK;
}

static mdot_status import_form(const fe_context *context, const fe_node *source, const fe_attribute *attribute,
                               constant_form form, const ir_tensor **out_tensor)
{
    const Onnx__AttributeProto *proto = attribute->proto;
    switch (form) {
    case FORM_TENSOR:
        if (proto->t == NULL) return fail(context, source, attribute->name, "has no tensor");
        return fe_import_tensor(context, proto->t, "constant", source->name, out_tensor);
    case FORM_FLOAT: return make_tensor(context, MDOT_DTYPE_F32, 0, 1, &proto->f, out_tensor);
    case FORM_INT: return make_tensor(context, MDOT_DTYPE_I64, 0, 1, &proto->i, out_tensor);
    case FORM_STRING: return make_tensor(context, MDOT_DTYPE_STRING, 0, 1, NULL, out_tensor);
    case FORM_FLOATS: return make_tensor(context, MDOT_DTYPE_F32, 1, proto->n_floats, proto->floats, out_tensor);
    case FORM_INTS: return make_tensor(context, MDOT_DTYPE_I64, 1, proto->n_ints, proto->ints, out_tensor);
    case FORM_STRINGS: return make_tensor(context, MDOT_DTYPE_STRING, 1, proto->n_strings, NULL, out_tensor);
    case FORM_SPARSE: break;
    }
    return mdot_fail(context->err, MDOT_UNSUPPORTED, "%s: node '%s' (Constant): sparse tensors are unsupported",
                     context->file, source->name);
}

mdot_status fe_import_constant(const fe_context *context, const fe_node *source, const ir_tensor **out_tensor)
{
    if (source->attribute_count == 1 && source->output_count == 1 && source->input_count == 0) {
        const fe_attribute *attribute = &source->attributes[0];
        for (size_t i = 0; i < sizeof constant_forms / sizeof *constant_forms; i++) {
            if (strcmp(constant_forms[i].name, attribute->name) != 0) continue;
            if (type_of(attribute->proto) != constant_forms[i].type) break;
            return import_form(context, source, attribute, constant_forms[i].form, out_tensor);
        }
    }
    return mdot_fail(context->err, MDOT_MALFORMED,
                     "%s: node '%s' (Constant): requires one output and exactly one value", context->file,
                     source->name);
}
