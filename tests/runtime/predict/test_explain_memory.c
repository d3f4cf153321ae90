/* test_explain_memory.c — memory runs out while a prediction is explained: each refusal is a clean failure. */
#include "mdot/mdot.h"
#include "tests/support/assertions.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/refused_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { MORE_THAN_ENOUGH = 1000 };

static void refused_memory_is_a_clean_failure(void **state)
{
    (void)state;
#ifdef MDOT_SANITIZED
    skip();
#else
    predict_fixture f = {0};
    predict_open_explained(&f, predict_bandwidth_model(), predict_bandwidth_explained());
    mdot_job *job = predict_job(20, 20);
    mdot_configuration c = predict_configuration(8, "T4");
    predict_one(&f, job, &c); /* the context keeps what it computes once */
    mdot_status status = MDOT_OUT_OF_MEMORY;
    int limit = 0;
    for (; status != MDOT_OK && limit < MORE_THAN_ENOUGH; limit++) {
        mdot_explanation *made = NULL;
        mdot_error err = {0};
        const int held = live;
        refusals = 0;
        allocations_left = limit;
        status = mdot_explain(f.context, job, &c, &made, &err);
        allocations_left = -1;
        if (status != (refusals > 0 ? MDOT_OUT_OF_MEMORY : MDOT_OK)) fail_msg("allocation %d: %s", limit, err.message);
        assert_compare(made == NULL, ==, status != MDOT_OK);
        assert_compare(err.message[0] != '\0', ==, status != MDOT_OK);
        mdot_explanation_destroy(made);
        assert_int_equal(live, held);
    }
    assert_int_equal(status, MDOT_OK);
    assert_compare(limit, >, 5);
    mdot_job_destroy(job);
    predict_close(&f);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused_memory_is_a_clean_failure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
