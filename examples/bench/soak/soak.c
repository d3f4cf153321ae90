/* soak.c — a scheduler's life in a few minutes: threads that predict all along, artefacts that are replaced under
 * them, jobs that are loaded and freed; every answer has the bits of the first, and memory stays as it is.
 *
 *     soak PREDICTOR.mdot FOLDER PREDICTIONS ROUNDS JOB.onnx…
 *
 * In FOLDER, which is there, it keeps the artefact that it replaces and the jobs' files. PREDICTIONS are made by
 * THREADS threads; ROUNDS of ROUND_PAIRS pairs are timed after them. Exit status 1: an answer differed, memory grew,
 * or a call failed.
 *
 * Memory is looked at after each swap, when one artefact is open and every thread has its contexts of it: what malloc
 * has given out is then the same each time, up to what is left of a chunk that fits nearly, or something was kept.
 * Resident pages are as many as the most that lived at once needed, so the first swaps follow each other closely, and
 * no page may come after them.
 */
#include "mdot/mdotjob.h"

#include <inttypes.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, MAX_JOBS = 8, CONFIGURATIONS = 16, PREDICT_EVERY = 256, ROUND_PAIRS = 10000, PATH_BYTES = 4096 };
enum { FIRST_SWAPS = 64 };   /* without a pause, until all is in memory that will be */
enum { SLACK_BYTES = 4096 }; /* of what malloc has given out, over all swaps */

static const char *const gpus[] = {"A100", "H100", "V100", "T4"};

typedef struct soak {
    const char *artefact, *folder;
    int job_count;
    mdot_job *jobs[MAX_JOBS];
    mdot_configuration configurations[CONFIGURATIONS];
    mdot_prediction priced[MAX_JOBS][CONFIGURATIONS], predicted[MAX_JOBS][CONFIGURATIONS]; /* the first answers */
    _Atomic(mdot_predictor *) current;
    mdot_predictor *last;       /* the one before it, where nobody closed it */
    atomic_uint generation;     /* counts the swaps */
    atomic_uint taken[THREADS]; /* the last that a thread has contexts of */
    atomic_uint_fast64_t left, made, differing, failed;
    atomic_bool over;
} soak;

typedef struct worker {
    soak *soak;
    int number;
} worker;

static double now_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct memory {
    size_t given_bytes; /* by malloc, of all its arenas */
    long pages;         /* resident; 0 where there is no /proc */
} memory;

static memory memory_now(void)
{
    long total = 0, resident = 0;
    memory m = {.given_bytes = mallinfo2().uordblks};
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return m;
    if (fscanf(file, "%ld %ld", &total, &resident) == 2) m.pages = resident;
    fclose(file);
    return m;
}

static bool say(soak *s, mdot_status status, const mdot_error *err)
{
    if (status == MDOT_OK) return true;
    if (atomic_fetch_add(&s->failed, 1) == 0) fprintf(stderr, "soak: %s: %s\n", mdot_status_name(status), err->message);
    return false;
}

static bool same(const mdot_prediction *a, const mdot_prediction *b)
{
    return a->status == b->status && a->step_ms == b->step_ms && a->lower_ms == b->lower_ms &&
           a->upper_ms == b->upper_ms && a->peak_memory_bytes == b->peak_memory_bytes && a->warnings == b->warnings;
}

static void compare(soak *s, const mdot_prediction *got, const mdot_prediction *first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!same(&got[i], &first[i])) atomic_fetch_add(&s->differing, 1);
}

/* ---- A thread's own ---------------------------------------------------------------------------------------------- */

typedef struct own { /* of one generation of the artefact */
    mdot_context *context;
    mdot_encoding *encodings[MAX_JOBS];
    unsigned generation;
} own;

static void drop(own *o, int job_count)
{
    for (int j = 0; j < job_count; j++) mdot_encoding_destroy(o->encodings[j]);
    mdot_context_destroy(o->context);
    memset(o, 0, sizeof *o);
}

static bool make(soak *s, own *o)
{
    mdot_error err = {0};
    unsigned generation = atomic_load(&s->generation);
    bool fine = say(s, mdot_context_create(atomic_load(&s->current), &o->context, &err), &err);
    for (int j = 0; j < s->job_count && fine; j++)
        fine = say(s, mdot_encoding_create(o->context, s->jobs[j], &o->encodings[j], &err), &err);
    o->generation = generation;
    return fine;
}

