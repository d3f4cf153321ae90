/* test_hostile_jobs.c — predictions for random changes of ONNX models, without libFuzzer: the seeds in tests/fuzz
 * change by structure, several times in a row. Each result is refused with a message, or the predictions keep the
 * invariants in tests/fuzz/hostile_job.h. */
#include "tests/fuzz/hostile_job.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/assertions.h"
#include "tests/support/onnx_mutator.h"
#include "tests/support/predict_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CAPACITY = 1 << 16, ROUNDS = 60, CHANGES = 6 };

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void changed_models_are_refused_or_predicted(void **state)
{
    (void)state;
    uint8_t *bytes = malloc(CAPACITY), *last = malloc(CAPACITY), drawn[HOSTILE_DRAWN_BYTES];
    uint64_t random = 1;
    size_t model_count = 0, job_count = 0, prediction_count = 0;
    assert_non_null(bytes);
    assert_non_null(last);
    for (const seed_model *seed = seed_models; seed->name != NULL; seed++) {
        pb_buffer model = seed->make();
        assert_compare(model.size, <, CAPACITY / 2);
        for (int round = 0; round < ROUNDS; round++) {
            size_t size = model.size;
            memcpy(last, model.data, size);
            for (int k = 0; k < CHANGES; k++) { /* the last model read */
                mdot_job *job = NULL;
                memcpy(bytes, last, size);
                size_t made = onnx_mutate(bytes, size, CAPACITY, next_random(&random), NULL);
                if (made == 0) continue;
                for (size_t i = 0; i < sizeof drawn; i++) drawn[i] = (uint8_t)next_random(&random);
                model_count++;
                if (hostile_job(bytes, made, &job) != MDOT_OK) continue;
                job_count++;
                prediction_count += (size_t)hostile_predict(job, drawn);
                mdot_job_destroy(job);
                memcpy(last, bytes, made);
                size = made;
            }
        }
        pb_free(&model);
    }
    free(bytes);
    free(last);
    /* Most changes leave a readable model, because otherwise they would only reach the format checks. */
    print_message("%zu models, %zu jobs, %zu predictions\n", model_count, job_count, prediction_count);
    assert_compare(job_count, >, model_count / 4);
    assert_compare(prediction_count, >, job_count / 8);
}

static int set_up(void **state)
{
    int failed = predict_setup(state); /* exits if compiled code does not run here */
    if (failed == 0) hostile_predict_open();
    return failed;
}

static int tear_down(void **state)
{
    hostile_predict_close();
    return predict_teardown(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(changed_models_are_refused_or_predicted)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
