/* graph_code.h — graphs in notation, held to their reference evaluation at every station on the way to code. */
#ifndef MDOT_TESTS_GRAPH_CODE_H
#define MDOT_TESTS_GRAPH_CODE_H

#include <stdint.h>

/* The graph through all passes, its plan interpreted, and its code in fp32 on every level that this machine runs, at
 * each of the lengths (end with 0): all give what the graph as written gives, within 2e-5 relative to max(1, |wanted|).
 */
void assert_code_agrees(const char *notation, const int64_t *lengths);
/* The same on every target that harness_targets names, in bf16 within 4e-2. */
void assert_code_agrees_everywhere(const char *notation, const int64_t *lengths);

/* The kinds of its plan's kernels, "linear2 nest recurrence"; a recurrence's own kernels are not counted. */
void assert_kernels(const char *notation, const char *kinds);

/* The passes or the planner refuse it with UNSUPPORTED and a message that holds `reason`. */
void assert_refused(const char *notation, const char *reason);

#endif
