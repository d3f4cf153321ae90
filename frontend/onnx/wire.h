/* wire.h — checks and shortens a file's bytes before protobuf-c reads them.
 *
 * protobuf-c recurses once per nested message and copies every byte field. Therefore a hostile file could exhaust the
 * stack, and a large file would hold its weights twice in memory. The scan walks the wire format first, with a fixed
 * limit on recursion. It builds the model's skeleton: the same message, reduced to the fields that onnx.proto lists.
 * In the skeleton, TensorProto.raw_data holds the data's position in the file instead of the data.
 */
#ifndef FE_WIRE_H
#define FE_WIRE_H

#include "frontend/onnx/read.h"
#include "ir/arena.h"
#include "mdot/mdot_base.h"

#include <protobuf-c/protobuf-c.h>

enum {
    FE_MAX_MESSAGE_DEPTH = 256, /* a graph in an attribute adds three: graph, node, attribute */
    FE_MAX_GRAPH_DEPTH = 64
};

/* The content of raw_data in a skeleton. */
typedef struct fe_span {
    uint64_t offset, size_bytes; /* position and size in the file */
} fe_span;

/* Checks the source as one message of the given type and unpacks its skeleton into `scratch`. Reads all of the file
 * but the content of raw_data and of unknown fields. MALFORMED: truncated fields, overlong varints, groups, wrong
 * wire types, singular messages that occur twice, names with a NUL. UNSUPPORTED: deeper nesting than the limits
 * above, or more than protobuf's two gigabytes. */
mdot_status fe_wire_unpack(const fe_source *source, const ProtobufCMessageDescriptor *type, ir_arena *scratch,
                           ProtobufCMessage **out_message, mdot_error *err);

#endif
