/* test_length_symbols.c — frontend/onnx/symbols.c: the length of a job's file whose dimensions have any names. The law:
 * a job read with "length" equals the job in which the same dimension is bound by its own name. */
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Two sequences of one batch: the second attends to the first. */
static onnx_builder *attending(const char *batch, const char *first, const char *second)
{
    char shape[256];
    snprintf(shape, sizeof shape, "%s,%s,16", batch, first);
    onnx_builder *b = job_begin(shape);
    snprintf(shape, sizeof shape, "%s,%s,16", batch, second);
    onnx_input(b, "memory", MDOT_DTYPE_F32, shape);
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "16,16", NULL);
    onnx_node(b, "MatMul", "x,w", "q");
    onnx_node(b, "MatMul", "memory,w", "k");
    onnx_node(b, "Transpose", "k", "kt");
    onnx_attr_ints(b, "perm", 3, (const int64_t[]){0, 2, 1});
    onnx_node(b, "MatMul", "q,kt", "s");
    onnx_node(b, "MatMul", "s,k", "y");
    onnx_output(b, "y");
    return b;
}

static void expect_equal(const char *first, const char *second, const mdot_dim_binding *by_length, size_t count,
                         int64_t first_length, int64_t second_length)
{
    char one[32], other[32];
    snprintf(one, sizeof one, "%lld", (long long)first_length);
    snprintf(other, sizeof other, "%lld", (long long)second_length);
    job_reading wanted = job_expect(attending("batch", one, other));
    job_reading found = job_read_model(attending("batch", first, second), by_length, count);
    if (found.status != MDOT_OK) fail_msg("%s, %s: %s", first, second, found.err.message);
    assert_string_equal(found.warnings, "");
    job_expect_same(&found, &wanted);
    job_end(&found);
    job_end(&wanted);
}

static const int64_t lengths[] = {1, 7, 128, 4096};

static void the_only_open_dimension_is_the_length(void **state)
{
    (void)state;
    static const char *const names[] = {"sequence", "seq_len", "T", "length", "s0", "num_tokens", "width"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            const mdot_dim_binding dim = {.name = "length", .value = lengths[i]};
            expect_equal(names[n], names[n], &dim, 1, lengths[i], lengths[i]);
            expect_equal(names[n], "12", &dim, 1, lengths[i], 12);
        }
}

/* Bindings count in any order, as numbers and as other names. */
static void a_second_sequence_is_bound_beside_the_length(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"decoder_sequence_length", "encoder_sequence_length"},
                                           {"sequence", "total_sequence"},
                                           {"tgt_len", "src_len"},
                                           {"T", "S"}};
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            const char *first = pairs[n][0], *second = pairs[n][1];
            int64_t length = lengths[i];
            expect_equal(first, second, (mdot_dim_binding[]){{"length", length, NULL}, {second, 9, NULL}}, 2, length,
                         9);
            expect_equal(first, second, (mdot_dim_binding[]){{first, 9, NULL}, {"length", length, NULL}}, 2, 9, length);
            expect_equal(first, second, (mdot_dim_binding[]){{second, 0, first}, {"length", length, NULL}}, 2, length,
                         length);
        }
}

/* One symbol named as a length wins over symbols with other names. */
static void a_name_of_sequences_is_the_length_beside_other_names(void **state)
{
    (void)state;
    static const char *const names[] = {"sequence", "seq_len", "num_tokens", "max_Length"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            const mdot_dim_binding dims[] = {{"length", lengths[i], NULL}, {"width", 5, NULL}};
            expect_equal(names[n], "width", dims, 2, lengths[i], 5);
            job_reading r = job_read_model(attending("batch", names[n], "width"), dims, 1);
            assert_int_equal(r.status, MDOT_INVALID_ARGUMENT);
            assert_non_null(strstr(r.err.message, "dimensions are symbolic: 'width'; bind them"));
            job_end(&r);
        }
}

/* Exporters name the dimension of a mask by a sum. */
static void a_sum_follows_its_parts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const mdot_dim_binding dim = {"length", lengths[i], NULL}, sequence = {"sequence", lengths[i], NULL};
        expect_equal("sequence", "sequence + 3", &dim, 1, lengths[i], lengths[i] + 3);
        expect_equal("sequence", "1 + sequence", &sequence, 1, lengths[i], lengths[i] + 1);
        expect_equal("sequence + sequence", "sequence", &dim, 1, 2 * lengths[i], lengths[i]);
    }
}

static void several_lengths_are_refused_with_the_remedy(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"decoder_sequence_length", "encoder_sequence_length"}, {"sequence", "total_sequence"}, {"height", "width"}};
    for (size_t n = 0; n < sizeof pairs / sizeof *pairs; n++) {
        const mdot_dim_binding dim = {"length", 64, NULL};
        job_reading r = job_read_model(attending("batch", pairs[n][0], pairs[n][1]), &dim, 1);
        assert_int_equal(r.status, MDOT_INVALID_ARGUMENT);
        assert_string_equal(r.warnings, "");
        assert_non_null(strstr(r.err.message, pairs[n][0]));
        assert_non_null(strstr(r.err.message, pairs[n][1]));
        assert_non_null(strstr(r.err.message, "--dim NAME=OTHER"));
        job_end(&r);
    }
}

static void a_file_without_open_dimensions_has_no_length(void **state)
{
    (void)state;
    const mdot_dim_binding dim = {"length", 64, NULL};
    job_reading r = job_read_model(attending("batch", "8", "8"), &dim, 1);
    assert_int_equal(r.status, MDOT_OK);
    assert_non_null(strstr(r.warnings, "no input has a dimension 'length'"));
    job_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_only_open_dimension_is_the_length),
        cmocka_unit_test(a_second_sequence_is_bound_beside_the_length),
        cmocka_unit_test(a_name_of_sequences_is_the_length_beside_other_names),
        cmocka_unit_test(a_sum_follows_its_parts),
        cmocka_unit_test(several_lengths_are_refused_with_the_remedy),
        cmocka_unit_test(a_file_without_open_dimensions_has_no_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
