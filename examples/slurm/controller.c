/* controller.c — see controller.h. */
#include "examples/slurm/controller.h"

#include "examples/slurm/parcel.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* By which a file that was replaced or written to is told. */
typedef struct stamp {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
} stamp;

/* What the predicting thread works on; its own from the moment that it is BUSY until it is DONE or, where nobody waits
 * any more, IDLE again. */
typedef enum task_state { TASK_IDLE, TASK_ASKED, TASK_BUSY, TASK_DONE } task_state;
typedef struct task {
    task_state state;
    bool is_abandoned; /* whoever asked has gone on without an answer */
    sl_parcel parcel;  /* its job; the texts are not read */
    sl_request request;
    sl_ask ask; /* of texts of its own */
    sl_decision decision;
    mdot_status status;
    mdot_error error;
} task;

struct sl_controller {
    pthread_mutex_t turn;  /* held by who asks: one after the other */
    pthread_mutex_t mutex; /* over all that follows; what the thread reads of it changes only while it is not BUSY */
    pthread_cond_t asked, done;
    pthread_t thread;
    bool has_thread, ends;
    task task;
    char path[SL_PATH_BYTES];
    bool was_tried; /* the stamps are those of the last attempt, whatever came of it */
    stamp of_site, of_predictor;
    char tried_predictor[SL_PATH_BYTES]; /* that of_predictor is of; empty where mdot.conf could not be read */
    bool answers;                        /* the rest is there */
    sl_site site;
    mdot_predictor *predictor;
    mdot_context *context;
};

sl_controller *sl_controller_create(const char *site_path)
{
    sl_controller *c = calloc(1, sizeof *c);
    pthread_condattr_t monotonic;
    if (c == NULL || strlen(site_path) >= sizeof c->path) {
        free(c);
        return NULL;
    }
    strcpy(c->path, site_path);
    pthread_condattr_init(&monotonic); /* none of these can fail on Linux */
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&c->turn, NULL);
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->asked, NULL);
    pthread_cond_init(&c->done, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return c;
}

static void empty_task(task *t)
{
    const char *const texts[] = {t->ask.partitions, t->ask.default_partition, t->ask.per_job, t->ask.per_node,
                                 t->ask.per_task};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) free((void *)(uintptr_t)texts[i]);
    sl_parcel_close(&t->parcel);
    *t = (task){.state = TASK_IDLE};
}

