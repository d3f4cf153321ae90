/* The emitters' primitives: loops, conditions, dimensions, lanes, transposes. */
#include "tests/support/assertions.h"
#include "tests/support/cg_harness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

static const mdot_cpu_isa levels[] = {MDOT_CPU_X86_64_V3, MDOT_CPU_X86_64_V4};

/* Builds a function for every level that runs here, loads it and passes it to `check`. */
static void at_every_level(void (*build)(cg_emitter *e), void (*check)(const harness *h))
{
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        if (!harness_runs(levels[l])) continue;
        harness h;
        harness_begin(&h, levels[l]);
        build(&h.e);
        harness_load(&h);
        check(&h);
        harness_end(&h);
    }
}

typedef void (*counting)(int64_t *out, int64_t length);

/* out[0] = sum over i, out[1] = iteration count for (i = 2; i < length; i += 3) */
static void build_loop(cg_emitter *e)
{
    harness_begin_function(e, "loop", 1);
    LLVMValueRef zero = cg_int(e, 0);
    cg_loop loop;
    cg_loop_begin(e, &loop, cg_int(e, 2), e->length, 3, 2, (LLVMValueRef[]){zero, zero}, true);
    cg_loop_end(e, &loop,
                (LLVMValueRef[]){cg_iadd(e, loop.carried[0], loop.index), cg_iadd(e, loop.carried[1], cg_int(e, 1))});
    for (int i = 0; i < 2; i++) cg_store(e, loop.out[i], cg_at(e, e->i64, cg_pointer(e, 0), cg_int(e, i)), 0);
    cg_end_function(e);
}

static void check_loop(const harness *h)
{
    counting function = (counting)(uintptr_t)harness_get(h, "loop");
    for (int64_t length = -1; length < 20; length++) {
        int64_t out[2] = {-1, -1}, sum = 0, turns = 0;
        for (int64_t i = 2; i < length; i += 3) sum += i, turns++;
        function(out, length);
        assert_int_equal(out[0], sum);
        assert_int_equal(out[1], turns);
    }
}

static void guarded_loops_carry_values_and_may_not_run_at_all(void **state)
{
    (void)state;
    at_every_level(build_loop, check_loop);
}

/* out[0] = 3 * length - 5, out[1] = length rounded down to 8, and out[2] = 1 only if length > 10 */
static void build_scalars(cg_emitter *e)
{
    harness_begin_function(e, "scalars", 1);
    LLVMValueRef out = cg_pointer(e, 0);
    cg_store(e, cg_dim(e, ir_dim_affine(3, -5)), cg_at(e, e->i64, out, cg_int(e, 0)), 0);
    cg_store(e, cg_round_down(e, e->length, 8), cg_at(e, e->i64, out, cg_int(e, 1)), 0);
    cg_if block;
    cg_if_begin(e, &block, LLVMBuildICmp(e->builder, LLVMIntSGT, e->length, cg_int(e, 10), ""));
    cg_store(e, cg_int(e, 1), cg_at(e, e->i64, out, cg_int(e, 2)), 0);
    cg_if_end(e, &block);
    cg_end_function(e);
}

static void check_scalars(const harness *h)
{
    counting function = (counting)(uintptr_t)harness_get(h, "scalars");
    for (int64_t length = 1; length < 30; length++) {
        int64_t out[3] = {0, 0, 0};
        function(out, length);
        assert_int_equal(out[0], 3 * length - 5);
        assert_int_equal(out[1], length / 8 * 8);
        assert_int_equal(out[2], length > 10);
    }
}

static void dimensions_and_conditions_follow_the_length(void **state)
{
    (void)state;
    at_every_level(build_scalars, check_scalars);
}

enum { MOST_LANES = 16 };
typedef void (*on_floats)(const float *in, float *out, int64_t length);

