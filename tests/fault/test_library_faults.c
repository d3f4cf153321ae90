/* test_library_faults.c — every allocation, read, write and start of a process or thread within a library call fails
 * once (inject.c), in the calling process. The call returns a status and a message, or the usual answer. It releases
 * all memory, mappings and descriptors, and every file is complete or absent.
 *
 * Compiling calls take long. Therefore the distance between two failing calls grows, unless MDOT_ALL_FAULTS=1 in the
 * environment selects each. */
#include "mdot/mdotc.h"
#include "mdot/mdotjob.h"
#include "tests/fault/inject.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/check_directory.h"
#include "tests/support/encoder_model.h"
#include "tests/support/predict_fixture.h"
#include "tests/support/process.h"
#include "tests/support/shard.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#ifdef MDOT_SANITIZED
int main(void)
{
    print_message("skipped: a sanitizer has a malloc of its own\n");
    return 77;
}
#else

enum { LAST = 4 };                          /* the last calls move the file to its place */
enum { CONFIGURATIONS = 3, OPERATORS = 5 }; /* sizes of the job and the configurations */
enum { COMMON_JOBS = 3 };                   /* with rows on two GPU models */

static char *folder, *model, *artefact, *check_folder, *output;
static mdot_predictor *predictor;
static mdot_context *context;
static mdot_job *job;
static mdot_job *jobs[COMMON_JOBS];
static mdot_job_operator operators[OPERATORS];
static mdot_configuration configurations[CONFIGURATIONS];
static const char exported[] = MDOT_SOURCE_DIR "/tests/support/fixture/exports/bert-tiny.inference.onnx";
static const mdot_dim_binding sequence = {.name = "sequence", .value = 16};

/* ---- Scenarios: each gives the same answer whenever it succeeds -------------------------------------------------- */

typedef mdot_status (*scenario)(double *out_answer, mdot_error *err);

static mdot_status using_predictors(double *out_answer, mdot_error *err)
{
    mdot_predictor *own = NULL;
    mdot_context *alone = NULL, *shared = NULL;
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    const mdot_context_options options = {.struct_size = sizeof options, .threads = 2};
    mdot_status status = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &own, err);
    if (status == MDOT_OK) status = mdot_context_create(own, &alone, err);
    if (status == MDOT_OK) status = mdot_context_create_with(own, &options, &shared, err);
    if (status == MDOT_OK) status = mdot_predict(shared, job, &configurations[0], &p, err);
    *out_answer = p.step_ms;
    mdot_predictor_close(own);
    mdot_context_destroy(alone);
    mdot_context_destroy(shared);
    return status;
}

static mdot_status using_jobs(double *out_answer, mdot_error *err)
{
    const mdot_job_description description = {
        .struct_size = sizeof description, .operators = operators, .operator_count = OPERATORS};
    mdot_job *made = NULL, *loaded = NULL;
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_status status = mdot_job_create(&description, &made, err);
    if (status == MDOT_OK) status = mdot_job_save(made, output, err);
    if (status == MDOT_OK) status = mdot_job_load(output, &loaded, err);
    if (status == MDOT_OK) status = mdot_job_get_info(loaded, &info);
    *out_answer = (double)info.parameters + (double)info.operator_count;
    mdot_job_destroy(loaded);
    mdot_job_destroy(made);
    return status;
}

static mdot_status extracting_jobs(double *out_answer, mdot_error *err)
{
    mdot_job *read = NULL, *frozen = NULL;
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    const char *const frozen_names[] = {"*embeddings*"};
    const mdot_job_options options = {
        .struct_size = sizeof options, .dims = &sequence, .dim_count = 1, .keep_names = 1};
    const mdot_job_freezing freezing = {.struct_size = sizeof freezing, .frozen = frozen_names, .frozen_count = 1};
    mdot_status status = mdot_job_read(exported, &options, &read, err);
    if (status == MDOT_OK) status = mdot_job_freeze(read, &freezing, &frozen, err);
    if (status == MDOT_OK) status = mdot_job_get_info(frozen, &info);
    *out_answer = (double)info.parameters + (double)info.operator_count;
    mdot_job_destroy(frozen);
    mdot_job_destroy(read);
    return status;
}

