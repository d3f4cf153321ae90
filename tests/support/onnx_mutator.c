/* onnx_mutator.c — see onnx_mutator.h. */
#include "tests/support/onnx_mutator.h"
#include "frontend/onnx/source.h"
#include "ir/ops.h"

#include "onnx.pb-c.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_MESSAGES = 4096, MOST_NAMES = 1024, MOST_CHANGES = 4, MOST_STRING = 64 };

static const char *const words[] = {
#include "onnx_words.inc"
};

typedef struct mutator {
    uint64_t random;
    ProtobufCMessage *model;
    ProtobufCMessage *messages[MOST_MESSAGES]; /* of the model, in any order */
    size_t message_count;
    const char *names[MOST_NAMES]; /* of values */
    size_t name_count;
    mutate_bytes_fn mutate_bytes;
} mutator;

static void *require(void *memory)
{
    if (memory == NULL) abort();
    return memory;
}

static size_t draw(mutator *m, size_t below)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return below > 0 ? (size_t)(m->random >> 33) % below : 0;
}

const char *onnx_word(uint64_t random) { return words[random % (sizeof words / sizeof *words)]; }

/* ---- Fields ------------------------------------------------------------------------------------------------------ */

typedef ProtobufCFieldDescriptor field;

static void *member(const ProtobufCMessage *message, const field *f) { return (char *)message + f->offset; }

/* Count of a repeated field. */
static size_t *count_of(const ProtobufCMessage *message, const field *f)
{
    return (size_t *)(void *)((char *)message + f->quantifier_offset);
}

static bool is_pointer(const field *f)
{
    return f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_MESSAGE;
}

/* Makes a scalar or a byte string of an optional field present or absent. */
static void set_present(const ProtobufCMessage *message, const field *f, bool is_present)
{
    if (f->label == PROTOBUF_C_LABEL_OPTIONAL && !is_pointer(f))
        *(protobuf_c_boolean *)((char *)message + f->quantifier_offset) = is_present;
}

static size_t element_bytes(const field *f)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE: return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES: return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_DOUBLE: return sizeof(int64_t);
    default: return sizeof(int32_t);
    }
}

static bool is_named(const ProtobufCMessage *message, const field *f, const char *type, const char *name)
{
    return strcmp(message->descriptor->short_name, type) == 0 && strcmp(f->name, name) == 0;
}

/* ---- Walking ----------------------------------------------------------------------------------------------------- */

static void add_name(mutator *m, const char *name)
{
    if (name != NULL && m->name_count < MOST_NAMES) m->names[m->name_count++] = name;
}

/* Value names repeat (inputs and outputs of nodes), or name a tensor or a value. */
static void collect_names(mutator *m, const ProtobufCMessage *message, const field *f)
{
    const char *type = message->descriptor->short_name;
    if (f->type != PROTOBUF_C_TYPE_STRING) return;
    if (f->label == PROTOBUF_C_LABEL_REPEATED) {
        char **strings = *(char ***)member(message, f);
        for (size_t i = 0; i < *count_of(message, f); i++) add_name(m, strings[i]);
    } else if (strcmp(f->name, "name") == 0 &&
               (strcmp(type, "TensorProto") == 0 || strcmp(type, "ValueInfoProto") == 0)) {
        add_name(m, *(char **)member(message, f));
    }
}

static void collect(mutator *m, ProtobufCMessage *message)
{
    if (m->message_count == MOST_MESSAGES) return;
    m->messages[m->message_count++] = message;
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const field *f = &message->descriptor->fields[i];
        collect_names(m, message, f);
        if (f->type != PROTOBUF_C_TYPE_MESSAGE) continue;
        ProtobufCMessage **at = member(message, f);
        if (f->label != PROTOBUF_C_LABEL_REPEATED && *at != NULL) collect(m, *at);
        for (size_t k = 0; f->label == PROTOBUF_C_LABEL_REPEATED && k < *count_of(message, f); k++)
            collect(m, (*(ProtobufCMessage ***)at)[k]);
    }
}

