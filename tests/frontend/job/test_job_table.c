/* test_job_table.c — ir/ops_job.def: type ids stored in predictors, and consistent rows. */
#include "frontend/job/job_tables.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TYPE_ID_COUNT = 144 };

static const char *name_of(int op) { return ir_ops[op].name; }

static void each_operator_that_computes_has_a_type_id(void **state)
{
    (void)state;
    for (int i = 0; i < IR_OP_COUNT; i++) {
        const fe_row *row = fe_row_at((ir_opcode)i);
        bool moves_nothing = ir_ops[i].lowering == IR_LOWER_ALIAS || ir_ops[i].lowering == IR_LOWER_FOLD;
        if (moves_nothing && !row->is_free) fail_msg("%s computes nothing, so it must be free", name_of(i));
        bool has_type_id = !row->is_free && row->type != IR_OP_Opaque;
        if ((row->traits.number != 0) != has_type_id) fail_msg("%s has type id %u", name_of(i), row->traits.number);
    }
}

/* A type with several patterns has one name, one id and the same traits. */
static void each_type_has_one_type_id(void **state)
{
    (void)state;
    int own[TYPE_ID_COUNT] = {0};
    for (int i = 0; i < IR_OP_COUNT; i++) {
        const fe_row *row = fe_row_at((ir_opcode)i), *type = fe_row_at(row->type);
        if (type->type != row->type) fail_msg("%s stands for a type that stands for another", name_of(i));
        if (memcmp(&row->traits, &type->traits, sizeof row->traits) != 0)
            fail_msg("%s differs from %s", name_of(i), name_of((int)row->type));
        if (row->traits.number >= TYPE_ID_COUNT) fail_msg("%s: increase TYPE_ID_COUNT", name_of(i));
        own[row->traits.number] += row->traits.number > 0 && row->type == (ir_opcode)i;
    }
    for (int n = 1; n < TYPE_ID_COUNT; n++)
        if (own[n] != 1) fail_msg("%d types have type id %d", own[n], n);
}

static void expect_number(const char *type, uint32_t number)
{
    mdot_operator_traits traits;
    assert_int_equal(mdot_operator_traits_find(type, &traits), MDOT_OK);
    if (traits.number != number) fail_msg("%s has type id %u, not %u", type, traits.number, number);
}

/* Trained predictors store these ids. A type with another id would be taken for a different type. */
static void type_ids_are_stable(void **state)
{
    (void)state;
    expect_number("Abs", 1);
    expect_number("FastGelu", 70);
    expect_number("MatMul", 107);
    expect_number("Linear", 109);
    expect_number("Attention", 122);
    expect_number("Conv", 125);
    expect_number("NegativeLogLikelihoodLoss", 139);
    assert_int_equal(fe_row_at(IR_OP_Gemm)->traits.number, 107);
    assert_int_equal(fe_row_at(IR_OP_MSAttention)->traits.number, 122);
}

static void unknown_types_are_not_found(void **state)
{
    (void)state;
    static const char *const names[] = {"", "?", "conv", "Con", "Reshape", "Dropout", "Opaque", "com.example:Fancy"};
    static const mdot_operator_traits nothing = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        mdot_operator_traits traits = {.number = 77};
        assert_int_equal(mdot_operator_traits_find(names[i], &traits), MDOT_NOT_FOUND);
        assert_memory_equal(&traits, &nothing, sizeof traits);
    }
}

/* The saved tensor count is at least zero. The fused and the recomputing variants only save tensors saved by the
 * decomposed variant, except for the result. */
static void saved_tensors_are_consistent(void **state)
{
    (void)state;
    for (int i = 0; i < IR_OP_COUNT; i++) {
        const fe_row *row = fe_row_at((ir_opcode)i);
        const uint32_t saved[] = {row->traits.saved_written, row->traits.saved_fused, row->traits.saved_recomputed};
        for (int k = 0; k < 3; k++) {
            bool alone = (saved[k] & MDOT_SAVES_NOTHING) == 0 || saved[k] == MDOT_SAVES_NOTHING;
            if (!alone || (saved[k] == 0) != (row->type == IR_OP_Opaque)) fail_msg("%s saves %u", name_of(i), saved[k]);
            if ((saved[k] & MDOT_SAVES_SCORES) != 0 && (k > 0 || row->gradient != FE_GRADIENT_ATTENTION))
                fail_msg("%s has no scores to save", name_of(i));
        }
        if (row->parameter_operands < 1 ||
            (row->parameter_operands != INT_MAX && row->parameter_operands > ir_ops[i].max_inputs))
            fail_msg("%s: %d parameter operands", name_of(i), row->parameter_operands);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_operator_that_computes_has_a_type_id),
        cmocka_unit_test(each_type_has_one_type_id),
        cmocka_unit_test(type_ids_are_stable),
        cmocka_unit_test(unknown_types_are_not_found),
        cmocka_unit_test(saved_tensors_are_consistent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
