/* graph_notation.h — graphs in few words, for tests of passes:
 *
 *     x = input f32[2,L,8]
 *     half = constant f32[] [0.5]
 *     w = weights f32[8,16]
 *     a, b = Split(x, _) {axis=-1, num_outputs=2}
 *     y = com.microsoft.Gelu(a)
 *     return y, b
 *
 * `weights` is a constant of small pseudo-random numbers; `_` is an absent input. Types of results are inferred.
 */
#ifndef MDOT_TESTS_GRAPH_NOTATION_H
#define MDOT_TESTS_GRAPH_NOTATION_H

#include "ir/graph.h"

/* The graph, not inferred, with lengths up to max_length; fails the test on a fault in the text. */
ir_graph *graph_from_notation(const char *text, int64_t max_length, ir_arena *arena);

/* The graph's text without names, values renumbered in the order in which they stand: what golden files hold. */
char *graph_to_golden(const ir_graph *graph, ir_arena *arena);

/* Concrete inputs at a length. Floats lie in [-1, 1), integers in 0 … 3, of bools seven in ten are true and the first
 * of each row always. */
ir_wide **random_inputs(const ir_graph *graph, int64_t length, uint64_t seed, ir_arena *arena);

/* Evaluates both on the inputs and asserts that outputs have the same names, types and, within `tolerance` relative to
 * max(1, |a|), elements. */
void assert_same_results(const ir_graph *a, const ir_graph *b, const ir_wide *const *inputs, double tolerance);
/* The same on random inputs. */
void assert_same_values(const ir_graph *a, const ir_graph *b, int64_t length, double tolerance);

#endif