static void collect_all(mutator *m)
{
    m->message_count = m->name_count = 0;
    collect(m, m->model);
}

/* ---- Values ------------------------------------------------------------------------------------------------------ */

static char *copy_string(const char *text) { return require(strdup(text)); }

static char *new_string(mutator *m, const ProtobufCMessage *message, const field *f)
{
    if (is_named(message, f, "NodeProto", "op_type") && draw(m, 4) > 0)
        return copy_string(ir_ops[draw(m, IR_OP_COUNT)].name);
    bool is_value = f->label == PROTOBUF_C_LABEL_REPEATED || strcmp(f->name, "name") == 0;
    if (is_value && strcmp(message->descriptor->short_name, "AttributeProto") != 0 && m->name_count > 0 &&
        draw(m, 8) > 0)
        return copy_string(m->names[draw(m, m->name_count)]);
    if (draw(m, 8) > 0) return copy_string(onnx_word(draw(m, SIZE_MAX)));
    char text[MOST_STRING + 1] = "";
    size_t length = draw(m, MOST_STRING);
    for (size_t i = 0; i < length; i++) text[i] = (char)(1 + draw(m, 255));
    return copy_string(draw(m, 4) == 0 ? "" : text);
}

static int64_t new_integer(mutator *m, const field *f, int64_t old)
{
    static const int64_t values[] = {0,         1,         2,         3,       4,
                                     5,         6,         7,         8,       -1,
                                     -2,        10,        13,        16,      21,
                                     24,        32,        64,        99,      INT32_MAX,
                                     INT32_MIN, INT64_MAX, INT64_MIN, 1 << 20, (int64_t)1 << 40,
                                     1000000,   255};
    if (f->type == PROTOBUF_C_TYPE_ENUM) {
        const ProtobufCEnumDescriptor *names = f->descriptor;
        if (draw(m, 16) > 0) return names->values[draw(m, names->n_values)].value;
    }
    switch (draw(m, 4)) {
    case 0: return (int64_t)((uint64_t)old + 1);
    case 1: return (int64_t)((uint64_t)old - 1);
    default: return values[draw(m, sizeof values / sizeof *values)];
    }
}

static double new_real(mutator *m)
{
    static const double values[] = {0, 1, -1, 0.5, 2, 1e-5, 1e30, -1e30, 1e300, -0.0, 3, 100};
    return values[draw(m, sizeof values / sizeof *values)];
}

static void change_bytes(mutator *m, ProtobufCBinaryData *bytes)
{
    enum { MORE = 16 };
    size_t capacity = bytes->len + MORE;
    uint8_t *data = require(malloc(capacity));
    if (bytes->len > 0) memcpy(data, bytes->data, bytes->len);
    size_t length = bytes->len;
    if (m->mutate_bytes != NULL && draw(m, 2) == 0) {
        length = m->mutate_bytes(data, length, capacity);
    } else if (draw(m, 2) == 0) { /* a word, which selects a mode */
        const char *word = onnx_word(draw(m, SIZE_MAX));
        length = strlen(word) < capacity ? strlen(word) : capacity;
        memcpy(data, word, length);
    } else {
        length = draw(m, capacity + 1);
        for (size_t i = bytes->len; i < length; i++) data[i] = (uint8_t)draw(m, 256);
        if (length > 0) data[draw(m, length)] = (uint8_t)draw(m, 256);
    }
    free(bytes->data);
    bytes->data = data;
    bytes->len = length;
}

static ProtobufCMessage *new_message(mutator *m, const ProtobufCMessageDescriptor *type);

