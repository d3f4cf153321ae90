/* read.h — reads files into memory: models, external data, tensors of test data sets. Private to frontend/onnx.
 *
 * Files are read instead of mapped, because their owner may change them at any time. A mapping of a file that is
 * truncated ends the process by SIGBUS, and two reads of one byte may differ. Each byte of a source is read at most
 * once. A model is read in chunks, when they are needed, so that the weights of a job stay unread. */
#ifndef FE_READ_H
#define FE_READ_H

#include "ir/arena.h"
#include "mdot/mdot_base.h"

#include <stdbool.h>

enum { FE_CHUNK_BYTES = 64 * 1024 };

/* The bytes of a model, either in memory or in a file. */
typedef struct fe_source {
    const unsigned char *bytes; /* of a file: only the bytes that fe_need has read */
    size_t size_bytes;
    const char *name;   /* for messages */
    int descriptor;     /* -1: all bytes are in memory */
    uint64_t *has_read; /* one bit for each chunk of the file */
} fe_source;

/* A source of bytes in memory, which are borrowed. */
static inline fe_source fe_memory_source(const void *bytes, size_t size_bytes, const char *name)
{
    return (fe_source){.bytes = bytes, .size_bytes = size_bytes, .name = name, .descriptor = -1};
}

/* MALFORMED for a file without bytes, UNSUPPORTED for more than protobuf's two gigabytes. `file` is the name for
 * messages. */
mdot_status fe_check_file_size(const char *file, uint64_t size_bytes, mdot_error *err);

/* Opens a file and reserves memory for its bytes for the lifetime of the arena. The caller closes it. NOT_FOUND, IO,
 * MALFORMED (empty), UNSUPPORTED (more than two gigabytes), OUT_OF_MEMORY. */
mdot_status fe_open_source(const char *path, ir_arena *arena, fe_source *out_source, mdot_error *err);
void fe_close_source(fe_source *source);

/* Reads the chunks of bytes [offset, offset + size_bytes), which must lie within the source, unless they are in memory
 * already. MALFORMED if the file has become shorter, IO. */
mdot_status fe_need(const fe_source *source, size_t offset, size_t size_bytes, mdot_error *err);

/* Returns size_bytes > 0 bytes of an open file from `offset` on, in memory that belongs to the arena. On failure,
 * returns NULL and sets errno: ENOMEM, an error of the file, or 0 if the file is too short. */
const void *fe_read_range(int fd, uint64_t offset, size_t size_bytes, ir_arena *arena);

#endif
