/* test_ops_matmul.c — ir/ops/matmul.c: MatMul, Gemm, Linear, FusedMatMul. */
#include "tests/support/op_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void mat_mul_multiplies_matrices(void **state)
{
    (void)state;
    assert_types("f32[L,5]", "MatMul", .inputs = {"f32[L,3]", "f32[3,5]"});
    assert_values("f32[2,2] [6, 7, 26, 31]", "MatMul", .inputs = {"f32[2,2] 0..", "f32[2,2] [4, 5, 6, 7]"});
    assert_values("i64[1,1] [9007199254740993]", "MatMul",
                  .inputs = {"i64[1,2] [9007199254740992, 1]", "i64[2,1] [1, 1]"});
    assert_values("i32[1,1] [-2147483648]", "MatMul", .inputs = {"i32[1,2] [2147483647, 1]", "i32[2,1] [1, 1]"});
}

static void mat_mul_takes_vectors(void **state)
{
    (void)state;
    assert_types("f32[5]", "MatMul", .inputs = {"f32[3]", "f32[3,5]"});
    assert_types("f32[2,L]", "MatMul", .inputs = {"f32[2,L,3]", "f32[3]"});
    assert_types("f32[]", "MatMul", .inputs = {"f32[L]", "f32[L]"});
    assert_values("f32[] [5]", "MatMul", .inputs = {"f32[3] 0..", "f32[3] 0.."});
    assert_values("f32[2] [3, 4]", "MatMul", .inputs = {"f32[2] [0, 1]", "f32[2,2] [1, 2, 3, 4]"});
    assert_values("f32[2] [1, 3]", "MatMul", .inputs = {"f32[2,2] 0..", "f32[2] [0, 1]"});
}

static void mat_mul_broadcasts_batches(void **state)
{
    (void)state;
    assert_types("f32[2,4,L,L]", "MatMul", .inputs = {"f32[2,4,L,8]", "f32[4,8,L]"});
    assert_types("f32[L,2,1,1]", "MatMul", .inputs = {"f32[1,2,1,3]", "f32[L,1,3,1]"});
    assert_values("f32[2,2,1,1] [0, 0, 0, 1]", "MatMul", .inputs = {"f32[2,1,1,1] 0..", "f32[1,2,1,1] 0.."});
    assert_values("f32[2,1,2] [0, 1, 2, 3]", "MatMul", .inputs = {"f32[1,1] [1]", "f32[2,1,2] 0.."});
}

static void mat_mul_refuses_mismatched_shapes(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "[2, 3] times [4, 5]: the inner dimensions differ", "MatMul",
                       .inputs = {"f32[2,3]", "f32[4,5]"});
    assert_shape_fault(MDOT_UNSUPPORTED, "[2, L] times [4, 5]", "MatMul", .inputs = {"f32[2,L]", "f32[4,5]"});
    assert_shape_fault(MDOT_MALFORMED, "broadcast", "MatMul", .inputs = {"f32[2,1,1]", "f32[3,1,1]"});
    assert_shape_fault(MDOT_MALFORMED, "scalar", "MatMul", .inputs = {"f32[]", "f32[1]"});
    assert_shape_fault(MDOT_MALFORMED, "input 1, \"in1\", is of type i64", "MatMul", .inputs = {"f32[1]", "i64[1]"});
    assert_eval_fault(MDOT_MALFORMED, "inner dimensions", "MatMul", .inputs = {"f32[2] 0..", "f32[3] 0.."});
}

static void gemm_transposes_scales_and_adds(void **state)
{
    (void)state;
    assert_types("f32[L,5]", "Gemm", "transA=1, transB=1", .inputs = {"f32[3,L]", "f32[5,3]", "f32[5]"});
    assert_values("f32[2,2] [2, 3, 6, 11]", "Gemm", .inputs = {"f32[2,2] 0..", "f32[2,2] 0.."});
    assert_values("f32[2,2] [4, 6, 6, 10]", "Gemm", "transA=1", .inputs = {"f32[2,2] 0..", "f32[2,2] 0.."});
    assert_values("f32[2,2] [1, 3, 3, 13]", "Gemm", "transB=1", .inputs = {"f32[2,2] 0..", "f32[2,2] 0.."});
    assert_values("f32[2,2] [2, 4.5, 4, 8.5]", "Gemm", "alpha=0.5, beta=3.0",
                  .inputs = {"f32[2,2] 0..", "f32[2,2] 0..", "f32[2] [0.333333333333333333, 1]"});
    assert_values("f32[2,1] [1, 3]", "Gemm", .inputs = {"f32[2,1] 0..", "f32[1,1] [1]", "f32[2,1] [1, 2]"});
    assert_values("i32[1,1] [7]", "Gemm", .inputs = {"i32[1,1] [2]", "i32[1,1] [3]", "i32[] [1]"});
    assert_values("i32[1,1] [-13]", "Gemm", "alpha=-2.5, beta=2.0",
                  .inputs = {"i32[1,1] [2]", "i32[1,1] [3]", "i32[] [1]"});
    /* a result beyond 64 bits saturates */
    assert_values("i64[1,1] [9223372036854775807]", "Gemm", "alpha=4e37", .inputs = {"i64[1,1] [2]", "i64[1,1] [3]"});
    assert_values("i64[1,1] [-9223372036854775808]", "Gemm", "beta=-4e37",
                  .inputs = {"i64[1,1] [0]", "i64[1,1] [3]", "i64[] [1]"});
}

