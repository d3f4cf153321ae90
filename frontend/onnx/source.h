/* source.h — a model's bytes: read in chunks, checked and shortened before protobuf-c reads them. */
#pragma once

#include "base/status.h"
#include "ir/arena.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>

/* ---- read.c: reads files into memory: models, external data, tensors of test data sets.
 *
 * Files are read instead of mapped, because their owner may change them at any time. A mapping of a file that is
 * truncated ends the process by SIGBUS, and two reads of one byte may differ. Each byte of a source is read at most
 * once. A model is read in chunks, when they are needed, so that the weights of a job stay unread.
 */

enum { FE_CHUNK_BYTES = 64 * 1024 };

/* A model's bytes, either in memory or in a file. */
typedef struct fe_source {
    const unsigned char *bytes; /* for files, only bytes read by fe_need are valid */
    size_t size_bytes;
    const char *name;   /* for messages */
    int descriptor;     /* -1: all bytes are in memory */
    uint64_t *has_read; /* one bit for each chunk of the file */
} fe_source;

/* A source of borrowed bytes in memory. */
static inline fe_source fe_memory_source(const void *bytes, size_t size_bytes, const char *name)
{
    return (fe_source){.bytes = bytes, .size_bytes = size_bytes, .name = name, .descriptor = -1};
}

/* MALFORMED for a file without bytes, UNSUPPORTED for more than protobuf's two gigabytes. `file` is the name for
 * messages. */
mdot_status fe_check_file_size(const char *file, uint64_t size_bytes, mdot_error *err);

/* Opens a file and reserves memory for the bytes for the lifetime of the arena. The caller closes it. NOT_FOUND, IO,
 * MALFORMED (empty), UNSUPPORTED (more than two gigabytes), OUT_OF_MEMORY. */
mdot_status fe_open_source(const char *path, ir_arena *arena, fe_source *out_source, mdot_error *err);
void fe_close_source(fe_source *source);

/* Reads the chunks of bytes [offset, offset + size_bytes), which must lie within the source, unless they are in memory
 * already. MALFORMED if the file has become shorter, IO. */
mdot_status fe_need(const fe_source *source, size_t offset, size_t size_bytes, mdot_error *err);

/* Returns size_bytes > 0 bytes of an open file from `offset` on, in memory that belongs to the arena. On failure,
 * returns NULL and sets errno: ENOMEM, an error of the file, or 0 if the file is too short. */
const void *fe_read_range(int fd, uint64_t offset, size_t size_bytes, ir_arena *arena);

/* ---- wire.c: checks and shortens a file's bytes before protobuf-c reads them.
 *
 * protobuf-c recurses once per nested message and copies every byte field. Therefore a hostile file could exhaust the
 * stack, and a large file would hold its weights twice in memory. The scan walks the wire format first, with a fixed
 * limit on recursion. It builds the model's skeleton: the same message, reduced to the fields that onnx.proto lists.
 * In the skeleton, TensorProto.raw_data holds the data's position in the file instead of the data.
 */

enum {
    FE_MAX_MESSAGE_DEPTH = 256, /* a graph in an attribute adds three: graph, node, attribute */
    FE_MAX_GRAPH_DEPTH = 64
};

/* The content of raw_data in a skeleton. */
typedef struct fe_span {
    uint64_t offset, size_bytes; /* position and size in the file */
} fe_span;

/* Checks the source as one message of the given type and unpacks its skeleton into `scratch`. Reads all file but the
 * content of raw_data and of unknown fields. MALFORMED: truncated fields, overlong varints, groups, wrong wire types,
 * singular messages that occur twice, names with a NUL. UNSUPPORTED: deeper nesting than the limits above, or more than
 * protobuf's two gigabytes. */
mdot_status fe_wire_unpack(const fe_source *source, const ProtobufCMessageDescriptor *type, ir_arena *scratch,
                           ProtobufCMessage **out_message, mdot_error *err);
