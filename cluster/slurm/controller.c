#include "slurm/controller.h"

#include "slurm/request.h"
#include "slurm/site.h"
#include "slurm/user_records.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Identifies a file version: recognises replaced and rewritten files. */
typedef struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
} stamp;

/* A file, read again when it changes. The stamp is from the last attempt, successful or not. */
typedef struct watched {
    char path[SL_PATH_BYTES]; /* may be empty */
    stamp seen;
} watched;

/* Task of the predicting thread. The thread owns it from ASKED until DONE, or until IDLE if the caller has stopped
 * waiting. */
typedef enum task_state { TASK_IDLE, TASK_ASKED, TASK_DONE } task_state;
typedef struct task {
    task_state state;
    bool is_abandoned; /* the caller has continued without an answer */
    sl_parcel parcel;  /* only the job is used; the texts are ignored */
    sl_request request;
    sl_submission submission; /* copies of the caller's texts */
    mdot_history_estimate history;
    sl_decision decision;
    mdot_status status;
    mdot_error error;
} task;

/* All data read from the site's files. */
typedef struct loaded {
    sl_site site;
    mdot_predictor *predictor;
    mdot_calibration *calibration; /* may be NULL */
    mdot_history_trees *trees;     /* may be NULL */
    mdot_context *context;
} loaded;

struct sl_controller {
    pthread_mutex_t files; /* held while files are read; protects the watched files */
    watched site_file, predictor_file, calibration_file, trees_file;
    bool was_tried;        /* the files have been read, or tried, once */
    pthread_mutex_t turn;  /* held by a caller: callers take turns */
    pthread_mutex_t mutex; /* protects all fields below; fields read by the thread stay constant while it works */
    pthread_cond_t requested, done;
    pthread_t thread;
    bool has_thread, ends;
    task task;
    bool answers; /* the files were read: predictions are possible */
    loaded in_use;
    sl_cluster *cluster; /* NULL: unknown */
    sl_outcomes *outcomes;
    sl_durations *durations;
    sl_budget budget;
    double ms_per_work; /* processor time of recent predictions, per operator and place */
};

sl_controller *sl_controller_create(const char *site_path)
{
    sl_controller *c = calloc(1, sizeof *c);
    pthread_condattr_t monotonic;
    if (c == NULL || strlen(site_path) >= sizeof c->site_file.path) {
        free(c);
        return NULL;
    }
    strcpy(c->site_file.path, site_path);
    pthread_condattr_init(&monotonic); /* these calls always succeed on Linux */
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    c->outcomes = sl_outcomes_create();
    c->durations = sl_durations_create();
    if (c->outcomes == NULL || c->durations == NULL) {
        sl_outcomes_destroy(c->outcomes);
        sl_durations_destroy(c->durations);
        free(c);
        return NULL;
    }
    c->ms_per_work = 5e-3; /* a slow guess, for the first prediction */
    pthread_mutex_init(&c->files, NULL);
    pthread_mutex_init(&c->turn, NULL);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->requested, NULL);
    pthread_cond_init(&c->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return c;
}

static void empty_task(task *t)
{
    const char *const texts[] = {
        t->submission.partitions, t->submission.default_partition, t->submission.per_job, t->submission.per_node,
        t->submission.per_socket, t->submission.per_task,          t->submission.account, t->submission.qos};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) free((void *)(uintptr_t)texts[i]);
    sl_parcel_close(&t->parcel);
    *t = (task){.state = TASK_IDLE};
}

static void forget(loaded *files)
{
    mdot_calibration_destroy(files->calibration);
    mdot_history_trees_close(files->trees);
    mdot_context_destroy(files->context);
    mdot_predictor_close(files->predictor);
}

void sl_controller_destroy(sl_controller *c)
{
    if (c == NULL) return;
    pthread_mutex_lock(&c->mutex);
    c->ends = true;
    pthread_cond_signal(&c->requested);
    pthread_mutex_unlock(&c->mutex);
    if (c->has_thread) pthread_join(c->thread, NULL);
    empty_task(&c->task);
    forget(&c->in_use);
    sl_cluster_destroy(c->cluster);
    sl_outcomes_destroy(c->outcomes);
    sl_durations_destroy(c->durations);
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->requested);
    pthread_mutex_destroy(&c->mutex);
    pthread_mutex_destroy(&c->turn);
    pthread_mutex_destroy(&c->files);
    free(c);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static stamp stamp_of(const char *path)
{
    struct stat s;
    if (path[0] == '\0' || stat(path, &s) != 0) return (stamp){0};
    return (stamp){s.st_dev, s.st_ino, s.st_size, s.st_mtim};
}

