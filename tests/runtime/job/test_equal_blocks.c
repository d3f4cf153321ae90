/* test_equal_blocks.c — which blocks in a job count as equal. */
#include "runtime/job/job_model.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Three blocks with three operators each, after one operator outside all blocks. Each block has a fork and a join. */
enum { BLOCKS = 3, EACH = 3, COUNT = 1 + BLOCKS * EACH };

typedef struct stack {
    mdot_job_operator operators[COUNT];
    uint32_t inputs[COUNT][2];
} stack;

static void describe(stack *s)
{
    memset(s, 0, sizeof *s);
    for (uint32_t i = 0; i < COUNT; i++) {
        mdot_job_operator *op = &s->operators[i];
        uint32_t place = i == 0 ? 0 : (i - 1) % EACH;
        *op = predict_operator(place);
        op->inputs = s->inputs[i];
        op->input_count = i == 0 ? 0 : place < 2 ? 1 : 2;
        s->inputs[i][0] = place == 0 ? i - (i > 0) : place == 1 ? i - 1 : i - 2;
        s->inputs[i][1] = i - (i > 0);
        op->block = i == 0 ? 0 : 1 + (i - 1) / EACH;
    }
}

static void expect_equal_blocks(const stack *s, uint32_t first, uint32_t second, uint32_t third)
{
    mdot_job *job = predict_make_job(s->operators, COUNT);
    const uint32_t expected[] = {first, second, third};
    for (size_t i = 0; i < COUNT; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        assert_int_equal(mdot_job_get_operator(job, i, &op), MDOT_OK);
        assert_int_equal(op.equal_blocks, i == 0 ? 0 : expected[(i - 1) / EACH]);
    }
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    assert_int_equal(info.block_count, BLOCKS);
    mdot_job_destroy(job);
}

static void layers_of_a_stack_are_equal(void **state)
{
    (void)state;
    stack s;
    describe(&s);
    expect_equal_blocks(&s, 3, 3, 3);
}

static void blocks_that_compute_differently_are_not_equal(void **state)
{
    (void)state;
    stack s;
    for (int k = 0; k < 6; k++) {
        describe(&s);
        mdot_job_operator *op = &s.operators[5];
        if (k == 0) op->type = "Sub";
        if (k == 1) op->known = false;
        if (k == 2) op->setting[MDOT_SETTING_BIAS] = 1;
        if (k == 3) op->per_sample[MDOT_PHASE_FORWARD].flops += 1;
        if (k == 4) op->per_step[MDOT_PHASE_FORWARD].bytes_read += 1;
        if (k == 5) s.operators[6].input_count = 1; /* a missing join */
        expect_equal_blocks(&s, 2, 1, 2);
    }
    describe(&s);
    s.operators[3].block = 2; /* one block loses an operator and the next gains it */
    expect_equal_blocks(&s, 1, 1, 1);
}

/* The last layer passes the gradient to fewer readers, and one layer may own the shared parameters. */
static void gradients_and_parameters_may_differ(void **state)
{
    (void)state;
    stack s;
    describe(&s);
    s.operators[5].per_sample[MDOT_PHASE_DATA_GRADIENT].flops += 1;
    s.operators[5].per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written += 1;
    s.operators[5].parameters += 1;
    expect_equal_blocks(&s, 3, 3, 3);
}

/* An input from outside the block may come from any operator. */
static void equal_blocks_ignore_readers_in_other_blocks(void **state)
{
    (void)state;
    stack s;
    describe(&s);
    s.inputs[7][0] = 0;
    expect_equal_blocks(&s, 3, 3, 3);
}

/* The last operator in each block reads one operator: the first in the block, or the second. */
static void equal_blocks_read_equal_operators(void **state)
{
    (void)state;
    stack s;
    describe(&s);
    for (uint32_t last = EACH; last < COUNT; last += EACH) {
        s.operators[last].input_count = 1;
        s.inputs[last][0] = last == 2 * EACH ? last - 1 : last - 2;
    }
    expect_equal_blocks(&s, 2, 1, 2);
    s.inputs[EACH][0] = EACH - 1;
    expect_equal_blocks(&s, 2, 2, 1);
    s.inputs[3 * EACH][0] = 0; /* outside all blocks */
    expect_equal_blocks(&s, 2, 2, 1);
}

