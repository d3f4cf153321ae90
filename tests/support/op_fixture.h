/* op_fixture.h — tests of single operators, written as text: one node with inputs, run through the rules of the
 * operator table. Inputs are "f32[2,L]" (a graph input), "i64[2] known [L, 4]" (one with known content), "i64[2] [4,
 * -1]" (a constant), "f32[2,3] 0.." (a constant that counts up) or "_" (absent). L is at most 64. The node's name is
 * "node". */
#pragma once

#include "mdot/mdot_base.h"

typedef struct op_case {
    const char *op;    /* for example "Reshape", "com.microsoft.Attention" */
    const char *attrs; /* for example "axis=-1, mode=\"wrap\"" */
    const char *inputs[10];
    int output_count; /* 0 means 1 */
    const char *only; /* present outputs, for example "_x"; NULL = all */
} op_case;

/* The inferred types and known contents of the outputs, for example "f32[2,L]; i64[1] known [L]". */
#define assert_types(expected, ...) op_assert_types((op_case){__VA_ARGS__}, expected, __FILE__, __LINE__)
/* The values that the evaluation computes from constants, for example "f32[2] [1, 0.5]", with floats to six digits.
 * The inferred types must agree. */
#define assert_values(expected, ...) op_assert_values((op_case){__VA_ARGS__}, expected, __FILE__, __LINE__)
/* Inference fails with this status. The message names the node and contains `text`. */
#define assert_shape_fault(status, text, ...)                                                                          \
    op_assert_shape_fault((op_case){__VA_ARGS__}, status, text, __FILE__, __LINE__)
/* Evaluation fails in the same way. */
#define assert_eval_fault(status, text, ...)                                                                           \
    op_assert_eval_fault((op_case){__VA_ARGS__}, status, text, __FILE__, __LINE__)
/* FLOPs, bytes read, bytes written and parameters at length 10. */
#define assert_cost(flops, read, written, parameters, ...)                                                             \
    op_assert_cost((op_case){__VA_ARGS__}, flops, read, written, parameters, __FILE__, __LINE__)

void op_assert_types(op_case c, const char *expected, const char *file, int line);
void op_assert_values(op_case c, const char *expected, const char *file, int line);
void op_assert_shape_fault(op_case c, mdot_status status, const char *text, const char *file, int line);
void op_assert_eval_fault(op_case c, mdot_status status, const char *text, const char *file, int line);
void op_assert_cost(op_case c, double flops, double bytes_read, double bytes_written, double parameters,
                    const char *file, int line);