static void watch(watched *file, const char *path)
{
    memmove(file->path, path, strlen(path) + 1);
    file->seen = stamp_of(path);
}

static bool has_changed(const watched *file)
{
    const stamp *seen = &file->seen, now = stamp_of(file->path);
    return now.device != seen->device || now.inode != seen->inode || now.size != seen->size ||
           now.changed.tv_sec != seen->changed.tv_sec || now.changed.tv_nsec != seen->changed.tv_nsec;
}

/* Opens the predictor on the CPU even if the controller's machine has GPUs, so that a submission never waits for
 * other programs' kernels. */
static mdot_status open_predictor(const char *path, mdot_predictor **out_predictor, mdot_context **out_context,
                                  mdot_error *err)
{
    mdot_open_options options = {.struct_size = sizeof options, .device = "cpu"};
    mdot_predictor *predictor = NULL;
    mdot_status status = mdot_predictor_open(path, &options, &predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, out_context, err);
    if (status == MDOT_OK)
        *out_predictor = predictor;
    else
        mdot_predictor_close(predictor);
    return status;
}

/* Another predictor's calibration is refused, because it would correct errors not made by this predictor. */
static mdot_status open_calibration(const char *path, const mdot_predictor *predictor,
                                    mdot_calibration **out_calibration, mdot_error *err)
{
    mdot_predictor_info answers = MDOT_INIT(mdot_predictor_info);
    mdot_calibration_info made_with = MDOT_INIT(mdot_calibration_info);
    mdot_calibration *calibration = NULL;
    mdot_status status = mdot_calibration_load(path, &calibration, err);
    if (status != MDOT_OK) return status;
    mdot_predictor_get_info(predictor, &answers);
    mdot_calibration_get_info(calibration, &made_with);
    if (strcmp(answers.name, made_with.predictor) != 0) {
        status = mdot_fail(err, MDOT_INCOMPATIBLE, "%s was made with predictor %s, not %s", path, made_with.predictor,
                           answers.name);
        mdot_calibration_destroy(calibration);
        return status;
    }
    *out_calibration = calibration;
    return MDOT_OK;
}

/* Reads all files into *out. The caller holds c->files only: submissions go on meanwhile. */
static mdot_status read_again(sl_controller *c, loaded *out, mdot_error *err)
{
    loaded successor = {.predictor = NULL};
    c->was_tried = true;
    watch(&c->site_file, c->site_file.path);
    watch(&c->predictor_file, "");
    watch(&c->calibration_file, "");
    watch(&c->trees_file, "");
    mdot_status status = sl_site_read(c->site_file.path, &successor.site, err);
    if (status == MDOT_OK) status = sl_check_trusted(c->site_file.path, err);
    if (status != MDOT_OK) return status;
    watch(&c->predictor_file, successor.site.predictor);
    watch(&c->calibration_file, successor.site.calibration);
    watch(&c->trees_file, successor.site.trees);
    status = sl_check_trusted(successor.site.predictor, err);
    if (status == MDOT_OK)
        status = open_predictor(successor.site.predictor, &successor.predictor, &successor.context, err);
    if (status == MDOT_OK && successor.site.calibration[0] != '\0') {
        status = sl_check_trusted(successor.site.calibration, err);
        if (status == MDOT_OK)
            status = open_calibration(successor.site.calibration, successor.predictor, &successor.calibration, err);
    }
    if (status == MDOT_OK && successor.site.trees[0] != '\0') {
        status = sl_check_trusted(successor.site.trees, err);
        if (status == MDOT_OK) status = mdot_history_trees_open(successor.site.trees, &successor.trees, err);
    }
    if (status == MDOT_OK)
        *out = successor;
    else
        forget(&successor);
    return status;
}

