/* onnx_tensor.c — converts a TensorProto to an ir_tensor: checks the shape, and borrows data from the file or widens
 * it from ONNX's typed fields. */
#include "frontend/onnx/import_context.h"

#include "frontend/onnx/onnx.h"
#include "frontend/onnx/source.h"

#include <string.h>

typedef enum source { SOURCE_FLOAT, SOURCE_DOUBLE, SOURCE_INT32, SOURCE_INT64, SOURCE_UINT64 } source;

/* The typed field of each element type, as listed at TensorProto's data fields in onnx.proto. */
static source source_of(mdot_dtype dtype)
{
    switch (dtype) {
    case MDOT_DTYPE_F32: return SOURCE_FLOAT;
    case MDOT_DTYPE_F64: return SOURCE_DOUBLE;
    case MDOT_DTYPE_I64: return SOURCE_INT64;
    case MDOT_DTYPE_U32:
    case MDOT_DTYPE_U64: return SOURCE_UINT64;
    default: return SOURCE_INT32; /* narrower integers, bool, and the bits of f16 and bf16 */
    }
}

static size_t source_count(const Onnx__TensorProto *proto, source from)
{
    switch (from) {
    case SOURCE_FLOAT: return proto->n_float_data;
    case SOURCE_DOUBLE: return proto->n_double_data;
    case SOURCE_INT32: return proto->n_int32_data;
    case SOURCE_INT64: return proto->n_int64_data;
    case SOURCE_UINT64: return proto->n_uint64_data;
    }
    return 0;
}

static mdot_status fail(const fe_context *context, mdot_status status, const char *kind, const char *name,
                        const char *reason)
{
    return mdot_fail(context->err, status, "%s: %s '%s': %s", context->file, kind, name, reason);
}

/* The valid values in an integer field for `dtype`: the type's range, or for 16-bit floats the range of bit
 * patterns. */
static void range_of(mdot_dtype dtype, int64_t *out_lowest, int64_t *out_highest)
{
    int bits = dtype == MDOT_DTYPE_BOOL ? 1 : 8 * (int)mdot_dtype_size_bytes(dtype);
    bool is_signed = !ir_dtype_is_unsigned(dtype) && !ir_dtype_is_float(dtype);
    *out_highest = (INT64_C(1) << (bits - is_signed)) - 1;
    *out_lowest = is_signed ? -*out_highest - 1 : 0;
}

/* Narrows elements of int32_data, or of uint64_data for u32, to the width of the type. */
static mdot_status narrow(const fe_context *context, const Onnx__TensorProto *proto, const char *kind, const char *name,
                          mdot_dtype dtype, size_t count, unsigned char *out)
{
    size_t size = mdot_dtype_size_bytes(dtype);
    int64_t lowest, highest;
    range_of(dtype, &lowest, &highest);
    for (size_t i = 0; i < count; i++) {
        int64_t value = dtype == MDOT_DTYPE_U32 ? (int64_t)proto->uint64_data[i] : proto->int32_data[i];
        if (value < lowest || value > highest)
            return fail(context, MDOT_MALFORMED, kind, name, "an element is outside its type's range");
        memcpy(out + i * size, &value, size); /* little-endian: the low bytes come first */
    }
    return MDOT_OK;
}

static mdot_status copy_typed(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                              const char *name, mdot_dtype dtype, size_t count, void *out)
{
    const void *values = NULL;
    switch (dtype) {
    case MDOT_DTYPE_F32: values = proto->float_data; break;
    case MDOT_DTYPE_F64: values = proto->double_data; break;
    case MDOT_DTYPE_I64: values = proto->int64_data; break;
    case MDOT_DTYPE_U64: values = proto->uint64_data; break;
    default: return narrow(context, proto, kind, name, dtype, count, out);
    }
    if (count) memcpy(out, values, count * mdot_dtype_size_bytes(dtype));
    return MDOT_OK;
}

