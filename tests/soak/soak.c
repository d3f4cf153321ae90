/* soak.c — the load of a scheduler in a few minutes. Threads predict all the time while artefacts are replaced and
 * jobs are loaded and freed. Every answer must equal the first bit for bit, and memory must stay constant.
 *
 *     soak PREDICTOR.mdot FOLDER JOB.onnx… [--predictions N] [--rounds N] [--period-ms MS]
 *
 * FOLDER must exist; the program stores the artefact that it replaces and the jobs' files there. THREADS threads make
 * N predictions. Of every 21, twenty are made in one call, as in a round, and one alone. Timed rounds of ROUND_PAIRS
 * pairs follow. With a period, a round begins every MS milliseconds, as in a scheduler. Exit status 1: an answer
 * differed, memory grew, or a call failed.
 *
 * Memory is measured after each swap, when one artefact is open and every thread has its contexts of it. The amount
 * that malloc has given out must then be the same each time, except for the remainders of chunks that fit nearly;
 * otherwise memory leaks. The resident pages match the highest number of objects that lived at once. Therefore the
 * first swaps follow each other closely, and no page may be added after them. Under a sanitizer, whose own memory
 * grows, the numbers are only printed.
 */
#include "mdot/mdotjob.h"

#include <getopt.h>
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

enum {
    TYPES = 4,
    WIDTHS = 5,
    BLOCK = TYPES * WIDTHS,
    BATCHES = 5
}; /* for a job: one block of configurations per
                                                                      * batch */
enum { THREADS = 2, MAX_JOBS = 8, UNENCODED_EVERY = 256, ROUND_PAIRS = 10000, PATH_BYTES = 4096 };
enum { FIRST_SWAPS = 64 };   /* swaps in immediate succession, so that memory reaches the final size */
enum { SLACK_BYTES = 4096 }; /* permitted growth of malloc's total over all swaps */

static const char *const types[TYPES] = {"T4", "V100", "A100", "H100"};

typedef struct soak {
    const char *artefact, *folder;
    int job_count;
    mdot_job *jobs[MAX_JOBS];
    mdot_configuration blocks[BATCHES][BLOCK];
    mdot_prediction first[MAX_JOBS][BATCHES][BLOCK]; /* answers of each job in a separate call */
    _Atomic(mdot_predictor *) current;
    mdot_predictor *last;       /* the previous artefact, if it is still open */
    atomic_uint generation;     /* number of swaps */
    atomic_uint taken[THREADS]; /* each thread's newest generation with contexts */
    uint_fast64_t wanted;       /* number of predictions */
    atomic_uint_fast64_t made, differing, failed;
    atomic_bool over;
} soak;

typedef struct worker {
    soak *soak;
    int number;
} worker;

static double seconds_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct memory {
    size_t malloc_bytes; /* total given out by malloc, in all its arenas */
    long pages;          /* resident pages; 0 if /proc is missing */
} memory;

static memory memory_now(void)
{
    long total = 0, resident = 0;
    memory m = {.malloc_bytes = mallinfo2().uordblks};
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL) return m;
    if (fscanf(file, "%ld %ld", &total, &resident) == 2) m.pages = resident;
    fclose(file);
    return m;
}

static bool succeeded(soak *s, mdot_status status, const mdot_error *err)
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

/* ---- State of a thread ------------------------------------------------------------------------------------------- */

typedef struct own { /* objects for one artefact generation */
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
    bool fine = succeeded(s, mdot_context_create(atomic_load(&s->current), &o->context, &err), &err);
    for (int j = 0; j < s->job_count && fine; j++)
        fine = succeeded(s, mdot_encoding_create(o->context, s->jobs[j], &o->encodings[j], &err), &err);
    o->generation = generation;
    return fine;
}

