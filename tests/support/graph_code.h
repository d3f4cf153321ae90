/* graph_code.h — graphs in notation, compared with their reference evaluation at every stage on the way to code. */
#pragma once

#include "plan/planner.h"

#include <stdint.h>

/* The optimised plan of a graph for lengths up to `max_length`, owned by the arena. */
pl_plan *graph_plan(const char *notation, int64_t max_length, ir_arena *arena);

/* Compares three results with the original graph's results at each length; the lengths ascend (end with 0), from the
 * graph's least length. The results come from the graph after all passes, the interpreted plan, and the fp32 code on
 * every level of this machine. The tolerance is 2e-5 relative to max(1, |wanted|). */
void assert_code_agrees(const char *notation, const int64_t *lengths);
/* The same on every target of harness_targets, in bf16 within 4e-2. */
void assert_code_agrees_everywhere(const char *notation, const int64_t *lengths);

/* The fp32 code only, held to the graph's evaluation with every result rounded to f32: for graphs whose results f32
 * decides, such as a row of scores beside -1e9. */
void assert_code_agrees_in_f32(const char *notation, const int64_t *lengths);

/* Expects these kinds of kernels in the plan, for example "linear2 nest recurrence". Kernels inside a recurrence are
 * not counted. */
void assert_kernels(const char *notation, const char *kinds);

/* Expects that the passes or the planner refuse the graph with UNSUPPORTED and a message with `reason`. */
void assert_refused(const char *notation, const char *reason);
