/* test_environments.c — environments of daemons and batch jobs: threads with small stacks, forked workers, exhausted
 * descriptors, few allowed system calls, a missing /proc, mounts without code or writing, missing temporary and home
 * folders, and a locale with a decimal comma. Further, one model gives the same artefact in every place. */
#include "mdot/mdotc.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/encoder_model.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char job_path[] = MDOT_SOURCE_DIR "/tests/support/fixture/exports/bert-tiny.inference.onnx";

static process_result result;

/* ---- In one process ---------------------------------------------------------------------------------------------- */

/* Everything that a scheduler does with the shipped predictor: open, create a context and a job, predict, save, load,
 * close. */
static mdot_status live(const char *folder, double *out_ms, mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_job *job = predict_job(40, 40), *loaded = NULL;
    mdot_prediction prediction = MDOT_INIT(mdot_prediction);
    const mdot_configuration c = predict_configuration(32, "A100");
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/live.job", folder);
    mdot_status status = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, err);
    if (status == MDOT_OK) status = mdot_job_save(job, path, err);
    if (status == MDOT_OK) status = mdot_job_load(path, &loaded, err);
    if (status == MDOT_OK) status = mdot_predict(context, loaded, &c, &prediction, err);
    *out_ms = prediction.step_ms;
    mdot_job_destroy(loaded);
    mdot_job_destroy(job);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return status;
}

typedef struct life {
    const char *folder;
    double ms;
    mdot_status status;
    mdot_error err;
} life;

static void *live_in_thread(void *argument)
{
    life *l = argument;
    l->status = live(l->folder, &l->ms, &l->err);
    return NULL;
}

static void stacks_of_64_kb_suffice(void **state)
{
    (void)state;
#ifdef MDOT_SANITIZED
    skip(); /* sanitizers have larger stack frames */
#endif
    enum { STACK_BYTES = 64 << 10 };
    char *folder = process_make_folder();
    life mine = {.folder = folder}, small = {.folder = folder};
    live_in_thread(&mine);
    pthread_t thread;
    pthread_attr_t attributes;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, live_in_thread, &small), 0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    if (mine.status != MDOT_OK || small.status != MDOT_OK) fail_msg("%s%s", mine.err.message, small.err.message);
    assert_compare(mine.ms, >, 0);
    assert_compare(mine.ms, ==, small.ms);
    process_remove_folder(folder);
}

/* A sanitizer's runtime holds locks while a thread starts. A child forked at that moment waits for them forever. */
#ifdef MDOT_SANITIZED
enum { SHARED_THREADS = 0 };
#else
enum { SHARED_THREADS = 4 };
#endif

/* A server opens the artefact once and forks its workers. */
static void a_forked_worker_answers_as_its_parent(void **state)
{
    (void)state;
    enum {
        PATIENCE_S = 60,
        OPERATORS = 300
    }; /* time limit, after which a child counts as hanging; enough operators
                                                * to use several threads */
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL, *shared = NULL;
    mdot_job *job = predict_job(OPERATORS, OPERATORS);
    mdot_prediction here = MDOT_INIT(mdot_prediction), there = MDOT_INIT(mdot_prediction);
    const mdot_configuration c = predict_configuration(32, "A100");
    const mdot_context_options options = {.struct_size = sizeof options, .threads = SHARED_THREADS};
    assert_int_equal(mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, NULL), MDOT_OK);
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    assert_int_equal(mdot_context_create_with(predictor, &options, &shared, NULL), MDOT_OK);
    assert_int_equal(mdot_predict(context, job, &c, &here, NULL), MDOT_OK);
    pid_t worker = fork();
    if (worker == 0) {
        alarm(PATIENCE_S);
        mdot_context *own = NULL;
        bool same = mdot_predict(context, job, &c, &there, NULL) == MDOT_OK && there.step_ms == here.step_ms &&
                    mdot_predict(shared, job, &c, &there, NULL) == MDOT_OK && there.step_ms == here.step_ms &&
                    mdot_context_create_with(predictor, &options, &own, NULL) == MDOT_OK &&
                    mdot_predict(own, job, &c, &there, NULL) == MDOT_OK && there.step_ms == here.step_ms;
        mdot_context_destroy(own);
        mdot_context_destroy(shared);
        mdot_context_destroy(context);
        mdot_predictor_close(predictor);
        _exit(same ? 0 : 1);
    }
    int ended = -1;
    assert_int_equal(waitpid(worker, &ended, 0), worker);
    assert_int_equal(ended, 0);
    /* the worker's exit leaves the parent's context usable */
    assert_int_equal(mdot_predict(context, job, &c, &there, NULL), MDOT_OK);
    mdot_context_destroy(shared);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    mdot_job_destroy(job);
}

