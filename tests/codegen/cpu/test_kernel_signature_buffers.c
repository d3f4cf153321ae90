/* test_kernel_signature_buffers.c — the buffer properties in a kernel's signature: types, uses, and 16-bit storage if
 * the code depends on it. Other properties are left out, so layers share code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "plan/kernel_kind.h"
#include "tests/support/signature_fixture.h"

/* A linear on buffers 0 to 4: a, weight, bias, the input of the epilogue, out. */
static pl_kernel make_linear(signature_fixture *s)
{
    ir_dim row = ir_dim_number(32), column = ir_dim_number(16), none = ir_dim_number(0);
    return (pl_kernel){.kind = PL_LINEAR,
                       .linear = {.a = {0, none, row},
                                  .rows = {.scale = 1},
                                  .k = 32,
                                  .columns = 16,
                                  .weight = 1,
                                  .bias = 2,
                                  .epilogue = signature_fixture_load(s, 3),
                                  .out = {4, none, column}}};
}

static void signatures_include_types_and_uses_of_buffers(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    pl_kernel kernel = make_linear(&s);
    cg_signature before = signature_fixture_of(&s, &kernel);
    for (int b = 0; b <= 4; b++) {
        s.buffers[b].type.dtype = MDOT_DTYPE_F64;
        cg_signature typed = signature_fixture_of(&s, &kernel);
        s.buffers[b].type.dtype = MDOT_DTYPE_F32;
        s.buffers[b].use ^= 1;
        cg_signature used = signature_fixture_of(&s, &kernel);
        s.buffers[b].use ^= 1;
        assert_false(cg_signature_equal(&before, &typed));
        assert_false(cg_signature_equal(&before, &used));
    }
    ir_arena_destroy(s.arena);
}

/* In rounding precisions, the code depends on the plan's 16-bit buffers. In f32 it does not. */
static void buffers_stored_in_16_bits_count_in_bf16(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    pl_kernel kernel = make_linear(&s);
    cg_cpu_target targets[] = {*s.target, *s.target, *s.target};
    targets[1].matmul = CG_MATMUL_BF16_WEIGHTS;
    targets[2].matmul = CG_MATMUL_BF16;
    for (int t = 0; t < 3; t++)
        for (int b = 0; b <= 4; b++) {
            s.target = &targets[t];
            pl_buffer_kind kind = s.buffers[b].kind;
            for (int w = 0; w < 2; w++) {
                s.buffers[b].kind = w ? PL_WEIGHT : PL_SCRATCH;
                s.buffers[b].reads = PL_READ_WHOLE;
                cg_signature whole = signature_fixture_of(&s, &kernel);
                s.buffers[b].reads = PL_READ_HALF;
                cg_signature half = signature_fixture_of(&s, &kernel);
                bool counts = w ? targets[t].matmul != CG_MATMUL_F32 : targets[t].matmul == CG_MATMUL_BF16;
                assert_int_equal(!cg_signature_equal(&whole, &half), counts);
            }
            s.buffers[b].kind = kind;
            s.buffers[b].reads = 0;
        }
    ir_arena_destroy(s.arena);
}

/* Two attentions that differ only in the query source. Queries are multiplied in 16 bits only if a kernel made them. */
static void operands_multiplied_in_16_bits_count_in_bf16(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    ir_dim whole = ir_dim_number(0), row = ir_dim_number(32);
    pl_heads heads[4];
    for (int b = 0; b < 4; b++) heads[b] = (pl_heads){b, whole, whole, row, row};
    pl_kernel kernel = {.kind = PL_ATTENTION,
                        .attention = {.batch = ir_dim_number(1),
                                      .heads = 1,
                                      .kv_heads = 1,
                                      .queries = {.scale = 1},
                                      .keys = {.scale = 1},
                                      .dim = 32,
                                      .value_dim = 32,
                                      .q = heads[0],
                                      .k = heads[1],
                                      .v = heads[2],
                                      .out = heads[3]}};
    cg_cpu_target pairs = *s.target;
    pairs.matmul = CG_MATMUL_BF16;
    assert_true(pl_is_matrix(&s.plan, &kernel));
    cg_signature f32_made = signature_fixture_of(&s, &kernel);
    s.buffers[0].kind = PL_INPUT;
    assert_false(pl_is_matrix(&s.plan, &kernel));
    cg_signature f32_given = signature_fixture_of(&s, &kernel);
    s.target = &pairs;
    cg_signature given = signature_fixture_of(&s, &kernel);
    s.buffers[0].kind = PL_SCRATCH;
    cg_signature made = signature_fixture_of(&s, &kernel);
    assert_true(cg_signature_equal(&f32_made, &f32_given));
    assert_false(cg_signature_equal(&made, &given));
    ir_arena_destroy(s.arena);
}

/* Layers share code, because names, buffer numbers, offsets and contents are left out of the signature. */
static void signatures_ignore_names_offsets_and_contents(void **state)
{
    (void)state;
    signature_fixture s;
    signature_fixture_begin(&s);
    pl_kernel kernel = make_linear(&s), other = kernel;
    kernel.name = "linear.a";
    kernel.origin = "a";
    other.name = "linear.b";
    other.origin = "b";
    other.flops = 1e9;
    other.linear.a.buffer = 6;
    other.linear.weight = 7;
    other.linear.bias = 8;
    other.linear.epilogue = signature_fixture_load(&s, 9);
    other.linear.out.buffer = 10;
    for (int b = 6; b <= 10; b++) {
        s.buffers[b].kind = PL_OUTPUT;
        s.buffers[b].name = "other";
        s.buffers[b].index = b;
        s.buffers[b].offset_bytes = 64 * b;
        s.buffers[b].max_bytes = 1000;
        s.buffers[b].first_use = s.buffers[b].last_use = b;
    }
    assert_true(signature_fixture_same(&s, &kernel, &other));
    cg_signature signature = signature_fixture_of(&s, &other);
    assert_int_equal(signature.buffer_count, 5);
    assert_int_equal(signature.buffers[0], 6);
    ir_arena_destroy(s.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures_include_types_and_uses_of_buffers),
        cmocka_unit_test(buffers_stored_in_16_bits_count_in_bf16),
        cmocka_unit_test(operands_multiplied_in_16_bits_count_in_bf16),
        cmocka_unit_test(signatures_ignore_names_offsets_and_contents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
