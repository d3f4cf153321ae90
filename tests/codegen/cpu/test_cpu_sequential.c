/* Running sums, the k best and scatters against the plan interpreter, on random shapes and types. */
#include "tests/support/assertions.h"
#include "tests/support/plan_fixture.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

static const int64_t lengths[] = {1, 2, 9, 16, 40, 0};
static const mdot_dtype dtypes[] = {MDOT_DTYPE_F32, MDOT_DTYPE_F64, MDOT_DTYPE_F16, MDOT_DTYPE_BF16, MDOT_DTYPE_I8,
                                    MDOT_DTYPE_I32, MDOT_DTYPE_I64, MDOT_DTYPE_U8,  MDOT_DTYPE_U64};
enum { DTYPE_COUNT = sizeof dtypes / sizeof dtypes[0] };

static const pl_sequential nothing = {.input = {-1, -1, -1, -1}, .output = {-1, -1}};

static void cumulative_sums_match(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        plan_fixture f;
        plan_begin(&f, 40);
        ir_dim dims[] = {PLAN_N(3), PLAN_L, PLAN_N(37)}; /* 37: adjacent column strips, and a remainder */
        int in = plan_input(&f, dtypes[d], 3, dims);
        for (int flags = 0; flags < 4; flags++) {
            for (int axis = 0; axis < 3; axis++) {
                pl_sequential k = nothing;
                k.operation = PL_SEQ_CUMULATE;
                k.input[0] = in;
                k.output[0] = plan_output(&f, dtypes[d], 3, dims);
                k.axis = axis;
                k.exclusive = flags & 1;
                k.reverse = flags & 2;
                plan_sequential(&f, k);
            }
        }
        srand((unsigned)d);
        plan_check(&f, lengths);
        plan_end(&f);
    }
}

/* Few distinct values, so ties are frequent. */
static void the_k_best_are_in_order_and_ties_go_to_the_lower_index(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        plan_fixture f;
        plan_begin(&f, 40);
        for (int largest = 0; largest <= 1; largest++) {
            for (int axis = 0; axis < 3; axis++) {
                ir_dim in_dims[] = {PLAN_N(4), PLAN_L, PLAN_N(6)}, out_dims[] = {PLAN_N(4), PLAN_L, PLAN_N(6)};
                /* k is the whole middle axis: a sort */
                out_dims[axis] = axis == 1 ? (ir_dim)PLAN_L : (ir_dim)PLAN_N(3);
                pl_sequential k = nothing;
                k.operation = PL_SEQ_TOP_K;
                k.input[0] = plan_input(&f, dtypes[d], 3, in_dims);
                k.output[0] = plan_output(&f, dtypes[d], 3, out_dims);
                k.output[1] = plan_output(&f, MDOT_DTYPE_I64, 3, out_dims);
                k.axis = axis;
                k.largest = largest;
                k.sorted = true;
                plan_sequential(&f, k);
            }
        }
        srand((unsigned)d);
        plan_check(&f, lengths);
        plan_end(&f);
    }
}

static void nan_ranks_above_every_number(void **state)
{
    (void)state;
    static const float in[] = {1, NAN, 3, NAN, -INFINITY, 2, INFINITY};
    static const int64_t want[2][3] = {{4, 0, 5}, {1, 3, 6}};
    for (mdot_cpu_isa level = MDOT_CPU_X86_64_V3; level <= MDOT_CPU_AARCH64_NEON; level++) {
        if (!harness_runs_fp32(level)) continue;
        for (int largest = 0; largest <= 1; largest++) {
            plan_fixture f;
            plan_begin(&f, 0);
            pl_sequential k = nothing;
            k.operation = PL_SEQ_TOP_K;
            k.input[0] = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_N(7)));
            k.output[0] = plan_output(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_N(3)));
            k.output[1] = plan_output(&f, MDOT_DTYPE_I64, PLAN_SHAPE(PLAN_N(3)));
            k.largest = largest;
            plan_sequential(&f, k);
            float values[3];
            int64_t places[3];
            harness_run_plan(&f.plan, level, (const void *[]){in}, (void *[]){values, places}, 0);
            for (int i = 0; i < 3; i++) assert_int_equal(places[i], want[largest][i]);
            plan_end(&f);
        }
    }
}

static void scatters_of_elements_match(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        plan_fixture f;
        plan_begin(&f, 40);
        ir_dim dims[] = {PLAN_N(4), PLAN_L, PLAN_N(6)}, index_dims[] = {PLAN_N(3), PLAN_L, PLAN_N(5)};
        for (pl_reducer r = PL_REDUCE_NONE; r <= PL_REDUCE_MIN; r++) {
            for (int axis = 0; axis < 3; axis += 2) {
                int64_t extent = dims[axis].offset;
                mdot_dtype index_dtype = r % 2 ? MDOT_DTYPE_I32 : MDOT_DTYPE_I64;
                pl_sequential k = nothing;
                k.operation = PL_SEQ_SCATTER_ELEMENTS;
                k.input[0] = plan_input(&f, dtypes[d], 3, dims);
                k.input[1] = plan_input_between(&f, index_dtype, (double)-extent, (double)(extent - 1), 3, index_dims);
                k.input[2] =
                    plan_input_between(&f, dtypes[d], ir_dtype_is_unsigned(dtypes[d]) ? 0 : -2, 2, 3, index_dims);
                k.output[0] = plan_output(&f, dtypes[d], 3, dims);
                k.axis = axis;
                k.reduction = r;
                plan_sequential(&f, k);
            }
        }
        srand((unsigned)d);
        plan_check(&f, lengths);
        plan_end(&f);
    }
}

