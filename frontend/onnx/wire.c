/* wire.c — converts bytes into protobuf-c messages. The scan of the wire format makes unpacking safe and cheap (see
 * source.h).
 *
 * The scan uses protobuf-c's own descriptors, so scan and unpacking read the same onnx.proto. Every nested message of a
 * skeleton is written with a length of five bytes, because a varint may be padded with continuation bits. The length is
 * filled in once the content is complete.
 *
 * Wire format: protobuf's "Encoding" guide. */
#include "frontend/onnx/source.h"

#include "base/text.h"
#include "onnx.pb-c.h"

#include <stdlib.h>
#include <string.h>

enum { VARINT_MAX_BYTES = 10, LENGTH_BYTES = 5, RAW_DATA_FIELD = 9 };

typedef enum wire_type { WIRE_VARINT = 0, WIRE_64BIT = 1, WIRE_LENGTH = 2, WIRE_32BIT = 5 } wire_type;

typedef struct scanner {
    const fe_source *source;
    const unsigned char *begin; /* of the source */
    const char *file;
    mdot_error *err;
    int depth, graph_depth;
    unsigned char *skeleton;
    size_t used, capacity;
} scanner;

typedef struct field {
    const unsigned char *begin; /* start of the tag */
    uint32_t number;
    wire_type wire;
    const unsigned char *value, *end; /* the payload, behind the length if there is one */
} field;

static mdot_status malformed(const scanner *s, const unsigned char *at, const char *what)
{
    return mdot_fail(s->err, MDOT_MALFORMED, "%s: byte %zu: %s", s->file, (size_t)(at - s->begin), what);
}

static mdot_status malformed_field(const scanner *s, const field *f, const ProtobufCMessageDescriptor *message,
                                   const ProtobufCFieldDescriptor *d, const char *what)
{
    return mdot_fail(s->err, MDOT_MALFORMED, "%s: byte %zu: %s.%s %s", s->file, (size_t)(f->begin - s->begin),
                     message->short_name, d->name, what);
}

/* Makes the bytes from `at` on available: so many, or all up to `end` if these are fewer. */
static mdot_status need(const scanner *s, const unsigned char *at, const unsigned char *end, size_t size_bytes)
{
    size_t rest_bytes = (size_t)(end - at);
    return fe_need(s->source, (size_t)(at - s->begin), size_bytes < rest_bytes ? size_bytes : rest_bytes, s->err);
}

static mdot_status read_varint(const scanner *s, const unsigned char **position, const unsigned char *end,
                               uint64_t *out)
{
    uint64_t value = 0;
    const unsigned char *p = *position;
    for (int i = 0; i < VARINT_MAX_BYTES; i++, p++) {
        if (p == end) return malformed(s, *position, "a number is cut off");
        value |= (uint64_t)(*p & 0x7f) << (7 * i);
        if (*p & 0x80) continue;
        if (i == VARINT_MAX_BYTES - 1 && *p > 1) break; /* beyond 64 bits */
        *position = p + 1;
        *out = value;
        return MDOT_OK;
    }
    return malformed(s, *position, "a number takes more than 64 bits");
}

/* Reads the field at *at and moves *at behind it. */
static mdot_status read_field(const scanner *s, const unsigned char **at, const unsigned char *end, field *out)
{
    field f = {.begin = *at};
    const unsigned char *p = *at;
    uint64_t tag, size = 0;
    BS_TRY(need(s, p, end, 2 * VARINT_MAX_BYTES)); /* the tag, and a number or a length behind it */
    BS_TRY(read_varint(s, &p, end, &tag));
    if (tag > UINT32_MAX || tag >> 3 == 0) return malformed(s, f.begin, "a field's number is out of range");
    f.number = (uint32_t)(tag >> 3);
    f.wire = (wire_type)(tag & 7);
    f.value = p;
    switch (f.wire) {
    case WIRE_VARINT: {
        uint64_t ignored;
        BS_TRY(read_varint(s, &p, end, &ignored));
        size = (uint64_t)(p - f.value);
        break;
    }
    case WIRE_64BIT: size = 8; break;
    case WIRE_32BIT: size = 4; break;
    case WIRE_LENGTH:
        BS_TRY(read_varint(s, &p, end, &size));
        f.value = p;
        break;
    default:
        if (f.begin == s->begin) /* for example text */
            return mdot_fail(s->err, MDOT_MALFORMED,
                             "%s: not an ONNX file: its first field is a group or has an unknown wire type", s->file);
        return malformed(s, f.begin, "a field is a group or has an unknown wire type; ONNX lacks groups");
    }
    if (size > (uint64_t)(end - f.value)) return malformed(s, f.begin, "a field exceeds the message that contains it");
    f.end = f.value + size;
    *at = f.end;
    *out = f;
    return MDOT_OK;
}

