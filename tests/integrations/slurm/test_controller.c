/* test_controller.c — the state of the plugin in slurmctld: files that change, hostile jobs, and limits of waiting
 * time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "integrations/slurm/base64.h"
#include "integrations/slurm/controller.h"
#include "integrations/slurm/parcel.h"
#include "tests/integrations/slurm/support/small_job.h"
#include "tests/support/process.h"

static char *folder;
static char path[512];
static char job_text[1 << 16]; /* MDOT_JOB_1=… */

static int set_up(void **state)
{
    (void)state;
    unsigned char *bytes;
    size_t count;
    char file[512];
    umask(022); /* files that the group may write are trusted only if the group is */
    folder = process_make_folder();
    snprintf(path, sizeof path, "%s/mdot.conf", folder);
    snprintf(file, sizeof file, "%s/small.job", folder);
    small_job_save(8, file, &bytes, &count);
    strcpy(job_text, "MDOT_JOB_1=");
    sl_base64_write(bytes, count, job_text + strlen(job_text));
    free(bytes);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    process_remove_folder(folder);
    return 0;
}

static void write_site(const char *predictor, const char *more)
{
    char text[2048], new_path[520];
    snprintf(text, sizeof text,
             "Predictor=%s\nMaxMilliseconds=1000\nLimitDoubtful=yes\n%s\nPartition=a Gpu=T4 MaxTime=60\n", predictor,
             more);
    snprintf(new_path, sizeof new_path, "%s.new", path);
    small_job_write_file(new_path, text, strlen(text));
    assert_int_equal(rename(new_path, path), 0);
}

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A cluster with the partition "a", whose default limit is five minutes. */
static sl_cluster *make_cluster(double read_s)
{
    sl_cluster *cluster = calloc(1, sizeof *cluster);
    assert_non_null(cluster);
    cluster->read_s = read_s;
    cluster->partition_count = 1;
    cluster->partitions[0] = (sl_partition){
        .name = "a", .most_minutes = 1000, .default_minutes = 5, .most_nodes = 1, .is_up = true, .is_open = true};
    return cluster;
}

static sl_controller *make(const char *more)
{
    bool is_new;
    mdot_error err = {0};
    write_site(MDOT_SHIPPED_PREDICTOR, more);
    sl_controller *c = sl_controller_create(path);
    assert_non_null(c);
    if (sl_controller_refresh(c, &is_new, &err) != MDOT_OK) fail_msg("%s", err.message);
    assert_true(is_new);
    return c;
}

/* A submission waits until its answer is there, so that a slow machine gives the same answers as a fast one. A test of
 * the limit MaxMilliseconds clears `is_patient`. */
static atomic_bool is_patient = true;

int __real_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until)
{
    struct timespec later = *until;
    if (atomic_load(&is_patient)) later.tv_sec += 3600;
    return __real_pthread_cond_timedwait(condition, mutex, &later);
}

/* Each submission comes from another user, so that the time of predictions that a user may take stays untouched. */
static mdot_status decide(sl_controller *c, const char *settings, sl_decision *out, mdot_error *err)
{
    static atomic_uint users = 1000;
    const char *environment[] = {settings, job_text};
    sl_submission submission = {.partitions = "a", .user = atomic_fetch_add(&users, 1)};
    return sl_controller_decide(c, environment, 2, &submission, out, err);
}

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
    sl_controller *c = make("");
    sl_decision first, second;
    mdot_error err = {0};
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000", &first, &err), MDOT_OK);
    assert_string_equal(first.place.gpu, "T4");
    assert_true(first.total_s > 0);
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000", &second, &err), MDOT_OK);
    assert_string_equal(first.comment, second.comment);
    sl_controller_destroy(c);
    sl_controller_destroy(NULL);
}

