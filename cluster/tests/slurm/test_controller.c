/* test_controller.c — the state of the plugin in slurmctld: files that change, and hostile jobs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tests/simulator/support/numbers.h"
#include "tests/slurm/support/controller_fixture.h"
#include "tests/slurm/support/small_job.h"
#include "tests/support/process.h"

static void refuses(sl_controller *c, const char *const *environment, size_t count, const char *reason)
{
    sl_decision d;
    mdot_error err = {0};
    sl_submission submission = {.partitions = "a"};
    if (sl_controller_decide(c, environment, count, &submission, &d, &err) == MDOT_OK)
        fail_msg("not refused: %s", reason);
    expect_contains(err.message, reason);
}

static void a_submission_becomes_a_decision(void **state)
{
    (void)state;
    sl_controller *c = make_controller("");
    sl_decision first, second;
    mdot_error err = {0};
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000", &first, &err), MDOT_OK);
    assert_string_equal(first.place.gpu, "T4");
    assert_true(first.total_s > 0);
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000", &second, &err), MDOT_OK);
    assert_string_equal(first.comment, second.comment);
    sl_controller_destroy(c);
    sl_controller_destroy(NULL);
}

static void wrong_submissions_give_a_reason_and_leave_later_ones_intact(void **state)
{
    (void)state;
    sl_controller *c = make_controller("MaxJobBytes=3000");
    refuses(c, (const char *[]){"MDOT_PROBLEM=no\nfile\033"}, 1, "error on the submit host: no?file?");
    refuses(c, (const char *[]){"MDOT_SETTINGS=steps=1"}, 1, "the request has no job");
    refuses(c, (const char *[]){"MDOT_SETTINGS=batch=1,nonsense", job_text}, 2, "must have the form KEY=VALUE");
    refuses(c, (const char *[]){"MDOT_JOB_1=QUJD"}, 1, "no ONNX or .job file");
    refuses(c, (const char *[]){"MDOT_JOB_1=QUJ"}, 1, "not valid base64");
    char flipped[sizeof job_text];
    strcpy(flipped, job_text);
    flipped[200] = flipped[200] == 'A' ? 'B' : 'A';
    refuses(c, (const char *[]){flipped}, 1, "checksum");
    char long_text[8192] = "MDOT_JOB_1=";
    memset(long_text + 11, 'A', 8000);
    refuses(c, (const char *[]){long_text}, 1, "larger than 3000");
    sl_decision d;
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
    sl_controller_destroy(c);
}

static void new_files_are_read_and_faults_are_logged_once(void **state)
{
    (void)state;
    sl_controller *c = make_controller("Margin=1");
    sl_decision d;
    mdot_error err = {0};
    bool is_new = true;
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
    assert_false(is_new);
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=100000000", &d, NULL), MDOT_OK);
    assert_int_equal(d.limit_minutes, 0); /* the cluster is unknown */
    sl_controller_set_cluster(c, make_cluster(now_s() - 3600));
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=100000000", &d, NULL), MDOT_OK);
    assert_int_equal(d.limit_minutes, 0); /* an old snapshot */
    sl_controller_set_cluster(c, make_cluster(now_s()));
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=100000000", &d, NULL), MDOT_OK);
    assert_int_equal(d.limit_minutes, 60); /* MaxTime of mdot.conf */
    write_site(MDOT_SHIPPED_PREDICTOR, "Margin=wide");
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_MALFORMED);
    expect_contains(err.message, "Margin must be a number");
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK); /* an error is reported once */
    assert_false(is_new);
    /* the previous site file still applies */
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
    char predictor[512];
    snprintf(predictor, sizeof predictor, "%s/p.mdot", folder);
    small_job_write_file(predictor, "none", 4);
    write_site(predictor, "");
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_MALFORMED);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
    /* An invalid calibration is reported, too, and it is read again when it is valid. */
    char calibration[512], line[600];
    snprintf(calibration, sizeof calibration, "%s/site.cal", folder);
    snprintf(line, sizeof line, "Calibration=%s", calibration);
    write_site(MDOT_SHIPPED_PREDICTOR, line);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_NOT_FOUND);
    expect_contains(err.message, "site.cal");
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
    small_job_write_file(calibration, "none", 4);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_MALFORMED);
    write_site(predictor, "");
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_MALFORMED);
    /* Only the predictor changes. */
    assert_int_equal(unlink(predictor), 0);
    assert_int_equal(symlink(MDOT_SHIPPED_PREDICTOR, predictor), 0);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
    assert_true(is_new);
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
    sl_controller_destroy(c);
}

