/* graph_notation.h — a short notation for graphs, for tests of passes:
 *
 *     x = input f32[2,L,8]
 *     half = constant f32[] [0.5]
 *     w = weights f32[8,16]
 *     a, b = Split(x, _) {axis=-1, num_outputs=2}
 *     y = com.microsoft.Gelu(a)
 *     return y, b
 *
 * `weights` is a constant with small pseudo-random numbers; `_` is an absent input. Result types are inferred. */
#pragma once

#include "ir/graph.h"

/* Returns the graph before inference, with lengths up to max_length. Fails the test if the text has a fault. */
ir_graph *graph_from_notation(const char *text, int64_t max_length, ir_arena *arena);

/* Returns the graph's text for golden files: names are removed, and values are renumbered in order. */
char *graph_to_golden(const ir_graph *graph, ir_arena *arena);

/* Concrete inputs at a length. Floats lie in [-1, 1), integers in 0 … 3. Of the bools, seven in ten are true, and the
 * first of each row is always true. */
ir_wide **random_inputs(const ir_graph *graph, int64_t length, uint64_t seed, ir_arena *arena);

/* Evaluates both graphs on the inputs. Asserts equal names and types of outputs, and elements within `tolerance`
 * relative to max(1, |a|). */
void assert_same_results(const ir_graph *a, const ir_graph *b, const ir_wide *const *inputs, double tolerance);
/* The same on random inputs. */
void assert_same_values(const ir_graph *a, const ir_graph *b, int64_t length, double tolerance);