/* Changes one value, which is valid, or zero if it is new. Message values are new ones. */
static void change_value(mutator *m, const ProtobufCMessage *message, const field *f, void *at, bool is_new)
{
    switch (f->type) {
    case PROTOBUF_C_TYPE_STRING: {
        char *old = *(char **)at;
        *(char **)at = new_string(m, message, f);
        if (!is_new && old != f->default_value) free(old);
        break;
    }
    case PROTOBUF_C_TYPE_MESSAGE:
        if (!is_new && *(ProtobufCMessage **)at != NULL)
            protobuf_c_message_free_unpacked(*(ProtobufCMessage **)at, NULL);
        *(ProtobufCMessage **)at = new_message(m, f->descriptor);
        break;
    case PROTOBUF_C_TYPE_BYTES: change_bytes(m, at); break;
    case PROTOBUF_C_TYPE_FLOAT: *(float *)at = (float)new_real(m); break;
    case PROTOBUF_C_TYPE_DOUBLE: *(double *)at = new_real(m); break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_UINT64: *(int64_t *)at = new_integer(m, f, *(int64_t *)at); break;
    default: {
        int64_t value = new_integer(m, f, *(int32_t *)at);
        *(int32_t *)at = value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : (int32_t)value;
        break;
    }
    }
}

/* ---- Repeated fields --------------------------------------------------------------------------------------------- */

static ProtobufCMessage *copy_message(const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = require(malloc(size + 1));
    protobuf_c_message_pack(message, bytes);
    ProtobufCMessage *copy = require(protobuf_c_message_unpack(message->descriptor, NULL, size, bytes));
    free(bytes);
    return copy;
}

static void copy_value(const field *f, void *to, const void *from)
{
    memcpy(to, from, element_bytes(f));
    if (f->type == PROTOBUF_C_TYPE_STRING) *(char **)to = copy_string(*(char *const *)from);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) *(ProtobufCMessage **)to = copy_message(*(ProtobufCMessage *const *)from);
    if (f->type != PROTOBUF_C_TYPE_BYTES) return;
    const ProtobufCBinaryData *bytes = from;
    ProtobufCBinaryData *copy = to;
    copy->data = require(malloc(bytes->len + 1));
    if (bytes->len > 0) memcpy(copy->data, bytes->data, bytes->len);
}

static void free_value(const field *f, void *at)
{
    if (f->type == PROTOBUF_C_TYPE_STRING) free(*(char **)at);
    if (f->type == PROTOBUF_C_TYPE_BYTES) free(((ProtobufCBinaryData *)at)->data);
    if (f->type == PROTOBUF_C_TYPE_MESSAGE) protobuf_c_message_free_unpacked(*(ProtobufCMessage **)at, NULL);
}

/* Inserts an element of zeros at `index`, and returns it. */
static void *insert(const ProtobufCMessage *message, const field *f, size_t index)
{
    size_t bytes = element_bytes(f), *count = count_of(message, f);
    char **array = member(message, f);
    *array = require(realloc(*array, (*count + 1) * bytes));
    memmove(*array + (index + 1) * bytes, *array + index * bytes, (*count - index) * bytes);
    ++*count;
    return memset(*array + index * bytes, 0, bytes);
}

static void delete (const ProtobufCMessage *message, const field *f, size_t index)
{
    size_t bytes = element_bytes(f), *count = count_of(message, f);
    char *array = *(char **)member(message, f);
    free_value(f, array + index * bytes);
    --*count;
    memmove(array + index * bytes, array + (index + 1) * bytes, (*count - index) * bytes);
}

