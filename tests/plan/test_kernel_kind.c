/* test_kernel_kind.c — the function table for each kernel kind is complete, and the calling functions follow it. */
#include "plan/kernel_kind.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void every_kernel_kind_has_functions_for_all_tools(void **state)
{
    (void)state;
    for (int k = 0; k < PL_KIND_COUNT; k++) {
        assert_non_null(pl_kinds[k]);
        assert_non_null(pl_kinds[k]->visit);
        assert_non_null(pl_kinds[k]->print);
        assert_non_null(pl_kinds[k]->verify);
    }
}

static void kinds_have_different_names(void **state)
{
    (void)state;
    assert_string_equal(pl_kind_name(PL_LINEAR), "linear");
    for (int a = 0; a < PL_KIND_COUNT; a++)
        for (int b = 0; b < a; b++) assert_string_not_equal(pl_kind_name(a), pl_kind_name(b));
}

typedef struct visits {
    int factors, reads, writes;
} visits;

static void count_visit(void *user, int buffer, bool is_written)
{
    visits *v = user;
    assert_compare(buffer, >=, 0);
    *(is_written ? &v->writes : &v->reads) += 1;
}

static void count_factor(void *user, int buffer)
{
    visits *v = user;
    assert_compare(buffer, >=, 0);
    v->factors++;
}

static const pl_kernel linear = {.kind = PL_LINEAR,
                                 .linear = {.a = {.buffer = 0}, .weight = 1, .bias = 2, .out = {.buffer = 3}}};

static void factors_of_a_linear_are_its_matrix_and_its_weight(void **state)
{
    (void)state;
    visits v = {0};
    pl_kinds[PL_LINEAR]->visit(&linear, &(pl_visitor){count_visit, count_factor, &v});
    assert_int_equal(v.factors, 2);
    assert_int_equal(v.reads, 1);
    assert_int_equal(v.writes, 1);
}

static void a_visitor_without_factors_receives_them_as_reads(void **state)
{
    (void)state;
    visits v = {0};
    pl_kernel_visit_buffers(&linear, count_visit, &v);
    assert_int_equal(v.factors, 0);
    assert_int_equal(v.reads, 3);
    assert_int_equal(v.writes, 1);
}

static void absent_buffers_are_not_visited(void **state)
{
    (void)state;
    visits v = {0};
    pl_kernel kernel = linear;
    kernel.linear.bias = -1;
    pl_kernel_visit_buffers(&kernel, count_visit, &v);
    assert_int_equal(v.reads, 2);
}

static void a_recurrence_is_neither_split_nor_a_matrix_kernel(void **state)
{
    (void)state;
    const pl_kernel recurrence = {.kind = PL_RECURRENCE};
    assert_false(pl_is_matrix(NULL, &recurrence));
    assert_false(pl_is_split(NULL, &recurrence));
}

static void a_linear_is_split_if_its_rows_follow_the_length_or_exceed_a_block(void **state)
{
    (void)state;
    pl_kernel kernel = linear;
    kernel.linear.rows = ir_dim_affine(1, 0);
    assert_true(pl_is_split(NULL, &kernel));
    kernel.linear.rows = ir_dim_number(96);
    assert_false(pl_is_split(NULL, &kernel));
    kernel.linear.rows = ir_dim_number(97);
    assert_true(pl_is_split(NULL, &kernel));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_kind_has_functions_for_all_tools),
        cmocka_unit_test(kinds_have_different_names),
        cmocka_unit_test(factors_of_a_linear_are_its_matrix_and_its_weight),
        cmocka_unit_test(a_visitor_without_factors_receives_them_as_reads),
        cmocka_unit_test(absent_buffers_are_not_visited),
        cmocka_unit_test(a_recurrence_is_neither_split_nor_a_matrix_kernel),
        cmocka_unit_test(a_linear_is_split_if_its_rows_follow_the_length_or_exceed_a_block),
    };
    return cmocka_run_group_tests_name("kernel_kind", tests, NULL, NULL);
}
