/* test_predict_memory.c — memory runs out while jobs and contexts for jobs are created. The limit rises by one
 * allocation until everything succeeds, and each failure frees all memory. */
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/refused_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MORE_THAN_ENOUGH = 100 };

typedef struct ledger {
    int limit, granted, live;
} ledger;

static void *take(void *user, size_t bytes, size_t alignment)
{
    ledger *l = user;
    if (l->granted >= l->limit) return NULL;
    l->granted++;
    l->live++;
    return aligned_alloc(alignment, bytes);
}

static void give_back(void *user, void *memory)
{
    ledger *l = user;
    l->live--;
    free(memory);
}

static void refused_memory_for_a_context_is_a_clean_failure(void **state)
{
    (void)state;
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) skip();
    predict_fixture f = {0};
    ledger l = {.limit = MORE_THAN_ENOUGH};
    predict_open_with(
        &f, predict_bandwidth_model(),
        &(mdot_open_options){
            .struct_size = sizeof(mdot_open_options), .allocate = take, .release = give_back, .user = &l});
    const int held = l.live, per_context = held - 1; /* all allocations except the predictor belong to the fixture's
                                                      * context */
    assert_compare(per_context, >=, 3);              /* the context, its scratch memory and the operator features of a
                                                      * job */
    for (int granted = 0; granted <= per_context; granted++) {
        l.limit = l.granted + granted;
        mdot_context *context = NULL;
        mdot_error err = {0};
        mdot_status status = mdot_context_create(f.predictor, &context, &err);
        assert_int_equal(status, granted < per_context ? MDOT_OUT_OF_MEMORY : MDOT_OK);
        assert_compare(context == NULL, ==, status != MDOT_OK);
        assert_compare(err.message[0] != '\0', ==, status != MDOT_OK);
        mdot_context_destroy(context);
        assert_int_equal(l.live, held);
    }
    predict_close(&f);
    assert_int_equal(l.live, 0);
}

#ifndef MDOT_SANITIZED
static void refused_memory_for_a_job_is_a_clean_failure(void **state)
{
    (void)state;
    mdot_job_operator operators[5];
    for (size_t i = 0; i < 5; i++) {
        operators[i] = predict_operator(i);
        operators[i].block = (uint32_t)(1 + i / 2);
    }
    const mdot_job_description description = {
        .struct_size = sizeof description, .operators = operators, .operator_count = 5};
    mdot_status status = MDOT_OUT_OF_MEMORY;
    int limit = 0;
    for (; status != MDOT_OK && limit < MORE_THAN_ENOUGH; limit++) {
        mdot_job *job = NULL;
        mdot_error err = {0};
        const int held = live;
        refusals = 0;
        allocations_left = limit;
        status = mdot_job_create(&description, &job, &err);
        allocations_left = -1;
        assert_int_equal(status, refusals > 0 ? MDOT_OUT_OF_MEMORY : MDOT_OK);
        assert_compare(job == NULL, ==, status != MDOT_OK);
        assert_compare(err.message[0] != '\0', ==, status != MDOT_OK);
        mdot_job_destroy(job);
        assert_int_equal(live, held);
    }
    assert_int_equal(status, MDOT_OK);
    assert_compare(limit, >, 10);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refused_memory_for_a_context_is_a_clean_failure),
#ifndef MDOT_SANITIZED
        cmocka_unit_test(refused_memory_for_a_job_is_a_clean_failure),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