/* Uses raw bytes as constant data. They are borrowed if aligned to their element and copied otherwise. Bools become 0
 * and 1. */
static const void *adopt(const fe_context *context, const unsigned char *raw, mdot_dtype dtype, size_t size_bytes)
{
    bool is_valid = dtype != MDOT_DTYPE_BOOL;
    if (!is_valid) {
        unsigned char bits = 0;
        for (size_t i = 0; i < size_bytes; i++) bits |= raw[i];
        is_valid = bits <= 1;
    }
    if (is_valid && (uintptr_t)raw % mdot_dtype_size_bytes(dtype) == 0) return raw;
    unsigned char *copy = ir_arena_alloc(context->arena, size_bytes, 1);
    if (copy == NULL) return NULL;
    if (is_valid) {
        memcpy(copy, raw, size_bytes);
    } else {
        for (size_t i = 0; i < size_bytes; i++) copy[i] = raw[i] != 0;
    }
    return copy;
}

static mdot_status import_external(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                                   const char *name, ir_tensor *tensor, size_t size_bytes)
{
    const void *data;
    BS_TRY(fe_read_external(context, proto, kind, name, size_bytes, &data));
    tensor->data = adopt(context, data, tensor->dtype, size_bytes);
    return tensor->data != NULL ? MDOT_OK : fe_out_of_memory(context);
}

static mdot_status import_raw(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                              const char *name, ir_tensor *tensor, size_t size_bytes)
{
    fe_span span;
    memcpy(&span, proto->raw_data.data, sizeof span); /* made by wire.c, which keeps it within the file */
    if (span.size_bytes != size_bytes)
        return mdot_fail(context->err, MDOT_MALFORMED,
                         "%s: %s '%s': raw_data has %llu bytes, but its shape requires %zu", context->file, kind, name,
                         (unsigned long long)span.size_bytes, size_bytes);
    BS_TRY(fe_need(context->source, (size_t)span.offset, size_bytes, context->err));
    tensor->data = adopt(context, context->source->bytes + span.offset, tensor->dtype, size_bytes);
    return tensor->data != NULL ? MDOT_OK : fe_out_of_memory(context);
}

static mdot_status import_typed(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                                const char *name, ir_tensor *tensor, size_t size_bytes)
{
    size_t count = (size_t)tensor->count;
    size_t available = source_count(proto, source_of(tensor->dtype));
    if (available != count)
        return mdot_fail(context->err, MDOT_MALFORMED,
                         "%s: %s '%s': has %zu elements of %s, but its shape requires %zu", context->file, kind, name,
                         available, mdot_dtype_name(tensor->dtype), count);
    void *data = ir_arena_alloc(context->arena, size_bytes, 1);
    if (data == NULL) return fe_out_of_memory(context);
    mdot_status status = copy_typed(context, proto, kind, name, tensor->dtype, count, data);
    if (status == MDOT_OK) tensor->data = data;
    return status;
}