static void build_lanes(cg_emitter *e)
{
    int lanes = e->target->lanes;
    LLVMTypeRef vector = cg_vector(e, e->f32, lanes);
    LLVMValueRef rows[MOST_LANES];
    harness_begin_function(e, "transpose", 2);
    for (int i = 0; i < lanes; i++)
        rows[i] = cg_load(e, vector, cg_at(e, e->f32, cg_pointer(e, 0), cg_int(e, i * lanes)), 0);
    cg_transpose(e, rows);
    for (int i = 0; i < lanes; i++) cg_store(e, rows[i], cg_at(e, e->f32, cg_pointer(e, 1), cg_int(e, i * lanes)), 0);
    cg_end_function(e);

    harness_begin_function(e, "reduce", 2);
    LLVMValueRef row = cg_load(e, vector, cg_pointer(e, 0), 0);
    cg_store(e, cg_reduce_add(e, row), cg_at(e, e->f32, cg_pointer(e, 1), cg_int(e, 0)), 0);
    cg_store(e, cg_reduce(e, row, cg_fmax), cg_at(e, e->f32, cg_pointer(e, 1), cg_int(e, 1)), 0);
    cg_end_function(e);
}

static void check_lanes(const harness *h)
{
    int lanes = h->e.target->lanes;
    float in[MOST_LANES * MOST_LANES], out[MOST_LANES * MOST_LANES], reduced[2], sum = 0;
    for (int i = 0; i < lanes * lanes; i++) in[i] = (float)((i * 37) % 101);
    ((on_floats)(uintptr_t)harness_get(h, "transpose"))(in, out, 0);
    for (int i = 0; i < lanes; i++)
        for (int j = 0; j < lanes; j++) assert_compare(out[i * lanes + j], ==, in[j * lanes + i]);
    float most = in[0];
    for (int i = 0; i < lanes; i++) sum += in[i], most = fmaxf(most, in[i]);
    ((on_floats)(uintptr_t)harness_get(h, "reduce"))(in, reduced, 0);
    assert_compare(reduced[0], ==, sum);
    assert_compare(reduced[1], ==, most);
}

static void lanes_transpose_and_fold(void **state)
{
    (void)state;
    at_every_level(build_lanes, check_lanes);
}

static void constants_of_narrow_integers_keep_their_bits(void **state)
{
    (void)state;
    harness h;
    harness_begin(&h, MDOT_CPU_X86_64_V3);
    assert_int_equal(LLVMConstIntGetSExtValue(cg_const_int(h.e.i8, 255)), -1);
    assert_int_equal(LLVMConstIntGetZExtValue(cg_const_int(h.e.i8, -1)), 255);
    assert_int_equal(LLVMConstIntGetSExtValue(cg_const_int(h.e.i64, INT64_MIN)), INT64_MIN);
    assert_int_equal(cg_lanes(cg_const_int(cg_vector(&h.e, h.e.i16, 8), 3)), 8);
    harness_end(&h);
}

static void assert_level_has_targets(mdot_cpu_isa level, const char *name)
{
    int count = 0;
    for (int c = 0; c < CG_COMPUTES; c++) {
        const cg_cpu_target *target = cg_cpu_target_find(level, (cg_compute)c);
        if (target == NULL) continue;
        count++;
        assert_string_equal(target->name, name);
        assert_int_equal(target->matmul == CG_MATMUL_F32, c == CG_FP32);
        assert_ptr_equal(target->layout, c == CG_FP32 ? &cg_layout_f32 : &cg_layout_bf16);
    }
    assert_compare(count, >, 0);
}

static void every_level_of_the_abi_has_a_target(void **state)
{
    (void)state;
#define HAS_TARGET(level, value, text) assert_level_has_targets(MDOT_CPU_##level, text);
    MDOT_CPU_ISA_MAP(HAS_TARGET)
#undef HAS_TARGET
    assert_null(cg_cpu_target_find(MDOT_CPU_NONE, CG_FP32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guarded_loops_carry_values_and_may_not_run_at_all),
        cmocka_unit_test(dimensions_and_conditions_follow_the_length),
        cmocka_unit_test(lanes_transpose_and_fold),
        cmocka_unit_test(constants_of_narrow_integers_keep_their_bits),
        cmocka_unit_test(every_level_of_the_abi_has_a_target),
    };
    return cmocka_run_group_tests_name("cg_emit", tests, NULL, NULL);
}
