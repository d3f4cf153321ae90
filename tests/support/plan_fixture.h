/* plan_fixture.h — small plans written by hand, compared with the plan interpreter on every CPU level and many lengths.
 *
 * Inputs are random. An integer index input may leave the valid range on purpose; see plan_input_between. */
#pragma once

#include "tests/support/cg_harness.h"

enum { PLAN_MAX_BUFFERS = 160, PLAN_MAX_KERNELS = 64 };

typedef struct plan_fixture {
    ir_arena *arena;
    pl_plan plan;
    pl_buffer buffers[PLAN_MAX_BUFFERS];
    pl_kernel kernels[PLAN_MAX_KERNELS];
    double low[PLAN_MAX_BUFFERS], high[PLAN_MAX_BUFFERS]; /* range of an input's random content */
    int input_count, output_count;
} plan_fixture;

void plan_begin(plan_fixture *f, int64_t max_length);
void plan_end(plan_fixture *f);

#define PLAN_SHAPE(...)                                                                                                \
    (int)(sizeof((ir_dim[]){__VA_ARGS__}) / sizeof(ir_dim)), (const ir_dim[]) { __VA_ARGS__ }
#define PLAN_N(n)                                                                                                      \
    {                                                                                                                  \
        .offset = n                                                                                                    \
    }
#define PLAN_L                                                                                                         \
    {                                                                                                                  \
        .scale = 1                                                                                                     \
    }

/* These functions return buffer numbers. */
int plan_input(plan_fixture *f, mdot_dtype dtype, int rank, const ir_dim *dims);
int plan_input_between(plan_fixture *f, mdot_dtype dtype, double low, double high, int rank, const ir_dim *dims);
int plan_output(plan_fixture *f, mdot_dtype dtype, int rank, const ir_dim *dims);

void plan_nest(plan_fixture *f, pl_nest nest);
void plan_sequential(plan_fixture *f, pl_sequential sequential);

/* Runs the interpreter and the code at each of the lengths (end with 0; {1, 0} for a plan without a length) and
 * compares outputs. */
void plan_check(plan_fixture *f, const int64_t *lengths);
