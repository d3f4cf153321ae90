/* test_job_only_ops.c — frontend/job/job_only_ops.def: each row is found only by its own names, and ops.def does not
 * contain it. */
#include "frontend/job/job_tables.h"
#include "tests/support/assertions.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ALL = INT_MAX };

static const fe_job_op rows[] = {
#define JOB_ONLY_OP(domain, op_type, function, role, op, inputs, outputs)                                              \
    {domain, op_type, function, FE_JOB_OP_##role, IR_OP_##op, inputs, outputs},
#include "frontend/job/job_only_ops.def"
};
enum { ROW_COUNT = sizeof rows / sizeof *rows };

/* Returns the pattern with some text for each star. */
static const char *name_by(const char *pattern, char *name, size_t size)
{
    size_t length = 0;
    for (; *pattern; pattern++) {
        assert_compare(length + 3, <, size);
        if (*pattern != '*')
            name[length++] = *pattern;
        else
            length += (size_t)snprintf(name + length, size - length, "Xy");
    }
    name[length] = '\0';
    return name;
}

/* Finds a node's row by name. The domain "" is ONNX's own. */
static const fe_job_op *find(const char *domain, const char *op_type, const char *function)
{
    char name[256];
    snprintf(name, sizeof name, "%s%s%s", domain, *domain ? ":" : "", op_type);
    ir_attr attr = {.name = "operator", .kind = IR_ATTR_STRING, .s = function};
    ir_node node = {.op_type = name, .attrs = &attr, .attr_count = function != NULL};
    const fe_job_op *found = fe_job_op_of(&node);
    assert_int_equal(fe_job_op_role_of(&node), found != NULL ? found->role : FE_JOB_OP_NONE);
    return found;
}

static void expect_row(const fe_job_op *row, const char *domain)
{
    char name[128], function[128];
    name_by(row->op_type, name, sizeof name);
    if (row->function != NULL) name_by(row->function, function, sizeof function);
    const fe_job_op *found = find(domain, name, row->function != NULL ? function : NULL);
    if (found == NULL) fail_msg("%s:%s is not found", domain, name);
    assert_string_equal(found->op_type, row->op_type);
    assert_int_equal(found->role, row->role);
    assert_int_equal(found->op, row->op);
    assert_int_equal(found->inputs, row->inputs);
    assert_int_equal(found->outputs, row->outputs);
}

static void each_row_is_found_by_its_names(void **state)
{
    (void)state;
    for (int i = 0; i < ROW_COUNT; i++) {
        bool any = strcmp(rows[i].domain, "*") == 0;
        expect_row(&rows[i], any ? "com.microsoft" : rows[i].domain);
        if (any) expect_row(&rows[i], "example");
    }
}

static void rows_match_only_their_domains_and_functions(void **state)
{
    (void)state;
    for (int i = 0; i < ROW_COUNT; i++) {
        char name[128];
        name_by(rows[i].op_type, name, sizeof name);
        bool own = !*rows[i].domain;
        if (find(own ? "example" : "", name, NULL) != NULL) fail_msg("%s is found in another domain", name);
        if (rows[i].function != NULL) assert_null(find("org.pytorch.aten", name, "native_dropout"));
    }
    assert_null(find("org.pytorch.aten", "ATen", NULL));
    assert_null(find("com.microsoft", "ATen", "embedding"));
    assert_null(find("com.microsoft", "Adam2", NULL));
    assert_null(find("com.microsoft", "Ada", NULL));
    assert_null(find("com.microsoft", "", NULL));
}

static void operators_of_ops_def_have_no_row(void **state)
{
    (void)state;
    for (int i = 0; i < ROW_COUNT; i++) {
        char name[128];
        const char *domain = strcmp(rows[i].domain, "*") == 0 ? "com.microsoft" : rows[i].domain;
        name_by(rows[i].op_type, name, sizeof name);
        if (ir_op_find(domain, name) != NULL) fail_msg("%s stands in ops.def, too", name);
    }
    ir_node node = {.op = &ir_ops[IR_OP_Relu], .op_type = "com.microsoft:ReluGrad"};
    assert_null(fe_job_op_of(&node));
}

static void alias_operands_fit_their_operators(void **state)
{
    (void)state;
    for (int i = 0; i < ROW_COUNT; i++) {
        const fe_job_op *row = &rows[i];
        bool alias = row->role == FE_JOB_OP_ALIAS;
        assert_int_equal(row->op != IR_OP_Opaque, alias || row->role == FE_JOB_OP_EMBEDDING_BAGS);
        assert_int_equal(fe_job_op_is_alias(row->domain, row->op_type), alias);
        const ir_op *op = &ir_ops[row->op];
        if (!alias) continue;
        assert_compare(row->inputs, >=, op->min_inputs);
        assert_compare(row->outputs, >=, op->min_outputs);
        assert_true(op->max_inputs < 0 || row->inputs == ALL || row->inputs <= op->max_inputs);
        assert_compare(row->outputs, <=, op->max_outputs);
    }
    assert_false(fe_job_op_is_alias("", "_aten_as_strided_onnx"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_row_is_found_by_its_names),
        cmocka_unit_test(rows_match_only_their_domains_and_functions),
        cmocka_unit_test(operators_of_ops_def_have_no_row),
        cmocka_unit_test(alias_operands_fit_their_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
