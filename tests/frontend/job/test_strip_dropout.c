/* test_strip_dropout.c — frontend/job/strip_dropout.c: random masks are removed from a job, other random numbers
 * remain. */
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Relu, then operators ending in `masked`, then Sigmoid. */
static onnx_builder *begin(void)
{
    static const float keep = 0.8F;
    static const int64_t shape[] = {2, 1, 1, 1};
    onnx_builder *b = onnx_begin(18);
    onnx_input(b, "x", MDOT_DTYPE_F32, "2,3,8,8");
    onnx_initializer(b, "keep", MDOT_DTYPE_F32, "", &keep);
    onnx_initializer(b, "shape", MDOT_DTYPE_I64, "4", shape);
    onnx_node(b, "Relu", "x", "r");
    return b;
}

static job_reading finish(onnx_builder *b)
{
    onnx_node(b, "Sigmoid", "masked", "y");
    onnx_output(b, "y");
    return job_expect(b);
}

static void expect_no_trace(onnx_builder *b)
{
    job_reading r = finish(b);
    job_expect_types(&r, "Relu Sigmoid");
    assert_int_equal(job_operator(&r, 1).input_count, 1);
    assert_string_equal(r.warnings, "");
    job_end(&r);
}

/* Tensor.bernoulli_ and div_, as PyTorch's exporter writes them. */
static void stochastic_depth_is_stripped(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "ConstantOfShape", "shape", "like");
    onnx_node(b, "RandomUniformLike", "like", "random");
    onnx_node(b, "Less", "random,keep", "kept");
    onnx_node(b, "Cast", "kept", "mask");
    onnx_attr_int(b, "to", MDOT_DTYPE_F32);
    onnx_node(b, "Div", "mask,keep", "scaled");
    onnx_node(b, "Mul", "r,scaled", "masked");
    expect_no_trace(b);
}

/* x.div(keep) * (keep + rand).floor_() */
static void rounded_mask_is_stripped_with_its_division(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "RandomUniform", "", "random");
    onnx_attr_ints(b, "shape", 4, (int64_t[]){2, 1, 1, 1});
    onnx_node(b, "Add", "keep,random", "shifted");
    onnx_node(b, "Floor", "shifted", "mask");
    onnx_node(b, "Div", "r,keep", "scaled");
    onnx_node(b, "Mul", "scaled,mask", "masked");
    expect_no_trace(b);
}

static void random_selection_is_stripped(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    const float zero = 0;
    onnx_initializer(b, "zero", MDOT_DTYPE_F32, "", &zero);
    onnx_node(b, "RandomUniformLike", "r", "random");
    onnx_node(b, "GreaterOrEqual", "random,keep", "dropped");
    onnx_node(b, "Where", "dropped,zero,r", "masked");
    expect_no_trace(b);
}

/* A sampled latent: the mean plus noise times the standard deviation. */
static void random_data_stays(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "RandomNormalLike", "r", "noise");
    onnx_node(b, "Mul", "r,noise", "spread");
    onnx_node(b, "Add", "r,spread", "masked");
    job_reading r = finish(b);
    job_expect_types(&r, "Relu RandomNormalLike Mul Add Sigmoid");
    job_end(&r);
}

static void uniform_factor_stays(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "RandomUniformLike", "r", "random");
    onnx_node(b, "Mul", "r,random", "masked");
    job_reading r = finish(b);
    job_expect_types(&r, "Relu RandomUniformLike Mul Sigmoid");
    job_end(&r);
}

/* The threshold depends on the data. Therefore the random value may be more than a mask, and the multiplication
 * stays. */
static void data_dependent_threshold_keeps_the_product(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_node(b, "RandomUniformLike", "r", "random");
    onnx_node(b, "Less", "random,r", "kept");
    onnx_node(b, "Cast", "kept", "mask");
    onnx_attr_int(b, "to", MDOT_DTYPE_F32);
    onnx_node(b, "Mul", "r,mask", "masked");
    job_reading r = finish(b);
    job_expect_types(&r, "Relu RandomUniformLike Less Cast Mul Sigmoid");
    job_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stochastic_depth_is_stripped), cmocka_unit_test(rounded_mask_is_stripped_with_its_division),
        cmocka_unit_test(random_selection_is_stripped), cmocka_unit_test(random_data_stays),
        cmocka_unit_test(uniform_factor_stays),         cmocka_unit_test(data_dependent_threshold_keeps_the_product),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
