/* test_user_outcomes.c — users' predicted and actual times, and budgets for prediction time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

#include <math.h>
#include <unistd.h>

#include "slurm/user_records.h"
#include "tests/simulator/support/numbers.h"
#include "tests/slurm/support/small_job.h"
#include "tests/slurm/support/strict_calls.h"
#include "tests/support/process.h"

static const double now = 1.8e9, day_s = 86400;

static void understatement_grows_with_time_beyond_predictions(void **state)
{
    (void)state;
    sl_outcomes *o = sl_outcomes_create();
    expect_number(sl_outcomes_understatement(o, 7, now), 1);
    for (int i = 0; i < 10; i++) sl_outcomes_add(o, 7, 36000, 34000, 1, true, now);
    expect_number(sl_outcomes_understatement(o, 7, now), 1);
    for (int i = 0; i < 10; i++) sl_outcomes_add(o, 8, 3600, 36000, 1, true, now);
    assert_true(sl_outcomes_understatement(o, 8, now) > 5);
    expect_number(sl_outcomes_understatement(o, 7, now), 1);
    assert_true(sl_outcomes_understatement(o, 8, now + 14 * day_s) >
                4); /* half of the sums; the ratio hardly changes */
    assert_true(sl_outcomes_understatement(o, 8, now + 365 * day_s) < 1.1);
    sl_outcomes_destroy(o);
    sl_outcomes_destroy(NULL);
}

static void honest_small_jobs_and_overstated_ones_hide_no_lie(void **state)
{
    (void)state;
    sl_outcomes *o = sl_outcomes_create();
    sl_outcomes_add(o, 1, 60, 72000, 8, true, now);
    double lie = sl_outcomes_understatement(o, 1, now);
    for (int i = 0; i < 1000; i++) sl_outcomes_add(o, 1, 10, 10, 1, true, now);
    assert_true(sl_outcomes_understatement(o, 1, now) > .4 * lie);
    for (int i = 0; i < 1000; i++)
        sl_outcomes_add(o, 1, 1e9, 10, 8, true, now); /* the run time counts, rather than the stated limit */
    assert_true(sl_outcomes_understatement(o, 1, now) > 5);
    sl_outcomes_add(o, 2, 7200, 100, 1, false, now); /* cancelled early: no evidence */
    expect_number(sl_outcomes_understatement(o, 2, now), 1);
    sl_outcomes_add(o, 2, 100, 72000, 1, false, now); /* cancelled late: evidence */
    assert_true(sl_outcomes_understatement(o, 2, now) > 5);
    static const double bad[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < 4; i++) {
        sl_outcomes_add(o, 3, bad[i], 10, 1, true, now);
        sl_outcomes_add(o, 3, 10, bad[i], 1, true, now);
        sl_outcomes_add(o, 3, 10, 10, bad[i], true, now);
    }
    expect_number(sl_outcomes_understatement(o, 3, now), 1);
    sl_outcomes_destroy(o);
}