static bool is_external(const Onnx__TensorProto *proto)
{
    return proto->has_data_location && proto->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

/* Is the tensor one that shape computation and pattern recognition can do without? These are large tensors, external
 * data, and data that was removed before the model was passed on. A tensor of no elements is excluded, because it is
 * complete: it is the shape of a scalar. */
static bool is_weight(const Onnx__TensorProto *proto, const ir_tensor *tensor)
{
    if (tensor->count == 0) return false;
    if (tensor->count > IR_MAX_KNOWN || is_external(proto)) return true;
    fe_span span = {0};
    if (proto->has_raw_data) memcpy(&span, proto->raw_data.data, sizeof span);
    return span.size_bytes == 0 && source_count(proto, source_of(tensor->dtype)) == 0;
}

static mdot_status import_data(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                               const char *name, ir_tensor *tensor)
{
    if (tensor->dtype == MDOT_DTYPE_STRING) return MDOT_OK; /* no operator of the table computes with strings */
    size_t element = mdot_dtype_size_bytes(tensor->dtype);
    if ((uint64_t)tensor->count > SIZE_MAX / element)
        return fail(context, MDOT_MALFORMED, kind, name, "its size in bytes overflows");
    size_t size_bytes = (size_t)tensor->count * element;
    BS_TRY(is_external(proto) ? fe_check_external(context, proto) : MDOT_OK);
    if (context->options->skip_weights && is_weight(proto, tensor)) return MDOT_OK;
    if (is_external(proto) && size_bytes) return import_external(context, proto, kind, name, tensor, size_bytes);
    if (proto->has_raw_data) return import_raw(context, proto, kind, name, tensor, size_bytes);
    return import_typed(context, proto, kind, name, tensor, size_bytes);
}

static mdot_status import_shape(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                                const char *name, ir_tensor *tensor)
{
    tensor->dtype = (mdot_dtype)proto->data_type;
    if (tensor->dtype != MDOT_DTYPE_STRING && mdot_dtype_size_bytes(tensor->dtype) == 0)
        return mdot_fail(context->err, MDOT_UNSUPPORTED,
                         "%s: %s '%s': element type %d is unsupported; store it as f32, f16, bf16 or integers of "
                         "at least 8 bits",
                         context->file, kind, name, (int)proto->data_type);
    if (proto->segment != NULL)
        return fail(context, MDOT_UNSUPPORTED, kind, name, "tensors in segments are unsupported");
    if (proto->n_dims > MDOT_MAX_RANK)
        return mdot_fail(context->err, MDOT_UNSUPPORTED, "%s: %s '%s': rank %zu; at most %d", context->file, kind, name,
                         proto->n_dims, MDOT_MAX_RANK);
    tensor->rank = (int)proto->n_dims;
    for (int i = 0; i < tensor->rank; i++) tensor->dims[i] = proto->dims[i];
    tensor->count = ir_count_elements(tensor->rank, tensor->dims);
    if (tensor->count < 0) return fail(context, MDOT_MALFORMED, kind, name, "a dimension is negative or too large");
    return MDOT_OK;
}

mdot_status fe_import_tensor(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                             const char *name, const ir_tensor **out_tensor)
{
    ir_tensor *tensor = IR_NEW(context->arena, ir_tensor);
    if (tensor == NULL) return fe_out_of_memory(context);
    mdot_status status = import_shape(context, proto, kind, name, tensor);
    if (status == MDOT_OK) status = import_data(context, proto, kind, name, tensor);
    if (status == MDOT_OK) *out_tensor = tensor;
    return status;
}

mdot_status fe_read_tensor(const char *path, ir_arena *arena, ir_tensor **out_tensor, const char **out_name,
                           mdot_error *err)
{
    static const fe_options no_options;
    fe_source file;
    BS_TRY(fe_open_source(path, arena, &file, err));
    fe_context context = {.file = path, .source = &file, .options = &no_options, .arena = arena, .err = err};
    context.scratch = ir_arena_create(0);
    ProtobufCMessage *message;
    mdot_status status = context.scratch != NULL
                             ? fe_wire_unpack(&file, &onnx__tensor_proto__descriptor, context.scratch, &message, err)
                             : fe_out_of_memory(&context);
    if (status == MDOT_OK) {
        const Onnx__TensorProto *proto = (const Onnx__TensorProto *)message;
        const char *name = ir_arena_strdup(arena, fe_text(proto->name));
        const ir_tensor *tensor;
        status = name != NULL ? fe_import_tensor(&context, proto, "tensor", name, &tensor) : fe_out_of_memory(&context);
        if (status == MDOT_OK) {
            *out_tensor = (ir_tensor *)tensor;
            if (out_name != NULL) *out_name = name;
        }
    }
    ir_arena_destroy(context.scratch);
    fe_close_source(&file);
    return status;
}