/* Each difference alone distinguishes many block kinds, within the limited slots of a search. */
static void many_kinds_of_blocks_are_told_apart(void **state)
{
    (void)state;
    enum { KINDS = 300, PARTS = 4 };
    static mdot_job_operator operators[2 * KINDS * 2];
    for (int part = 0; part < PARTS; part++) {
        for (uint32_t i = 0; i < 2 * KINDS * 2; i++) {
            uint32_t block = i / 2, kind = block % KINDS;
            mdot_job_operator *op = &operators[i];
            *op = predict_operator(i % 2);
            op->input_count = 0;
            op->block = block + 1;
            if (part == 0) op->setting[MDOT_SETTING_CHANNELS_IN] = 1 + kind;
            if (part == 1) op->per_sample[MDOT_PHASE_FORWARD].flops = 1 + kind;
            if (part == 2) op->per_step[MDOT_PHASE_FORWARD].bytes_written = 1 + kind;
            if (part == 3 && i % 2 == 1) op->per_sample[MDOT_PHASE_FORWARD].bytes_read = 1 + kind;
        }
        mdot_job *job = predict_make_job(operators, 2 * KINDS * 2);
        for (size_t i = 0; i < 2 * KINDS * 2; i++)
            if (job->operators[i].equal_blocks != 2) fail_msg("part %d: block %zu", part, i / 2);
        mdot_job_destroy(job);
    }
}

/* Blocks with one, two and three operators in turn: blocks with equal lengths are equal. */
static void blocks_of_several_sizes_are_compared(void **state)
{
    (void)state;
    enum { ROUNDS = 3, EACH_ROUND = 1 + 2 + 3 };
    mdot_job_operator operators[ROUNDS * EACH_ROUND];
    for (uint32_t i = 0; i < ROUNDS * EACH_ROUND; i++) {
        uint32_t at = i % EACH_ROUND, size = at < 1 ? 1 : at < 3 ? 2 : 3;
        operators[i] = predict_operator(0);
        operators[i].input_count = 0;
        operators[i].setting[MDOT_SETTING_BIAS] = at;
        operators[i].block = i / EACH_ROUND * 3 + size;
    }
    operators[EACH_ROUND].setting[MDOT_SETTING_BIAS] = 9; /* the second one-operator block differs */
    mdot_job *job = predict_make_job(operators, ROUNDS * EACH_ROUND);
    for (uint32_t i = 0; i < ROUNDS * EACH_ROUND; i++)
        assert_int_equal(job->operators[i].equal_blocks, i == EACH_ROUND ? 1 : i % EACH_ROUND == 0 ? 2 : 3);
    mdot_job_destroy(job);
}

/* Operators from two blocks in turn. */
static void operators_of_blocks_may_alternate(void **state)
{
    (void)state;
    mdot_job_operator operators[6];
    static const uint32_t inputs[6] = {0, 0, 0, 1, 2, 3};
    for (uint32_t i = 0; i < 6; i++) {
        operators[i] = predict_operator(i / 2);
        operators[i].inputs = &inputs[i];
        operators[i].input_count = i >= 2;
        operators[i].block = 1 + i % 2;
    }
    mdot_job *job = predict_make_job(operators, 6);
    for (size_t i = 0; i < 6; i++) assert_int_equal(job->operators[i].equal_blocks, 2);
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_of_a_stack_are_equal),
        cmocka_unit_test(blocks_that_compute_differently_are_not_equal),
        cmocka_unit_test(gradients_and_parameters_may_differ),
        cmocka_unit_test(equal_blocks_ignore_readers_in_other_blocks),
        cmocka_unit_test(equal_blocks_read_equal_operators),
        cmocka_unit_test(many_kinds_of_blocks_are_told_apart),
        cmocka_unit_test(blocks_of_several_sizes_are_compared),
        cmocka_unit_test(operators_of_blocks_may_alternate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