static void scatters_of_slices_match(void **state)
{
    (void)state;
    for (int d = 0; d < DTYPE_COUNT; d++) {
        plan_fixture f;
        plan_begin(&f, 40);
        ir_dim dims[] = {PLAN_N(4), PLAN_N(5), PLAN_L};
        for (pl_reducer r = PL_REDUCE_NONE; r <= PL_REDUCE_MIN; r++) {
            for (int tuple = 1; tuple <= 2; tuple++) {
                ir_dim index_dims[] = {PLAN_N(3), PLAN_N(tuple)};
                ir_dim update_dims[3] = {PLAN_N(3), dims[tuple], dims[2]};
                double low = ir_dtype_is_unsigned(dtypes[d]) ? 0 : -2;
                pl_sequential k = nothing;
                k.operation = PL_SEQ_SCATTER_ND;
                k.input[0] = plan_input(&f, dtypes[d], 3, dims);
                k.input[1] = plan_input_between(&f, MDOT_DTYPE_I64, -4, 3, 2, index_dims);
                k.input[2] = plan_input_between(&f, dtypes[d], low, 2, 4 - tuple, update_dims);
                k.output[0] = plan_output(&f, dtypes[d], 3, dims);
                k.reduction = r;
                plan_sequential(&f, k);
            }
        }
        srand((unsigned)d);
        plan_check(&f, lengths);
        plan_end(&f);
    }
}

static void updates_of_a_cache_match(void **state)
{
    (void)state;
    for (int circular = 0; circular <= 1; circular++) {
        plan_fixture f;
        plan_begin(&f, 40);
        ir_dim dims[] = {PLAN_N(2), PLAN_N(3), PLAN_N(50), PLAN_N(4)},
               update_dims[] = {PLAN_N(2), PLAN_N(3), PLAN_L, PLAN_N(4)};
        for (int starts = 0; starts <= 1; starts++) {
            pl_sequential k = nothing;
            k.operation = PL_SEQ_TENSOR_SCATTER;
            k.input[0] = plan_input(&f, MDOT_DTYPE_F32, 4, dims);
            k.input[1] = plan_input(&f, MDOT_DTYPE_F32, 4, update_dims);
            if (starts)
                k.input[2] = plan_input_between(&f, MDOT_DTYPE_I64, 0, circular ? 200 : 10, PLAN_SHAPE(PLAN_N(2)));
            k.output[0] = plan_output(&f, MDOT_DTYPE_F32, 4, dims);
            k.axis = 2;
            k.circular = circular;
            plan_sequential(&f, k);
        }
        srand(1);
        plan_check(&f, lengths);
        plan_end(&f);
    }
}

/* The interpreter refuses such indices. The code must clamp them and stay inside the buffer, which a guard page
 * follows. */
static void out_of_range_indices_are_clamped(void **state)
{
    (void)state;
    static const float data[4] = {0, 0, 0, 0}, updates[3] = {1, 2, 3};
    static const int64_t indices[3] = {INT64_MAX, INT64_MIN, 1};
    for (mdot_cpu_isa level = MDOT_CPU_X86_64_V3; level <= MDOT_CPU_AARCH64_NEON; level++) {
        if (!harness_runs_fp32(level)) continue;
        plan_fixture f;
        plan_begin(&f, 0);
        pl_sequential k = nothing;
        k.operation = PL_SEQ_SCATTER_ELEMENTS;
        k.input[0] = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_N(4)));
        k.input[1] = plan_input(&f, MDOT_DTYPE_I64, PLAN_SHAPE(PLAN_N(3)));
        k.input[2] = plan_input(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_N(3)));
        k.output[0] = plan_output(&f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_N(4)));
        plan_sequential(&f, k);
        float got[6] = {9, 9, 9, 9, 9, 9};
        harness_run_plan(&f.plan, level, (const void *[]){data, indices, updates}, (void *[]){got}, 0);
        const float want[6] = {2, 3, 0, 1, 9, 9};
        for (int i = 0; i < 6; i++) assert_compare(got[i], ==, want[i]);
        plan_end(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cumulative_sums_match),
        cmocka_unit_test(the_k_best_are_in_order_and_ties_go_to_the_lower_index),
        cmocka_unit_test(nan_ranks_above_every_number),
        cmocka_unit_test(scatters_of_elements_match),
        cmocka_unit_test(scatters_of_slices_match),
        cmocka_unit_test(updates_of_a_cache_match),
        cmocka_unit_test(out_of_range_indices_are_clamped),
    };
    return shard_run_group_tests(tests, NULL, NULL);
}