static void change_list(mutator *m, const ProtobufCMessage *message, const field *f)
{
    size_t bytes = element_bytes(f), count = *count_of(message, f), index = draw(m, count);
    size_t choice = count > 0 ? draw(m, 6) : 5;
    if (choice == 0) {
        delete (message, f, index);
    } else if (choice == 1) {
        size_t to = draw(m, count + 1);
        char copy[sizeof(ProtobufCBinaryData)];
        copy_value(f, copy, *(char **)member(message, f) + index * bytes);
        memcpy(insert(message, f, to), copy, bytes);
    } else if (choice == 2) {
        char *array = *(char **)member(message, f), kept[sizeof(ProtobufCBinaryData)];
        size_t other = draw(m, count);
        memcpy(kept, array + index * bytes, bytes);
        memcpy(array + index * bytes, array + other * bytes, bytes);
        memcpy(array + other * bytes, kept, bytes);
    } else if (choice <= 4 && f->type != PROTOBUF_C_TYPE_MESSAGE) {
        change_value(m, message, f, *(char **)member(message, f) + index * bytes, false);
    } else {
        change_value(m, message, f, insert(message, f, draw(m, count + 1)), true);
    }
}

/* ---- Messages ---------------------------------------------------------------------------------------------------- */

static void change_single(mutator *m, const ProtobufCMessage *message, const field *f)
{
    void *at = member(message, f);
    bool is_present = is_pointer(f) ? *(void **)at != NULL && *(void **)at != f->default_value
                                    : *(protobuf_c_boolean *)((char *)message + f->quantifier_offset) != 0;
    if (is_present && draw(m, 6) == 0) { /* goes */
        if (is_pointer(f)) {
            free_value(f, at);
            *(const void **)at = f->default_value;
        }
        set_present(message, f, false);
        return;
    }
    if (is_present && f->type == PROTOBUF_C_TYPE_MESSAGE) return; /* it is in the list of messages, too */
    change_value(m, message, f, at, !is_present);
    set_present(message, f, true);
}

/* A table operator with as many inputs as it needs, and an output whose name another value may have. */
static void fill_node(mutator *m, Onnx__NodeProto *node)
{
    const ir_op *op = &ir_ops[draw(m, IR_OP_COUNT)];
    int inputs = op->min_inputs + (int)draw(m, 3);
    node->op_type = copy_string(op->name);
    node->domain = op->domain[0] != '\0' ? copy_string(op->domain) : node->domain;
    const ProtobufCMessage *base = &node->base;
    const field *input = protobuf_c_message_descriptor_get_field_by_name(base->descriptor, "input");
    const field *output = protobuf_c_message_descriptor_get_field_by_name(base->descriptor, "output");
    for (int i = 0; i < inputs && m->name_count > 0; i++)
        *(char **)insert(base, input, node->n_input) = copy_string(m->names[draw(m, m->name_count)]);
    for (int i = 0; i < (op->min_outputs > 0 ? op->min_outputs : 1); i++)
        *(char **)insert(base, output, node->n_output) = new_string(m, base, output);
}

/* An attribute whose name and type are set, with a value of the type. */
static void fill_attribute(mutator *m, Onnx__AttributeProto *a)
{
    static const int types[] = {ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS,
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT,
                                ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING};
    static const char *const fields[] = {"i", "ints", "f", "s"};
    size_t choice = draw(m, sizeof types / sizeof *types);
    const field *f = protobuf_c_message_descriptor_get_field_by_name(a->base.descriptor, fields[choice]);
    a->name = copy_string(onnx_word(draw(m, SIZE_MAX)));
    a->has_type = true;
    a->type = types[choice];
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        for (size_t i = draw(m, 5); i > 0; i--) change_value(m, &a->base, f, insert(&a->base, f, 0), true);
    else
        change_single(m, &a->base, f);
}

static ProtobufCMessage *new_message(mutator *m, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *made = require(calloc(1, type->sizeof_message));
    protobuf_c_message_init(type, made);
    if (type == &onnx__node_proto__descriptor) {
        fill_node(m, (Onnx__NodeProto *)made);
        return made;
    }
    if (type == &onnx__attribute_proto__descriptor) {
        fill_attribute(m, (Onnx__AttributeProto *)made);
        return made;
    }
    for (unsigned i = 0; i < type->n_fields; i++) {
        const field *f = &type->fields[i];
        if (f->type == PROTOBUF_C_TYPE_MESSAGE || draw(m, 2) == 0) continue;
        if (f->label == PROTOBUF_C_LABEL_REPEATED)
            change_value(m, made, f, insert(made, f, 0), true);
        else
            change_single(m, made, f);
    }
    return made;
}

