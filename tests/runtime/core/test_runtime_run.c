/* test_runtime_run.c — running an entry: results, refused calls, and the guarantee: no allocations, no kernel calls. */
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/call_guard.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static fixture shared;
static mdot_predictor *predictor;
static mdot_context *context;

static int setup(void **state)
{
    (void)state;
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        exit(77);
    }
    fixture_open(&shared);
    char *path = fixture_save(&shared, shared.bytes, shared.size_bytes);
    mdot_error err = {0};
    if (mdot_predictor_open(path,
                            &(mdot_open_options){.struct_size = sizeof(mdot_open_options), .cpu_isa = "x86-64-v3"},
                            &predictor, &err) != MDOT_OK ||
        mdot_context_create(predictor, &context, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    free(path);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    fixture_close(&shared);
    return 0;
}

/* ---- A call of entry "predict" that tests modify ----------------------------------------------------------------- */

enum { CAPACITY = FIXTURE_MAX_LENGTH + 1 };

typedef struct predict_call {
    float x[CAPACITY][2], y[CAPACITY];
    bool keep[CAPACITY];
    int64_t bias, about[4];
    int64_t x_dims[2], keep_dims[1];
    mdot_input inputs[3];
    mdot_output outputs[2];
} predict_call;

static void prepare(predict_call *c, int64_t length)
{
    *c = (predict_call){.bias = 10, .x_dims = {length, 2}, .keep_dims = {length}};
    for (int i = 0; i < CAPACITY; i++) {
        c->x[i][0] = (float)i;
        c->x[i][1] = (float)(i * i);
        c->keep[i] = i % 3 != 1;
        c->y[i] = -1;
    }
    c->inputs[0] = (mdot_input){"x", MDOT_DTYPE_F32, 2, c->x_dims, c->x};
    c->inputs[1] = (mdot_input){"keep", MDOT_DTYPE_BOOL, 1, c->keep_dims, c->keep};
    c->inputs[2] = (mdot_input){"bias", MDOT_DTYPE_I64, 0, NULL, &c->bias};
    c->outputs[0] = (mdot_output){"y", c->y, sizeof c->y};
    c->outputs[1] = (mdot_output){"about", c->about, sizeof c->about};
}

static mdot_status run(predict_call *c, mdot_error *err)
{
    return mdot_run(context, 0, c->inputs, 3, c->outputs, 2, err);
}

static void assert_result(const predict_call *c, int64_t length)
{
    for (int64_t i = 0; i < CAPACITY; i++) {
        float expected = i >= length ? -1 : i % 3 == 1 ? 0 : (float)(2 * i + 3 * i * i + 10);
        if (c->y[i] != expected) fail_msg("length %d: y[%d] = %g", (int)length, (int)i, (double)c->y[i]);
    }
    assert_int_equal(c->about[0], MDOT_CPU_X86_64_V3);
    assert_int_equal(c->about[1], length <= 4 ? 4 : FIXTURE_MAX_LENGTH);
    assert_int_equal(c->about[2], length);
    assert_int_equal(c->about[3], 0); /* aligned */
}

/* ---- Results ----------------------------------------------------------------------------------------------------- */

static void every_length_runs_in_the_smallest_bucket_that_holds_it(void **state)
{
    (void)state;
    for (int64_t length = 1; length <= FIXTURE_MAX_LENGTH; length++) {
        predict_call c;
        prepare(&c, length);
        mdot_error err = {0};
        if (run(&c, &err) != MDOT_OK) fail_msg("%s", err.message);
        assert_result(&c, length);
    }
}

static void tensors_may_be_in_any_order(void **state)
{
    (void)state;
    predict_call c;
    prepare(&c, 5);
    mdot_input first = c.inputs[0];
    c.inputs[0] = c.inputs[2];
    c.inputs[2] = first;
    mdot_output output = c.outputs[0];
    c.outputs[0] = c.outputs[1];
    c.outputs[1] = output;
    assert_int_equal(run(&c, NULL), MDOT_OK);
    assert_result(&c, 5);
}

static void entry_without_a_length_runs(void **state)
{
    (void)state;
    const int32_t a[3] = {1, -2, 3};
    int32_t b[3];
    const int64_t dims[1] = {3};
    mdot_input input = {"a", MDOT_DTYPE_I32, 1, dims, a};
    mdot_output output = {"b", b, sizeof b};
    assert_int_equal(mdot_run(context, 1, &input, 1, &output, 1, NULL), MDOT_OK);
    assert_int_equal(b[0], 2);
    assert_int_equal(b[1], -4);
    assert_int_equal(b[2], 6);
    const void *inputs[] = {a};
    void *outputs[] = {b};
    assert_int_equal(mdot_run_ordered(context, 1, 0, inputs, outputs, NULL), MDOT_OK);
    assert_int_equal(mdot_run_ordered(context, 1, 1, inputs, outputs, NULL), MDOT_OUT_OF_RANGE);
}

static void ordered_call_gives_the_same_result(void **state)
{
    (void)state;
    predict_call c;
    prepare(&c, 7);
    const void *inputs[] = {c.x, c.keep, &c.bias};
    void *outputs[] = {c.y, c.about};
    assert_int_equal(mdot_run_ordered(context, 0, 7, inputs, outputs, NULL), MDOT_OK);
    assert_result(&c, 7);
    mdot_error err;
    const int64_t wrong[] = {0, -1, FIXTURE_MAX_LENGTH + 1, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(mdot_run_ordered(context, 0, wrong[i], inputs, outputs, &err), MDOT_OUT_OF_RANGE);
    assert_non_null(strstr(err.message, "from 1 to 16"));
    assert_int_equal(mdot_run_ordered(context, 2, 1, inputs, outputs, &err), MDOT_OUT_OF_RANGE);
}

static void find_bucket_matches_run(void **state)
{
    (void)state;
    size_t bucket = 9;
    assert_int_equal(mdot_predictor_find_bucket(predictor, 0, 4, &bucket), MDOT_OK);
    assert_int_equal(bucket, 0);
    assert_int_equal(mdot_predictor_find_bucket(predictor, 0, 5, &bucket), MDOT_OK);
    assert_int_equal(bucket, 1);
    assert_int_equal(mdot_predictor_find_bucket(predictor, 0, 17, &bucket), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_find_bucket(predictor, 0, 0, &bucket), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_find_bucket(predictor, 2, 1, &bucket), MDOT_OUT_OF_RANGE);
    assert_int_equal(bucket, 1);
    assert_int_equal(mdot_predictor_find_bucket(predictor, 1, 0, &bucket), MDOT_OK);
    assert_int_equal(bucket, 0);
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

typedef enum fault {
    UNKNOWN_INPUT,
    NAMELESS_INPUT,
    REPEATED_INPUT,
    WRONG_DTYPE,
    WRONG_RANK,
    NO_DIMS,
    WRONG_FIXED_DIM,
    NEGATIVE_DIM,
    NO_DATA,
    MISALIGNED_INPUT,
    ZERO_LENGTH,
    LENGTHS_DIFFER,
    TOO_LONG,
    UNKNOWN_OUTPUT,
    REPEATED_OUTPUT,
    SMALL_OUTPUT,
    NO_OUTPUT_DATA,
    MISALIGNED_OUTPUT,
} fault;

static void inject(predict_call *c, fault f)
{
    static char misaligned[256];
    switch (f) {
    case UNKNOWN_INPUT: c->inputs[1].name = "Keep"; break;
    case NAMELESS_INPUT: c->inputs[1].name = NULL; break;
    case REPEATED_INPUT: c->inputs[1] = c->inputs[0]; break;
    case WRONG_DTYPE: c->inputs[0].dtype = MDOT_DTYPE_F64; break;
    case WRONG_RANK: c->inputs[0].rank = 1; break;
    case NO_DIMS: c->inputs[0].dims = NULL; break;
    case WRONG_FIXED_DIM: c->x_dims[1] = 3; break;
    case NEGATIVE_DIM: c->x_dims[0] = INT64_MIN; break;
    case NO_DATA: c->inputs[0].data = NULL; break;
    case MISALIGNED_INPUT: c->inputs[0].data = misaligned + 1; break;
    case ZERO_LENGTH: c->x_dims[0] = c->keep_dims[0] = 0; break;
    case LENGTHS_DIFFER: c->keep_dims[0] = 4; break;
    case TOO_LONG: c->x_dims[0] = c->keep_dims[0] = FIXTURE_MAX_LENGTH + 1; break;
    case UNKNOWN_OUTPUT: c->outputs[0].name = "z"; break;
    case REPEATED_OUTPUT: c->outputs[1] = c->outputs[0]; break;
    case SMALL_OUTPUT: c->outputs[0].size_bytes = 3 * sizeof(float) - 1; break;
    case NO_OUTPUT_DATA: c->outputs[0].data = NULL; break;
    case MISALIGNED_OUTPUT: c->outputs[1].data = misaligned + 4; break;
    }
}

static const struct {
    fault fault;
    mdot_status status;
    const char *part;
} refusals[] = {
    {UNKNOWN_INPUT, MDOT_INVALID_ARGUMENT, "\"Keep\""},
    {NAMELESS_INPUT, MDOT_INVALID_ARGUMENT, "\"\""},
    {REPEATED_INPUT, MDOT_INVALID_ARGUMENT, "x is given twice"},
    {WRONG_DTYPE, MDOT_INVALID_ARGUMENT, "x is f64; it must be f32"},
    {WRONG_RANK, MDOT_INVALID_ARGUMENT, "rank 2; it has 1"},
    {NO_DIMS, MDOT_INVALID_ARGUMENT, "x: dims is NULL"},
    {WRONG_FIXED_DIM, MDOT_INVALID_ARGUMENT, "dimension 1 of x is 3; it must be 2"},
    {NEGATIVE_DIM, MDOT_INVALID_ARGUMENT, "dimension 0 of x"},
    {NO_DATA, MDOT_INVALID_ARGUMENT, "x: data is NULL"},
    {MISALIGNED_INPUT, MDOT_INVALID_ARGUMENT, "x must be aligned"},
    {ZERO_LENGTH, MDOT_OUT_OF_RANGE, "length 0"},
    {LENGTHS_DIFFER, MDOT_OUT_OF_RANGE, "length 4; another input implies 3"},
    {TOO_LONG, MDOT_OUT_OF_RANGE, "from 1 to 16; the length is 17"},
    {UNKNOWN_OUTPUT, MDOT_INVALID_ARGUMENT, "lacks an output \"z\""},
    {REPEATED_OUTPUT, MDOT_INVALID_ARGUMENT, "y is given twice"},
    {SMALL_OUTPUT, MDOT_OUT_OF_RANGE, "y takes 12 bytes at length 3; the buffer has 11"},
    {NO_OUTPUT_DATA, MDOT_INVALID_ARGUMENT, "y: data is NULL"},
    {MISALIGNED_OUTPUT, MDOT_INVALID_ARGUMENT, "about must be aligned"},
};

static void wrong_calls_are_refused_and_write_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        predict_call c;
        prepare(&c, 3);
        inject(&c, refusals[i].fault);
        mdot_error err = {0};
        mdot_status status = run(&c, &err);
        if (status != refusals[i].status || strstr(err.message, refusals[i].part) == NULL)
            fail_msg("fault %zu: %s, \"%s\"", i, mdot_status_name(status), err.message);
        assert_compare(c.y[0], ==, -1);
        assert_int_equal(run(&c, NULL), refusals[i].status);
    }
}

static void wrong_counts_and_entries_are_refused(void **state)
{
    (void)state;
    predict_call c;
    prepare(&c, 3);
    assert_int_equal(mdot_run(context, 0, c.inputs, 2, c.outputs, 2, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_run(context, 0, c.inputs, 3, c.outputs, 1, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_run(context, 0, c.inputs, SIZE_MAX, c.outputs, 2, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(mdot_run(context, 2, c.inputs, 3, c.outputs, 2, NULL), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_run(context, SIZE_MAX, c.inputs, 3, c.outputs, 2, NULL), MDOT_OUT_OF_RANGE);
}

static void call_after_a_refused_one_succeeds(void **state)
{
    (void)state;
    predict_call c;
    prepare(&c, 3);
    inject(&c, LENGTHS_DIFFER);
    assert_int_equal(run(&c, NULL), MDOT_OUT_OF_RANGE);
    prepare(&c, 6);
    assert_int_equal(run(&c, NULL), MDOT_OK);
    assert_result(&c, 6);
}

/* ---- Zero allocations and zero system calls ---------------------------------------------------------------------- */

#ifndef OWN_MALLOC
static void running_allocates_nothing(void **state)
{
    (void)state;
    predict_call c;
    prepare(&c, 9);
    size_t before = allocations;
    for (int i = 0; i < 1000; i++) {
        mdot_error err;
        if (run(&c, NULL) != MDOT_OK) fail();
        inject(&c, LENGTHS_DIFFER);
        if (run(&c, &err) == MDOT_OK) fail();
        c.keep_dims[0] = 9;
    }
    assert_int_equal(allocations, before);
    mdot_context *counted = NULL;
    assert_int_equal(mdot_context_create(predictor, &counted, NULL), MDOT_OK);
    assert_int_equal(allocations, before + 2); /* checks that the counter works */
    mdot_context_destroy(counted);
}
#endif

#ifndef OWN_THREAD
static bool runs_are_right(void)
{
    predict_call c;
    prepare(&c, 9);
    mdot_error err;
    int wrong = 0;
    for (int i = 0; i < 100; i++) {
        wrong += run(&c, &err) != MDOT_OK;
        inject(&c, LENGTHS_DIFFER);
        wrong += run(&c, &err) != MDOT_OUT_OF_RANGE;
        c.keep_dims[0] = 9;
    }
    return wrong == 0;
}

static void running_makes_no_system_call(void **state)
{
    (void)state;
    int outcome = run_without_kernel(runs_are_right);
    if (outcome == CALLS_UNGUARDED) skip();
    assert_int_equal(outcome, CALLS_RIGHT);
}
#endif

/* ---- Threads ----------------------------------------------------------------------------------------------------- */

static void *run_many(void *argument)
{
    int64_t length = *(const int64_t *)argument;
    mdot_context *own = NULL;
    if (mdot_context_create(predictor, &own, NULL) != MDOT_OK) return argument;
    void *wrong = NULL;
    for (int i = 0; i < 2000; i++) {
        predict_call c;
        prepare(&c, length);
        if (mdot_run(own, 0, c.inputs, 3, c.outputs, 2, NULL) != MDOT_OK || c.about[2] != length || c.y[0] != 10 ||
            c.y[length] != -1)
            wrong = argument;
    }
    mdot_context_destroy(own);
    return wrong;
}

static void threads_share_a_predictor(void **state)
{
    (void)state;
    enum { THREADS = 4 };
    pthread_t thread[THREADS];
    int64_t length[THREADS] = {1, 4, 5, 16};
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&thread[i], NULL, run_many, &length[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(thread[i], &wrong);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_runs_in_the_smallest_bucket_that_holds_it),
        cmocka_unit_test(tensors_may_be_in_any_order),
        cmocka_unit_test(entry_without_a_length_runs),
        cmocka_unit_test(ordered_call_gives_the_same_result),
        cmocka_unit_test(find_bucket_matches_run),
        cmocka_unit_test(wrong_calls_are_refused_and_write_nothing),
        cmocka_unit_test(wrong_counts_and_entries_are_refused),
        cmocka_unit_test(call_after_a_refused_one_succeeds),
#ifndef OWN_MALLOC
        cmocka_unit_test(running_allocates_nothing),
#endif
#ifndef OWN_THREAD
        cmocka_unit_test(running_makes_no_system_call),
#endif
        cmocka_unit_test(threads_share_a_predictor),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