static void gemm_refuses_mismatched_shapes(void **state)
{
    (void)state;
    assert_shape_fault(MDOT_MALFORMED, "matrix A has 3 dimensions instead of 2", "Gemm",
                       .inputs = {"f32[1,2,3]", "f32[3,5]"});
    assert_shape_fault(MDOT_MALFORMED, "C of shape [3] does not broadcast", "Gemm",
                       .inputs = {"f32[2,2]", "f32[2,2]", "f32[3]"});
    assert_shape_fault(MDOT_MALFORMED, "C of shape [1, 2, 2]", "Gemm",
                       .inputs = {"f32[2,2]", "f32[2,2]", "f32[1,2,2]"});
    assert_shape_fault(MDOT_MALFORMED, "transposed: the inner dimensions differ", "Gemm", "transB=1",
                       .inputs = {"f32[2,3]", "f32[3,2]"});
}

static void linear_adds_its_bias_to_every_row(void **state)
{
    (void)state;
    assert_types("f32[2,L,5]", "mdot.Linear", .inputs = {"f32[2,L,3]", "f32[3,5]", "f32[5]"});
    assert_values("f32[2,2] [12, 23, 16, 31]", "mdot.Linear",
                  .inputs = {"f32[2,2] 0..", "f32[2,2] 0..", "f32[2] [10, 20]"});
    assert_values("f32[2] [2, 3]", "mdot.Linear", .inputs = {"f32[2] 0..", "f32[2,2] 0.."});
    assert_shape_fault(MDOT_MALFORMED, "the length of the bias", "mdot.Linear",
                       .inputs = {"f32[2,2]", "f32[2,2]", "f32[3]"});
    assert_shape_fault(MDOT_MALFORMED, "weight has 1 dimensions", "mdot.Linear", .inputs = {"f32[2,2]", "f32[2]"});
}

static void fused_mat_mul_transposes_and_scales(void **state)
{
    (void)state;
    assert_types("f32[2,L,L]", "com.microsoft.FusedMatMul", "transB=1", .inputs = {"f32[2,L,8]", "f32[2,L,8]"});
    assert_types("f32[2,8,8]", "com.microsoft.FusedMatMul", "transA=1", .inputs = {"f32[2,L,8]", "f32[2,L,8]"});
    assert_values("f32[2,2] [0.5, 1.5, 1.5, 6.5]", "com.microsoft.FusedMatMul", "transB=1, alpha=0.5",
                  .inputs = {"f32[2,2] 0..", "f32[2,2] 0.."});
    assert_values("f32[2] [2, 3]", "com.microsoft.FusedMatMul", "transA=1", .inputs = {"f32[2] 0..", "f32[2,2] 0.."});
    assert_shape_fault(MDOT_UNSUPPORTED, "transBatchA", "com.microsoft.FusedMatMul", "transBatchA=1",
                       .inputs = {"f32[2,2,2]", "f32[2,2,2]"});
}

static void fused_gemm_applies_its_activation(void **state)
{
    (void)state;
    assert_types("f32[L,5]", "com.microsoft.FusedGemm", "transB=1, activation=\"Relu\"",
                 .inputs = {"f32[L,3]", "f32[5,3]", "f32[5]"});
    assert_values("f32[2,2] [0, 0, 0, 6]", "com.microsoft.FusedGemm", "activation=\"Relu\"",
                  .inputs = {"f32[2,2] 0..", "f32[2,2] 0..", "f32[2] [-9, -5]"});
    assert_values("f32[2,2] [-3.5, -1, -1.5, 6]", "com.microsoft.FusedGemm",
                  "activation=\"LeakyRelu\", activation_alpha=0.5",
                  .inputs = {"f32[2,2] 0..", "f32[2,2] 0..", "f32[2] [-9, -5]"});
    assert_values("f32[2,2] [2, 3, 6, 11]", "com.microsoft.FusedGemm", "alpha=1.0",
                  .inputs = {"f32[2,2] 0..", "f32[2,2] 0.."});
    assert_shape_fault(MDOT_UNSUPPORTED, "Cosine", "com.microsoft.FusedGemm", "activation=\"Cosine\"",
                       .inputs = {"f32[2,2]", "f32[2,2]"});
}

static void matmuls_cost_two_flops_per_multiply_add(void **state)
{
    (void)state;
    assert_cost(2 * 4 * 10 * 3 * 10, (4 * 10 * 3) * 2 * 4, 4 * 10 * 10 * 4, 0, "MatMul",
                .inputs = {"f32[4,L,3]", "f32[4,3,L]"});
    assert_cost(2 * 10 * 2 * 3 + 30, (20 + 6 + 3) * 4, 30 * 4, 6 + 3, "mdot.Linear",
                .inputs = {"f32[L,2]", "f32[2,3] 0..", "f32[3] 0.."});
    assert_cost(2 * 10 * 2 * 3, (20 + 6) * 4, 30 * 4, 6, "Gemm", "transB=1", .inputs = {"f32[L,2]", "f32[3,2] 0.."});
    assert_cost(2 * 5, (5 + 5) * 4, 4, 0, "MatMul", .inputs = {"f32[5]", "f32[5]"});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mat_mul_multiplies_matrices),       cmocka_unit_test(mat_mul_takes_vectors),
        cmocka_unit_test(mat_mul_broadcasts_batches),        cmocka_unit_test(mat_mul_refuses_mismatched_shapes),
        cmocka_unit_test(gemm_transposes_scales_and_adds),   cmocka_unit_test(gemm_refuses_mismatched_shapes),
        cmocka_unit_test(linear_adds_its_bias_to_every_row), cmocka_unit_test(fused_mat_mul_transposes_and_scales),
        cmocka_unit_test(fused_gemm_applies_its_activation), cmocka_unit_test(matmuls_cost_two_flops_per_multiply_add),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
