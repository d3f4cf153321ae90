/* test_context.c — what other rooms keep in a context: rt_extension (core.h), with rooms made up here. */
#include "tests/support/artefact_fixture.h"

#include "runtime/core/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- Rooms that note what is asked of them ----------------------------------------------------------------------- */

static char journal[64]; /* "+a" made, "-a" destroyed */
static bool b_fails;
static int a_state, b_state; /* c makes none */

static mdot_status create_a(const mdot_predictor *predictor, void **out_state, mdot_error *err)
{
    (void)predictor, (void)err;
    strcat(journal, "+a");
    *out_state = &a_state;
    return MDOT_OK;
}

static mdot_status create_b(const mdot_predictor *predictor, void **out_state, mdot_error *err)
{
    (void)predictor;
    if (b_fails) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "b has no room");
    strcat(journal, "+b");
    *out_state = &b_state;
    return MDOT_OK;
}

static mdot_status create_c(const mdot_predictor *predictor, void **out_state, mdot_error *err)
{
    (void)predictor, (void)out_state, (void)err;
    strcat(journal, "+c");
    return MDOT_OK;
}

static void destroy(const mdot_predictor *predictor, void *state)
{
    assert_non_null(rt_predictor_artefact(predictor)->table);
    strcat(journal, state == &a_state ? "-a" : state == &b_state ? "-b" : "-?");
}

static const rt_extension a = {create_a, destroy}, b = {create_b, destroy}, c = {create_c, destroy};
static const rt_extension *const extensions[] = {&a, &c, &b, NULL};
static const rt_device_ops *const no_devices[] = {NULL};
static const rt_rooms rooms = {no_devices, extensions};

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

static fixture shared;
static mdot_predictor *predictor;

static int setup(void **state)
{
    (void)state;
    unsetenv("MDOT_CPU_LEVEL");
    unsetenv("MDOT_DEVICE");
    fixture_open(&shared);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&shared);
    return 0;
}

static void open_predictor(void)
{
    fixture_skip_unless_v3();
    journal[0] = '\0';
    b_fails = false;
    char *path = fixture_save(&shared, shared.bytes, shared.size_bytes);
    assert_int_equal(rt_predictor_open(&rooms, path, NULL, &predictor, NULL), MDOT_OK);
    unlink(path);
    free(path);
}

static void states_live_as_long_as_their_context(void **state)
{
    (void)state;
    open_predictor();
    mdot_context *context = NULL;
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    assert_string_equal(journal, "+a+c+b");
    assert_ptr_equal(rt_context_predictor(context), predictor);
    assert_ptr_equal(rt_context_state(context, &a), &a_state);
    assert_ptr_equal(rt_context_state(context, &b), &b_state);
    mdot_context_destroy(context);
    assert_string_equal(journal, "+a+c+b-b-a"); /* c has made nothing */
    mdot_predictor_close(predictor);
}

static void room_that_has_made_nothing_has_no_state(void **state)
{
    (void)state;
    open_predictor();
    static const rt_extension stranger = {create_a, destroy};
    mdot_context *context = NULL;
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    assert_null(rt_context_state(context, &c));
    assert_null(rt_context_state(context, &stranger));
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
}

static void room_that_fails_fails_the_context(void **state)
{
    (void)state;
    open_predictor();
    b_fails = true;
    mdot_context *context = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_context_create(predictor, &context, &err), MDOT_OUT_OF_MEMORY);
    assert_string_equal(err.message, "b has no room");
    assert_null(context);
    assert_string_equal(journal, "+a+c-a");
    mdot_predictor_close(predictor);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_live_as_long_as_their_context),
        cmocka_unit_test(room_that_has_made_nothing_has_no_state),
        cmocka_unit_test(room_that_fails_fails_the_context),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