/* One free descriptor suffices for the file. The copy is then ordinary memory. Zero descriptors give a status. */
static void few_descriptors_suffice_and_zero_descriptors_return_a_status(void **state)
{
    (void)state;
    struct rlimit before, few;
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    int first = open("/dev/null", O_RDONLY);
    assert_compare(first, >=, 0);
    close(first);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    few = before;
    few.rlim_cur = (rlim_t)first + 1;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    mdot_status one = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, &err);
    few.rlim_cur = (rlim_t)first;
    (void)setrlimit(RLIMIT_NOFILE, &few);
    mdot_predictor *other = NULL;
    mdot_status none = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &other, &err);
    (void)setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(one, MDOT_OK);
    assert_int_equal(none, MDOT_IO);
    assert_null(other);
    assert_non_null(strstr(err.message, MDOT_SHIPPED_PREDICTOR));
    mdot_predictor_close(predictor);
}

/* With `ulimit -f`, a signal ends a process that exceeds the limit. The artefact's copy in memory counts as a file. */
static void files_may_be_limited(void **state)
{
    (void)state;
    static const rlim_t limits[] = {0, 1000000};
    mdot_job *job = predict_job(40, 40);
    const mdot_configuration c = predict_configuration(32, "A100");
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        pid_t child = fork();
        assert_compare(child, >=, 0);
        if (child == 0) {
            mdot_predictor *predictor = NULL;
            mdot_context *context = NULL;
            mdot_prediction p = MDOT_INIT(mdot_prediction);
            setrlimit(RLIMIT_FSIZE, &(struct rlimit){limits[i], limits[i]});
            bool is_right = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, NULL) == MDOT_OK &&
                            mdot_context_create(predictor, &context, NULL) == MDOT_OK &&
                            mdot_predict(context, job, &c, &p, NULL) == MDOT_OK;
            _exit(is_right && p.step_ms > 0 ? 0 : 1);
        }
        int ended = -1;
        assert_int_equal(waitpid(child, &ended, 0), child);
        if (ended != 0) fail_msg("a limit of %d bytes: ended with %d", (int)limits[i], ended);
    }
    mdot_job_destroy(job);
}

/* The same for a compilation, which writes the result in parts. */
static void a_compilation_beyond_the_file_limit_returns_a_status(void **state)
{
    (void)state;
    char *folder = process_make_folder(), *model = write_model(folder, "m.onnx", encoder_model(1)), output[PATH_MAX];
    snprintf(output, sizeof output, "%s/out", folder);
    assert_int_equal(mkdir(output, 0700), 0);
    char *path = process_in_folder(output, "m.mdot");
    pid_t child = fork();
    assert_compare(child, >=, 0);
    if (child == 0) {
        const mdotc_entry entry = {sizeof entry, "predict", model};
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096});
        _exit(mdotc_compile(&entry, 1, path, NULL, NULL) == MDOT_IO && process_count_files(output) == 0 ? 0 : 1);
    }
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    free(path);
    free(model);
    process_remove_folder(folder);
}

/* ---- In a sandbox ------------------------------------------------------------------------------------------------ */

enum { RIGHT = 0, WRONG = 1, CANNOT = 77 }; /* exit statuses of the child */

/* Runs `inside` in a child, because its changes to the process are permanent. Skips the test if the machine forbids
 * them. */
static void run_in_child(int (*inside)(const char *folder, double want_ms))
{
    mdot_error err = {0};
    double want_ms = 0;
    char *folder = process_make_folder();
    if (live(folder, &want_ms, &err) != MDOT_OK) fail_msg("%s", err.message);
    pid_t child = fork();
    assert_compare(child, >=, 0);
    if (child == 0) _exit(inside(folder, want_ms));
    int ended = -1;
    assert_int_equal(waitpid(child, &ended, 0), child);
    process_remove_folder(folder);
    assert_true(WIFEXITED(ended));
    if (WEXITSTATUS(ended) == CANNOT) skip();
    assert_int_equal(WEXITSTATUS(ended), RIGHT);
}

static int is_right(const char *folder, double want_ms)
{
    mdot_error err = {0};
    double ms = 0;
    mdot_status status = live(folder, &ms, &err);
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    return status == MDOT_OK && ms == want_ms ? RIGHT : WRONG;
}

#ifndef MDOT_SANITIZED /* sanitizers make their own calls */
/* Allows the system calls of a whole life. All others return EPERM, for example memfd_create, arch_prctl, prctl,
 * clone, execve and sockets. */