static void records_survive_a_restart(void **state)
{
    (void)state;
    char *folder = process_make_folder(), *path = process_in_folder(folder, "outcomes");
    sl_outcomes *o = sl_outcomes_create(), *read = sl_outcomes_create();
    mdot_error err = {0};
    assert_int_equal(sl_outcomes_load(read, path, &err), MDOT_NOT_FOUND);
    for (uint32_t user = 0; user < 1000; user++)
        sl_outcomes_add(o, user * 7919 % 1000, 100, 1e5 * (1 + user), 1, true, now);
    assert_int_equal(sl_outcomes_save(o, path, &err), MDOT_OK);
    assert_int_equal(sl_outcomes_load(read, path, &err), MDOT_OK);
    for (uint32_t user = 0; user < 1000; user++) {
        double a = sl_outcomes_understatement(o, user, now), b = sl_outcomes_understatement(read, user, now);
        assert_true(a > 1);
        assert_true(fabs(a - b) < 1e-6 * a);
    }
    static const char *const wrong[] = {"",
                                        "other\n",
                                        "mdot-outcomes 1\n1 2 3\n",
                                        "mdot-outcomes 1\n1 2 3 4",
                                        "mdot-outcomes 1\n1 2 3 4\n2 3\n",
                                        "mdot-outcomes 1\n1 nan 3 4\n",
                                        "mdot-outcomes 1\n1 -2 3 4\n",
                                        "mdot-outcomes 1\n1 2 3 4 5\n"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        small_job_write_file(path, wrong[i], strlen(wrong[i]));
        assert_int_equal(sl_outcomes_load(read, path, &err), MDOT_MALFORMED);
        expect_contains(err.message, "outcomes:");
        assert_true(sl_outcomes_understatement(read, 5, now) > 1); /* as before */
    }
    int files = dup(STDERR_FILENO);
    close(files);
    assert_int_equal(sl_outcomes_load(read, folder, &err), MDOT_IO);
    int successor = dup(STDERR_FILENO);
    close(successor);
    assert_int_equal(successor, files); /* no file stays open */
    expect_contains(err.message, "not a regular file");
    assert_true(sl_outcomes_understatement(read, 5, now) > 1);
    sl_outcomes_destroy(o);
    sl_outcomes_destroy(read);
    free(path);
    process_remove_folder(folder);
}

/* A file of as many users as the record has room for at first, and then further users. */
static void a_record_grows_after_it_was_read(void **state)
{
    (void)state;
    char *folder = process_make_folder(), *path = process_in_folder(folder, "outcomes");
    sl_outcomes *o = sl_outcomes_create(), *read = sl_outcomes_create();
    mdot_error err = {0};
    for (uint32_t user = 0; user < 64; user++) sl_outcomes_add(o, user, 100, 72000, 1, true, now);
    assert_int_equal(sl_outcomes_save(o, path, &err), MDOT_OK);
    assert_int_equal(sl_outcomes_load(read, path, &err), MDOT_OK);
    for (uint32_t user = 64; user < 300; user++) sl_outcomes_add(read, user, 100, 72000, 1, true, now);
    for (uint32_t user = 0; user < 300; user++) assert_true(sl_outcomes_understatement(read, user, now) > 5);
    sl_outcomes_destroy(o);
    sl_outcomes_destroy(read);
    free(path);
    process_remove_folder(folder);
}

static void calls_without_memory_keep_the_record(void **state)
{
    (void)state;
    char *folder = process_make_folder(), *path = process_in_folder(folder, "outcomes");
    mdot_error err = {0};
    for (int i = 0; i < 2; i++) {
        fail_allocation_after(i);
        sl_outcomes *none = sl_outcomes_create();
        assert_int_equal(has_failed_allocation(), 1);
        assert_null(none);
    }
    sl_outcomes *o = sl_outcomes_create();
    fail_allocation_after(0);
    sl_outcomes_add(o, 1, 100, 72000, 1, true, now);
    assert_int_equal(has_failed_allocation(), 1);
    expect_number(sl_outcomes_understatement(o, 1, now), 1);
    sl_outcomes_add(o, 1, 100, 72000, 1, true, now);
    fail_allocation_after(0);
    mdot_status status = sl_outcomes_save(o, path, &err);
    assert_int_equal(has_failed_allocation(), 1);
    assert_int_equal(status, MDOT_OUT_OF_MEMORY);
    assert_int_equal(process_count_files(folder), 0);
    assert_int_equal(sl_outcomes_save(o, path, &err), MDOT_OK);
    fail_allocation_after(0);
    status = sl_outcomes_load(o, path, &err);
    assert_int_equal(has_failed_allocation(), 1);
    assert_int_equal(status, MDOT_OUT_OF_MEMORY);
    expect_contains(err.message, "outcomes up to line 2");
    assert_true(sl_outcomes_understatement(o, 1, now) > 5);
    sl_outcomes_destroy(o);
    free(path);
    process_remove_folder(folder);
}

