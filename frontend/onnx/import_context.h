/* import_context.h — an import's shared state, messages and tensors. */
#pragma once

#include "frontend/onnx/onnx.h"
#include "frontend/onnx/source.h"
#include "onnx.pb-c.h"

#include <stdarg.h>

/* ---- state that the steps of one import share -------------------------------------------------------------------- */

typedef struct fe_context {
    const char *file;          /* name of the model in messages */
    const char *folder;        /* folder of external data; NULL: external data is refused */
    const fe_source *source;   /* the model file, for spans of raw_data */
    const fe_options *options; /* always set */
    ir_arena *arena;           /* the graph */
    ir_arena *scratch;         /* protobuf messages and names, freed after the import */
    mdot_error *err;
} fe_context;

/* protobuf-c gives NULL for an absent string. */
static inline const char *fe_text(const char *text) { return text != NULL ? text : ""; }

/* import_messages.c: reports the arena that is exhausted; the scratch arena is bounded in proportion to the file. */
mdot_status fe_out_of_memory(const fe_context *context);
void fe_warn(const fe_context *context, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Sends a warning of one line, with control characters removed, because it may contain names from the file. */
void fe_warn_to(void (*warning)(void *user, const char *message), void *user, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* external.c: fails if options->output is the file of a tensor whose data_location is EXTERNAL, in any folder. */
mdot_status fe_check_external(const fe_context *context, const Onnx__TensorProto *proto);
/* Reads the `size_bytes` > 0 bytes of a tensor whose data_location is EXTERNAL. */
mdot_status fe_read_external(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                             const char *name, size_t size_bytes, const void **out_data);

/* onnx_tensor.c: imports a TensorProto as constant data. `kind` and `name` identify it in messages, for example
 * "initializer" and "W". Data is borrowed from the file if it is aligned there. */
mdot_status fe_import_tensor(const fe_context *context, const Onnx__TensorProto *proto, const char *kind,
                             const char *name, const ir_tensor **out_tensor);
