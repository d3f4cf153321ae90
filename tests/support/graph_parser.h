/* graph_parser.h — parses the text form of graphs (ir/graph_text.h), which proves that the text is complete. */
#pragma once

#include "ir/graph.h"

/* Constants that the text gives by hash are taken from `constants_from` (may be NULL; then they have no data). */
mdot_status ir_graph_parse(const char *text, const ir_graph *constants_from, ir_arena *arena, ir_graph **out_graph,
                           mdot_error *err);
