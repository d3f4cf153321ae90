/* test_controller_waits.c — the plugin's state in slurmctld: threads, waiting times, costly jobs and slow files. */
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

#include "slurm/request.h"
#include "tests/slurm/support/controller_fixture.h"
#include "tests/slurm/support/small_job.h"
#include "tests/slurm/support/strict_calls.h"
#include "tests/support/process.h"

/* With a waiting time of zero, a submission continues at once, with or without an answer. Later submissions get
 * theirs. */
static void submissions_wait_no_longer_than_the_configured_limit(void **state)
{
    (void)state;
    sl_controller *c = make_controller("MaxMilliseconds=0");
    sl_decision d;
    bool is_new;
    atomic_store(&is_patient, false);
    for (int i = 0; i < 20; i++) {
        mdot_error err = {0};
        mdot_status status = submit_job(c, "MDOT_SETTINGS=steps=1000", &d, &err);
        assert_true(status == MDOT_OK || status == MDOT_UNSUPPORTED);
        if (status == MDOT_UNSUPPORTED)
            assert_true(strstr(err.message, "MaxMilliseconds=0") != NULL ||
                        strstr(err.message, "the prediction of the preceding job") != NULL);
    }
    atomic_store(&is_patient, true);
    write_site(MDOT_SHIPPED_PREDICTOR, "");
    assert_int_equal(sl_controller_refresh(c, &is_new, NULL), MDOT_OK);
    assert_true(is_new);
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
    sl_controller_destroy(c);
}

/* The caller's part of a submission: without memory it gives no decision, and the next submission is as before. */
static void submissions_without_memory_are_refused(void **state)
{
    (void)state;
    sl_controller *c = make_controller("UserMilliseconds=0");
    sl_decision d;
    mdot_error err = {0};
    const char *environment[] = {"MDOT_SETTINGS=steps=1000", job_text};
    const sl_submission submission = {.partitions = "a",
                                      .default_partition = "a",
                                      .per_job = "gres:gpu:1",
                                      .per_node = "gres:gpu:1",
                                      .per_socket = "gres:gpu:1",
                                      .per_task = "gres:gpu:1",
                                      .user = 1};
    assert_int_equal(sl_controller_decide(c, environment, 2, &submission, &d, &err), MDOT_OK); /* starts the thread */
    int failures = 0, fails = 1;
    for (; fails; failures += fails) {
        fail_allocation_after(failures);
        mdot_status status = sl_controller_decide(c, environment, 2, &submission, &d, &err);
        fails = has_failed_allocation();
        assert_int_equal(status, fails ? MDOT_OUT_OF_MEMORY : MDOT_OK);
    }
    assert_true(failures >= 7); /* the job, and the texts of the submission */
    sl_controller_destroy(c);
    for (fails = 1, failures = 0; fails; failures += fails) {
        fail_allocation_after(failures);
        sl_controller *none = sl_controller_create(site_path);
        fails = has_failed_allocation();
        assert_int_equal(none == NULL, fails);
        sl_controller_destroy(none);
    }
    assert_true(failures >= 3);
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
    costly_user u = {.controller = make_controller("UserMilliseconds=5")};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, submit_costly, &u), 0);
    for (int i = 0; i < 30; i++) {
        sl_decision d;
        mdot_error err = {0};
        if (submit_job(u.controller, "MDOT_SETTINGS=steps=1000", &d, &err) != MDOT_OK) fail_msg("%s", err.message);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(u.answers > 0);
    assert_int_equal(u.status, MDOT_OUT_OF_RANGE);
    expect_contains(u.err.message, "UserMilliseconds=5");
    sl_controller_destroy(u.controller);
}

/* A submission waits, within its limit, for a prediction abandoned by an earlier one. */
static void an_abandoned_prediction_leaves_the_next_one_intact(void **state)
{
    (void)state;
    sl_controller *c = make_controller("UserMilliseconds=0");
    for (int i = 0; i < 10; i++) {
        bool is_new;
        sl_decision d;
        mdot_error err = {0};
        write_site(MDOT_SHIPPED_PREDICTOR, "UserMilliseconds=0\nMaxMilliseconds=0");
        assert_int_equal(sl_controller_refresh(c, &is_new, NULL), MDOT_OK);
        atomic_store(&is_patient, false);
        (void)submit_job(c, "MDOT_SETTINGS=steps=1000", &d, NULL);
        atomic_store(&is_patient, true);
        write_site(MDOT_SHIPPED_PREDICTOR, "UserMilliseconds=0");
        assert_int_equal(sl_controller_refresh(c, &is_new, NULL), MDOT_OK);
        if (submit_job(c, "MDOT_SETTINGS=steps=1000", &d, &err) != MDOT_OK) fail_msg("%s", err.message);
    }
    sl_controller_destroy(c);
}