/* Evaluates a block of one batch from a job's encoding, as rounds do. */
static bool evaluate_block(soak *s, const own *o, int j, int batch)
{
    mdot_error err = {0};
    mdot_prediction got[BLOCK] = {MDOT_INIT(mdot_prediction)};
    if (!succeeded(s, mdot_evaluate(o->context, o->encodings[j], s->blocks[batch], BLOCK, got, &err), &err))
        return false;
    compare(s, got, s->first[j][batch], BLOCK);
    return true;
}

/* Evaluates one configuration, from the encoding or from the job itself. */
static bool predict_alone(soak *s, const own *o, int j, int batch, int c, bool encoded)
{
    mdot_error err = {0};
    mdot_prediction got = MDOT_INIT(mdot_prediction);
    const mdot_configuration *configuration = &s->blocks[batch][c];
    mdot_status status = encoded ? mdot_evaluate(o->context, o->encodings[j], configuration, 1, &got, &err)
                                 : mdot_predict(o->context, s->jobs[j], configuration, &got, &err);
    if (!succeeded(s, status, &err)) return false;
    compare(s, &got, &s->first[j][batch][c], 1);
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
        if (atomic_load(&s->generation) != o.generation) { /* a new artefact: make new contexts at a convenient time */
            drop(&o, s->job_count);
            fine = make(s, &o);
            if (!fine) break;
            atomic_store(&s->taken[w->number], o.generation);
        }
        int j = (int)(i % (uint64_t)s->job_count), batch = (int)(i / (uint64_t)s->job_count % BATCHES);
        fine = evaluate_block(s, &o, j, batch) &&
               predict_alone(s, &o, j, batch, (int)(i % BLOCK), i % UNENCODED_EVERY != 0);
        if (atomic_fetch_add(&s->made, BLOCK + 1) + BLOCK + 1 >= s->wanted) atomic_store(&s->over, true);
    }
    drop(&o, s->job_count);
    atomic_store(&s->over, true);
    return NULL;
}

/* ---- Changes behind the threads ---------------------------------------------------------------------------------- */

/* Overwrites the artefact in place: the worst case in a rollout. */
static bool write_artefact(soak *s, const char *path)
{
    char buffer[1 << 16];
    FILE *source = fopen(s->artefact, "rb"), *target = fopen(path, "wb");
    size_t got = 0;
    bool fine = source != NULL && target != NULL;
    while (fine && (got = fread(buffer, 1, sizeof buffer, source)) > 0) fine = fwrite(buffer, 1, got, target) == got;
    if (source != NULL) fclose(source);
    if (target != NULL) fine = fclose(target) == 0 && fine;
    return fine;
}

static bool swap(soak *s, const char *path)
{
    mdot_error err = {0};
    mdot_predictor *successor = NULL;
    if (!write_artefact(s, path) || !succeeded(s, mdot_predictor_open(path, NULL, &successor, &err), &err))
        return false;
    mdot_predictor *old = atomic_exchange(&s->current, successor);
    unsigned generation = atomic_fetch_add(&s->generation, 1) + 1;
    /* every thread that makes a context of `old` must have made it before `old` is closed */
    for (int t = 0; t < THREADS; t++)
        while (atomic_load(&s->taken[t]) != generation && !atomic_load(&s->over)) usleep(1000);
    if (atomic_load(&s->over))
        s->last = old; /* a thread may still be about to use it */
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
        fine = succeeded(s, mdot_job_save(s->jobs[j], path, &err), &err) &&
               succeeded(s, mdot_job_load(path, &job, &err), &err);
        mdot_job_destroy(job);
    }
    return fine;
}

/* Swaps until the predictions are made. Returns whether all calls succeeded and memory stayed constant after the
 * first swaps. */