/* Saves a calibration of the shipped predictor to `file`. The measured steps took three times as long as predicted. */
static void save_calibration(const char *file)
{
    enum { ROWS = 4 };
    mdot_predictor *predictor;
    mdot_context *context;
    mdot_calibration *calibration;
    mdot_job *job = small_job_make(8);
    const mdot_job *jobs[ROWS] = {job, job, job, job};
    mdot_configuration configurations[ROWS];
    double measured_ms[ROWS];
    assert_int_equal(mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, NULL), MDOT_OK);
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    for (int i = 0; i < ROWS; i++) {
        mdot_prediction p = MDOT_INIT(mdot_prediction);
        configurations[i] =
            (mdot_configuration){.struct_size = sizeof configurations[i], .batch = 16 << i, .gpu = "T4"};
        assert_int_equal(mdot_predict(context, job, &configurations[i], &p, NULL), MDOT_OK);
        measured_ms[i] = 3 * p.step_ms;
    }
    assert_int_equal(mdot_calibrate(context, jobs, configurations, measured_ms, ROWS, &calibration, NULL), MDOT_OK);
    assert_int_equal(mdot_calibration_save(calibration, file, NULL), MDOT_OK);
    mdot_calibration_destroy(calibration);
    mdot_job_destroy(job);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
}

static void a_calibration_of_the_predictor_is_applied(void **state)
{
    (void)state;
    sl_controller *c = make_controller("");
    sl_decision plain, calibrated;
    bool is_new;
    char file[512], line[600], text[8192] = "";
    mdot_error err = {0};
    snprintf(file, sizeof file, "%s/right.cal", folder);
    snprintf(line, sizeof line, "Calibration=%s", file);
    save_calibration(file);
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000,precision=fp32", &plain, NULL), MDOT_OK);
    write_site(MDOT_SHIPPED_PREDICTOR, line);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
    assert_true(is_new);
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000,precision=fp32", &calibrated, NULL), MDOT_OK);
    assert_true(calibrated.step_ms > 1.3 * plain.step_ms);
    assert_true(calibrated.step_ms < 3.1 * plain.step_ms);
    /* The same calibration with another predictor's name: the error is reported, and the previous calibration still
     * applies. */
    FILE *stream = fopen(file, "r");
    assert_non_null(stream);
    size_t bytes = fread(text, 1, sizeof text - 1, stream);
    fclose(stream);
    char *name = strstr(text, "predictor ");
    assert_non_null(name);
    name[strlen("predictor ")] ^= 1;
    small_job_write_file(file, text, bytes);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_INCOMPATIBLE);
    expect_contains(err.message, "was made with predictor");
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000,precision=fp32", &plain, NULL), MDOT_OK);
    expect_number(plain.step_ms, calibrated.step_ms);
    sl_controller_destroy(c);
}

static void the_site_file_names_the_records(void **state)
{
    (void)state;
    char outcomes[SL_PATH_BYTES], history[SL_PATH_BYTES];
    sl_controller *c = make_controller("Outcomes=/records/outcomes\nHistory=/records/history");
    sl_controller_outcomes_path(c, outcomes);
    sl_controller_history_path(c, history);
    assert_string_equal(outcomes, "/records/outcomes");
    assert_string_equal(history, "/records/history");
    sl_controller_destroy(c);
}

static void a_missing_file_keeps_the_controller_running(void **state)
{
    (void)state;
    bool is_new;
    mdot_error err = {0};
    unlink(site_path);
    sl_controller *c = sl_controller_create(site_path);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_NOT_FOUND);
    refuses(c, (const char *[]){job_text}, 1, "no predictor is loaded");
    write_site(MDOT_SHIPPED_PREDICTOR, "");
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
    assert_true(is_new);
    sl_decision d;
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
    sl_controller_destroy(c);
}

static void files_that_other_users_may_change_are_refused(void **state)
{
    (void)state;
    bool is_new;
    mdot_error err = {0};
    sl_controller *c = make_controller("");
    write_site(MDOT_SHIPPED_PREDICTOR, "Margin=3");
    assert_int_equal(chmod(site_path, 0646), 0);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "mdot.conf may be changed by other users");
    assert_int_equal(chmod(site_path, 0644), 0);
    write_site(MDOT_SHIPPED_PREDICTOR, "Margin=4");
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_INVALID_ARGUMENT);
    assert_int_equal(chmod(folder, 01777), 0); /* as /tmp: others may add files only */
    write_site(MDOT_SHIPPED_PREDICTOR, "Margin=5");
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
    assert_int_equal(chmod(folder, 0700), 0);
    char file[512], line[600];
    snprintf(file, sizeof file, "%s/own.mdot", folder);
    unsigned char *bytes;
    size_t count;
    small_job_read_file(MDOT_SHIPPED_PREDICTOR, &bytes, &count);
    small_job_write_file(file, bytes, count);
    free(bytes);
    assert_int_equal(chmod(file, 0666), 0);
    write_site(file, "");
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "own.mdot may be changed by other users");
    assert_int_equal(unlink(file), 0);
    snprintf(file, sizeof file, "%s/own.cal", folder);
    snprintf(line, sizeof line, "Calibration=%s", file);
    save_calibration(file);
    assert_int_equal(chmod(file, 0666), 0);
    write_site(MDOT_SHIPPED_PREDICTOR, line);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "own.cal may be changed by other users");
    /* A new file may have the folder's group. */
    assert_int_equal(chown(file, (uid_t)-1, getegid()), 0);
    assert_int_equal(chmod(file, 0664), 0);
    write_site(MDOT_SHIPPED_PREDICTOR, line);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
    if (geteuid() == 0) {
        assert_int_equal(chown(file, 0, 65534), 0);
        write_site(MDOT_SHIPPED_PREDICTOR, line);
        assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, "own.cal may be changed by other users");
        assert_int_equal(chmod(file, 0640), 0);
        write_site(MDOT_SHIPPED_PREDICTOR, line);
        assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
        assert_int_equal(unlink(file), 0);
        write_site(MDOT_SHIPPED_PREDICTOR, "Margin=6");
        assert_int_equal(chown(site_path, 65534, 0), 0);
        assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, "belongs to user 65534");
    }
    sl_controller_destroy(c);
}