/* Waits until the predicting thread is idle, because it reads c->in_use and c->cluster without the lock while it works.
 * The caller holds c->mutex. */
static void wait_for_thread(sl_controller *c)
{
    while (c->task.state == TASK_ASKED) pthread_cond_wait(&c->done, &c->mutex);
}

mdot_status sl_controller_refresh(sl_controller *c, bool *out_is_new, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    loaded successor;
    *out_is_new = false;
    pthread_mutex_lock(&c->files);
    if (!c->was_tried || has_changed(&c->site_file) || has_changed(&c->predictor_file) ||
        has_changed(&c->calibration_file) || has_changed(&c->trees_file)) {
        status = read_again(c, &successor, err);
        if (status == MDOT_OK) {
            pthread_mutex_lock(&c->mutex);
            wait_for_thread(c);
            loaded before = c->in_use;
            c->in_use = successor;
            c->answers = true;
            pthread_mutex_unlock(&c->mutex);
            forget(&before);
            *out_is_new = true;
        }
    }
    pthread_mutex_unlock(&c->files);
    return status;
}

void sl_controller_set_cluster(sl_controller *c, sl_cluster *cluster)
{
    pthread_mutex_lock(&c->mutex);
    wait_for_thread(c);
    sl_cluster_destroy(c->cluster);
    c->cluster = cluster;
    pthread_mutex_unlock(&c->mutex);
}

uint32_t sl_controller_limit_kept(sl_controller *c, const sl_submission *submission, uint32_t set_minutes)
{
    sl_submission s = *submission;
    pthread_mutex_lock(&c->mutex);
    s.cluster = c->cluster;
    uint32_t kept = c->answers ? sl_limit_kept(&c->in_use.site, &s, s.partitions, set_minutes) : set_minutes;
    pthread_mutex_unlock(&c->mutex);
    return kept;
}

uint32_t sl_controller_binding(sl_controller *c, const sl_submission *submission)
{
    sl_submission s = *submission;
    pthread_mutex_lock(&c->mutex);
    s.cluster = c->cluster;
    uint32_t binding = s.cluster == NULL ? s.own_minutes : sl_binding_minutes(&s, s.partitions, 0);
    pthread_mutex_unlock(&c->mutex);
    return binding;
}

sl_outcomes *sl_controller_outcomes(sl_controller *c) { return c->outcomes; }

void sl_controller_outcomes_path(sl_controller *c, char out_path[SL_PATH_BYTES])
{
    pthread_mutex_lock(&c->mutex);
    memcpy(out_path, c->in_use.site.outcomes, SL_PATH_BYTES);
    pthread_mutex_unlock(&c->mutex);
}

sl_durations *sl_controller_durations(sl_controller *c) { return c->durations; }

void sl_controller_history_path(sl_controller *c, char out_path[SL_PATH_BYTES])
{
    pthread_mutex_lock(&c->mutex);
    memcpy(out_path, c->in_use.site.history, SL_PATH_BYTES);
    pthread_mutex_unlock(&c->mutex);
}

/* ---- Deciding: the predicting thread ----------------------------------------------------------------------------- */

/* Work that takes half of a caller's patience. A prediction that outlasts it would occupy the thread, and other users'
 * jobs would get none. */
static size_t bearable_work(const sl_controller *c)
{
    double work = ceil(c->in_use.site.patience_ms / 2 / c->ms_per_work);
    return (size_t)fmin(work, 1e9); /* 0: nobody waits */
}

/* Small jobs teach nothing, because most of their time is spent elsewhere. */
static void learn_speed(sl_controller *c, size_t work, double taken_ms)
{
    enum { LEAST_WORK = 500 };
    if (work < LEAST_WORK) return;
    double change = taken_ms / (double)work - c->ms_per_work;
    c->ms_per_work += change > 0 ? change / 2 : change / 10;
}

static double processor_ms(void) { return 1e3 * seconds_of(CLOCK_THREAD_CPUTIME_ID); }

