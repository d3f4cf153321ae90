/* test_subprocess.c — work in a child process. The result and the messages come back, and any end of the child becomes
 * a status. */
#include "codegen/subprocess.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { LARGE = 3 << 20 };

static mdot_status run(cg_work work, void *user, void **out_bytes, size_t *out_size, mdot_error *err)
{
    const cg_options options = {.predictor_name = "test"};
    mdot_status status = cg_run_subprocess(work, user, &options, out_bytes, out_size, err);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* the child has ended and was waited for */
    return status;
}

static mdot_status make_bytes(void *user, const cg_options *options, void **out_bytes, size_t *out_size,
                              mdot_error *err)
{
    (void)options, (void)err;
    unsigned char *bytes = malloc(LARGE);
    for (int i = 0; bytes != NULL && i < LARGE; i++) bytes[i] = (unsigned char)(i * 7 + i / 251);
    *(pid_t *)user = getpid(); /* lost, because the child has separate memory */
    *out_bytes = bytes;
    *out_size = LARGE;
    return MDOT_OK;
}

static void the_bytes_of_a_child_are_returned(void **state)
{
    (void)state;
    pid_t process = 0;
    void *bytes = NULL, *mine = NULL;
    size_t size = 0;
    assert_int_equal(run(make_bytes, &process, &bytes, &size, NULL), MDOT_OK);
    assert_int_equal(process, 0);
    assert_int_equal(size, LARGE);
    const cg_options here = {.in_process = true};
    assert_int_equal(cg_run_subprocess(make_bytes, &process, &here, &mine, &size, NULL), MDOT_OK);
    assert_int_equal(process, getpid());
    assert_memory_equal(bytes, mine, LARGE);
    free(bytes);
    free(mine);
}

static mdot_status refuse(void *user, const cg_options *options, void **out_bytes, size_t *out_size, mdot_error *err)
{
    (void)user, (void)options, (void)out_bytes, (void)out_size;
    return mdot_fail(err, MDOT_UNSUPPORTED, "node \"%s\" is not", "a");
}

static void a_fault_is_returned_with_its_message(void **state)
{
    (void)state;
    void *bytes = NULL;
    size_t size = 17;
    mdot_error err = {0};
    assert_int_equal(run(refuse, NULL, &bytes, &size, &err), MDOT_UNSUPPORTED);
    assert_int_equal(err.status, MDOT_UNSUPPORTED);
    assert_string_equal(err.message, "node \"a\" is not");
    assert_null(bytes);
    assert_int_equal(size, 17);
}

static mdot_status talk(void *user, const cg_options *options, void **out_bytes, size_t *out_size, mdot_error *err)
{
    (void)user, (void)err;
    options->progress(options->user, "half", 1, 2);
    options->warning(options->user, "careful");
    options->dump_text(options->user, "define void @f()");
    options->progress(options->user, "done", 2, 2);
    *out_bytes = NULL;
    *out_size = 0;
    return MDOT_OK;
}

static void note(void *heard, const char *text)
{
    strcat(heard, text);
    strcat(heard, ";");
}

static void note_progress(void *heard, const char *step, size_t done, size_t total)
{
    char text[64];
    snprintf(text, sizeof text, "%s %zu/%zu", step, done, total);
    note(heard, text);
}

static void callbacks_are_called_in_the_parent_in_order(void **state)
{
    (void)state;
    char heard[256] = "";
    const cg_options options = {.progress = note_progress, .warning = note, .dump_text = note, .user = heard};
    void *bytes = NULL;
    size_t size = 0;
    assert_int_equal(cg_run_subprocess(talk, NULL, &options, &bytes, &size, NULL), MDOT_OK);
    assert_string_equal(heard, "half 1/2;careful;define void @f();done 2/2;");
    free(bytes);
}

/* As LLVM does (ErrorHandling.cpp), and libstdc++. */
static mdot_status end_for_memory(void *user, const cg_options *options, void **out_bytes, size_t *out_size,
                                  mdot_error *err)
{
    (void)options, (void)out_bytes, (void)out_size, (void)err;
    fprintf(stderr, "something else\n%s\n", (const char *)user);
    abort();
}

static mdot_status end_by_signal(void *user, const cg_options *options, void **out_bytes, size_t *out_size,
                                 mdot_error *err)
{
    (void)options, (void)out_bytes, (void)out_size, (void)err;
    raise(*(int *)user);
    return MDOT_OK;
}

static mdot_status leave(void *user, const cg_options *options, void **out_bytes, size_t *out_size, mdot_error *err)
{
    (void)user, (void)options, (void)out_bytes, (void)out_size, (void)err;
    _exit(1);
}

