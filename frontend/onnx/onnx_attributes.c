/* onnx_attributes.c — converts the attributes of nodes by AttributeProto's types (see flat.h). */
#include "frontend/onnx/flat.h"

#include "frontend/onnx/import_context.h"

#include <string.h>

#define TYPE(name) ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##name

static const char *copy_text(ir_arena *arena, const ProtobufCBinaryData *text)
{
    return ir_arena_strndup(arena, text->len ? (const char *)text->data : "", text->len);
}

/* Fills everything except the name. TENSOR is converted separately, because reading its data can fail in more ways.
 * Graphs and other types that no operator here reads are opaque. False: out of memory. */
static bool convert(ir_arena *arena, int type, const Onnx__AttributeProto *proto, ir_attr *out)
{
    switch (type) {
    case TYPE(FLOAT): *out = IR_FLOAT(out->name, proto->f); return true;
    case TYPE(INT): *out = IR_INT(out->name, proto->i); return true;
    case TYPE(STRING):
        out->kind = IR_ATTR_STRING;
        out->s = copy_text(arena, &proto->s);
        return out->s != NULL;
    case TYPE(FLOATS): {
        double *copy = IR_NEW_ARRAY(arena, double, proto->n_floats);
        for (size_t i = 0; copy != NULL && i < proto->n_floats; i++) copy[i] = proto->floats[i];
        *out = (ir_attr){.name = out->name, .kind = IR_ATTR_FLOATS, .count = (int)proto->n_floats, .floats = copy};
        return copy != NULL;
    }
    case TYPE(INTS): {
        int64_t *copy = IR_NEW_ARRAY(arena, int64_t, proto->n_ints);
        for (size_t i = 0; copy != NULL && i < proto->n_ints; i++) copy[i] = proto->ints[i];
        *out = IR_INTS(out->name, copy, (int)proto->n_ints);
        return copy != NULL;
    }
    case TYPE(STRINGS): {
        const char **copy = IR_NEW_ARRAY(arena, const char *, proto->n_strings);
        if (copy == NULL) return false;
        for (size_t i = 0; i < proto->n_strings; i++) {
            copy[i] = copy_text(arena, &proto->strings[i]);
            if (copy[i] == NULL) return false;
        }
        *out = (ir_attr){.name = out->name, .kind = IR_ATTR_STRINGS, .count = (int)proto->n_strings, .strings = copy};
        return true;
    }
    default: out->kind = IR_ATTR_GRAPH; return true;
    }
}

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
    if (type <= TYPE(UNDEFINED) || type > TYPE(TYPE_PROTOS))
        return fail(context, source, attribute->name, "has a type that is unknown to ONNX");
    return convert(context->arena, type, proto, out) ? MDOT_OK : fe_out_of_memory(context);
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

/* A node of Constant-12 has one of these attributes. */
static const struct {
    const char *name;
    int type;
} constant_forms[] = {
    {"value", TYPE(TENSOR)},          {"value_float", TYPE(FLOAT)},
    {"value_floats", TYPE(FLOATS)},   {"value_int", TYPE(INT)},
    {"value_ints", TYPE(INTS)},       {"value_string", TYPE(STRING)},
    {"value_strings", TYPE(STRINGS)}, {"sparse_value", TYPE(SPARSE_TENSOR)},
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
                               const ir_tensor **out_tensor)
{
    const Onnx__AttributeProto *proto = attribute->proto;
    switch (type_of(proto)) {
    case TYPE(TENSOR):
        if (proto->t == NULL) return fail(context, source, attribute->name, "has no tensor");
        return fe_import_tensor(context, proto->t, "constant", source->name, out_tensor);
    case TYPE(FLOAT): return make_tensor(context, MDOT_DTYPE_F32, 0, 1, &proto->f, out_tensor);
    case TYPE(INT): return make_tensor(context, MDOT_DTYPE_I64, 0, 1, &proto->i, out_tensor);
    case TYPE(STRING): return make_tensor(context, MDOT_DTYPE_STRING, 0, 1, NULL, out_tensor);
    case TYPE(FLOATS): return make_tensor(context, MDOT_DTYPE_F32, 1, proto->n_floats, proto->floats, out_tensor);
    case TYPE(INTS): return make_tensor(context, MDOT_DTYPE_I64, 1, proto->n_ints, proto->ints, out_tensor);
    case TYPE(STRINGS): return make_tensor(context, MDOT_DTYPE_STRING, 1, proto->n_strings, NULL, out_tensor);
    default: /* SPARSE_TENSOR */
        return mdot_fail(context->err, MDOT_UNSUPPORTED, "%s: node '%s' (Constant): sparse tensors are unsupported",
                         context->file, source->name);
    }
}

mdot_status fe_import_constant(const fe_context *context, const fe_node *source, const ir_tensor **out_tensor)
{
    if (source->attribute_count == 1 && source->output_count == 1 && source->input_count == 0) {
        const fe_attribute *attribute = &source->attributes[0];
        for (size_t i = 0; i < sizeof constant_forms / sizeof *constant_forms; i++) {
            if (strcmp(constant_forms[i].name, attribute->name) != 0) continue;
            if (type_of(attribute->proto) != constant_forms[i].type) break;
            return import_form(context, source, attribute, out_tensor);
        }
    }
    return mdot_fail(context->err, MDOT_MALFORMED,
                     "%s: node '%s' (Constant): requires one output and exactly one value", context->file,
                     source->name);
}
