/* test_artefact_copy.c — an open artefact is independent of the file, and opens in processes with few rights. */
#include "tests/support/artefact_fixture.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool answers(const mdot_predictor *predictor)
{
    mdot_context *context = NULL;
    if (mdot_context_create(predictor, &context, NULL) != MDOT_OK) return false;
    const int32_t a[3] = {1, -2, 3};
    int32_t b[3] = {0};
    bool is_right = mdot_run_ordered(context, 1, 0, (const void *[]){a}, (void *[]){b}, NULL) == MDOT_OK;
    for (int i = 0; i < 3; i++) is_right = is_right && b[i] == 2 * a[i];
    mdot_context_destroy(context);
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    return is_right && mdot_predictor_get_info(predictor, &info) == MDOT_OK &&
           info.file_bytes == fixture_shared.size_bytes;
}

/* The file is overwritten as by `cp new.mdot predictor.mdot`, and truncated as by a full disk. */
static void artefact_overwritten_in_place_keeps_answering(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    char *path = fixture_save(&fixture_shared, fixture_shared.bytes, fixture_shared.size_bytes);
    mdot_predictor *predictor = NULL;
    assert_int_equal(mdot_predictor_open(path, NULL, &predictor, NULL), MDOT_OK);
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    for (size_t i = 0; i < fixture_shared.size_bytes; i++) fputc(0xcc, file);
    assert_int_equal(fflush(file), 0);
    assert_true(answers(predictor));
    assert_int_equal(ftruncate(fileno(file), 0), 0);
    assert_true(answers(predictor));
    fclose(file);
    unlink(path);
    free(path);
    mdot_predictor_close(predictor);
}

/* Runs in a child, because a lowered limit cannot be raised again. */
static void assert_opens_in_a_child(void (*restrict_process)(void))
{
    char *path = fixture_save(&fixture_shared, fixture_shared.bytes, fixture_shared.size_bytes);
    pid_t child = fork();
    if (child == 0) {
        mdot_predictor *predictor = NULL;
        restrict_process();
        bool is_right = mdot_predictor_open(path, NULL, &predictor, NULL) == MDOT_OK && answers(predictor);
        mdot_predictor_close(predictor);
        _exit(is_right ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    unlink(path);
    free(path);
    if (WIFSIGNALED(status)) fail_msg("signal %d", WTERMSIG(status));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* One free descriptor remains, and the file takes it. */
static void leave_one_descriptor(void)
{
    int next = dup(0);
    close(next);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){(rlim_t)next + 1, (rlim_t)next + 1});
}

/* Simulates a seccomp filter without memfd_create. */
static void refuse_memfd(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_memfd_create, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static rlim_t most_file_bytes;
static void limit_files(void) { setrlimit(RLIMIT_FSIZE, &(struct rlimit){most_file_bytes, most_file_bytes}); }

/* Simulates systemd's MemoryDenyWriteExecute=: memory can only become executable at the time when it is mapped. */
static void refuse_written_code(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void artefact_opens_with_one_descriptor_left(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    assert_opens_in_a_child(leave_one_descriptor);
}

static void artefact_opens_without_memfd(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    assert_opens_in_a_child(refuse_memfd);
}

/* The limit applies to a memfd, too. A write beyond it raises a signal, which ends the process. */
static void artefact_opens_with_a_file_size_limit(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    const rlim_t limits[] = {0, fixture_shared.size_bytes - 1, fixture_shared.size_bytes};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        most_file_bytes = limits[i];
        assert_opens_in_a_child(limit_files);
    }
}

static void artefact_opens_where_written_memory_cannot_execute(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    assert_opens_in_a_child(refuse_written_code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(artefact_overwritten_in_place_keeps_answering),
        cmocka_unit_test(artefact_opens_with_one_descriptor_left),
        cmocka_unit_test(artefact_opens_without_memfd),
        cmocka_unit_test(artefact_opens_with_a_file_size_limit),
        cmocka_unit_test(artefact_opens_where_written_memory_cannot_execute),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