static void wrong_submissions_give_a_reason_and_leave_later_ones_intact(void **state)
{
    (void)state;
    sl_controller *c = make("MaxJobBytes=3000");
    refuses(c, (const char *[]){"MDOT_PROBLEM=no\nfile\033"}, 1, "error on the submit host: no?file?");
    refuses(c, (const char *[]){"MDOT_SETTINGS=steps=1"}, 1, "the request has no job");
    refuses(c, (const char *[]){"MDOT_SETTINGS=batch=1,nonsense", job_text}, 2, "must have the form KEY=VALUE");
    refuses(c, (const char *[]){"MDOT_JOB_1=QUJD"}, 1, "header of a job file");
    refuses(c, (const char *[]){"MDOT_JOB_1=QUJ"}, 1, "not valid base64");
    char flipped[sizeof job_text];
    strcpy(flipped, job_text);
    flipped[200] = flipped[200] == 'A' ? 'B' : 'A';
    refuses(c, (const char *[]){flipped}, 1, "checksum");
    char long_text[8192] = "MDOT_JOB_1=";
    memset(long_text + 11, 'A', 8000);
    refuses(c, (const char *[]){long_text}, 1, "larger than 3000");
    sl_decision d;
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
    sl_controller_destroy(c);
}

static void new_files_are_read_and_faults_are_logged_once(void **state)
{
    (void)state;
    sl_controller *c = make("Margin=1");
    sl_decision d;
    mdot_error err = {0};
    bool is_new = true;
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
    assert_false(is_new);
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=100000000", &d, NULL), MDOT_OK);
    assert_int_equal(d.limit_minutes, 0); /* the cluster is unknown */
    sl_controller_set_cluster(c, make_cluster(now_s() - 3600));
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=100000000", &d, NULL), MDOT_OK);
    assert_int_equal(d.limit_minutes, 0); /* an old snapshot */
    sl_controller_set_cluster(c, make_cluster(now_s()));
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=100000000", &d, NULL), MDOT_OK);
    assert_int_equal(d.limit_minutes, 60); /* MaxTime of mdot.conf */
    write_site(MDOT_SHIPPED_PREDICTOR, "Margin=wide");
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_MALFORMED);
    expect_contains(err.message, "Margin must be a number");
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK); /* an error is reported once */
    assert_false(is_new);
    /* the previous site file still applies */
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
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
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
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
    sl_controller *c = make("");
    sl_decision plain, calibrated;
    bool is_new;
    char file[512], line[600], text[8192] = "";
    mdot_error err = {0};
    snprintf(file, sizeof file, "%s/right.cal", folder);
    snprintf(line, sizeof line, "Calibration=%s", file);
    save_calibration(file);
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000,precision=fp32", &plain, NULL), MDOT_OK);
    write_site(MDOT_SHIPPED_PREDICTOR, line);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
    assert_true(is_new);
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000,precision=fp32", &calibrated, NULL), MDOT_OK);
    assert_true(calibrated.step_ms > 1.3 * plain.step_ms && calibrated.step_ms < 3.1 * plain.step_ms);
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
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000,precision=fp32", &plain, NULL), MDOT_OK);
    assert_true(plain.step_ms == calibrated.step_ms);
    sl_controller_destroy(c);
}

static void a_missing_file_keeps_the_controller_running(void **state)
{
    (void)state;
    bool is_new;
    mdot_error err = {0};
    unlink(path);
    sl_controller *c = sl_controller_create(path);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_NOT_FOUND);
    refuses(c, (const char *[]){job_text}, 1, "no predictor is loaded");
    write_site(MDOT_SHIPPED_PREDICTOR, "");
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_OK);
    assert_true(is_new);
    sl_decision d;
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
    sl_controller_destroy(c);
}

/* With a waiting time of zero, a submission continues at once, with or without an answer. Later submissions get
 * theirs. */
static void submissions_wait_no_longer_than_the_configured_limit(void **state)
{
    (void)state;
    sl_controller *c = make("MaxMilliseconds=0");
    sl_decision d;
    bool is_new;
    atomic_store(&is_patient, false);
    for (int i = 0; i < 20; i++) {
        mdot_error err = {0};
        mdot_status status = decide(c, "MDOT_SETTINGS=steps=1000", &d, &err);
        assert_true(status == MDOT_OK || status == MDOT_UNSUPPORTED);
        if (status == MDOT_UNSUPPORTED)
            assert_true(strstr(err.message, "MaxMilliseconds=0") != NULL ||
                        strstr(err.message, "the prediction of the preceding job") != NULL);
    }
    atomic_store(&is_patient, true);
    write_site(MDOT_SHIPPED_PREDICTOR, "");
    assert_int_equal(sl_controller_refresh(c, &is_new, NULL), MDOT_OK);
    assert_true(is_new);
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
    sl_controller_destroy(c);
}