/* The wire type of one element of a field. */
static wire_type wire_type_of(ProtobufCType type)
{
    static const wire_type types[] = {
        [PROTOBUF_C_TYPE_FIXED64] = WIRE_64BIT,  [PROTOBUF_C_TYPE_SFIXED64] = WIRE_64BIT,
        [PROTOBUF_C_TYPE_DOUBLE] = WIRE_64BIT,   [PROTOBUF_C_TYPE_FIXED32] = WIRE_32BIT,
        [PROTOBUF_C_TYPE_SFIXED32] = WIRE_32BIT, [PROTOBUF_C_TYPE_FLOAT] = WIRE_32BIT,
        [PROTOBUF_C_TYPE_STRING] = WIRE_LENGTH,  [PROTOBUF_C_TYPE_BYTES] = WIRE_LENGTH,
        [PROTOBUF_C_TYPE_MESSAGE] = WIRE_LENGTH, /* WIRE_VARINT is 0 */
    };
    return types[type];
}

/* Refuses a packed field with a partial element. */
static mdot_status check_packed(const scanner *s, const field *f, const ProtobufCMessageDescriptor *message,
                                const ProtobufCFieldDescriptor *d)
{
    wire_type element = wire_type_of(d->type);
    if (element == WIRE_VARINT) {
        for (const unsigned char *at = f->value; at < f->end;) {
            uint64_t ignored;
            BS_TRY(read_varint(s, &at, f->end, &ignored));
        }
        return MDOT_OK;
    }
    size_t size = element == WIRE_64BIT ? 8 : 4;
    if ((size_t)(f->end - f->value) % size == 0) return MDOT_OK;
    return malformed_field(s, f, message, d, "ends within an element");
}

static mdot_status put(scanner *s, const void *bytes, size_t count)
{
    unsigned char *grown = bs_grow_bytes(s->skeleton, s->used, count, &s->capacity);
    if (grown == NULL) return BS_OUT_OF_MEMORY(s->err, "%s", s->file);
    s->skeleton = grown;
    if (count) memcpy(s->skeleton + s->used, bytes, count);
    s->used += count;
    return MDOT_OK;
}

/* Writes the tag of a length-delimited field as in the file, then a length of LENGTH_BYTES. */
static mdot_status put_header(scanner *s, const field *f, size_t length)
{
    unsigned char header[2 * VARINT_MAX_BYTES];
    size_t size = 0;
    for (uint32_t tag = f->number << 3 | WIRE_LENGTH; tag; tag >>= 7)
        header[size++] = (unsigned char)((tag & 0x7f) | (tag > 0x7f ? 0x80 : 0));
    for (int i = 0; i < LENGTH_BYTES; i++, length >>= 7)
        header[size++] = (unsigned char)((length & 0x7f) | (i < LENGTH_BYTES - 1 ? 0x80 : 0));
    return put(s, header, size);
}

static void patch_length(scanner *s, size_t content_at)
{
    size_t length = s->used - content_at;
    for (int i = 0; i < LENGTH_BYTES; i++, length >>= 7) {
        unsigned char *byte = &s->skeleton[content_at - LENGTH_BYTES + (size_t)i];
        *byte = (unsigned char)((length & 0x7f) | (*byte & 0x80));
    }
}

static mdot_status put_span(scanner *s, const field *f)
{
    fe_span span = {(uint64_t)(f->value - s->begin), (uint64_t)(f->end - f->value)};
    mdot_status status = put_header(s, f, sizeof span);
    return status == MDOT_OK ? put(s, &span, sizeof span) : status;
}

static mdot_status scan_message(scanner *s, const ProtobufCMessageDescriptor *type, const unsigned char *at,
                                const unsigned char *end);