static bool swap_all_along(soak *s, const char *path)
{
    memory first = {0}, maximum = {0};
    bool fine = true;
    int swaps = 0;
    for (; fine && !atomic_load(&s->over); swaps++) {
        fine = load_and_free_jobs(s) && swap(s, path);
        if (atomic_load(&s->over)) break; /* the previous artefact may still be open */
        memory m = memory_now();
        if (swaps <= FIRST_SWAPS) first = maximum = m;
        if (m.malloc_bytes > maximum.malloc_bytes) maximum.malloc_bytes = m.malloc_bytes;
        if (m.pages > maximum.pages) maximum.pages = m.pages;
        if (swaps >= FIRST_SWAPS) sleep(1);
    }
    printf(
        "artefact replaced %d times; after %d: %zu bytes allocated by malloc, %ld pages resident; at most: %zu, %ld\n",
        swaps, FIRST_SWAPS, first.malloc_bytes, first.pages, maximum.malloc_bytes, maximum.pages);
#ifdef MDOT_SANITIZED
    bool stayed = true; /* the sanitizer's malloc and shadow memory do not belong to the library */
#else
    bool stayed = maximum.malloc_bytes <= first.malloc_bytes + SLACK_BYTES && maximum.pages <= first.pages;
#endif
    if (!stayed) fprintf(stderr, "soak: memory grew\n");
    return fine && stayed;
}

/* ---- The whole program ------------------------------------------------------------------------------------------- */

static bool prepare(soak *s, const char *path, char **job_paths)
{
    mdot_error err = {0};
    mdot_predictor *predictor = NULL;
    own o = {0};
    const mdot_dim_binding sequence = {.name = "sequence", .value = 128};
    mdot_job_options options = {.struct_size = sizeof options, .dims = &sequence, .dim_count = 1};
    for (int j = 0; j < s->job_count; j++)
        if (!succeeded(s, mdot_job_read(job_paths[j], &options, &s->jobs[j], &err), &err)) return false;
    for (int batch = 0; batch < BATCHES; batch++)
        for (int c = 0; c < BLOCK; c++)
            s->blocks[batch][c] = (mdot_configuration){.struct_size = sizeof(mdot_configuration),
                                                       .batch = 8 << batch,
                                                       .gpu = types[c / WIDTHS],
                                                       .gpu_count = 1 << c % WIDTHS,
                                                       .precision = MDOT_PRECISION_AMP};
    if (!write_artefact(s, path) || !succeeded(s, mdot_predictor_open(path, NULL, &predictor, &err), &err))
        return false;
    atomic_store(&s->current, predictor);
    bool fine = make(s, &o);
    for (int j = 0; j < s->job_count; j++)
        for (int index = 0; index < BATCHES * BLOCK && fine; index++) {
            mdot_prediction *first = &s->first[j][index / BLOCK][index % BLOCK];
            *first = MDOT_INIT(mdot_prediction);
            fine = succeeded(
                s, mdot_predict(o.context, s->jobs[j], &s->blocks[index / BLOCK][index % BLOCK], first, &err), &err);
        }
    drop(&o, s->job_count);
    return fine;
}