static mdot_status answer(const sl_controller *c, task *t, size_t most_work, double *out_decision_ms)
{
    mdot_job *job = NULL;
    sl_oracle oracle = {c->in_use.context, c->in_use.calibration, most_work};
    t->submission.history = t->history.weight > 0 ? &t->history : NULL;
    mdot_status status = mdot_job_parse(t->parcel.job, t->parcel.job_bytes, &job, &t->error);
    double begun_ms = processor_ms();
    if (status == MDOT_OK)
        status = sl_decide(&c->in_use.site, &oracle, job, &t->request, &t->submission, &t->decision, &t->error);
    *out_decision_ms = processor_ms() - begun_ms;
    mdot_job_destroy(job);
    return status;
}

static void *predict(void *controller)
{
    sl_controller *c = controller;
    task *t = &c->task;
    pthread_mutex_lock(&c->mutex);
    while (!c->ends) {
        if (t->state != TASK_ASKED) {
            pthread_cond_wait(&c->requested, &c->mutex);
            continue;
        }
        size_t most_work = bearable_work(c);
        pthread_mutex_unlock(&c->mutex);
        double begun_ms = processor_ms(), decision_ms;
        t->status = answer(c, t, most_work, &decision_ms);
        double taken_ms = processor_ms() - begun_ms;
        pthread_mutex_lock(&c->mutex);
        if (t->status == MDOT_OK) learn_speed(c, t->decision.work, decision_ms);
        sl_budget_charge(&c->budget, t->submission.user, taken_ms, c->in_use.site.user_ms, seconds_of(CLOCK_MONOTONIC));
        if (t->is_abandoned)
            empty_task(t);
        else
            t->state = TASK_DONE;
        pthread_cond_broadcast(&c->done);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* Starts the thread at the first request, because slurmctld forks before that. All signals stay with slurmctld's own
 * threads. */
static mdot_status start_thread(sl_controller *c, mdot_error *err)
{
    sigset_t entries, before;
    if (c->has_thread) return MDOT_OK;
    sigfillset(&entries);
    pthread_sigmask(SIG_SETMASK, &entries, &before);
    c->has_thread = pthread_create(&c->thread, NULL, predict, c) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return c->has_thread ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, "cannot start the prediction thread");
}

/* ---- Deciding: the caller ---------------------------------------------------------------------------------------- */

/* Repeats the submit side's problem for the log: in one line, cut, and with control characters replaced. */
static mdot_status repeat_problem(const char *problem, mdot_error *err)
{
    char line[256];
    snprintf(line, sizeof line, "%s", problem);
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~') *c = '?';
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "error on the submit host: %s", line);
}

/* Copies a text; NULL stays NULL. False if memory ran out. */
static bool copy(const char *text, const char **out_copy)
{
    *out_copy = text == NULL ? NULL : strdup(text);
    return text == NULL || *out_copy != NULL;
}

/* Looks the job up in the history (some microseconds). The caller holds c->mutex. */
static void ask_history(const sl_controller *c, const sl_submission *submission, task *t)
{
    char user[SL_USER_BYTES];
    sl_gpus gpus = sl_gpus_of(submission);
    mdot_history_job job = sl_durations_job(submission, &gpus, floor(seconds_of(CLOCK_REALTIME)), user);
    if (sl_durations_ask(c->durations, &job, &t->history) && c->in_use.trees != NULL)
        mdot_history_trees_correct(c->in_use.trees, &job, &t->history);
}