/* ---- Costly jobs and slow files ---------------------------------------------------------------------------------- */

typedef struct costly_user {
    sl_controller *controller;
    int answers;
    mdot_status status; /* of the last submission */
    mdot_error err;
} costly_user;

/* Submits costly jobs of user 1 until one gets no prediction. */
static void *submit_costly(void *data)
{
    static char text[1 << 20] = "MDOT_JOB_1=";
    costly_user *u = data;
    unsigned char *bytes;
    size_t count;
    char file[512];
    snprintf(file, sizeof file, "%s/costly.job", folder);
    small_job_save(700, file, &bytes, &count);
    sl_base64_write(bytes, count, text + 11);
    free(bytes);
    const char *environment[] = {"MDOT_SETTINGS=steps=1", text};
    for (; u->answers < 5000; u->answers++) {
        sl_submission submission = {.partitions = "a", .user = 1};
        sl_decision d;
        u->status = sl_controller_decide(u->controller, environment, 2, &submission, &d, &u->err);
        if (u->status != MDOT_OK) break;
    }
    return NULL;
}

/* One user submits costly jobs without pause. Others get all predictions nevertheless. */
static void costly_jobs_are_charged_to_their_user(void **state)
{
    (void)state;
    costly_user u = {.controller = make("UserMilliseconds=5")};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, submit_costly, &u), 0);
    for (int i = 0; i < 30; i++) {
        sl_decision d;
        mdot_error err = {0};
        if (decide(u.controller, "MDOT_SETTINGS=steps=1000", &d, &err) != MDOT_OK) fail_msg("%s", err.message);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(u.answers > 0);
    assert_int_equal(u.status, MDOT_OUT_OF_RANGE);
    expect_contains(u.err.message, "UserMilliseconds=5");
    sl_controller_destroy(u.controller);
}

/* A submission waits for a prediction that its user abandoned, within its own limit. */
static void an_abandoned_prediction_leaves_the_next_one_intact(void **state)
{
    (void)state;
    sl_controller *c = make("UserMilliseconds=0");
    for (int i = 0; i < 10; i++) {
        bool is_new;
        sl_decision d;
        mdot_error err = {0};
        write_site(MDOT_SHIPPED_PREDICTOR, "UserMilliseconds=0\nMaxMilliseconds=0");
        assert_int_equal(sl_controller_refresh(c, &is_new, NULL), MDOT_OK);
        atomic_store(&is_patient, false);
        (void)decide(c, "MDOT_SETTINGS=steps=1000", &d, NULL);
        atomic_store(&is_patient, true);
        write_site(MDOT_SHIPPED_PREDICTOR, "UserMilliseconds=0");
        assert_int_equal(sl_controller_refresh(c, &is_new, NULL), MDOT_OK);
        if (decide(c, "MDOT_SETTINGS=steps=1000", &d, &err) != MDOT_OK) fail_msg("%s", err.message);
    }
    sl_controller_destroy(c);
}

static atomic_bool is_slow, is_asleep;

int __real_stat(const char *name, struct stat *out);
int __wrap_stat(const char *name, struct stat *out);
int __wrap_stat(const char *name, struct stat *out)
{
    while (atomic_load(&is_slow)) {
        atomic_store(&is_asleep, true);
        usleep(1000);
    }
    return __real_stat(name, out);
}

static void *refresh_slowly(void *controller)
{
    bool is_new;
    return (void *)(size_t)sl_controller_refresh(controller, &is_new, NULL);
}

/* The file system answers only after the submission has its decision. A plugin that waited for it would hang. */
static void submissions_go_on_while_a_file_system_does_not_answer(void **state)
{
    (void)state;
    sl_controller *c = make("");
    pthread_t thread;
    void *status;
    sl_decision d;
    atomic_store(&is_slow, true);
    assert_int_equal(pthread_create(&thread, NULL, refresh_slowly, c), 0);
    while (!atomic_load(&is_asleep)) usleep(1000);
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
    atomic_store(&is_slow, false);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_int_equal((size_t)status, MDOT_OK);
    sl_controller_destroy(c);
}

