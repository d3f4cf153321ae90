/* controller.c — see controller.h. */
#include "integrations/slurm/controller.h"

#include "integrations/slurm/parcel.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* Identifies a version of a file, so that a replaced or rewritten file is recognised. */
typedef struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
} stamp;

/* A file that is read again when it changes. The stamp is that of the last attempt, successful or not. */
typedef struct watched {
    char path[SL_PATH_BYTES]; /* may be empty */
    stamp seen;
} watched;

/* Task of the predicting thread. The thread owns it from BUSY until DONE, or until IDLE if the caller has stopped
 * waiting. */
typedef enum task_state { TASK_IDLE, TASK_ASKED, TASK_BUSY, TASK_DONE } task_state;
typedef struct task {
    task_state state;
    bool is_abandoned; /* the caller has continued without an answer */
    sl_parcel parcel;  /* only its job is used; its texts are ignored */
    sl_request request;
    sl_submission submission; /* copies of the caller's texts */
    sl_decision decision;
    mdot_status status;
    mdot_error error;
} task;

struct sl_controller {
    pthread_mutex_t turn;  /* held by a caller, so that callers take turns */
    pthread_mutex_t mutex; /* protects all fields below; fields that the thread reads stay constant while it is BUSY */
    pthread_cond_t requested, done;
    pthread_t thread;
    bool has_thread, ends;
    task task;
    watched site_file, predictor_file, calibration_file;
    bool was_tried; /* the files have been read, or tried, once */
    bool answers;   /* the files were read, so that predictions are possible */
    sl_site site;
    mdot_predictor *predictor;
    mdot_calibration *calibration; /* may be NULL */
    mdot_context *context;
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
    pthread_mutex_init(&c->turn, NULL);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->requested, NULL);
    pthread_cond_init(&c->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return c;
}

static void empty_task(task *t)
{
    const char *const texts[] = {t->submission.partitions, t->submission.default_partition, t->submission.per_job,
                                 t->submission.per_node, t->submission.per_task};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) free((void *)(uintptr_t)texts[i]);
    sl_parcel_close(&t->parcel);
    *t = (task){.state = TASK_IDLE};
}

static void forget_files(sl_controller *c)
{
    mdot_calibration_destroy(c->calibration);
    mdot_context_destroy(c->context);
    mdot_predictor_close(c->predictor);
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
    forget_files(c);
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->requested);
    pthread_mutex_destroy(&c->mutex);
    pthread_mutex_destroy(&c->turn);
    free(c);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

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

/* A calibration of another predictor is refused, because it would correct errors that this predictor does not make. */
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

static mdot_status read_again(sl_controller *c, mdot_error *err)
{
    sl_site site;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_calibration *calibration = NULL;
    c->was_tried = true;
    watch(&c->site_file, c->site_file.path);
    watch(&c->predictor_file, "");
    watch(&c->calibration_file, "");
    mdot_status status = sl_site_read(c->site_file.path, &site, err);
    if (status != MDOT_OK) return status;
    watch(&c->predictor_file, site.predictor);
    watch(&c->calibration_file, site.calibration);
    status = open_predictor(site.predictor, &predictor, &context, err);
    if (status == MDOT_OK && site.calibration[0] != '\0')
        status = open_calibration(site.calibration, predictor, &calibration, err);
    if (status != MDOT_OK) {
        mdot_context_destroy(context);
        mdot_predictor_close(predictor);
        return status;
    }
    forget_files(c);
    c->site = site;
    c->calibration = calibration;
    c->predictor = predictor;
    c->context = context;
    c->answers = true;
    return MDOT_OK;
}

mdot_status sl_controller_refresh(sl_controller *c, bool *out_is_new, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    pthread_mutex_lock(&c->mutex);
    *out_is_new = false;
    bool is_free = c->task.state != TASK_BUSY; /* otherwise the next submission reads them */
    if (is_free && (!c->was_tried || has_changed(&c->site_file) || has_changed(&c->predictor_file) ||
                    has_changed(&c->calibration_file))) {
        status = read_again(c, err);
        *out_is_new = status == MDOT_OK;
    }
    pthread_mutex_unlock(&c->mutex);
    return status;
}

