/* read.h — maps files read-only. Private to frontend/onnx. */
#ifndef FE_READ_H
#define FE_READ_H

#include "frontend/onnx/context.h"

/* Maps a file for the lifetime of the arena. NOT_FOUND, IO, MALFORMED (empty). */
mdot_status fe_map_file(const char *path, ir_arena *arena, const void **out_bytes, size_t *out_size_bytes,
                        mdot_error *err);
/* Maps size_bytes > 0 bytes of an open file from `offset` for the lifetime of the arena. On failure, returns NULL and
 * sets errno, or NULL and ENOMEM. */
const void *fe_map_range(int fd, uint64_t offset, size_t size_bytes, ir_arena *arena);

#endif
