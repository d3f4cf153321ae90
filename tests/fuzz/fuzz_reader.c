/* fuzz_reader.c — libFuzzer on the ONNX reader. Any bytes either become a graph that follows the graph rules, or are
 * refused with a message.
 *
 *     scripts/fuzz.sh 600 reader
 */
#include "frontend/onnx/onnx.h"
#include "tests/fuzz/hostile_mutate.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first byte chooses the options, the others are the file. */
enum { SKIP_WEIGHTS = 1, BIND = 2 };

HOSTILE_MUTATORS(1)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mdot_dim_binding bindings[] = {{"N", 4, NULL}, {"batch", 2, NULL}};
    if (size == 0) return 0;
    fe_options options = {.skip_weights = data[0] & SKIP_WEIGHTS};
    if (data[0] & BIND) {
        options.bindings = bindings;
        options.binding_count = sizeof bindings / sizeof *bindings;
    }
    ir_arena *arena = ir_arena_create((size_t)256 << 20);
    if (!arena) return 0;
    ir_graph *graph = NULL;
    mdot_error err = {0};
    mdot_status status = fe_import_bytes(data + 1, size - 1, "fuzz", NULL, &options, arena, &graph, &err);
    if (status == MDOT_OK ? ir_graph_verify(graph, &err) != MDOT_OK : err.message[0] == '\0') {
        fprintf(stderr, "%s\n", status == MDOT_OK ? err.message : "the file was refused without a message");
        abort();
    }
    ir_arena_destroy(arena);
    return 0;
}
