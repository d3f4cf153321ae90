/* fuzz_graph.c — graphs as text run through the parser, inference, the verifier, the printer and the reference
 * evaluator.
 *
 *     scripts/fuzz.sh 600 graph
 *
 * The output of `mdot compile --dump PASS` can serve as a seed. The input must never cause a crash. A graph accepted by
 * inference must verify, print and parse back to the same text. Without inputs, the evaluation must give values of the
 * inferred types. */
#include "ir/ops.h"
#include "tests/support/graph_parser.h"
#include "tests/support/infer_graph.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "%s\n", what);
    abort();
}

static void check_text(const ir_graph *graph, ir_arena *arena)
{
    ir_graph *again = NULL;
    mdot_error err = {.status = MDOT_OK};
    const char *text = ir_graph_print(graph, arena);
    if (!text) return;
    mdot_status status = ir_graph_parse(text, graph, arena, &again, &err);
    if (status == MDOT_OUT_OF_MEMORY) return;
    require(status == MDOT_OK, err.message);
    const char *printed = ir_graph_print(again, arena);
    require(!printed || strcmp(printed, text) == 0, "the text does not survive being parsed");
}

static void check_values(const ir_graph *graph, ir_arena *arena)
{
    ir_wide **out = IR_NEW_ARRAY(arena, ir_wide *, graph->output_count);
    if (!out || ir_evaluate(graph, NULL, arena, out, NULL) != MDOT_OK) return;
    for (int i = 0; i < graph->output_count; i++) {
        const ir_type *type = &graph->outputs[i]->type;
        require(out[i]->dtype == type->dtype && out[i]->rank == type->rank, "an inferred type is wrong");
        for (int k = 0; k < type->rank; k++) {
            require(!ir_dim_is_number(type->dim[k]) || type->dim[k].offset == out[i]->dims[k],
                    "an inferred shape is wrong");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ir_arena *arena = ir_arena_create((size_t)64 << 20);
    char *text = arena ? ir_arena_strndup(arena, (const char *)data, size) : NULL;
    ir_graph *graph = NULL;
    mdot_error err = {.status = MDOT_OK};
    if (text && ir_graph_parse(text, NULL, arena, &graph, &err) == MDOT_OK) {
        check_text(graph, arena);
        bool sound = ir_graph_verify(graph, &err) == MDOT_OK;
        if (sound && ir_infer(graph, &err) == MDOT_OK) {
            mdot_status status = ir_graph_verify(graph, &err);
            require(status == MDOT_OK || status == MDOT_OUT_OF_MEMORY, err.message);
            check_text(graph, arena);
            if (graph->input_count == 0) check_values(graph, arena);
        }
    }
    ir_arena_destroy(arena);
    return 0;
}