/* ---- Deciding: the predicting thread ----------------------------------------------------------------------------- */

static mdot_status answer(const sl_controller *c, task *t)
{
    mdot_job *job = NULL;
    sl_oracle oracle = {c->context, c->calibration};
    mdot_status status = mdot_job_parse(t->parcel.job, t->parcel.job_bytes, &job, &t->error);
    if (status == MDOT_OK)
        status = sl_decide(&c->site, &oracle, job, &t->request, &t->submission, &t->decision, &t->error);
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
        t->state = TASK_BUSY;
        pthread_mutex_unlock(&c->mutex);
        t->status = answer(c, t);
        pthread_mutex_lock(&c->mutex);
        if (t->is_abandoned)
            empty_task(t);
        else
            t->state = TASK_DONE;
        pthread_cond_signal(&c->done);
    }
    pthread_mutex_unlock(&c->mutex);
    return NULL;
}

/* Starts the thread at the first request, because slurmctld forks before that. All signals stay with slurmctld's own
 * threads. */
static mdot_status start_thread(sl_controller *c, mdot_error *err)
{
    sigset_t all, before;
    if (c->has_thread) return MDOT_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
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

/* Makes the task from the environment and `submission`. The caller empties it, also after a failure. */
static mdot_status make_task(const sl_controller *c, const char *const *environment, size_t count,
                             const sl_submission *submission, task *t, mdot_error *err)
{
    mdot_status status = sl_parcel_open(environment, count, c->site.most_job_bytes, &t->parcel, err);
    if (status != MDOT_OK) return status;
    if (t->parcel.problem != NULL) return repeat_problem(t->parcel.problem, err);
    if (t->parcel.job == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the request has no job");
    status = sl_request_parse(t->parcel.settings == NULL ? "" : t->parcel.settings, &t->request, err);
    if (status != MDOT_OK) return status;
    t->submission = (sl_submission){.nodes = submission->nodes, .tasks = submission->tasks};
    bool is_copied = copy(submission->partitions, &t->submission.partitions) &&
                     copy(submission->default_partition, &t->submission.default_partition) &&
                     copy(submission->per_job, &t->submission.per_job) &&
                     copy(submission->per_node, &t->submission.per_node) &&
                     copy(submission->per_task, &t->submission.per_task);
    return is_copied ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory");
}

/* Waits until the task is done or the site's patience is over. */
static mdot_status wait_for_task(sl_controller *c, sl_decision *out_decision, mdot_error *err)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (int64_t)(1e6 * c->site.patience_ms);
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    int late = 0;
    while (c->task.state != TASK_DONE && late == 0) late = pthread_cond_timedwait(&c->done, &c->mutex, &until);
    if (c->task.state != TASK_DONE) {
        c->task.is_abandoned = true;
        return mdot_fail(err, MDOT_UNSUPPORTED, "the prediction took longer than MaxMilliseconds=%g",
                         c->site.patience_ms);
    }
    mdot_status status = c->task.status;
    if (status == MDOT_OK)
        *out_decision = c->task.decision;
    else
        mdot_fail(err, status, "%s", c->task.error.message);
    empty_task(&c->task);
    return status;
}

static mdot_status decide(sl_controller *c, const char *const *environment, size_t count,
                          const sl_submission *submission, sl_decision *out_decision, mdot_error *err)
{
    task next = {.state = TASK_ASKED};
    if (!c->answers) return mdot_fail(err, MDOT_IO, "no predictor is loaded; see earlier lines of the log");
    if (c->task.state != TASK_IDLE)
        return mdot_fail(err, MDOT_UNSUPPORTED, "the prediction of the preceding job is still running");
    mdot_status status = start_thread(c, err);
    if (status == MDOT_OK) status = make_task(c, environment, count, submission, &next, err);
    if (status != MDOT_OK) {
        empty_task(&next);
        return status;
    }
    c->task = next;
    pthread_cond_signal(&c->requested);
    return wait_for_task(c, out_decision, err);
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