/* Makes the task from the environment and `submission`. The caller empties it, also after a failure. */
static mdot_status make_task(const sl_controller *c, const char *const *environment, size_t count,
                             const sl_submission *submission, task *t, mdot_error *err)
{
    enum { MOST_AGE_S = 15 };
    mdot_status status = sl_parcel_open(environment, count, c->in_use.site.most_job_bytes, &t->parcel, err);
    if (status != MDOT_OK) return status;
    if (t->parcel.problem != NULL) return repeat_problem(t->parcel.problem, err);
    if (t->parcel.job == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the request has no job");
    status = sl_request_parse(t->parcel.settings == NULL ? "" : t->parcel.settings, &t->request, err);
    if (status != MDOT_OK) return status;
    t->submission = *submission;
    t->submission.partitions = t->submission.default_partition = NULL;
    t->submission.per_job = t->submission.per_node = t->submission.per_socket = t->submission.per_task = NULL;
    t->submission.account = t->submission.qos = NULL;
    t->submission.name = NULL; /* only the history needs it */
    ask_history(c, submission, t);
    t->submission.understatement =
        sl_outcomes_understatement(c->outcomes, submission->user, seconds_of(CLOCK_REALTIME));
    if (submission->cluster == NULL && c->cluster != NULL &&
        seconds_of(CLOCK_MONOTONIC) - c->cluster->read_s < MOST_AGE_S)
        t->submission.cluster = c->cluster; /* it stays as it is while the thread works */
    bool is_copied = copy(submission->partitions, &t->submission.partitions) &&
                     copy(submission->default_partition, &t->submission.default_partition) &&
                     copy(submission->per_job, &t->submission.per_job) &&
                     copy(submission->per_node, &t->submission.per_node) &&
                     copy(submission->per_socket, &t->submission.per_socket) &&
                     copy(submission->per_task, &t->submission.per_task) &&
                     copy(submission->account, &t->submission.account) && copy(submission->qos, &t->submission.qos);
    return is_copied ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
}

/* The end of the caller's patience. */
static struct timespec end_of_patience(const sl_controller *c)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (int64_t)(1e6 * c->in_use.site.patience_ms);
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    return until;
}

/* Waits until the task has this state or the caller's patience is over. */
static bool wait_for_state(sl_controller *c, task_state state, const struct timespec *until)
{
    int late = 0;
    while (c->task.state != state && late == 0) late = pthread_cond_timedwait(&c->done, &c->mutex, until);
    return c->task.state == state;
}

static mdot_status take_answer(sl_controller *c, sl_decision *out_decision, mdot_error *err)
{
    mdot_status status = c->task.status;
    if (status == MDOT_OK)
        *out_decision = c->task.decision;
    else
        mdot_fail(err, status, "%s", c->task.error.message);
    empty_task(&c->task);
    return status;
}

static mdot_status check_budget(const sl_controller *c, uint32_t user, mdot_error *err)
{
    double most_ms = c->in_use.site.user_ms;
    double taken_ms = sl_budget_taken_ms(&c->budget, user, most_ms, seconds_of(CLOCK_MONOTONIC));
    if (most_ms == 0 || taken_ms < most_ms) return MDOT_OK;
    return mdot_fail(err, MDOT_OUT_OF_RANGE, "the user's predictions took %.0f ms lately; UserMilliseconds=%g",
                     taken_ms, most_ms);
}

static mdot_status decide(sl_controller *c, const char *const *environment, size_t count,
                          const sl_submission *submission, sl_decision *out_decision, mdot_error *err)
{
    task successor = {.state = TASK_ASKED};
    if (!c->answers) return mdot_fail(err, MDOT_IO, "no predictor is loaded; see earlier lines of the log");
    struct timespec until = end_of_patience(c);
    mdot_status status = check_budget(c, submission->user, err);
    if (status == MDOT_OK) status = start_thread(c, err);
    if (status != MDOT_OK) return status;
    if (!wait_for_state(c, TASK_IDLE, &until)) /* the thread still works on an abandoned job */
        return mdot_fail(err, MDOT_UNSUPPORTED, "the prediction of the preceding job is still running");
    status = make_task(c, environment, count, submission, &successor, err);
    if (status != MDOT_OK) {
        empty_task(&successor);
        return status;
    }
    c->task = successor;
    pthread_cond_signal(&c->requested);
    if (wait_for_state(c, TASK_DONE, &until)) return take_answer(c, out_decision, err);
    c->task.is_abandoned = true;
    return mdot_fail(err, MDOT_UNSUPPORTED, "the prediction took longer than MaxMilliseconds=%g",
                     c->in_use.site.patience_ms);
}

mdot_status sl_controller_decide(sl_controller *c, const char *const *environment, size_t count,
                                 const sl_submission *submission, sl_decision *out_decision, mdot_error *err)
{
    pthread_mutex_lock(&c->turn);
    pthread_mutex_lock(&c->mutex);
    mdot_status status = decide(c, environment, count, submission, out_decision, err);
    pthread_mutex_unlock(&c->mutex);
    pthread_mutex_unlock(&c->turn);
    return status;
}