static void exhausted_memory_in_a_child_is_out_of_memory(void **state)
{
    (void)state;
    static char *const words[] = {"LLVM ERROR: out of memory", "LLVM ERROR: Allocation failed",
                                  "terminate called after throwing an instance of 'std::bad_alloc'"};
    for (int i = 0; i < 3; i++) {
        void *bytes = NULL;
        size_t size;
        mdot_error err = {0};
        assert_int_equal(run(end_for_memory, words[i], &bytes, &size, &err), MDOT_OUT_OF_MEMORY);
        assert_non_null(strstr(err.message, words[i]));
        assert_null(strstr(err.message, "something else"));
        assert_null(bytes);
    }
}

static void a_handler(int number)
{
    (void)number;
    _exit(0); /* the program's handler, which must never run in the child */
}

static void an_abnormal_exit_of_a_child_is_a_toolchain_error(void **state)
{
    (void)state;
    void *bytes = NULL;
    size_t size;
    mdot_error err = {0};
    void (*before)(int) = signal(SIGABRT, a_handler);
    int number = SIGABRT;
    assert_int_equal(run(end_by_signal, &number, &bytes, &size, &err), MDOT_TOOLCHAIN);
    signal(SIGABRT, before);
    assert_non_null(strstr(err.message, "signal 6"));
    number = SIGKILL; /* the kernel's signal when memory is exhausted */
    assert_int_equal(run(end_by_signal, &number, &bytes, &size, &err), MDOT_OUT_OF_MEMORY);
    assert_int_equal(run(leave, NULL, &bytes, &size, &err), MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "without a result"));
}

/* A daemon may have closed the standard files. The pipe then gets their numbers. */
static void closed_standard_files_are_tolerated(void **state)
{
    (void)state;
    int kept[3];
    for (int i = 0; i < 3; i++) kept[i] = dup(i);
    for (int i = 0; i < 3; i++) close(i);
    pid_t process = 0;
    void *bytes = NULL;
    size_t size = 0;
    const cg_options options = {.predictor_name = "test"};
    mdot_status status = cg_run_subprocess(make_bytes, &process, &options, &bytes, &size, NULL);
    for (int i = 0; i < 3; i++) {
        dup2(kept[i], i);
        close(kept[i]);
    }
    assert_int_equal(status, MDOT_OK);
    assert_int_equal(size, LARGE);
    free(bytes);
}

static int fork_error; /* fork's errno; 0 = success */

pid_t fork(void)
{
    if (fork_error == 0) return ((pid_t(*)(void))dlsym(RTLD_NEXT, "fork"))();
    errno = fork_error;
    return -1;
}

static int lowest_free_descriptor(void)
{
    int descriptor = dup(STDERR_FILENO);
    close(descriptor);
    return descriptor;
}

/* The work is then not done in the program instead, because it might end the program. */
static void a_failed_fork_returns_a_status(void **state)
{
    (void)state;
    static const struct {
        int error;
        mdot_status status;
    } cases[] = {{ENOMEM, MDOT_OUT_OF_MEMORY}, {EAGAIN, MDOT_TOOLCHAIN}, {EPERM, MDOT_TOOLCHAIN}};
    const int free_before = lowest_free_descriptor();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pid_t process = 0;
        void *bytes = NULL;
        size_t size = 17;
        mdot_error err = {0};
        fork_error = cases[i].error;
        mdot_status status = run(make_bytes, &process, &bytes, &size, &err);
        fork_error = 0;
        assert_int_equal(status, cases[i].status);
        assert_int_equal(err.status, cases[i].status);
        assert_non_null(strstr(err.message, "child process"));
        assert_non_null(strstr(err.message, strerror(cases[i].error)));
        assert_int_equal(process, 0);
        assert_null(bytes);
        assert_int_equal(size, 17);
    }
    assert_int_equal(lowest_free_descriptor(), free_before);
}

static void a_failed_pipe_returns_a_status(void **state)
{
    (void)state;
    struct rlimit before, few;
    pid_t process = 0;
    void *bytes = NULL;
    size_t size = 0;
    mdot_error err = {0};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)lowest_free_descriptor() + 1; /* a pipe needs two */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    mdot_status status = run(make_bytes, &process, &bytes, &size, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(status, MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, strerror(EMFILE)));
    assert_int_equal(process, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bytes_of_a_child_are_returned),
        cmocka_unit_test(a_fault_is_returned_with_its_message),
        cmocka_unit_test(callbacks_are_called_in_the_parent_in_order),
        cmocka_unit_test(exhausted_memory_in_a_child_is_out_of_memory),
        cmocka_unit_test(an_abnormal_exit_of_a_child_is_a_toolchain_error),
        cmocka_unit_test(closed_standard_files_are_tolerated),
        cmocka_unit_test(a_failed_fork_returns_a_status),
        cmocka_unit_test(a_failed_pipe_returns_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
