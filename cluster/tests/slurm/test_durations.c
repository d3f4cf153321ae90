/* test_durations.c — durations of the cluster's jobs, as the plugin remembers them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>

#include "slurm/user_records.h"
#include "tests/simulator/support/numbers.h"
#include "tests/slurm/support/strict_calls.h"
#include "tests/support/process.h"

/* Texts referenced by a history job. */
typedef struct texts {
    char user[SL_USER_BYTES];
    sl_gpus gpus;
} texts;

static mdot_history_job job_of(uint32_t user, const char *name, texts *out_texts)
{
    sl_submission s = {.user = user, .name = name, .account = "physics", .per_node = "gres/gpu:a100:2", .nodes = 2};
    out_texts->gpus = sl_gpus_of(&s);
    return sl_durations_job(&s, &out_texts->gpus, 1e9, out_texts->user);
}

static void fill(sl_durations *d)
{
    texts held;
    for (int i = 0; i < 30; i++) {
        mdot_history_job job = job_of(1000, "train", &held);
        job.submit_s = 1e9 + 2000 * i;
        sl_durations_add(d, &job, MDOT_ENDED_COMPLETED, 1000 + i, job.submit_s + 1000 + i);
        job = job_of(2000, "eval", &held);
        job.submit_s = 1e9 + 2000 * i;
        sl_durations_add(d, &job, MDOT_ENDED_COMPLETED, 60 + i, job.submit_s + 60 + i);
    }
}

static bool ask(sl_durations *d, uint32_t user, const char *name, mdot_history_estimate *out)
{
    texts held;
    mdot_history_job job = job_of(user, name, &held);
    job.submit_s = 1e9 + 1e5;
    return sl_durations_ask(d, &job, out);
}

static void a_request_becomes_a_job_of_the_history(void **state)
{
    (void)state;
    texts held;
    mdot_history_job job = job_of(4294967295u, "train", &held);
    assert_string_equal(job.user, "4294967295");
    assert_string_equal(job.group, "physics");
    assert_string_equal(job.gpu_type, "a100");
    assert_int_equal(job.gpus, 4);
}

static void only_known_users_get_an_estimate(void **state)
{
    (void)state;
    sl_durations *d = sl_durations_create();
    mdot_history_estimate e = {.median_s = 7};
    assert_false(ask(d, 1000, "train", &e));
    expect_number(e.median_s, 7); /* an unknown job leaves the estimate as it was */
    fill(d);
    assert_true(ask(d, 1000, "train", &e));
    assert_true(e.median_s > 900);
    assert_true(e.median_s < 1150);
    assert_true(ask(d, 2000, "eval", &e));
    assert_true(e.median_s > 55);
    assert_true(e.median_s < 100);
    assert_false(ask(d, 3000, "other", &e));
    sl_durations_destroy(d);
    sl_durations_destroy(NULL);
}

static void a_record_needs_memory(void **state)
{
    (void)state;
    int fails = 1;
    for (int i = 0; fails; i++) {
        fail_allocation_after(i);
        sl_durations *d = sl_durations_create();
        fails = has_failed_allocation();
        assert_int_equal(d == NULL, fails);
        assert_true(i > 0 || fails);
        sl_durations_destroy(d);
    }
}

static void the_record_survives_a_restart(void **state)
{
    (void)state;
    char path[512], *folder = process_make_folder();
    snprintf(path, sizeof path, "%s/mdot_history", folder);
    sl_durations *d = sl_durations_create(), *successor = sl_durations_create();
    mdot_history_estimate before, after;
    mdot_error err = {0};
    fill(d);
    assert_int_equal(sl_durations_load(successor, path, &err), MDOT_NOT_FOUND);
    assert_int_equal(sl_durations_save(d, path, &err), MDOT_OK);
    assert_int_equal(sl_durations_load(successor, path, &err), MDOT_OK);
    assert_true(ask(d, 1000, "train", &before));
    assert_true(ask(successor, 1000, "train", &after));
    expect_number(before.median_s, after.median_s);
    expect_number(before.upper_scale, after.upper_scale);
    expect_number(before.key, after.key);
    expect_number(before.weight, after.weight);
    FILE *file = fopen(path, "w");
    fputs("mdot-outcomes 1\n", file);
    fclose(file);
    assert_int_equal(sl_durations_load(successor, path, &err), MDOT_MALFORMED); /* the record stays as it was */
    assert_true(ask(successor, 1000, "train", &after));
    sl_durations_destroy(d);
    sl_durations_destroy(successor);
    process_remove_folder(folder);
}

static void *add_many(void *durations)
{
    for (int i = 0; i < 200; i++) fill(durations);
    return NULL;
}

static void threads_add_and_ask_at_once(void **state)
{
    (void)state;
    sl_durations *d = sl_durations_create();
    pthread_t thread;
    mdot_history_estimate e = {0};
    fill(d);
    assert_int_equal(pthread_create(&thread, NULL, add_many, d), 0);
    for (int i = 0; i < 20000; i++) {
        if (!ask(d, 1000, "train", &e)) continue; /* the other thread has the record */
        assert_true(e.median_s > 500);
        assert_true(e.median_s < 2000);
    }
    pthread_join(thread, NULL);
    assert_true(ask(d, 1000, "train", &e)); /* before, the other thread might have had it each time */
    sl_durations_destroy(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_becomes_a_job_of_the_history),
        cmocka_unit_test(only_known_users_get_an_estimate),
        cmocka_unit_test(a_record_needs_memory),
        cmocka_unit_test(the_record_survives_a_restart),
        cmocka_unit_test(threads_add_and_ask_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