static mdot_status scan_nested(scanner *s, const field *f, const ProtobufCMessageDescriptor *type)
{
    bool graph = type == &onnx__graph_proto__descriptor;
    if (s->depth == FE_MAX_MESSAGE_DEPTH || (graph && s->graph_depth == FE_MAX_GRAPH_DEPTH))
        return mdot_fail(s->err, MDOT_UNSUPPORTED, "%s: byte %zu: more than %d nested graphs or %d nested messages",
                         s->file, (size_t)(f->begin - s->begin), FE_MAX_GRAPH_DEPTH, FE_MAX_MESSAGE_DEPTH);
    BS_TRY(put_header(s, f, 0));
    size_t content_at = s->used;
    s->depth++;
    s->graph_depth += graph;
    mdot_status status = scan_message(s, type, f->value, f->end);
    s->depth--;
    s->graph_depth -= graph;
    if (status == MDOT_OK) patch_length(s, content_at);
    return status;
}

static mdot_status scan_field(scanner *s, const field *f, const ProtobufCMessageDescriptor *message,
                              const ProtobufCFieldDescriptor *d)
{
    wire_type expected = wire_type_of(d->type);
    bool repeated = d->label == PROTOBUF_C_LABEL_REPEATED;
    bool packed = repeated && expected != WIRE_LENGTH && f->wire == WIRE_LENGTH;
    if (f->wire != expected && !packed) return malformed_field(s, f, message, d, "has the wrong wire type");
    if (d->type == PROTOBUF_C_TYPE_MESSAGE) return scan_nested(s, f, d->descriptor);
    if (message == &onnx__tensor_proto__descriptor && d->id == RAW_DATA_FIELD) return put_span(s, f);
    BS_TRY(need(s, f->begin, f->end, SIZE_MAX));
    if (d->type == PROTOBUF_C_TYPE_STRING && memchr(f->value, 0, (size_t)(f->end - f->value)) != NULL)
        return malformed_field(s, f, message, d, "contains a NUL byte");
    mdot_status status = packed ? check_packed(s, f, message, d) : MDOT_OK;
    return status == MDOT_OK ? put(s, f->begin, (size_t)(f->end - f->begin)) : status;
}

static mdot_status scan_message(scanner *s, const ProtobufCMessageDescriptor *type, const unsigned char *at,
                                const unsigned char *end)
{
    uint64_t seen = 0; /* singular messages seen, by field index; onnx.proto's largest message has 15 */
    while (at < end) {
        field f = {0};
        BS_TRY(read_field(s, &at, end, &f));
        const ProtobufCFieldDescriptor *d = protobuf_c_message_descriptor_get_field(type, f.number);
        if (d == NULL) continue;
        if (d->type == PROTOBUF_C_TYPE_MESSAGE && d->label != PROTOBUF_C_LABEL_REPEATED) {
            uint64_t bit = UINT64_C(1) << (d - type->fields);
            if (seen & bit) return malformed_field(s, &f, type, d, "occurs twice");
            seen |= bit;
        }
        BS_TRY(scan_field(s, &f, type, d));
    }
    return MDOT_OK;
}

static void *arena_alloc(void *arena, size_t size) { return ir_arena_alloc(arena, 1, size); }
static void arena_free(void *arena, void *memory) { (void)arena, (void)memory; }

mdot_status fe_wire_unpack(const fe_source *source, const ProtobufCMessageDescriptor *type, ir_arena *scratch,
                           ProtobufCMessage **out_message, mdot_error *err)
{
    const char *file = source->name;
    BS_TRY(fe_check_file_size(file, source->size_bytes, err));
    scanner s = {.source = source, .begin = source->bytes, .file = file, .err = err};
    mdot_status status = scan_message(&s, type, s.begin, s.begin + source->size_bytes);
    if (status == MDOT_OK) {
        ProtobufCAllocator allocator = {arena_alloc, arena_free, scratch};
        ProtobufCMessage *message = protobuf_c_message_unpack(type, &allocator, s.used, s.skeleton);
        if (message != NULL)
            *out_message = message;
        else if (ir_arena_failed(scratch))
            status = mdot_fail(err, MDOT_OUT_OF_MEMORY,
                               "%s: reading takes more memory than is allowed for a model of this size", file);
        else
            status = mdot_fail(err, MDOT_MALFORMED, "%s: not a valid %s", file, type->short_name);
    }
    free(s.skeleton);
    return status;
}