static void change_message(mutator *m, ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    if (type->n_fields == 0) return;
    const field *f = &type->fields[draw(m, type->n_fields)];
    if (f->label == PROTOBUF_C_LABEL_REPEATED)
        change_list(m, message, f);
    else
        change_single(m, message, f);
}

/* ---- Models ------------------------------------------------------------------------------------------------------ */

/* Messages of bounded depth only, because protobuf-c unpacks recursively. Unknown fields are dropped. Returns NULL
 * for other bytes. */
static ProtobufCMessage *unpack(const uint8_t *data, size_t size)
{
    ir_arena *arena = ir_arena_create(0);
    ProtobufCMessage *skeleton = NULL;
    const fe_source source = fe_memory_source(data, size, "model");
    bool is_model = arena != NULL && size > 0 &&
                    fe_wire_unpack(&source, &onnx__model_proto__descriptor, arena, &skeleton, NULL) == MDOT_OK;
    ir_arena_destroy(arena);
    return is_model ? protobuf_c_message_unpack(&onnx__model_proto__descriptor, NULL, size, data) : NULL;
}

static size_t pack(const ProtobufCMessage *model, uint8_t *out, size_t capacity)
{
    size_t size = protobuf_c_message_get_packed_size(model);
    return size > 0 && size <= capacity ? protobuf_c_message_pack(model, out) : 0;
}

size_t onnx_mutate(uint8_t *data, size_t size, size_t capacity, uint64_t seed, mutate_bytes_fn mutate_bytes)
{
    mutator m = {.random = seed, .model = unpack(data, size), .mutate_bytes = mutate_bytes};
    if (m.model == NULL) return 0;
    for (size_t left = 1 + draw(&m, MOST_CHANGES); left > 0; left--) {
        collect_all(&m);
        change_message(&m, m.messages[draw(&m, m.message_count)]);
    }
    size_t made = pack(m.model, data, capacity);
    protobuf_c_message_free_unpacked(m.model, NULL);
    return made;
}

/* Inserts a copy of `part` into a repeated field of equal type, if the first model has one. */
static void give(mutator *m, const ProtobufCMessage *part)
{
    size_t start = draw(m, m->message_count);
    for (size_t i = 0; i < m->message_count; i++) {
        ProtobufCMessage *to = m->messages[(start + i) % m->message_count];
        for (unsigned k = 0; k < to->descriptor->n_fields; k++) {
            const field *f = &to->descriptor->fields[k];
            if (f->descriptor != part->descriptor || f->label != PROTOBUF_C_LABEL_REPEATED) continue;
            ProtobufCMessage *copy = copy_message(part);
            *(ProtobufCMessage **)insert(to, f, draw(m, *count_of(to, f) + 1)) = copy;
            return;
        }
    }
}

size_t onnx_combine(const uint8_t *first, size_t first_size, const uint8_t *second, size_t second_size, uint8_t *out,
                    size_t capacity, uint64_t seed)
{
    mutator to = {.random = seed, .model = unpack(first, first_size)}, from = {.model = unpack(second, second_size)};
    size_t made = 0;
    if (to.model != NULL && from.model != NULL) {
        collect_all(&from);
        for (size_t left = 1 + draw(&to, MOST_CHANGES); left > 0; left--) {
            collect_all(&to);
            give(&to, from.messages[draw(&to, from.message_count)]);
        }
        made = pack(to.model, out, capacity);
    }
    if (to.model != NULL) protobuf_c_message_free_unpacked(to.model, NULL);
    if (from.model != NULL) protobuf_c_message_free_unpacked(from.model, NULL);
    return made;
}
