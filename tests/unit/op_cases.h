/* op_cases.h — tables of cases for single operators, written in the text form of graphs (ir/text.h).
 *
 *     {"adds_with_broadcasting", "Add", "", {"f32[2,2] [1, 2, 3, 4]", "f32[1] [10]"}, {"f32[2,2] [11, 12, 13, 14]"}},
 *
 * An input that gives content is a constant, one that gives a type only is a graph input, "_" is absent. Lengths run
 * from 1 to CASE_MAX_LENGTH, which L stands for in types.
 */
#ifndef TEST_OP_CASES_H
#define TEST_OP_CASES_H

#include "ir/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { CASE_OPERANDS = 10, CASE_RESULTS = 4, CASE_MAX_LENGTH = 64 };

typedef struct op_case {
    const char *name;  /* the behaviour */
    const char *op;    /* as in the text form: "Add", "com.microsoft.Gelu" */
    const char *attrs; /* "" or "axis=1, alpha=0.5" */
    const char *inputs[CASE_OPERANDS];
    const char *wants[CASE_RESULTS]; /* what each function says */
} op_case;

/* A graph of the one node, in `arena`; it is not inferred. Fails the test when the case's text is wrong. */
ir_graph *case_graph(const op_case *c, ir_arena *arena);

/* wants: "f32[2] [1, 2]". Infers, evaluates on constant inputs, and compares each output that is wanted within
 * `tolerance`, relative for values beyond 1; integers exactly. The inferred types must be those of the results. */
void expect_values(const op_case *cases, size_t count, double tolerance);
/* wants: "f32[2,L]", or "i64[2] known [L, 3]" where the content must be known as well, or "i64[2] unknown". */
void expect_types(const op_case *cases, size_t count);
/* wants[0]: a part of the message with which inference fails with this status. */
void expect_type_faults(const op_case *cases, size_t count, mdot_status status);
/* wants[0]: a part of the message with which evaluation fails, inference having been left out. */
void expect_value_faults(const op_case *cases, size_t count, mdot_status status);

/* Cost of the node at a length; wants is not read. */
ir_cost case_cost(const op_case *c, int64_t length);

#define EXPECT(function, cases, ...) function(cases, sizeof(cases) / sizeof((cases)[0]), __VA_ARGS__)

#endif
