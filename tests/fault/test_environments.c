/* test_environments.c — where daemons and batch jobs run: threads with small stacks, forked workers, no descriptors
 * left, no folder for temporary files, no home, a locale with a decimal comma; and one model is one artefact wherever
 * it lies. */
#include "tests/support/artefact_fixture.h"
#include "tests/support/encoder_model.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/process.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const char job_path[] = MDOT_SOURCE_DIR "/tests/support/fixture/exports/bert-tiny.inference.onnx";

static process_result result;

/* ---- In one process ---------------------------------------------------------------------------------------------- */

/* All that a scheduler does with the shipped predictor: open, make a context, a job, predict, save, load, close. */
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

static void threads_of_64_kb_suffice(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* whose frames are larger */
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
    assert_true(mine.ms > 0 && mine.ms == small.ms);
    process_remove_folder(folder);
}

/* A server that opens once and forks its workers. */
static void a_forked_worker_answers_as_its_parent(void **state)
{
    (void)state;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_job *job = predict_job(40, 40);
    mdot_prediction here = MDOT_INIT(mdot_prediction), there = MDOT_INIT(mdot_prediction);
    const mdot_configuration c = predict_configuration(32, "A100");
    assert_int_equal(mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, NULL), MDOT_OK);
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    assert_int_equal(mdot_predict(context, job, &c, &here, NULL), MDOT_OK);
    pid_t worker = fork();
    if (worker == 0) {
        mdot_context *own = NULL;
        bool same = mdot_predict(context, job, &c, &there, NULL) == MDOT_OK && there.step_ms == here.step_ms &&
                    mdot_context_create(predictor, &own, NULL) == MDOT_OK &&
                    mdot_predict(own, job, &c, &there, NULL) == MDOT_OK && there.step_ms == here.step_ms;
        mdot_context_destroy(own);
        mdot_context_destroy(context);
        mdot_predictor_close(predictor);
        _exit(same ? 0 : 1);
    }
    int ended = -1;
    assert_int_equal(waitpid(worker, &ended, 0), worker);
    assert_int_equal(ended, 0);
    assert_int_equal(mdot_predict(context, job, &c, &there, NULL), MDOT_OK); /* the worker's end is its own */
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    mdot_job_destroy(job);
}

/* One descriptor is enough for the file; the copy then is ordinary memory. None is a status. */
static void few_descriptors_are_enough_and_none_is_a_status(void **state)
{
    (void)state;
    struct rlimit before, few;
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    int first = open("/dev/null", O_RDONLY);
    assert_true(first >= 0);
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

/* The same words come out under a locale with a decimal comma, without a folder for temporary files, without a home. */
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

/* No linker is a status; no folder for temporary files is no matter, since the work is done beside the output. */
static void compiling_asks_for_a_linker_and_the_outputs_folder(void **state)
{
    (void)state;
    char *folder = process_make_folder(), *model = write_model(folder, "m.onnx", encoder_model(1)), *output = NULL;
    assert_true(asprintf(&output, "%s/m.mdot", folder) > 0);
    const char *const argv[] = {MDOT_CLI, "compile", model, "-o", output, "-b", "8", "--target", "cpu:x86-64-v3", NULL};
    run_in("TMPDIR", "/nonexistent", argv);
    if (result.status != 0) fail_msg("%s", result.err);
    assert_int_equal(process_count_files(folder), 2);
    unlink(output);
    run_in("PATH", "/nonexistent", argv);
    assert_int_equal(result.status, 1);
    expect_contains(result.err, "no linker could be started");
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
    assert_true(at > 4096);
    for (int i = 0; i < 2; i++) fclose(files[i]);
}

/* Reproducible: no path, no time, no address goes into an artefact. */
static void one_model_is_one_artefact_wherever_it_lies(void **state)
{
    (void)state;
    char *folders[] = {process_make_folder(), process_make_folder()}, *models[2], *outputs[2];
    for (int i = 0; i < 2; i++) {
        models[i] = write_model(folders[i], "m.onnx", encoder_model(2));
        assert_true(asprintf(&outputs[i], "%s/%s.mdot", folders[i], i == 0 ? "a" : "another") > 0);
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
        cmocka_unit_test(threads_of_64_kb_suffice),
        cmocka_unit_test(a_forked_worker_answers_as_its_parent),
        cmocka_unit_test(few_descriptors_are_enough_and_none_is_a_status),
        cmocka_unit_test(the_environment_changes_no_answer),
        cmocka_unit_test(compiling_asks_for_a_linker_and_the_outputs_folder),
        cmocka_unit_test(one_model_is_one_artefact_wherever_it_lies),
    };
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