static void files_that_other_users_may_change_are_refused(void **state)
{
    (void)state;
    bool is_new;
    mdot_error err = {0};
    sl_controller *c = make("");
    write_site(MDOT_SHIPPED_PREDICTOR, "Margin=3");
    assert_int_equal(chmod(path, 0646), 0);
    assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "mdot.conf may be changed by other users");
    assert_int_equal(chmod(path, 0644), 0);
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
    /* The group of a new file may be that of its folder. */
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
        assert_int_equal(chown(path, 65534, 0), 0);
        assert_int_equal(sl_controller_refresh(c, &is_new, &err), MDOT_INVALID_ARGUMENT);
        expect_contains(err.message, "belongs to user 65534");
    }
    sl_controller_destroy(c);
}

static void *submit_often(void *controller)
{
    size_t answers = 0;
    for (int i = 0; i < 50; i++) {
        sl_decision d;
        bool is_new;
        if (i % 10 == 0) assert_int_equal(sl_controller_refresh(controller, &is_new, NULL), MDOT_OK);
        answers += decide(controller, "MDOT_SETTINGS=steps=1000", &d, NULL) == MDOT_OK && d.total_s > 0;
    }
    return (void *)answers;
}

static void threads_may_submit_concurrently(void **state)
{
    (void)state;
    sl_controller *c = make("");
    pthread_t threads[4];
    void *answers[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, submit_often, c), 0);
    write_site(MDOT_SHIPPED_PREDICTOR, "Margin=2");
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], &answers[i]), 0);
    for (int i = 0; i < 4; i++) assert_int_equal((size_t)answers[i], 50);
    sl_controller_destroy(c);
}

/* Blocked signals of a thread, in the order of their bits. */
static uint64_t blocked_signals(const char *thread)
{
    char file[300], line[256];
    unsigned long long mask = 0;
    snprintf(file, sizeof file, "/proc/self/task/%s/status", thread);
    FILE *status = fopen(file, "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        if (sscanf(line, "SigBlk: %llx", &mask) == 1) break;
    if (status != NULL) fclose(status);
    return mask;
}

/* slurmctld waits for its signals in threads of its own, so that the thread that predicts takes none of them. */
static void signals_are_left_to_other_threads(void **state)
{
    (void)state;
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD, SIGALRM, SIGPIPE};
    sigset_t before, after;
    char own[32];
    snprintf(own, sizeof own, "%d", (int)getpid());
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sl_controller *c = make("");
    sl_decision d;
    mdot_error err = {0};
    assert_int_equal(decide(c, "MDOT_SETTINGS=steps=1000", &d, &err), MDOT_OK);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        assert_int_equal(sigismember(&before, signals[i]), sigismember(&after, signals[i]));
    DIR *threads = opendir("/proc/self/task");
    assert_non_null(threads);
    int others = 0;
    for (const struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, own) == 0) continue;
        uint64_t blocked = blocked_signals(entry->d_name);
        for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
            if ((blocked >> (signals[i] - 1) & 1) == 0)
                fail_msg("thread %s takes signal %d", entry->d_name, signals[i]);
        others++;
    }
    closedir(threads);
    assert_true(others >= 1);
    sl_controller_destroy(c);
}

int main(void)
{
    alarm(240); /* a deadlock ends the program, also on a busy machine before the limit of ctest */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submission_becomes_a_decision),
        cmocka_unit_test(wrong_submissions_give_a_reason_and_leave_later_ones_intact),
        cmocka_unit_test(new_files_are_read_and_faults_are_logged_once),
        cmocka_unit_test(a_calibration_of_the_predictor_is_applied),
        cmocka_unit_test(a_missing_file_keeps_the_controller_running),
        cmocka_unit_test(submissions_wait_no_longer_than_the_configured_limit),
        cmocka_unit_test(threads_may_submit_concurrently),
        cmocka_unit_test(costly_jobs_are_charged_to_their_user),
        cmocka_unit_test(an_abandoned_prediction_leaves_the_next_one_intact),
        cmocka_unit_test(submissions_go_on_while_a_file_system_does_not_answer),
        cmocka_unit_test(files_that_other_users_may_change_are_refused),
        cmocka_unit_test(signals_are_left_to_other_threads),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