static mdot_status explaining_predictions(double *out_answer, mdot_error *err)
{
    mdot_encoding *encoding = NULL;
    mdot_explanation *explanation = NULL;
    mdot_explanation_info info = MDOT_INIT(mdot_explanation_info);
    mdot_prediction p[CONFIGURATIONS] = {MDOT_INIT(mdot_prediction)};
    mdot_status status = mdot_encoding_create(context, job, &encoding, err);
    if (status == MDOT_OK) status = mdot_evaluate(context, encoding, configurations, CONFIGURATIONS, p, err);
    if (status == MDOT_OK) status = mdot_explain(context, job, &configurations[0], &explanation, err);
    if (status == MDOT_OK) status = mdot_explanation_get_info(explanation, &info);
    *out_answer = p[0].step_ms + p[CONFIGURATIONS - 1].step_ms;
    mdot_explanation_destroy(explanation);
    mdot_encoding_destroy(encoding);
    return status;
}

static mdot_status using_calibrations(double *out_answer, mdot_error *err)
{
    const mdot_job *const same[CONFIGURATIONS] = {job, job, job};
    const double measured_ms[CONFIGURATIONS] = {40, 60, 90};
    mdot_calibration *made = NULL, *loaded = NULL;
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    mdot_status status = mdot_calibrate(context, same, configurations, measured_ms, CONFIGURATIONS, &made, err);
    if (status == MDOT_OK) status = mdot_calibration_save(made, output, err);
    if (status == MDOT_OK) status = mdot_calibration_load(output, &loaded, err);
    if (status == MDOT_OK) status = mdot_calibration_get_info(loaded, &info);
    *out_answer = info.factor;
    mdot_calibration_destroy(loaded);
    mdot_calibration_destroy(made);
    return status;
}

/* Rows for three jobs on two GPU models give the correlation. */
static mdot_status correlating_gpus(double *out_answer, mdot_error *err)
{
    const mdot_job *both[2 * COMMON_JOBS];
    mdot_configuration rows[2 * COMMON_JOBS];
    double ms[2 * COMMON_JOBS];
    mdot_calibration *made = NULL;
    mdot_calibration_gpu gpu = MDOT_INIT(mdot_calibration_gpu);
    for (int i = 0; i < 2 * COMMON_JOBS; i++) {
        both[i] = jobs[i / 2];
        rows[i] = configurations[i % 2];
        ms[i] = 10 + i;
    }
    mdot_status status = mdot_calibrate(context, both, rows, ms, 2 * COMMON_JOBS, &made, err);
    if (status == MDOT_OK) status = mdot_calibration_get_gpu(made, 1, &gpu);
    *out_answer = gpu.factor + gpu.half_factor;
    mdot_calibration_destroy(made);
    return status;
}

/* An unwritable row leaves the table as it was. Here the table was absent, and an empty file remains, because another
 * process may wait for its lock. */
static mdot_status recording_steps(double *out_answer, mdot_error *err)
{
    mdot_recorder *recorder = NULL;
    mdot_recorded recorded = MDOT_INIT(mdot_recorded);
    mdot_measured_row row = {sizeof row, "x.job", &configurations[0], 0, 5e9, "note"};
    struct stat info;
    mdot_status status = mdot_recorder_create(NULL, &recorder, err);
    for (int i = 0; status == MDOT_OK && i < 50; i++) mdot_recorder_step(recorder, 20);
    if (status == MDOT_OK) status = mdot_recorder_finish(recorder, &recorded, err);
    row.step_ms = *out_answer = recorded.step_ms;
    if (status == MDOT_OK) status = mdot_measured_append(output, &row, err);
    mdot_recorder_destroy(recorder);
    if (status != MDOT_OK && stat(output, &info) == 0 && info.st_size == 0) unlink(output);
    return status;
}