static void a_folder_that_is_missing_is_named(void **state)
{
    (void)state;
    sl_outcomes *o = sl_outcomes_create();
    mdot_error err = {0};
    assert_int_equal(sl_outcomes_save(o, "/nowhere/outcomes", &err), MDOT_IO);
    expect_contains(err.message, "/nowhere/outcomes.new: ");
    expect_contains(err.message, strerror(ENOENT));
    char path[4200];
    memset(path, 'a', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    assert_int_equal(sl_outcomes_save(o, path, &err), MDOT_INVALID_ARGUMENT);
    sl_outcomes_destroy(o);
}

/* A daemon may run without standard input, so the next opened file gets descriptor 0. */
static void a_record_is_read_without_standard_input(void **state)
{
    (void)state;
    char *folder = process_make_folder(), *path = process_in_folder(folder, "outcomes");
    sl_outcomes *o = sl_outcomes_create(), *read = sl_outcomes_create();
    mdot_error err = {0};
    sl_outcomes_add(o, 5, 100, 72000, 1, true, now);
    int input = dup(STDIN_FILENO);
    close(STDIN_FILENO);
    mdot_status saved = sl_outcomes_save(o, path, &err), loaded = sl_outcomes_load(read, path, &err);
    if (input >= 0) {
        dup2(input, STDIN_FILENO);
        close(input);
    }
    assert_int_equal(saved, MDOT_OK);
    assert_int_equal(loaded, MDOT_OK);
    assert_true(sl_outcomes_understatement(read, 5, now) > 5);
    sl_outcomes_destroy(o);
    sl_outcomes_destroy(read);
    free(path);
    process_remove_folder(folder);
}

/* A write beyond the limit of a file's size fails as one to a full disk does. */
static void a_failed_write_keeps_the_file(void **state)
{
    (void)state;
    char *folder = process_make_folder(), *path = process_in_folder(folder, "outcomes");
    sl_outcomes *o = sl_outcomes_create();
    mdot_error err = {0};
    struct rlimit before, small;
    assert_int_equal(sl_outcomes_save(o, path, &err), MDOT_OK);
    for (uint32_t user = 0; user < 100; user++) sl_outcomes_add(o, user, 100, 1000, 1, true, now);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    mdot_status status = sl_outcomes_save(o, path, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, MDOT_IO);
    expect_contains(err.message, "outcomes: ");
    expect_contains(err.message, strerror(EFBIG));
    assert_int_equal(process_count_files(folder), 1);
    sl_outcomes *read = sl_outcomes_create();
    assert_int_equal(sl_outcomes_load(read, path, &err), MDOT_OK);
    expect_number(sl_outcomes_understatement(read, 5, now), 1);
    sl_outcomes_destroy(read);
    sl_outcomes_destroy(o);
    free(path);
    process_remove_folder(folder);
}

static void budgets_expire_and_belong_to_users(void **state)
{
    (void)state;
    static sl_budget b;
    sl_budget_charge(&b, 1, 300, 60, 100);
    sl_budget_charge(&b, 1, 300, 60, 100);
    expect_number(sl_budget_taken_ms(&b, 1, 60, 100), 600);
    expect_number(sl_budget_taken_ms(&b, 2, 60, 100), 0);
    assert_true(fabs(sl_budget_taken_ms(&b, 1, 60, 160) - 540) < 1e-9);
    expect_number(sl_budget_taken_ms(&b, 1, 60, 10000), 0);
    for (uint32_t user = 2; user < 2000; user++) sl_budget_charge(&b, user, 1, 60, 100); /* more users than rows */
    expect_number(sl_budget_taken_ms(&b, 1, 60, 100), 600);
    expect_number(sl_budget_taken_ms(&b, 1999, 60, 100), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(understatement_grows_with_time_beyond_predictions),
        cmocka_unit_test(honest_small_jobs_and_overstated_ones_hide_no_lie),
        cmocka_unit_test(records_survive_a_restart),
        cmocka_unit_test(a_record_grows_after_it_was_read),
        cmocka_unit_test(calls_without_memory_keep_the_record),
        cmocka_unit_test(a_folder_that_is_missing_is_named),
        cmocka_unit_test(a_record_is_read_without_standard_input),
        cmocka_unit_test(a_failed_write_keeps_the_file),
        cmocka_unit_test(budgets_expire_and_belong_to_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