/* ---- Files that change during a prediction ----------------------------------------------------------------------- */

static atomic_bool is_held, is_predicting, waits_for_thread;
static _Thread_local bool is_reader;

/* The predicting thread reads its CPU clock when it begins and ends, so this holds a prediction. */
static int ms_between_looks; /* above 0: the thread's processor time between two looks at it */

int __real_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out);
int __wrap_clock_gettime(clockid_t clock, struct timespec *out)
{
    while (clock == CLOCK_THREAD_CPUTIME_ID && atomic_load(&is_held)) {
        atomic_store(&is_predicting, true);
        usleep(1000);
    }
    int result = __real_clock_gettime(clock, out);
    if (clock == CLOCK_THREAD_CPUTIME_ID && ms_between_looks > 0) {
        static int64_t processor_ms;
        processor_ms += ms_between_looks;
        *out = (struct timespec){processor_ms / 1000, processor_ms % 1000 * 1000000};
    }
    return result;
}

int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (is_reader) atomic_store(&waits_for_thread, true);
    return __real_pthread_cond_wait(condition, mutex);
}

typedef struct reader {
    sl_controller *controller;
    bool refreshes; /* otherwise it replaces the cluster */
    atomic_bool has_ended;
} reader;

static void *replace_inputs(void *data)
{
    reader *r = data;
    bool is_new;
    is_reader = true;
    if (r->refreshes)
        sl_controller_refresh(r->controller, &is_new, NULL);
    else
        sl_controller_set_cluster(r->controller, make_cluster(now_s()));
    atomic_store(&r->has_ended, true);
    return NULL;
}

/* A prediction reads the site's files and the cluster without a lock. They are replaced after it, even if its caller
 * has stopped waiting. */
static void inputs_stay_until_an_abandoned_prediction_ends(void **state)
{
    (void)state;
    for (int refreshes = 0; refreshes < 2; refreshes++) {
        sl_controller *c = make_controller("UserMilliseconds=0\nMaxMilliseconds=0");
        sl_decision d;
        pthread_t thread;
        reader r = {.controller = c, .refreshes = refreshes};
        sl_controller_set_cluster(c, make_cluster(now_s()));
        atomic_store(&is_patient, false);
        atomic_store(&is_held, true);
        assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_UNSUPPORTED);
        atomic_store(&is_patient, true);
        while (!atomic_load(&is_predicting)) usleep(1000);
        write_site(MDOT_SHIPPED_PREDICTOR, "Margin=2");
        assert_int_equal(pthread_create(&thread, NULL, replace_inputs, &r), 0);
        while (!atomic_load(&waits_for_thread) && !atomic_load(&r.has_ended)) usleep(1000);
        bool has_waited = !atomic_load(&r.has_ended);
        atomic_store(&is_held, false);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_true(has_waited);
        atomic_store(&is_predicting, false);
        atomic_store(&waits_for_thread, false);
        sl_controller_destroy(c);
    }
}

/* The environment of a job of so many operators. */
typedef struct parcel {
    char *text[SL_PIECE_COUNT + 1];
    size_t count;
} parcel;

static void make_parcel(size_t operators, parcel *out)
{
    char *own_folder = process_make_folder(), *path = process_in_folder(own_folder, "x.job"), *piece;
    unsigned char *bytes;
    size_t count;
    char name[SL_PIECE_NAME_BYTES];
    *out = (parcel){.text = {strdup("SPANK_MDOT_SETTINGS=steps=1000")}, .count = 1};
    small_job_save(operators, path, &bytes, &count);
    for (; sl_parcel_piece(bytes, count, out->count - 1, name, &piece); out->count++) {
        assert_true(asprintf(&out->text[out->count], "SPANK_%s=%s", name, piece) > 0);
        free(piece);
    }
    free(bytes);
    free(path);
    process_remove_folder(own_folder);
}