static int with_few_system_calls(const char *folder, double want_ms)
{
    static const int allowed[] = {SYS_openat,  SYS_close, SYS_read,      SYS_pread64,    SYS_write,     SYS_lseek,
                                  SYS_fstat,   SYS_stat,  SYS_lstat,     SYS_mmap,       SYS_munmap,    SYS_mprotect,
                                  SYS_madvise, SYS_brk,   SYS_fsync,     SYS_rename,     SYS_unlink,    SYS_getpid,
                                  SYS_futex,   SYS_fcntl, SYS_getrandom, SYS_newfstatat, SYS_exit_group};
    enum { ALLOWED = sizeof allowed / sizeof *allowed };
    struct sock_filter program[2 * ALLOWED + 2];
    int length = 0;
    program[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < ALLOWED; i++) {
        program[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
        program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    program[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const struct sock_fprog filter = {.len = (unsigned short)length, .filter = program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return CANNOT;
    if (memfd_create("denied", 0) >= 0 || errno != EPERM) return WRONG; /* checks that the filter works */
    return is_right(folder, want_ms);
}

static void few_system_calls_suffice(void **state)
{
    (void)state;
    run_in_child(with_few_system_calls);
}
#endif

/* Creates a private mount namespace, which requires root or user namespaces. */
static bool leave_mounts(void)
{
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* This includes compiling: the child for LLVM and the linker start without /proc. */
static int without_proc(const char *folder, double want_ms)
{
    if (!leave_mounts() || mount("none", "/proc", "tmpfs", 0, NULL) != 0) return CANNOT;
    if (access("/proc/self", F_OK) == 0) return WRONG;
    char *model = write_model(folder, "m.onnx", encoder_model(1)), output[PATH_MAX];
    snprintf(output, sizeof output, "%s/m.mdot", folder);
    const mdotc_entry entry = {sizeof entry, "predict", model};
    mdot_error err = {0};
    mdot_status status = mdotc_compile(&entry, 1, output, NULL, &err);
    if (status != MDOT_OK) fprintf(stderr, "%s: %s\n", mdot_status_name(status), err.message);
    free(model);
    return status == MDOT_OK ? is_right(folder, want_ms) : WRONG;
}

static void proc_may_be_absent(void **state)
{
    (void)state;
    run_in_child(without_proc);
}

static bool copy_file(const char *from, const char *to)
{
    char bytes[4096];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    bool fine = in != NULL && out != NULL;
    for (size_t got; fine && (got = fread(bytes, 1, sizeof bytes, in)) > 0;) fine = fwrite(bytes, 1, got, out) == got;
    if (in != NULL) fclose(in);
    if (out != NULL) fine = fclose(out) == 0 && fine;
    return fine;
}

/* An artefact on a mount that forbids mapping code. Then the mount, for example a home folder, becomes read-only. */
static int on_a_mount_for_data(const char *folder, double want_ms)
{
    char path[PATH_MAX];
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    snprintf(path, sizeof path, "%s/predictor.mdot", folder);
    if (!leave_mounts() || mount("none", folder, "tmpfs", MS_NOEXEC | MS_NOSUID | MS_NODEV, NULL) != 0) return CANNOT;
    if (!copy_file(MDOT_SHIPPED_PREDICTOR, path)) return WRONG;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    /* checks that the mount forbids it */
    if (file < 0 || mmap(NULL, 1, PROT_EXEC, MAP_PRIVATE, file, 0) != MAP_FAILED) return WRONG;
    if (mdot_predictor_open(path, NULL, &predictor, &err) != MDOT_OK || is_right(folder, want_ms) != RIGHT)
        return WRONG;
    mdot_predictor_close(predictor);
    close(file);
    if (mount("none", folder, NULL, MS_REMOUNT | MS_RDONLY | MS_NOEXEC, NULL) != 0) return CANNOT;
    setenv("HOME", folder, 1);
    snprintf(path, sizeof path, "%s/live.job", folder);
    mdot_job *job = NULL;
    bool fine = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, &err) == MDOT_OK &&
                mdot_job_load(path, &job, &err) == MDOT_OK && mdot_job_save(job, path, &err) == MDOT_IO &&
                strstr(err.message, path) != NULL;
    if (!fine) fprintf(stderr, "%s\n", err.message);
    return fine ? RIGHT : WRONG;
}

static void mounts_may_be_noexec_and_read_only(void **state)
{
    (void)state;
    run_in_child(on_a_mount_for_data);
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static void run_in(const char *name, const char *value, const char *const *argv)
{
    const char *old = getenv(name);
    char *before = old != NULL ? strdup(old) : NULL;
    setenv(name, value, 1);
    process_run(argv, &result);
    if (before != NULL)
        setenv(name, before, 1);
    else
        unsetenv(name);
    free(before);
}

/* The output stays the same in a locale with a decimal comma, without a temporary folder, and without a home folder. */
static void the_environment_changes_no_answer(void **state)
{
    (void)state;
    static const char *const settings[][2] = {{"LC_ALL", "de_DE.UTF-8"},
                                              {"LC_ALL", "C"},
                                              {"TMPDIR", "/nonexistent"},
                                              {"HOME", "/nonexistent"},
                                              {"PATH", "/nonexistent"}};
    static process_result right;
    const char *const argv[] = {MDOT_CLI, "predict", job_path, "--dim", "sequence=16", "--gpu", "A100", "--json", NULL};
    process_run(argv, &right);
    assert_int_equal(right.status, 0);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        run_in(settings[i][0], settings[i][1], argv);
        if (result.status != 0 || strcmp(result.out, right.out) != 0)
            fail_msg("%s=%s: %s%s", settings[i][0], settings[i][1], result.err, result.out);
    }
}

static void compile_to(const char *model, const char *output)
{
    const char *const argv[] = {MDOT_CLI, "compile", model, "-o", output, "-b", "8", "--target", "cpu:x86-64-v3", NULL};
    process_run(argv, &result);
}

/* A missing linker gives a status. A missing temporary folder is harmless, because the work is done beside the
 * output. */
static void compiling_needs_a_linker_and_the_output_folder(void **state)
{
    (void)state;
    char *folder = process_make_folder(), *model = write_model(folder, "m.onnx", encoder_model(1)), *output = NULL;
    assert_compare(asprintf(&output, "%s/m.mdot", folder), >, 0);
    const char *const argv[] = {MDOT_CLI, "compile", model, "-o", output, "-b", "8", "--target", "cpu:x86-64-v3", NULL};
    run_in("TMPDIR", "/nonexistent", argv);
    if (result.status != 0) fail_msg("%s", result.err);
    assert_int_equal(process_count_files(folder), 2);
    unlink(output);
    run_in("PATH", "/nonexistent", argv);
    assert_int_equal(result.status, 1);
    expect_contains(result.err, "could be started (ld, ld.lld or ld.lld-19)");
    assert_int_equal(process_count_files(folder), 1);
    free(output);
    free(model);
    process_remove_folder(folder);
}

static void expect_same_file(const char *a, const char *b)
{
    FILE *files[] = {fopen(a, "rb"), fopen(b, "rb")};
    assert_non_null(files[0]);
    assert_non_null(files[1]);
    int bytes[2];
    long at = 0;
    do {
        for (int i = 0; i < 2; i++) bytes[i] = fgetc(files[i]);
        if (bytes[0] != bytes[1]) fail_msg("byte %ld differs", at);
        at++;
    } while (bytes[0] != EOF);
    assert_compare(at, >, 4096);
    for (int i = 0; i < 2; i++) fclose(files[i]);
}

/* Builds are reproducible, because an artefact contains no path, time or address. */
static void the_artefact_is_independent_of_the_models_path(void **state)
{
    (void)state;
    char *folders[] = {process_make_folder(), process_make_folder()}, *models[2], *outputs[2];
    for (int i = 0; i < 2; i++) {
        models[i] = write_model(folders[i], "m.onnx", encoder_model(2));
        assert_compare(asprintf(&outputs[i], "%s/%s.mdot", folders[i], i == 0 ? "a" : "another"), >, 0);
        compile_to(models[i], outputs[i]);
        if (result.status != 0) fail_msg("%s", result.err);
    }
    expect_same_file(outputs[0], outputs[1]);
    for (int i = 0; i < 2; i++) {
        free(outputs[i]);
        free(models[i]);
        process_remove_folder(folders[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stacks_of_64_kb_suffice),
        cmocka_unit_test(a_forked_worker_answers_as_its_parent),
        cmocka_unit_test(few_descriptors_suffice_and_zero_descriptors_return_a_status),
        cmocka_unit_test(files_may_be_limited),
        cmocka_unit_test(a_compilation_beyond_the_file_limit_returns_a_status),
#ifndef MDOT_SANITIZED
        cmocka_unit_test(few_system_calls_suffice),
#endif
        cmocka_unit_test(proc_may_be_absent),
        cmocka_unit_test(mounts_may_be_noexec_and_read_only),
        cmocka_unit_test(the_environment_changes_no_answer),
        cmocka_unit_test(compiling_needs_a_linker_and_the_output_folder),
        cmocka_unit_test(the_artefact_is_independent_of_the_models_path),
    };
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