/* All configurations of a job at once from its encoding, and now and then one by one from the job itself. */
static bool predict(soak *s, const own *o, int j, bool whole)
{
    mdot_error err = {0};
    mdot_prediction got[CONFIGURATIONS] = {MDOT_INIT(mdot_prediction)};
    if (!say(s, mdot_price(o->context, o->encodings[j], s->configurations, CONFIGURATIONS, got, &err), &err))
        return false;
    compare(s, got, s->priced[j], CONFIGURATIONS);
    atomic_fetch_add(&s->made, CONFIGURATIONS);
    if (!whole) return true;
    if (!say(s, mdot_sweep(o->context, s->jobs[j], s->configurations, CONFIGURATIONS, got, &err), &err)) return false;
    compare(s, got, s->predicted[j], CONFIGURATIONS);
    atomic_fetch_add(&s->made, CONFIGURATIONS);
    return true;
}

static void *work(void *argument)
{
    const worker *w = argument;
    soak *s = w->soak;
    own o = {0};
    bool fine = make(s, &o);
    atomic_store(&s->taken[w->number], o.generation);
    for (uint64_t i = 0; fine && !atomic_load(&s->over); i++) {
        if (atomic_load(&s->generation) != o.generation) { /* another artefact: contexts anew, when it suits us */
            drop(&o, s->job_count);
            fine = make(s, &o);
            if (!fine) break;
            atomic_store(&s->taken[w->number], o.generation);
        }
        fine = predict(s, &o, (int)(i % (uint64_t)s->job_count), i % PREDICT_EVERY == 0);
        if (atomic_fetch_sub(&s->left, CONFIGURATIONS) < CONFIGURATIONS) atomic_store(&s->over, true);
    }
    drop(&o, s->job_count);
    atomic_store(&s->over, true);
    return NULL;
}

/* ---- What changes under them ------------------------------------------------------------------------------------- */

/* Written over in place, which is the worst that a rollout can do. */
static bool write_artefact(soak *s, const char *path)
{
    char buffer[1 << 16];
    FILE *from = fopen(s->artefact, "rb"), *to = fopen(path, "wb");
    size_t got = 0;
    bool fine = from != NULL && to != NULL;
    while (fine && (got = fread(buffer, 1, sizeof buffer, from)) > 0) fine = fwrite(buffer, 1, got, to) == got;
    if (from != NULL) fclose(from);
    if (to != NULL) fine = fclose(to) == 0 && fine;
    return fine;
}

static bool swap(soak *s, const char *path)
{
    mdot_error err = {0};
    mdot_predictor *next = NULL;
    if (!write_artefact(s, path) || !say(s, mdot_predictor_open(path, NULL, &next, &err), &err)) return false;
    mdot_predictor *old = atomic_exchange(&s->current, next);
    unsigned generation = atomic_fetch_add(&s->generation, 1) + 1;
    /* who makes a context of `old` must have made it before it is closed */
    for (int t = 0; t < THREADS; t++)
        while (atomic_load(&s->taken[t]) != generation && !atomic_load(&s->over)) usleep(1000);
    if (atomic_load(&s->over))
        s->last = old; /* a thread may still be about to take it */
    else
        mdot_predictor_close(old);
    return true;
}

static bool load_and_free_jobs(soak *s)
{
    mdot_error err = {0};
    bool fine = true;
    for (int j = 0; j < s->job_count && fine; j++) {
        char path[PATH_BYTES];
        mdot_job *job = NULL;
        snprintf(path, sizeof path, "%s/job%d.job", s->folder, j);
        fine = say(s, mdot_job_save(s->jobs[j], path, &err), &err) && say(s, mdot_job_load(path, &job, &err), &err);
        mdot_job_destroy(job);
    }
    return fine;
}

