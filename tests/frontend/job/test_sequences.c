/* test_sequences.c — frontend/job/sequences.c: lists with known members become splits. */
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static onnx_builder *begin(void)
{
    static const int64_t numbers[] = {0, 1, -1};
    static const char *const names[] = {"first", "second", "last"};
    onnx_builder *b = onnx_begin(18);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,3,10");
    for (int i = 0; i < 3; i++) onnx_initializer(b, names[i], MDOT_DTYPE_I64, "", &numbers[i]);
    onnx_node(b, "Relu", "x", "r");
    return b;
}

/* torch.unbind as the dynamo exporter and the TorchScript exporter write it. */
static void splitting_into_a_sequence_equals_a_split(void **state)
{
    (void)state;
    onnx_builder *b = begin(), *other = begin();
    const int64_t one = 1;
    onnx_initializer(b, "one", MDOT_DTYPE_I64, "", &one);
    onnx_node(b, "SplitToSequence", "r,one", "list");
    onnx_attr_int(b, "axis", 1);
    onnx_attr_int(b, "keepdims", 0);
    onnx_node(b, "SequenceAt", "list,first", "p");
    onnx_node(b, "SequenceAt", "list,last", "q");
    onnx_node(b, "Add", "p,q", "y");
    onnx_output(b, "y");
    onnx_node(other, "Split", "r", "a,unused,c");
    onnx_attr_int(other, "axis", 1);
    onnx_attr_int(other, "num_outputs", 3);
    onnx_initializer(other, "axis", MDOT_DTYPE_I64, "1", (int64_t[]){1});
    onnx_node(other, "Squeeze", "a,axis", "p");
    onnx_node(other, "Squeeze", "c,axis", "q");
    onnx_node(other, "Add", "p,q", "y");
    onnx_output(other, "y");
    job_reading r = job_expect(b), s = job_expect(other);
    job_expect_types(&r, "Relu Split Add");
    assert_string_equal(r.warnings, "");
    job_expect_same(&r, &s);
    job_end(&r);
    job_end(&s);
}

static void parts_keep_their_axis_and_the_last_may_be_smaller(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    const int64_t four = 4;
    onnx_initializer(b, "four", MDOT_DTYPE_I64, "", &four);
    onnx_node(b, "SplitToSequence", "r,four", "list");
    onnx_attr_int(b, "axis", -1);
    onnx_node(b, "SequenceAt", "list,last", "p");
    onnx_node(b, "Sigmoid", "p", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Relu Split Sigmoid");
    job_expect_load(job_operator(&r, 2).per_sample[MDOT_PHASE_FORWARD],
                    job_operator(&r, 2).per_sample[MDOT_PHASE_FORWARD].flops, 4 * 3 * 2, 4 * 3 * 2);
    job_end(&r);
}

static void parts_may_be_listed(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_initializer(b, "sizes", MDOT_DTYPE_I64, "2", (int64_t[]){7, 3});
    onnx_node(b, "SplitToSequence", "r,sizes", "list");
    onnx_attr_int(b, "axis", 2);
    onnx_node(b, "SequenceAt", "list,second", "p");
    onnx_node(b, "Sigmoid", "p", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Relu Split Sigmoid");
    job_expect_load(job_operator(&r, 2).per_sample[MDOT_PHASE_FORWARD],
                    job_operator(&r, 2).per_sample[MDOT_PHASE_FORWARD].flops, 4 * 3 * 3, 4 * 3 * 3);
    job_end(&r);
}

static void incomplete_parts_keep_the_list(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_initializer(b, "sizes", MDOT_DTYPE_I64, "2", (int64_t[]){7, 4});
    onnx_node(b, "SplitToSequence", "r,sizes", "list");
    onnx_attr_int(b, "axis", 2);
    onnx_node(b, "SequenceAt", "list,second", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Relu SplitToSequence SequenceAt");
    job_end(&r);
}

static void data_dependent_index_keeps_the_list(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    onnx_input(b, "place", MDOT_DTYPE_I64, "");
    onnx_node(b, "SplitToSequence", "r", "list");
    onnx_node(b, "SequenceAt", "list,place", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Relu SplitToSequence SequenceAt");
    assert_int_equal(job_info(&r).unknown_count, 2);
    job_end(&r);
}

static void index_beyond_the_list_keeps_the_list(void **state)
{
    (void)state;
    onnx_builder *b = begin();
    const int64_t nine = 9;
    onnx_initializer(b, "nine", MDOT_DTYPE_I64, "", &nine);
    onnx_node(b, "SplitToSequence", "r", "list");
    onnx_attr_int(b, "axis", 1);
    onnx_node(b, "SequenceAt", "list,nine", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Relu SplitToSequence SequenceAt");
    job_end(&r);
}

/* A malformed file: an index is one element. */
static void many_indices_keep_the_list(void **state)
{
    (void)state;
    static const int64_t places[64] = {1};
    onnx_builder *b = begin();
    onnx_initializer(b, "places", MDOT_DTYPE_I64, "64", places);
    onnx_node(b, "SplitToSequence", "r", "list");
    onnx_attr_int(b, "axis", 1);
    onnx_node(b, "SequenceAt", "list,places", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Relu SplitToSequence SequenceAt");
    job_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitting_into_a_sequence_equals_a_split),
        cmocka_unit_test(parts_keep_their_axis_and_the_last_may_be_smaller),
        cmocka_unit_test(parts_may_be_listed),
        cmocka_unit_test(incomplete_parts_keep_the_list),
        cmocka_unit_test(data_dependent_index_keeps_the_list),
        cmocka_unit_test(index_beyond_the_list_keeps_the_list),
        cmocka_unit_test(many_indices_keep_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