static int compare_doubles(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

static void print_times(const char *clock, double *ms, long rounds)
{
    qsort(ms, (size_t)rounds, sizeof *ms, compare_doubles);
    printf("  %s: median %.2f ms, p99 %.2f ms, p99.9 %.2f ms, longest %.2f ms\n", clock, ms[rounds / 2],
           ms[rounds * 99 / 100], ms[rounds * 999 / 1000], ms[rounds - 1]);
}

/* The thread's CPU time beside wall-clock time shows how much other programs added to a long round. */
static bool time_rounds(soak *s, long rounds, double period_s)
{
    own o = {0};
    double *wall_ms = calloc((size_t)rounds + 1, sizeof *wall_ms),
           *thread_ms = calloc((size_t)rounds + 1, sizeof *wall_ms);
    bool fine = wall_ms != NULL && thread_ms != NULL && make(s, &o);
    double begun_s = seconds_of(CLOCK_MONOTONIC);
    for (long r = 0; r < rounds && fine; r++) {
        double early_s = begun_s + (double)r * period_s - seconds_of(CLOCK_MONOTONIC);
        if (early_s > 0) usleep((useconds_t)(1e6 * early_s));
        double wall_s = seconds_of(CLOCK_MONOTONIC), thread_s = seconds_of(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < ROUND_PAIRS / BLOCK && fine; i++)
            fine = evaluate_block(s, &o, i % s->job_count, i / s->job_count % BATCHES);
        wall_ms[r] = 1000 * (seconds_of(CLOCK_MONOTONIC) - wall_s);
        thread_ms[r] = 1000 * (seconds_of(CLOCK_THREAD_CPUTIME_ID) - thread_s);
    }
    if (fine && rounds > 0) {
        printf("rounds of %d pairs: %ld in %.0f s\n", ROUND_PAIRS, rounds, seconds_of(CLOCK_MONOTONIC) - begun_s);
        print_times("wall", wall_ms, rounds);
        print_times("thread", thread_ms, rounds);
    }
    free(wall_ms);
    free(thread_ms);
    drop(&o, s->job_count);
    return fine;
}

/* Runs until s->wanted predictions are made. */
static bool predict_under_swaps(soak *s, const char *path)
{
    pthread_t threads[THREADS];
    worker workers[THREADS];
    double begun_s = seconds_of(CLOCK_MONOTONIC);
    for (int t = 0; t < THREADS; t++) {
        workers[t] = (worker){s, t};
        if (pthread_create(&threads[t], NULL, work, &workers[t]) != 0) return false;
    }
    bool fine = swap_all_along(s, path);
    atomic_store(&s->over, true);
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    printf("predictions: %" PRIuFAST64 " on %d threads in %.0f s\n", atomic_load(&s->made), THREADS,
           seconds_of(CLOCK_MONOTONIC) - begun_s);
    return fine;
}

/* Parses a whole number; 1e8 is accepted. */
static bool read_count(const char *text, double maximum, double *out_count)
{
    char *end = NULL;
    *out_count = strtod(text, &end);
    return end != text && *end == '\0' && *out_count >= 0 && *out_count <= maximum;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"predictions", required_argument, NULL, 'p'},
                                            {"rounds", required_argument, NULL, 'r'},
                                            {"period-ms", required_argument, NULL, 'm'},
                                            {0}};
    static soak s;
    double predictions = 0, rounds = 0, period_ms = 0;
    bool is_right = true;
    for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
        is_right &= option == 'p'   ? read_count(optarg, 1e15, &predictions)
                    : option == 'r' ? read_count(optarg, 1e6, &rounds)
                    : option == 'm' ? read_count(optarg, 1e6, &period_ms)
                                    : false;
    s.job_count = argc - optind - 2;
    if (!is_right || s.job_count < 1 || s.job_count > MAX_JOBS) {
        fputs("usage: soak PREDICTOR.mdot FOLDER JOB.onnx… [--predictions N] [--rounds N] [--period-ms MS]\n", stderr);
        return 2;
    }
    s.artefact = argv[optind];
    s.folder = argv[optind + 1];
    s.wanted = (uint_fast64_t)predictions;
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/current.mdot", s.folder);
    bool fine = prepare(&s, path, argv + optind + 2);
    if (fine && s.wanted > 0) fine = predict_under_swaps(&s, path);
    if (fine) fine = time_rounds(&s, (long)rounds, period_ms / 1000);
    printf("%" PRIuFAST64 " results that differ from the first, %" PRIuFAST64 " calls failed\n",
           atomic_load(&s.differing), atomic_load(&s.failed));
    for (int j = 0; j < s.job_count; j++) mdot_job_destroy(s.jobs[j]);
    mdot_predictor_close(s.last);
    mdot_predictor_close(atomic_load(&s.current));
    return fine && atomic_load(&s.differing) == 0 && atomic_load(&s.failed) == 0 ? 0 : 1;
}
