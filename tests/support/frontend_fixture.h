/* frontend_fixture.h — imports a built model in one line, and inspects the result. */
#pragma once

#include "frontend/onnx/onnx.h"
#include "ir/ops.h"
#include "tests/support/onnx_builder.h"

typedef struct imported {
    mdot_status status;
    mdot_error err;
    ir_graph *graph; /* NULL after a failure */
    ir_arena *arena;
    pb_buffer bytes;
    int warning_count;
    char warning[512]; /* the last warning */
} imported;

/* Finishes the model and imports it. options may be NULL; a warning callback is optional. */
imported import_model(onnx_builder *b, const fe_options *options);
/* Takes ownership of the bytes. */
imported import_bytes(pb_buffer bytes, const char *folder, const fe_options *options);
void release(imported *model);

/* Expects that the model is imported, and otherwise prints the message. */
imported expect_imported(onnx_builder *b, const fe_options *options);
/* Expects refusal with this status. The message must contain each of `parts`, which end with NULL. */
void expect_refused(onnx_builder *b, const fe_options *options, mdot_status status, const char *part, ...)
    __attribute__((sentinel));
void expect_refused_bytes(pb_buffer bytes, mdot_status status, const char *part);

int node_count(const ir_graph *graph);
/* Node i in order. */
ir_node *node_at(const ir_graph *graph, int i);
/* Returns the model's only node of this operator, or fails the test if it is absent. */
ir_node *node_of(const ir_graph *graph, ir_opcode op);
/* Expects a constant input with these integers. */
void expect_ints(const ir_value *value, int count, const int64_t *expected);
