/* context.h — what the steps of one import share. Private to frontend/. */
#ifndef FE_CONTEXT_H
#define FE_CONTEXT_H

#include "frontend/onnx/onnx.h"

#include "onnx.pb-c.h"

#include <stdarg.h>

typedef struct fe_context {
    const char *file;           /* stands for the model in messages */
    const char *folder;         /* where external data may be; NULL: nowhere */
    const unsigned char *bytes; /* the model file: spans of raw_data refer to it */
    const fe_options *options;  /* never NULL */
    ir_arena *arena;            /* the graph */
    ir_arena *scratch;          /* protobuf messages, names: gone after the import */
    mdot_error *err;
} fe_context;

/* protobuf-c gives NULL for an absent string. */
static inline const char *fe_text(const char *text)
{
    return text != NULL ? text : "";
}

/* Says which arena had no more: the scratch one is bounded in proportion to the file. */
mdot_status fe_out_of_memory(const fe_context *context);
void fe_warn(const fe_context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* One line without control characters, whatever names from the file it holds. */
void fe_warn_to(void (*warning)(void *user, const char *message), void *user, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* ---- read.c ---------------------------------------------------------------------------------------------------- */

/* Maps a file until the arena goes. NOT_FOUND, IO, MALFORMED (empty). */
mdot_status fe_map_file(const char *path, ir_arena *arena, const void **out_bytes, size_t *out_size_bytes,
                        mdot_error *err);
/* Maps size_bytes > 0 bytes of an open file from `offset` until the arena goes; NULL and errno, or NULL and ENOMEM. */
const void *fe_map_range(int fd, uint64_t offset, size_t size_bytes, ir_arena *arena);

/* ---- onnx_tensor.c, external.c --------------------------------------------------------------------------------------
 */

/* A TensorProto as constant data; `kind` and `name` say in messages what it is: "initializer", "W". Data is lent from
 * the file where it is aligned there. */
mdot_status fe_import_tensor(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                             const char *name, const ir_tensor **out_tensor);
/* That options->output is not the file of a tensor whose data_location is EXTERNAL, wherever that may lie. */
mdot_status fe_check_external(const fe_context *context, const Onnx__TensorProto *proto);
/* The `size_bytes` > 0 bytes of a tensor whose data_location is EXTERNAL. */
mdot_status fe_map_external(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                            const char *name, size_t size_bytes, const void **out_data);

#endif