static void free_parcel(parcel *p)
{
    for (size_t i = 0; i < p->count; i++) free(p->text[i]);
}

static mdot_status submit_parcel(sl_controller *c, const parcel *p, uint32_t user, mdot_error *err)
{
    sl_decision d;
    const sl_submission submission = {.partitions = "a", .per_node = "gres:gpu:1", .nodes = 1, .user = user};
    return sl_controller_decide(c, (const char *const *)p->text, p->count, &submission, &d, err);
}

static mdot_status submit_small(sl_controller *c, size_t operators, mdot_error *err)
{
    parcel p;
    make_parcel(operators, &p);
    mdot_status status = submit_parcel(c, &p, 0, err);
    free_parcel(&p);
    return status;
}

/* A prediction that takes longer than a caller waits would occupy the thread; neighbours would get none. */
static void jobs_that_take_too_long_are_refused_before_the_prediction(void **state)
{
    (void)state;
    sl_controller *c = make_controller("UserMilliseconds=0\nMaxMilliseconds=1000\nMaxJobBytes=786432");
    mdot_error err = {0};
    sl_controller_set_cluster(c, make_cluster(now_s()));
    assert_int_equal(submit_small(c, 600, &err), MDOT_OK);
    ms_between_looks = 300; /* for 600 operators: half a millisecond each */
    for (int i = 0; i < 9; i++) assert_int_equal(submit_small(c, 600, &err), MDOT_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(submit_small(c, 6000, &err), MDOT_OUT_OF_RANGE);
        expect_contains(err.message, "6000 operators in 1 places take too long; MaxMilliseconds suffices for");
        assert_int_equal(submit_small(c, 100, &err), MDOT_OK);
    }
    ms_between_looks = 0;
    sl_controller_destroy(c);
}

/* Accounts that share an attack, each until its own processor time is used up: jobs of 700 operators, which are
 * answered, and of 6,000, which take too long. On a slow machine an account's first job uses it up, so accounts begin
 * with different ones. */
typedef struct attack {
    sl_controller *controller;
    const parcel *jobs; /* of both sizes */
    uint32_t first_user;
    int answers, refusals;
} attack;

enum { ATTACKERS = 4, ACCOUNTS = 3 };

static void *attack_in_turns(void *data)
{
    attack *a = data;
    bool is_used_up[ACCOUNTS] = {false};
    for (int i = 0, left = ACCOUNTS; left > 0 && i < 5000; i++) {
        mdot_error err = {0};
        int account = i % ACCOUNTS;
        if (is_used_up[account]) continue;
        mdot_status status = submit_parcel(a->controller, &a->jobs[(i / ACCOUNTS + account) % 2],
                                           a->first_user + (uint32_t)account, &err);
        is_used_up[account] = status == MDOT_OUT_OF_RANGE && strstr(err.message, "UserMilliseconds=5") != NULL;
        left -= is_used_up[account];
        a->answers += status == MDOT_OK;
        a->refusals += status == MDOT_OUT_OF_RANGE && strstr(err.message, "6000 operators") != NULL;
    }
    for (int i = 0; i < ACCOUNTS; i++)
        if (!is_used_up[i]) a->answers = 0;
    return NULL;
}

