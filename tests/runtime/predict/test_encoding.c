/* test_encoding.c — jobs with cached features. The tests compare predictions with and without the cache, mix
 * configuration blocks with several batches, check entry pair declarations, and check lifetimes. */
#include "mdot/mdotjob.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCK = 4 };

static predict_fixture pair;

static int setup(void **state)
{
    predict_setup(state);
    predict_open_pair(&pair, predict_bandwidth_encode(), predict_bandwidth_evaluate("L,2", BLOCK));
    return 0;
}

static int teardown(void **state)
{
    predict_close(&pair);
    return predict_teardown(state);
}

static mdot_encoding *encode(const predict_fixture *f, const mdot_job *job)
{
    mdot_encoding *encoding = NULL;
    mdot_error err = {0};
    if (mdot_encoding_create(f->context, job, &encoding, &err) != MDOT_OK) fail_msg("%s", err.message);
    return encoding;
}

/* PAIRS exceeds the number answered together, BATCHES exceeds the block count, and neighbours in the order differ. */
enum { PAIRS = 150, BATCHES = 37 };

static void make_configurations(mdot_configuration c[PAIRS])
{
    static const char *const gpus[] = {"T4", "A100", "H100", "RTX 4090"};
    for (int i = 0; i < PAIRS; i++) c[i] = predict_configuration(1 + i * 11 % BATCHES * 30, gpus[i % 4]);
}

static void expect_bandwidth(const mdot_prediction *p, const mdot_job *job, const mdot_configuration *c)
{
    double ms = predict_bandwidth_ms(job, c);
    assert_int_equal(p->status, MDOT_OK);
    predict_assert_close(p->step_ms, ms);
    predict_assert_close(p->lower_ms, ms / 2);
    predict_assert_close(p->upper_ms, 2 * ms);
    assert_int_equal((p->warnings & MDOT_WARN_OUTSIDE_TRAINING) != 0, c->batch > 1000);
}

/* Compares bit by bit, except for the padding between fields. */
static void assert_same_prediction(const mdot_prediction *a, const mdot_prediction *b)
{
    const size_t numbers = offsetof(mdot_prediction, step_ms), behind = offsetof(mdot_prediction, parameters);
    assert_memory_equal((const char *)a + numbers, (const char *)b + numbers,
                        offsetof(mdot_prediction, fits) - numbers);
    assert_int_equal(a->fits, b->fits);
    assert_int_equal(a->warnings, b->warnings);
    assert_int_equal(a->status, b->status);
    assert_memory_equal((const char *)a + behind, (const char *)b + behind, sizeof *a - behind);
}

static void every_configuration_gets_its_own_answer(void **state)
{
    (void)state;
    mdot_job *job = predict_job(40, 7);
    mdot_configuration c[PAIRS];
    make_configurations(c);
    for (int form = 0; form < 2; form++) {
        predict_fixture *f = form == 0 ? &pair : &predict_bandwidth;
        mdot_encoding *encoding = encode(f, job);
        mdot_prediction swept[PAIRS] = {MDOT_INIT(mdot_prediction)}, priced[PAIRS] = {MDOT_INIT(mdot_prediction)};
        assert_int_equal(mdot_sweep(f->context, job, c, PAIRS, swept, NULL), MDOT_OK);
        assert_int_equal(mdot_evaluate(f->context, encoding, c, PAIRS, priced, NULL), MDOT_OK);
        for (int i = 0; i < PAIRS; i++) {
            expect_bandwidth(&priced[i], job, &c[i]);
            assert_same_prediction(&priced[i], &swept[i]);
            mdot_prediction one = predict_one(f, job, &c[i]);
            assert_same_prediction(&priced[i], &one);
        }
        mdot_encoding_destroy(encoding);
    }
    mdot_job_destroy(job);
}

static void a_wrong_configuration_does_not_affect_its_block(void **state)
{
    (void)state;
    mdot_job *job = predict_job(5, 5);
    mdot_encoding *encoding = encode(&pair, job);
    mdot_configuration c[2 * BLOCK];
    for (int i = 0; i < 2 * BLOCK; i++) c[i] = predict_configuration(8, i == 2 ? "Voodoo 2" : "A100");
    mdot_prediction p[2 * BLOCK] = {MDOT_INIT(mdot_prediction)};
    mdot_error err = {0};
    assert_int_equal(mdot_evaluate(pair.context, encoding, c, 2 * BLOCK, p, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "pair 2"));
    for (int i = 0; i < 2 * BLOCK; i++) {
        if (i != 2) expect_bandwidth(&p[i], job, &c[i]);
    }
    assert_int_equal(p[2].status, MDOT_INVALID_ARGUMENT);
    mdot_encoding_destroy(encoding);
    mdot_job_destroy(job);
}

static int pick(uint64_t *state, int count)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u; /* Knuth's MMIX */
    return (int)((*state >> 33) % (uint64_t)count);
}

/* The operator features are one GPU's, so the whole job's cached features do not apply to a part. Each configuration
 * has the answer that it has alone, in any order of whole and divided jobs. */