static mdot_status compiling_models(double *out_answer, mdot_error *err)
{
    static const int64_t bucket = 8;
    static const char *const target = "cpu:x86-64-v3";
    const mdotc_entry entry = {sizeof entry, "predict", model};
    const mdotc_options options = {
        .struct_size = sizeof options, .buckets = &bucket, .bucket_count = 1, .targets = &target, .target_count = 1};
    *out_answer = 0; /* the answer is the file */
    return mdotc_compile(&entry, 1, output, &options, err);
}

static mdot_status verifying_artefacts(double *out_answer, mdot_error *err)
{
    bool passed = false;
    mdot_status status = mdotc_verify(artefact, model, NULL, &passed, err);
    *out_answer = passed;
    return status;
}

static mdot_status checking_models(double *out_answer, mdot_error *err)
{
    mdotc_check_report report = MDOT_INIT(mdotc_check_report);
    mdot_status status = mdotc_check(check_folder, NULL, &report, err);
    *out_answer = report.result;
    return status;
}

/* ---- One fault after the other ----------------------------------------------------------------------------------- */

static int count_descriptors(void)
{
    enum { MAX_DESCRIPTORS = 256 };
    int count = 0;
    for (int i = 0; i < MAX_DESCRIPTORS; i++) count += fcntl(i, F_GETFD) >= 0;
    return count;
}

static long digest_of(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    unsigned long digest = 5381;
    for (int byte = fgetc(file); byte != EOF; byte = fgetc(file)) digest = digest * 33 + (unsigned long)byte;
    fclose(file);
    return (long)(digest & 0x7FFFFFFF);
}

typedef struct outcome {
    mdot_status status;
    double answer;
    long calls, written; /* -1 = the file is absent */
    long kept;           /* blocks, mappings and descriptors that remain */
    mdot_error err;
} outcome;

static outcome run_once(scenario s, const char *kind, long at)
{
    outcome o = {0};
    unlink(output);
    const inject_held before = inject_get_held();
    const int descriptors = count_descriptors();
    inject_arm(kind, at);
    o.status = s(&o.answer, &o.err);
    o.calls = inject_disarm();
    const inject_held after = inject_get_held();
    o.kept = after.memory - before.memory + after.mappings - before.mappings + count_descriptors() - descriptors;
    o.written = digest_of(output);
    return o;
}

static const char *what_is_wrong(const outcome *got, const outcome *right, int files)
{
    bool failed = got->status != MDOT_OK;
    if (!failed && got->answer != right->answer) return "success with another answer";
    if (!failed && got->written != right->written) return "success with another file";
    if (failed && (got->err.message[0] == '\0' || got->err.status != got->status)) return "failure without a message";
    if (got->written != -1 && got->written != right->written) return "a file that is half-written";
    if (process_count_files(folder) != files + (got->written != -1)) return "something left behind";
    return NULL;
}

static long next_fault(long at, long calls, bool each)
{
    each = each || getenv("MDOT_ALL_FAULTS") != NULL;
    long next = each ? at + 1 : 2 * at, last = calls - LAST;
    if (at >= last) return at + 1;
    return next < last ? next : last;
}

static void fail_each(const char *name, scenario s, bool each, const char *kind)
{
    int files = process_count_files(folder);
    run_once(s, kind, 0); /* in the first run libc itself keeps some memory */
    const outcome right = run_once(s, kind, 0);
    if (right.status != MDOT_OK) fail_msg("%s: %s", name, right.err.message);
    assert_int_equal(right.kept, 0);
    int runs = 0, failures = 0;
    for (long at = 1; at <= right.calls; at = next_fault(at, right.calls, each), runs++) {
        outcome got = run_once(s, kind, at);
        const char *wrong = what_is_wrong(&got, &right, files);
        /* runs again, because libc may have kept memory once; a real leak repeats */
        if (wrong == NULL && got.kept > 0 && run_once(s, kind, at).kept > 0) wrong = "something kept";
        if (wrong != NULL)
            fail_msg("%s, %s call %ld: %s (%s: %s)", name, kind, at, wrong, mdot_status_name(got.status),
                     got.err.message);
        failures += got.status != MDOT_OK;
    }
    print_message("%s: of %ld %s calls %d failed, %d with a status\n", name, right.calls, kind, runs, failures);
    assert_compare(failures, >, 0);
    unlink(output);
}