static void neighbours_of_a_shared_attack_keep_their_predictions(void **state)
{
    (void)state;
    sl_controller *c = make_controller("UserMilliseconds=5\nMaxMilliseconds=1000\nMaxJobBytes=786432");
    sl_controller_set_cluster(c, make_cluster(now_s()));
    parcel jobs[2], teaching;
    attack attacks[ATTACKERS];
    int refusals = 0;
    pthread_t threads[ATTACKERS];
    make_parcel(700, &jobs[0]);
    make_parcel(6000, &jobs[1]);
    make_parcel(600, &teaching);
    ms_between_looks = 400; /* two thirds of a millisecond for an operator, as on a slow machine */
    for (uint32_t i = 0; i < 9; i++) assert_int_equal(submit_parcel(c, &teaching, 900 + i, NULL), MDOT_OK);
    ms_between_looks = 0;
    for (uint32_t i = 0; i < ATTACKERS; i++) {
        attacks[i] = (attack){.controller = c, .jobs = jobs, .first_user = 100 + ACCOUNTS * i};
        assert_int_equal(pthread_create(&threads[i], NULL, attack_in_turns, &attacks[i]), 0);
    }
    for (int i = 0; i < 40; i++) {
        sl_decision d;
        mdot_error err = {0};
        if (submit_job(c, "MDOT_SETTINGS=steps=1000", &d, &err) != MDOT_OK) fail_msg("%s", err.message);
    }
    for (int i = 0; i < ATTACKERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(attacks[i].answers > 0);
        refusals += attacks[i].refusals;
    }
    assert_true(refusals > 0);
    for (int i = 0; i < 2; i++) free_parcel(&jobs[i]);
    free_parcel(&teaching);
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

/* The file system answers only after the submission's decision. A plugin waiting for it would hang. */
static void submissions_go_on_while_a_file_system_does_not_answer(void **state)
{
    (void)state;
    sl_controller *c = make_controller("");
    pthread_t thread;
    void *status;
    sl_decision d;
    atomic_store(&is_slow, true);
    assert_int_equal(pthread_create(&thread, NULL, refresh_slowly, c), 0);
    while (!atomic_load(&is_asleep)) usleep(1000);
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000", &d, NULL), MDOT_OK);
    atomic_store(&is_slow, false);
    assert_int_equal(pthread_join(thread, &status), 0);
    assert_int_equal((size_t)status, MDOT_OK);
    sl_controller_destroy(c);
}

static void *submit_often(void *controller)
{
    size_t answers = 0;
    for (int i = 0; i < 50; i++) {
        sl_decision d;
        bool is_new;
        if (i % 10 == 0) assert_int_equal(sl_controller_refresh(controller, &is_new, NULL), MDOT_OK);
        answers += submit_job(controller, "MDOT_SETTINGS=steps=1000", &d, NULL) == MDOT_OK && d.total_s > 0;
    }
    return (void *)answers;
}

static void threads_may_submit_concurrently(void **state)
{
    (void)state;
    sl_controller *c = make_controller("");
    pthread_t threads[4];
    void *answers[4];
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&threads[i], NULL, submit_often, c), 0);
    write_site(MDOT_SHIPPED_PREDICTOR, "Margin=2");
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], &answers[i]), 0);
    for (int i = 0; i < 4; i++) assert_int_equal((size_t)answers[i], 50);
    sl_controller_destroy(c);
}

/* A thread's blocked signals, in bit order. */
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

/* slurmctld has signal threads, so the predicting thread takes none. */
static void signals_are_left_to_other_threads(void **state)
{
    (void)state;
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGCHLD, SIGALRM, SIGPIPE};
    sigset_t before, after;
    char requested[32];
    snprintf(requested, sizeof requested, "%d", (int)getpid());
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    sl_controller *c = make_controller("");
    sl_decision d;
    mdot_error err = {0};
    assert_int_equal(submit_job(c, "MDOT_SETTINGS=steps=1000", &d, &err), MDOT_OK);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        assert_int_equal(sigismember(&before, signals[i]), sigismember(&after, signals[i]));
    DIR *threads = opendir("/proc/self/task");
    assert_non_null(threads);
    int others = 0;
    for (const struct dirent *entry; (entry = readdir(threads)) != NULL;) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, requested) == 0) continue;
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
        cmocka_unit_test(jobs_that_take_too_long_are_refused_before_the_prediction),
        cmocka_unit_test(neighbours_of_a_shared_attack_keep_their_predictions),
        cmocka_unit_test(submissions_wait_no_longer_than_the_configured_limit),
        cmocka_unit_test(threads_may_submit_concurrently),
        cmocka_unit_test(submissions_without_memory_are_refused),
        cmocka_unit_test(costly_jobs_are_charged_to_their_user),
        cmocka_unit_test(an_abandoned_prediction_leaves_the_next_one_intact),
        cmocka_unit_test(inputs_stay_until_an_abandoned_prediction_ends),
        cmocka_unit_test(submissions_go_on_while_a_file_system_does_not_answer),
        cmocka_unit_test(signals_are_left_to_other_threads),
    };
    return cmocka_run_group_tests(tests, controller_set_up, controller_tear_down);
}
