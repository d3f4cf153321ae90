/* test_context.c — other components' state in a context (rt_extension in core.h), tested with components in this file,
 * and how long a context keeps the predictor. */
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"

#include "runtime/core/core.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char journal[64]; /* "+a": state a is created; "-a": it is destroyed */
static bool b_fails;
static int a_state, b_state; /* component c creates no state */

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
    if (b_fails) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "b has no memory");
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
static const rt_components components = {.devices = no_devices, .extensions = extensions};

static mdot_predictor *predictor;

static void open_predictor(void)
{
    fixture_skip_unless_v3();
    journal[0] = '\0';
    b_fails = false;
    char *path = fixture_save(&fixture_shared, fixture_shared.bytes, fixture_shared.size_bytes);
    assert_int_equal(rt_predictor_open(&components, path, NULL, &predictor, NULL), MDOT_OK);
    unlink(path);
    free(path);
}

static void states_are_destroyed_with_their_context(void **state)
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
    assert_string_equal(journal, "+a+c+b-b-a"); /* component c is skipped, because it has no state */
    mdot_predictor_close(predictor);
}

static void component_that_created_nothing_has_no_state(void **state)
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

static void failing_component_fails_the_context(void **state)
{
    (void)state;
    open_predictor();
    b_fails = true;
    mdot_context *context = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_context_create(predictor, &context, &err), MDOT_OUT_OF_MEMORY);
    assert_string_equal(err.message, "b has no memory");
    assert_null(context);
    assert_string_equal(journal, "+a+c-a");
    mdot_predictor_close(predictor);
}

static void *take(void *user, size_t bytes, size_t alignment)
{
    ++*(atomic_int *)user;
    return aligned_alloc(alignment, bytes);
}

static void give_back(void *user, void *memory)
{
    --*(atomic_int *)user;
    free(memory);
}

static void assert_doubles(mdot_context *context)
{
    const int32_t in[3] = {1, -2, 3};
    int32_t out[3] = {0};
    assert_int_equal(mdot_run_ordered(context, 1, 0, (const void *[]){in}, (void *[]){out}, NULL), MDOT_OK);
    for (int i = 0; i < 3; i++) assert_int_equal(out[i], 2 * in[i]);
}

static void *use_and_destroy(void *context)
{
    for (int i = 0; i < 1000; i++) assert_doubles(context);
    mdot_context_destroy(context);
    return NULL;
}

static void contexts_keep_a_closed_predictor_alive(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    enum { CONTEXTS = 4 };
    atomic_int live = 0;
    mdot_open_options options = {.struct_size = sizeof options, .allocate = take, .release = give_back, .user = &live};
    char *path = fixture_save(&fixture_shared, fixture_shared.bytes, fixture_shared.size_bytes);
    assert_int_equal(mdot_predictor_open(path, &options, &predictor, NULL), MDOT_OK);
    mdot_context *context[CONTEXTS];
    for (int i = 0; i < CONTEXTS; i++) assert_int_equal(mdot_context_create(predictor, &context[i], NULL), MDOT_OK);
    mdot_predictor_close(predictor);
    assert_doubles(context[0]);
    pthread_t thread[CONTEXTS];
    for (int i = 1; i < CONTEXTS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, use_and_destroy, context[i]), 0);
    for (int i = 1; i < CONTEXTS; i++) pthread_join(thread[i], NULL);
    assert_doubles(context[0]);
    assert_compare(live, >, 0);
    mdot_context_destroy(context[0]);
    assert_int_equal(live, 0);
    unlink(path);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_destroyed_with_their_context),
        cmocka_unit_test(component_that_created_nothing_has_no_state),
        cmocka_unit_test(failing_component_fails_the_context),
        cmocka_unit_test(contexts_keep_a_closed_predictor_alive),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
