/* context.h — state that the steps of one import share. Private to frontend/. */
#ifndef FE_CONTEXT_H
#define FE_CONTEXT_H

#include "frontend/onnx/onnx.h"
#include "frontend/onnx/read.h"

#include "onnx.pb-c.h"

typedef struct fe_context {
    const char *file;          /* name of the model in messages */
    const char *folder;        /* folder of external data; NULL: external data is refused */
    const fe_source *source;   /* the model file, which spans of raw_data refer to */
    const fe_options *options; /* always set */
    ir_arena *arena;           /* the graph */
    ir_arena *scratch;         /* protobuf messages and names, freed after the import */
    mdot_error *err;
} fe_context;

/* protobuf-c gives NULL for an absent string. */
static inline const char *fe_text(const char *text)
{
    return text != NULL ? text : "";
}

#endif