void sl_controller_destroy(sl_controller *c)
{
    if (c == NULL) return;
    pthread_mutex_lock(&c->mutex);
    c->ends = true;
    pthread_cond_signal(&c->asked);
    pthread_mutex_unlock(&c->mutex);
    if (c->has_thread) pthread_join(c->thread, NULL);
    empty_task(&c->task);
    mdot_context_destroy(c->context);
    mdot_predictor_close(c->predictor);
    pthread_cond_destroy(&c->done);
    pthread_cond_destroy(&c->asked);
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

static bool is_same(const stamp *a, const stamp *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

/* On the CPU, whatever cards the controller's machine has: a submission waits for nobody else's kernels. */
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

static mdot_status read_again(sl_controller *c, mdot_error *err)
{
    sl_site site;
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    c->was_tried = true;
    c->of_site = stamp_of(c->path);
    c->tried_predictor[0] = '\0';
    c->of_predictor = (stamp){0};
    mdot_status status = sl_site_read(c->path, &site, err);
    if (status != MDOT_OK) return status;
    strcpy(c->tried_predictor, site.predictor);
    c->of_predictor = stamp_of(c->tried_predictor);
    status = open_predictor(site.predictor, &predictor, &context, err);
    if (status != MDOT_OK) return status;
    mdot_context_destroy(c->context);
    mdot_predictor_close(c->predictor);
    c->site = site;
    c->predictor = predictor;
    c->context = context;
    c->answers = true;
    return MDOT_OK;
}

mdot_status sl_controller_refresh(sl_controller *c, bool *out_is_new, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    pthread_mutex_lock(&c->mutex);
    stamp site = stamp_of(c->path), predictor = stamp_of(c->tried_predictor);
    *out_is_new = false;
    bool is_free = c->task.state != TASK_BUSY; /* else the next submission reads them */
    if (is_free && (!c->was_tried || !is_same(&site, &c->of_site) || !is_same(&predictor, &c->of_predictor))) {
        status = read_again(c, err);
        *out_is_new = status == MDOT_OK;
    }
    pthread_mutex_unlock(&c->mutex);
    return status;
}

/* ---- Deciding: in the thread ------------------------------------------------------------------------------------- */

static mdot_status answer(const sl_controller *c, task *t)
{
    mdot_job *job = NULL;
    mdot_status status = mdot_job_parse(t->parcel.job, t->parcel.job_bytes, &job, &t->error);
    if (status == MDOT_OK) status = sl_decide(&c->site, c->context, job, &t->request, &t->ask, &t->decision, &t->error);
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
            pthread_cond_wait(&c->asked, &c->mutex);
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

/* At the first request: slurmctld forks before, not after. Its signals are for its own threads. */
static mdot_status start_thread(sl_controller *c, mdot_error *err)
{
    sigset_t all, before;
    if (c->has_thread) return MDOT_OK;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    c->has_thread = pthread_create(&c->thread, NULL, predict, c) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return c->has_thread ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, "no thread to predict in");
}

/* ---- Deciding: who asks ------------------------------------------------------------------------------------------ */

/* What the submit side says went wrong there, for the log: in one line, cut, nothing in it that a terminal obeys. */
static mdot_status repeat_problem(const char *problem, mdot_error *err)
{
    char line[256];
    snprintf(line, sizeof line, "%s", problem);
    for (char *c = line; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || (unsigned char)*c > '~') *c = '?';
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the submit side says: %s", line);
}

/* A text of one's own; NULL stays NULL. False without memory. */
static bool copy(const char *text, const char **out_copy)
{
    *out_copy = text == NULL ? NULL : strdup(text);
    return text == NULL || *out_copy != NULL;
}

/* The task that the environment and `ask` make; the caller's to empty, on failure too. */
static mdot_status make_task(const sl_controller *c, const char *const *environment, size_t count, const sl_ask *ask,
                             task *t, mdot_error *err)
{
    mdot_status status = sl_parcel_open(environment, count, c->site.most_job_bytes, &t->parcel, err);
    if (status != MDOT_OK) return status;
    if (t->parcel.problem != NULL) return repeat_problem(t->parcel.problem, err);
    if (t->parcel.job == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "no job came with it");
    status = sl_request_parse(t->parcel.settings == NULL ? "" : t->parcel.settings, &t->request, err);
    if (status != MDOT_OK) return status;
    t->ask = (sl_ask){.nodes = ask->nodes, .tasks = ask->tasks};
    bool is_copied = copy(ask->partitions, &t->ask.partitions) &&
                     copy(ask->default_partition, &t->ask.default_partition) && copy(ask->per_job, &t->ask.per_job) &&
                     copy(ask->per_node, &t->ask.per_node) && copy(ask->per_task, &t->ask.per_task);
    return is_copied ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory");
}

/* Until the task is done, or for as long as the site has patience. */
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
        return mdot_fail(err, MDOT_UNSUPPORTED, "predicting took longer than MaxMilliseconds=%g", c->site.patience_ms);
    }
    mdot_status status = c->task.status;
    if (status == MDOT_OK)
        *out_decision = c->task.decision;
    else
        mdot_fail(err, status, "%s", c->task.error.message);
    empty_task(&c->task);
    return status;
}

static mdot_status decide(sl_controller *c, const char *const *environment, size_t count, const sl_ask *ask,
                          sl_decision *out_decision, mdot_error *err)
{
    task next = {.state = TASK_ASKED};
    if (!c->answers) return mdot_fail(err, MDOT_IO, "there is no predictor: see the log's earlier lines");
    if (c->task.state != TASK_IDLE) return mdot_fail(err, MDOT_UNSUPPORTED, "the job before is still being predicted");
    mdot_status status = start_thread(c, err);
    if (status == MDOT_OK) status = make_task(c, environment, count, ask, &next, err);
    if (status != MDOT_OK) {
        empty_task(&next);
        return status;
    }
    c->task = next;
    pthread_cond_signal(&c->asked);
    return wait_for_task(c, out_decision, err);
}

mdot_status sl_controller_decide(sl_controller *c, const char *const *environment, size_t count, const sl_ask *ask,
                                 sl_decision *out_decision, mdot_error *err)
{
    pthread_mutex_lock(&c->turn);
    pthread_mutex_lock(&c->mutex);
    mdot_status status = decide(c, environment, count, ask, out_decision, err);
    pthread_mutex_unlock(&c->mutex);
    pthread_mutex_unlock(&c->turn);
    return status;
}