/* Swaps until the predictions are made; whether none failed and memory stayed as it was after the first of them. */
static bool swap_all_along(soak *s, const char *path)
{
    memory first = {0}, most = {0};
    bool fine = true;
    int swaps = 0;
    for (; fine && !atomic_load(&s->over); swaps++) {
        fine = load_and_free_jobs(s) && swap(s, path);
        if (atomic_load(&s->over)) break; /* the artefact before may be open still */
        memory m = memory_now();
        if (swaps <= FIRST_SWAPS) first = most = m;
        if (m.given_bytes > most.given_bytes) most.given_bytes = m.given_bytes;
        if (m.pages > most.pages) most.pages = m.pages;
        if (swaps >= FIRST_SWAPS) sleep(1);
    }
    printf("artefact replaced %d times; after %d: %zu bytes given by malloc, %ld pages resident; at most: %zu, %ld\n",
           swaps, FIRST_SWAPS, first.given_bytes, first.pages, most.given_bytes, most.pages);
    bool stayed = most.given_bytes <= first.given_bytes + SLACK_BYTES && most.pages <= first.pages;
    if (!stayed) fprintf(stderr, "soak: memory grew\n");
    return fine && stayed;
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

static bool prepare(soak *s, const char *path, char **job_paths)
{
    mdot_error err = {0};
    mdot_predictor *predictor = NULL;
    own o = {0};
    const mdot_dim_binding sequence = {.name = "sequence", .value = 128};
    mdot_job_options options = {.struct_size = sizeof options, .dims = &sequence, .dim_count = 1};
    for (int j = 0; j < s->job_count; j++)
        if (!say(s, mdot_job_read(job_paths[j], &options, &s->jobs[j], &err), &err)) return false;
    for (int c = 0; c < CONFIGURATIONS; c++) {
        s->configurations[c] = (mdot_configuration){.struct_size = sizeof(mdot_configuration)};
        s->configurations[c].batch = 1 << c % 8;
        s->configurations[c].gpu = gpus[c % 4];
        s->configurations[c].precision = c % 3 == 0 ? MDOT_PRECISION_AMP : MDOT_PRECISION_PYTORCH;
    }
    if (!write_artefact(s, path) || !say(s, mdot_predictor_open(path, NULL, &predictor, &err), &err)) return false;
    atomic_store(&s->current, predictor);
    bool fine = make(s, &o);
    for (int j = 0; j < s->job_count && fine; j++) {
        s->priced[j][0] = s->predicted[j][0] = MDOT_INIT(mdot_prediction);
        fine =
            say(s, mdot_price(o.context, o.encodings[j], s->configurations, CONFIGURATIONS, s->priced[j], &err),
                &err) &&
            say(s, mdot_sweep(o.context, s->jobs[j], s->configurations, CONFIGURATIONS, s->predicted[j], &err), &err);
    }
    drop(&o, s->job_count);
    return fine;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

/* A round: ROUND_PAIRS pairs of jobs and configurations, a sweep for each encoded job. */
static bool time_rounds(soak *s, long rounds)
{
    mdot_error err = {0};
    own o = {0};
    mdot_prediction got[CONFIGURATIONS] = {MDOT_INIT(mdot_prediction)};
    double *ms = calloc((size_t)rounds + 1, sizeof *ms);
    bool fine = ms != NULL && make(s, &o);
    for (long r = 0; r < rounds && fine; r++) {
        double begin_s = now_s();
        for (int pair = 0, j = 0; pair < ROUND_PAIRS && fine; pair += CONFIGURATIONS, j = (j + 1) % s->job_count) {
            fine = say(s, mdot_price(o.context, o.encodings[j], s->configurations, CONFIGURATIONS, got, &err), &err);
            compare(s, got, s->priced[j], CONFIGURATIONS);
        }
        ms[r] = 1000 * (now_s() - begin_s);
    }
    if (fine && rounds > 0) {
        qsort(ms, (size_t)rounds, sizeof *ms, compare_doubles);
        printf("rounds of %d pairs: %ld; median %.2f ms, p99 %.2f ms, p99.9 %.2f ms, longest %.2f ms\n", ROUND_PAIRS,
               rounds, ms[rounds / 2], ms[rounds * 99 / 100], ms[rounds * 999 / 1000], ms[rounds - 1]);
    }
    free(ms);
    drop(&o, s->job_count);
    return fine;
}

int main(int argc, char **argv)
{
    static soak s;
    if (argc < 6 || argc > 5 + MAX_JOBS)
        return fprintf(stderr, "usage: soak PREDICTOR.mdot FOLDER PREDICTIONS ROUNDS JOB.onnx…\n"), 2;
    s.artefact = argv[1];
    s.folder = argv[2];
    s.job_count = argc - 5;
    atomic_store(&s.left, strtoull(argv[3], NULL, 10));
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/current.mdot", s.folder);
    if (!prepare(&s, path, argv + 5)) return 1;

    pthread_t threads[THREADS];
    worker workers[THREADS];
    double begin_s = now_s();
    for (int t = 0; t < THREADS; t++) {
        workers[t] = (worker){&s, t};
        if (pthread_create(&threads[t], NULL, work, &workers[t]) != 0) return 1;
    }
    bool fine = swap_all_along(&s, path);
    atomic_store(&s.over, true);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    double took_s = now_s() - begin_s;
    printf("predictions: %" PRIuFAST64 " on %d threads in %.0f s, %" PRIuFAST64
           " with other bits than the first, %" PRIuFAST64 " failed\n",
           atomic_load(&s.made), THREADS, took_s, atomic_load(&s.differing), atomic_load(&s.failed));
    fine = fine && time_rounds(&s, strtol(argv[4], NULL, 10));
    for (int j = 0; j < s.job_count; j++) mdot_job_destroy(s.jobs[j]);
    mdot_predictor_close(s.last);
    mdot_predictor_close(atomic_load(&s.current));
    return fine && atomic_load(&s.differing) == 0 && atomic_load(&s.failed) == 0 ? 0 : 1;
}
