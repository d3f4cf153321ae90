/* test_widen_types.c — frontend/job/widen_types.c: a model in another floating-point type has the same operators as in
 * f32. */
#include "ir/tensor.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Writes a scalar constant. */
static void scalar(onnx_builder *b, const char *name, mdot_dtype type, double number)
{
    const float single = (float)number;
    const uint16_t half = type == MDOT_DTYPE_F16 ? ir_f64_to_f16(number) : ir_f64_to_bf16(number);
    const void *data = type == MDOT_DTYPE_F64   ? (const void *)&number
                       : type == MDOT_DTYPE_F32 ? (const void *)&single
                                                : (const void *)&half;
    onnx_initializer(b, name, type, "", data);
}

/* Attention with scaled operands, as written by the tracer for PyTorch modules, and x · sigmoid(x). */
static job_reading read_in(mdot_dtype type)
{
    onnx_builder *b = onnx_begin(20);
    onnx_input(b, "q", type, "N,4,128,64");
    onnx_input(b, "k", type, "N,4,128,64");
    onnx_input(b, "v", type, "N,4,128,64");
    scalar(b, "root", type, 0.5);
    onnx_initializer(b, "w", type, "64,32", NULL);
    onnx_node(b, "Transpose", "k", "kt");
    onnx_attr_ints(b, "perm", 4, (int64_t[]){0, 1, 3, 2});
    onnx_node(b, "Mul", "q,root", "scaled_q");
    onnx_node(b, "Mul", "kt,root", "scaled_k");
    onnx_node(b, "MatMul", "scaled_q,scaled_k", "s");
    onnx_node(b, "Softmax", "s", "p");
    onnx_attr_int(b, "axis", -1);
    onnx_node(b, "MatMul", "p,v", "a");
    onnx_node(b, "MatMul", "a,w", "l");
    onnx_node(b, "Sigmoid", "l", "g");
    onnx_node(b, "Mul", "l,g", "y");
    return job_expect_output(b, "y");
}

static void types_leave_the_operators_unchanged(void **state)
{
    (void)state;
    static const mdot_dtype types[] = {MDOT_DTYPE_F16, MDOT_DTYPE_BF16, MDOT_DTYPE_F64};
    job_reading single = read_in(MDOT_DTYPE_F32);
    job_expect_types(&single, "Attention Linear Swish");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        job_reading other = read_in(types[i]);
        job_expect_same(&single, &other);
        job_end(&other);
    }
    job_end(&single);
}

/* Each side of the attention computes in another type, as a module with float32 parts does. */
static void casts_between_types_leave_the_operators_unchanged(void **state)
{
    (void)state;
    job_reading readings[2];
    for (int cast = 0; cast < 2; cast++) {
        onnx_builder *b = onnx_begin(20);
        mdot_dtype type = cast ? MDOT_DTYPE_BF16 : MDOT_DTYPE_F32;
        onnx_input(b, "q", type, "N,4,128,64");
        onnx_input(b, "kt", type, "N,4,64,128");
        onnx_input(b, "v", type, "N,4,128,64");
        onnx_node(b, "MatMul", "q,kt", "s");
        if (cast) {
            onnx_node(b, "Cast", "s", "wide");
            onnx_attr_int(b, "to", MDOT_DTYPE_F32);
        }
        onnx_node(b, "Softmax", cast ? "wide" : "s", "p");
        onnx_attr_int(b, "axis", -1);
        if (cast) {
            onnx_node(b, "Cast", "p", "narrow");
            onnx_attr_int(b, "to", MDOT_DTYPE_BF16);
        }
        onnx_node(b, "MatMul", cast ? "narrow,v" : "p,v", "y");
        readings[cast] = job_expect_output(b, "y");
        job_expect_types(&readings[cast], "Transpose Attention");
    }
    job_expect_same(&readings[0], &readings[1]);
    job_end(&readings[0]);
    job_end(&readings[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(types_leave_the_operators_unchanged),
        cmocka_unit_test(casts_between_types_leave_the_operators_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
