/* test_operator_types.c — runtime/job/operator_types.def numbers every type that the job reader gives to known operators.
 */
#include "ir/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char *const types[] = {
#define OPERATOR_TYPE(name) name,
#include "runtime/job/operator_types.def"
#undef OPERATOR_TYPE
};
enum { TYPE_COUNT = sizeof types / sizeof *types };

/* What moves no data, what folds away, and what another operator's name stands for: frontend/job/settings.c. */
static bool is_never_a_type(const ir_op *op)
{
    if (op->lowering == IR_LOWER_ALIAS || op->lowering == IR_LOWER_FOLD) return true;
    return op == &ir_ops[IR_OP_Dropout] || op == &ir_ops[IR_OP_Opaque] || op == &ir_ops[IR_OP_Gemm] ||
           op == &ir_ops[IR_OP_FusedMatMul] || op == &ir_ops[IR_OP_SimplifiedLayerNormalization];
}

static size_t rows_called(const char *name)
{
    size_t count = 0;
    for (size_t i = 1; i < TYPE_COUNT; i++) count += strcmp(types[i], name) == 0;
    return count;
}

static void every_operator_of_a_job_has_one_number(void **state)
{
    (void)state;
    for (int i = 0; i < IR_OP_COUNT; i++) {
        size_t expected = is_never_a_type(&ir_ops[i]) ? 0 : 1;
        if (rows_called(ir_ops[i].name) != expected)
            fail_msg("%s stands in the table %zu times, not %zu", ir_ops[i].name, rows_called(ir_ops[i].name),
                     expected);
    }
}

static void every_number_is_an_operator(void **state)
{
    (void)state;
    for (size_t t = 1; t < TYPE_COUNT; t++) {
        bool found = false;
        for (int i = 0; i < IR_OP_COUNT; i++) found = found || strcmp(ir_ops[i].name, types[t]) == 0;
        if (!found) fail_msg("%s is no operator", types[t]);
    }
}

/* Trained predictors hold these: a row that moved would be read as another operator. */
static void numbers_do_not_move(void **state)
{
    (void)state;
    assert_string_equal(types[0], "?");
    assert_string_equal(types[1], "Abs");
    assert_string_equal(types[70], "FastGelu");
    assert_string_equal(types[139], "NegativeLogLikelihoodLoss");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operator_of_a_job_has_one_number),
        cmocka_unit_test(every_number_is_an_operator),
        cmocka_unit_test(numbers_do_not_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