/* The median in the comment on a request without steps, of a user whose jobs on these GPUs took 1,000 s. */
static double median_s(sl_controller *c, const char *gpus)
{
    sl_decision d;
    mdot_error err = {0};
    sl_submission submission = {.partitions = "a", .user = 77, .per_job = gpus, .name = "train"};
    if (sl_controller_decide(c, (const char *[]){job_text}, 1, &submission, &d, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    const char *found = strstr(d.comment, " history_s=");
    if (found == NULL) fail_msg("%s", d.comment);
    return strtod(found + strlen(" history_s="), NULL);
}

/* durations.onnx gives jobs on four or more GPUs e times the history's median (tests/simulator/test_trees.c). */
static void trees_correct_the_durations(void **state)
{
    (void)state;
    char *path = NULL, *line = NULL;
    process_result result;
    bool is_new;
    mdot_error err = {0};
    double now = (double)time(NULL); /* older jobs lose weight */
    assert_true(asprintf(&path, "%s/durations.mdot", folder) > 0 && asprintf(&line, "Trees=%s", path) > 0);
    sl_controller *c = make_controller("");
    for (int i = 0; i < 200; i++) {
        char user[SL_USER_BYTES];
        sl_submission submission = {.user = 77, .name = "train", .per_job = i % 2 == 0 ? "gres:gpu:1" : "gres:gpu:8"};
        sl_gpus gpus = sl_gpus_of(&submission);
        mdot_history_job job = sl_durations_job(&submission, &gpus, now - 2000. * (200 - i), user);
        sl_durations_add(sl_controller_durations(c), &job, MDOT_ENDED_COMPLETED, 900 + i % 7 * 40, job.submit_s + 1000);
    }
    double before[] = {median_s(c, "gres:gpu:1"), median_s(c, "gres:gpu:8")};
    write_site(MDOT_SHIPPED_PREDICTOR, line);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_NOT_FOUND);
    expect_contains(err.message, "durations.mdot");
    process_run((const char *const[]){MDOT_CLI, "compile", MDOT_CLUSTER_DIR "/tests/simulator/data/durations.onnx",
                                      "-o", path, "-q", NULL},
                &result);
    if (result.status != 0) fail_msg("%s", result.err);
    if (sl_controller_refresh(c, &is_new, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_true(is_new); /* the file appeared */
    double after[] = {median_s(c, "gres:gpu:1"), median_s(c, "gres:gpu:8")};
    expect_within(log(after[1] / before[1]) - log(after[0] / before[0]), 1, .1);
    assert_int_equal(chmod(path, 0666), 0);
    write_site(MDOT_SHIPPED_PREDICTOR, line);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "durations.mdot may be changed by other users");
    write_site(MDOT_SHIPPED_PREDICTOR, "Trees=" MDOT_INTERFERENCE);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_INVALID_ARGUMENT); /* another artefact */
    sl_controller_destroy(c);
    assert_int_equal(unlink(path), 0);
    free(line);
    free(path);
}

int main(void)
{
    alarm(240); /* a deadlock ends the program, also on a busy machine before the limit of ctest */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submission_becomes_a_decision),
        cmocka_unit_test(wrong_submissions_give_a_reason_and_leave_later_ones_intact),
        cmocka_unit_test(new_files_are_read_and_faults_are_logged_once),
        cmocka_unit_test(a_calibration_of_the_predictor_is_applied),
        cmocka_unit_test(the_site_file_names_the_records),
        cmocka_unit_test(a_missing_file_keeps_the_controller_running),
        cmocka_unit_test(trees_correct_the_durations),
        cmocka_unit_test(files_that_other_users_may_change_are_refused),
    };
    return cmocka_run_group_tests(tests, controller_set_up, controller_tear_down);
}