static void whole_and_divided_jobs_take_turns(void **state)
{
    (void)state;
    enum { COUNT = 4, TURNS = 200, BATCH = 8 };
    mdot_job_operator operators[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        operators[i] = predict_operator(i);
        operators[i].block = 1 + i / 2;
    }
    mdot_job *job = predict_make_job(operators, COUNT);
    mdot_encoding *encoding = encode(&pair, job);
    mdot_configuration c[TURNS];
    mdot_prediction p[TURNS] = {MDOT_INIT(mdot_prediction)}, swept[TURNS] = {MDOT_INIT(mdot_prediction)};
    uint64_t seed = 1;
    for (int i = 0; i < TURNS; i++) {
        c[i] = predict_configuration(BATCH << pick(&seed, 2), pick(&seed, 2) == 0 ? "A100" : "T4");
        c[i].pipeline_parallel = 1 + (uint32_t)pick(&seed, 2);
        c[i].accumulate = 1 + (uint32_t)pick(&seed, 3);
    }
    mdot_error err = {0};
    if (mdot_evaluate(pair.context, encoding, c, TURNS, p, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_int_equal(mdot_sweep(pair.context, job, c, TURNS, swept, NULL), MDOT_OK);
    for (int i = 0; i < TURNS; i++) {
        mdot_prediction one = predict_one(&pair, job, &c[i]);
        assert_same_prediction(&p[i], &one);
        assert_same_prediction(&swept[i], &one);
    }
    mdot_encoding_destroy(encoding);
    mdot_job_destroy(job);
}

/* A scheduler with a new predictor closes the old one first. */
static void an_encoding_keeps_its_predictor(void **state)
{
    (void)state;
    predict_fixture f = {0};
    predict_open_pair(&f, predict_bandwidth_encode(), predict_bandwidth_evaluate("L,2", BLOCK));
    mdot_job *job = predict_job(5, 5);
    mdot_encoding *encoding = encode(&f, job);
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_predictor_close(f.predictor);
    assert_int_equal(mdot_evaluate(f.context, encoding, &c, 1, &p, NULL), MDOT_OK);
    mdot_context_destroy(f.context);
    mdot_encoding_destroy(encoding);
    mdot_encoding_destroy(NULL);
    mdot_job_destroy(job);
}

static void an_encoding_of_another_predictor_is_refused(void **state)
{
    (void)state;
    mdot_job *job = predict_job(5, 5);
    mdot_encoding *encoding = encode(&pair, job);
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_error err = {0};
    assert_int_equal(mdot_evaluate(predict_bandwidth.context, encoding, &c, 1, &p, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "different predictors"));
    mdot_encoding_destroy(encoding);
    mdot_job_destroy(job);
}

static void expect_refused(onnx_builder *encode_model, onnx_builder *evaluate_model, const char *reason)
{
    predict_fixture f = {0};
    predict_open_pair(&f, encode_model, evaluate_model);
    mdot_job *job = predict_job(5, 5);
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_encoding *encoding = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_predict(f.context, job, &c, &p, &err), MDOT_INCOMPATIBLE);
    if (strstr(err.message, reason) == NULL) fail_msg("\"%s\" does not say \"%s\"", err.message, reason);
    assert_int_equal(mdot_encoding_create(f.context, job, &encoding, &err), MDOT_INCOMPATIBLE);
    assert_null(encoding);
    mdot_job_destroy(job);
    predict_close(&f);
}

static void evaluate_entries_with_unknown_inputs_are_refused(void **state)
{
    (void)state;
    onnx_builder *evaluate = predict_bandwidth_evaluate("L,2", BLOCK);
    onnx_input(evaluate, "weather", MDOT_DTYPE_F32, "3");
    onnx_node(evaluate, "Identity", "weather", "ignored");
    expect_refused(predict_bandwidth_encode(), evaluate, "weather of entry evaluate must be an output");
}

static void unread_outputs_of_an_encoder_are_refused(void **state)
{
    (void)state;
    onnx_builder *encoder = predict_bandwidth_encode();
    onnx_node(encoder, "Neg", "row_bytes", "colour");
    onnx_output(encoder, "colour");
    expect_refused(encoder, predict_bandwidth_evaluate("L,2", BLOCK),
                   "output colour of entry encode must be an input of entry evaluate");
}

static void evaluate_entries_with_other_shapes_are_refused(void **state)
{
    (void)state;
    expect_refused(predict_bandwidth_encode(), predict_bandwidth_evaluate("L,3", BLOCK), "row_bytes has one shape");
}

static void encoders_that_read_a_configuration_are_refused(void **state)
{
    (void)state;
    onnx_builder *encoder = predict_bandwidth_encode();
    onnx_input(encoder, "configuration", MDOT_DTYPE_F32, "8");
    onnx_node(encoder, "Identity", "configuration", "ignored");
    expect_refused(encoder, predict_bandwidth_evaluate("L,2", BLOCK), "configuration of entry encode");
}

static void blocks_beyond_the_limit_are_refused(void **state)
{
    (void)state;
    expect_refused(predict_bandwidth_encode(), predict_bandwidth_evaluate("L,2", 65), "1 to 64 configurations");
    predict_fixture f = {0};
    predict_open_pair(&f, predict_bandwidth_encode(), predict_bandwidth_evaluate("L,2", 64));
    mdot_job *job = predict_job(5, 5);
    mdot_configuration c = predict_configuration(8, "A100");
    mdot_prediction p = predict_one(&f, job, &c);
    expect_bandwidth(&p, job, &c);
    mdot_job_destroy(job);
    predict_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_configuration_gets_its_own_answer),
        cmocka_unit_test(a_wrong_configuration_does_not_affect_its_block),
        cmocka_unit_test(whole_and_divided_jobs_take_turns),
        cmocka_unit_test(an_encoding_keeps_its_predictor),
        cmocka_unit_test(an_encoding_of_another_predictor_is_refused),
        cmocka_unit_test(evaluate_entries_with_unknown_inputs_are_refused),
        cmocka_unit_test(unread_outputs_of_an_encoder_are_refused),
        cmocka_unit_test(evaluate_entries_with_other_shapes_are_refused),
        cmocka_unit_test(encoders_that_read_a_configuration_are_refused),
        cmocka_unit_test(blocks_beyond_the_limit_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
