/* test_main.c — the command without LLVM, and the program that takes its place for subcommands that compile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/process.h"

extern char **environ;

static char *folder, *job;

static int set_up(void **state)
{
    (void)state;
    static process_result result;
    folder = process_make_folder();
    job = process_in_folder(folder, "resnet50.job");
    process_run(
        (const char *const[]){MDOT_CLI, "extract", MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx", "-o", job, NULL},
        &result);
    return result.status;
}

static int tear_down(void **state)
{
    (void)state;
    process_remove_folder(folder);
    free(job);
    return 0;
}

/* The largest resident memory of a command, in KiB. */
static long resident_kib(const char *const *argv)
{
    posix_spawn_file_actions_t actions;
    struct rusage usage;
    pid_t child;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", 1, 0);
    assert_int_equal(posix_spawn(&child, argv[0], &actions, NULL, (char *const *)argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(wait4(child, &status, 0, &usage), child);
    assert_int_equal(status, 0);
    return usage.ru_maxrss;
}

static void a_prediction_from_a_job_needs_little_memory(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* their own memory is larger */
#endif
    enum { MOST_KIB = 12 * 1024 };
    long kib = resident_kib((const char *const[]){MDOT_CLI, "predict", job, "--gpu", "A100", "-q", NULL});
    if (kib >= MOST_KIB) fail_msg("%ld KiB", kib);
}

static void subcommands_that_compile_are_there(void **state)
{
    (void)state;
    static process_result result;
    static const char *const names[] = {"compile", "verify", "check"};
    process_run((const char *const[]){MDOT_CLI, "--help", NULL}, &result);
    assert_int_equal(result.status, 0);
    for (size_t i = 0; i < 3; i++) expect_contains(result.out, names[i]);
    for (size_t i = 0; i < 3; i++) {
        process_run((const char *const[]){MDOT_CLI, names[i], "--help", NULL}, &result);
        assert_int_equal(result.status, 0);
        expect_contains(result.out, names[i]);
    }
    process_run((const char *const[]){MDOT_CLI, "complie", NULL}, &result);
    assert_int_equal(result.status, 2);
    expect_contains(result.err, "compile");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prediction_from_a_job_needs_little_memory),
        cmocka_unit_test(subcommands_that_compile_are_there),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