#define SURVIVES(name, each, ...)                                                                                      \
    static void name##_survives_every_fault(void **state)                                                              \
    {                                                                                                                  \
        (void)state;                                                                                                   \
        static const char *const kinds[] = {__VA_ARGS__};                                                              \
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) fail_each(#name, name, each, kinds[i]);              \
    }
SURVIVES(using_predictors, true, "memory", "read", "start")
SURVIVES(using_jobs, true, "memory", "read", "write")
SURVIVES(extracting_jobs, true, "memory", "read")
SURVIVES(explaining_predictions, true, "memory")
SURVIVES(using_calibrations, true, "memory", "read", "write")
SURVIVES(correlating_gpus, true, "memory")
SURVIVES(recording_steps, true, "memory", "read", "write")
SURVIVES(compiling_models, false, "memory", "read", "write", "start")
SURVIVES(verifying_artefacts, false, "memory", "read")
SURVIVES(checking_models, false, "memory", "read", "write", "start")

/* ---- All scenarios ----------------------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    (void)state;
    mdot_error err = {0};
    double answer;
    folder = process_make_folder();
    setenv("TMPDIR", folder, 1); /* mdotc_check compiles into this folder, so that leftover files are detected */
    model = write_model(folder, "model.onnx", encoder_model(1));
    artefact = process_in_folder(folder, "model.mdot");
    check_folder = process_in_folder(folder, "check");
    write_check_directory(folder, "check", 4);
    for (size_t i = 0; i < OPERATORS; i++) operators[i] = predict_operator(i);
    job = predict_make_job(operators, OPERATORS);
    for (size_t i = 0; i < COMMON_JOBS; i++) jobs[i] = predict_make_job(operators, 1 + i);
    static const char *const gpus[CONFIGURATIONS] = {"A100", "T4", "V100"};
    for (int i = 0; i < CONFIGURATIONS; i++) configurations[i] = predict_configuration(8 << i, gpus[i]);
    output = artefact;
    if (compiling_models(&answer, &err) != MDOT_OK) fail_msg("%s", err.message);
    output = process_in_folder(folder, "out");
    mdot_status status = mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, &err);
    if (status != MDOT_OK) fail_msg("%s", err.message);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    mdot_job_destroy(job);
    for (size_t i = 0; i < COMMON_JOBS; i++) mdot_job_destroy(jobs[i]);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    process_remove_folder(folder);
    char *paths[] = {model, artefact, check_folder, output};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) free(paths[i]);
    return 0;
}

/* The argument is a pattern that selects scenarios, for example "*compiling*". */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(using_predictors_survives_every_fault),
        cmocka_unit_test(using_jobs_survives_every_fault),
        cmocka_unit_test(extracting_jobs_survives_every_fault),
        cmocka_unit_test(explaining_predictions_survives_every_fault),
        cmocka_unit_test(using_calibrations_survives_every_fault),
        cmocka_unit_test(correlating_gpus_survives_every_fault),
        cmocka_unit_test(recording_steps_survives_every_fault),
        cmocka_unit_test(compiling_models_survives_every_fault),
        cmocka_unit_test(verifying_artefacts_survives_every_fault),
        cmocka_unit_test(checking_models_survives_every_fault),
    };
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) {
        print_message("skipped: this machine does not run x86-64-v3\n");
        return 77;
    }
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return shard_run_group_tests(tests, set_up, tear_down);
}
#endif
