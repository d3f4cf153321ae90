/* test_batch_extraction.c — frontend/job/job_read.c: an ONNX file with a symbolic batch. The law: at any batch, the job
 * has the work of the job that was extracted at that batch. */
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CONTRASTIVE, ATTENTION_OVER_BATCH, WITH_TABLE, USUAL, NETWORKS };

static onnx_builder *network(int which)
{
    onnx_builder *b = job_begin("N,48");
    onnx_initializer(b, "head.weight", MDOT_DTYPE_F32, "48,32", NULL);
    onnx_node(b, "MatMul", "x,head.weight", "z");
    if (which == USUAL) {
        onnx_node(b, "Relu", "z", "y");
        onnx_output(b, "y");
        return b;
    }
    onnx_node(b, "Transpose", "z", "zt");
    onnx_node(b, "MatMul", "z,zt", "scores");
    if (which == CONTRASTIVE) {
        onnx_node(b, "LogSoftmax", "scores", "p");
        onnx_node(b, "Exp", "p", "y");
    } else if (which == ATTENTION_OVER_BATCH) {
        onnx_node(b, "Softmax", "scores", "p");
        onnx_node(b, "MatMul", "p,z", "y");
    } else {
        onnx_input(b, "table", MDOT_DTYPE_F32, "100,32");
        onnx_node(b, "Tanh", "table", "t");
        onnx_node(b, "Transpose", "t", "tt");
        onnx_node(b, "MatMul", "z,tt", "with_table");
        onnx_node(b, "ReduceSum", "with_table", "total");
        onnx_node(b, "Add", "scores,total", "y");
    }
    onnx_output(b, "y");
    return b;
}

static double at(const mdot_load *loads, int k)
{
    const double numbers[] = {loads->flops, loads->bytes_read, loads->bytes_written};
    return numbers[k];
}

static double amount(const mdot_job_operator *op, int phase, int k, double batch)
{
    return at(&op->per_step[phase], k) +
           batch * (at(&op->per_sample[phase], k) + batch * at(&op->per_square[phase], k));
}

static void work_at_any_batch_is_that_of_the_extraction_there(void **state)
{
    (void)state;
    for (int which = 0; which < NETWORKS; which++) {
        job_reading open = job_expect(network(which));
        assert_string_equal(open.warnings, "");
        for (int64_t batch = 2; batch <= 4096; batch *= 4) {
            const mdot_dim_binding dim = {.name = "N", .value = batch};
            job_reading fixed = job_read_model(network(which), &dim, 1);
            assert_int_equal(fixed.status, MDOT_OK);
            assert_int_equal(job_info(&open).operator_count, job_info(&fixed).operator_count);
            for (size_t i = 0; i < job_info(&open).operator_count; i++) {
                mdot_job_operator x = job_operator(&open, i), y = job_operator(&fixed, i);
                assert_string_equal(x.type, y.type);
                for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
                    for (int k = 0; k < 3; k++) {
                        double found = amount(&x, phase, k, (double)batch),
                               wanted = amount(&y, phase, k, (double)batch);
                        if (!(fabs(found - wanted) <= .001 * wanted + (double)batch)) /* a fixed batch rounds */
                            fail_msg("network %d, operator %zu (%s), phase %d, number %d, batch %lld: %g, not %g",
                                     which, i, x.type, phase, k, (long long)batch, found, wanted);
                    }
            }
            job_end(&fixed);
        }
        job_end(&open);
    }
}

static void matrices_of_all_samples_have_squares(void **state)
{
    (void)state;
    for (int which = 0; which < NETWORKS; which++) {
        job_reading r = job_expect(network(which));
        double squares = 0, settings = 0;
        for (size_t i = 0; i < job_info(&r).operator_count; i++) {
            mdot_job_operator op = job_operator(&r, i);
            squares += op.per_square[MDOT_PHASE_FORWARD].flops;
            settings += op.batch_settings != 0;
        }
        assert_int_equal(squares > 0, which != USUAL);
        assert_int_equal(settings > 0, which != USUAL);
        job_end(&r);
    }
}

/* A graph whose reshape fixes the batch cannot be read at another one. */
static void a_reshape_that_fixes_the_batch_keeps_work_per_sample(void **state)
{
    (void)state;
    static const int64_t shape[] = {1, 6, 8};
    onnx_builder *b = job_begin("N,48");
    onnx_initializer(b, "shape", MDOT_DTYPE_I64, "3", shape);
    onnx_node(b, "Reshape", "x,shape", "r");
    onnx_node(b, "Relu", "r", "y");
    onnx_output(b, "y");
    job_reading r = job_expect(b);
    job_expect_types(&r, "Relu");
    assert_int_equal(job_operator(&r, 0).per_sample[MDOT_PHASE_FORWARD].bytes_written, 4 * 48);
    job_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_at_any_batch_is_that_of_the_extraction_there),
        cmocka_unit_test(matrices_of_all_samples_have_squares),
        cmocka_unit_test(a_reshape_that_fixes_the_batch_keeps_work_per_sample),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
