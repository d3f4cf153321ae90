/* wire.h — what is checked and cut away between a file's bytes and protobuf-c.
 *
 * protobuf-c recurses once a nested message and copies every byte field, so a hostile file could exhaust the stack, and
 * a large one costs its weights twice. The scan walks the wire format first, without recursion beyond a fixed depth,
 * and makes the model's skeleton: the same message without the fields that onnx.proto does not list, in which
 * TensorProto.raw_data holds, instead of the data, where it stands in the file.
 */
#ifndef FE_WIRE_H
#define FE_WIRE_H

#include "ir/arena.h"
#include "mdot/mdot_base.h"

#include <protobuf-c/protobuf-c.h>

enum {
    FE_MAX_MESSAGE_DEPTH = 256, /* a graph in an attribute adds three: graph, node, attribute */
    FE_MAX_GRAPH_DEPTH = 64
};

/* The content of raw_data in a skeleton. */
typedef struct fe_span {
    uint64_t offset, size_bytes; /* in the file */
} fe_span;

/* Checks `bytes` as one message of the given type and unpacks its skeleton into `scratch`; `file` names it in messages.
 * MALFORMED: truncated fields, overlong varints, groups, wrong wire types, singular messages that occur twice, names
 * with a NUL. UNSUPPORTED: deeper nesting than the limits above, or more than protobuf's two gigabytes. */
mdot_status fe_wire_unpack(const void *bytes, size_t size_bytes, const ProtobufCMessageDescriptor *type,
                           const char *file, ir_arena *scratch, ProtobufCMessage **out_message, mdot_error *err);

#endif
