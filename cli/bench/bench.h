/* bench.h — parts of `mdot bench`: cmd_bench.c reads the command line and prints, measure.c measures an entry,
 * bench_profile.c its kernels, bench_round.c a scheduler's round. bench_tensors.c makes inputs and outputs, and
 * bench_peak.c measures the core's peak rate. */
#pragma once

#include "base/status.h"
#include "mdot/mdot.h"

/* Returns monotonic seconds. */
double bench_now(void);

/* Returns the multiply-add rate of an ISA level on this core in GFLOP/s (f32, bf16 pairs or bf16 tiles), measured for
 * about `seconds` of thread time. The machine must support the level, so call it only while a predictor is open at that
 * level. 0: unknown for that level. */
double bench_peak_gflops(const char *level, double seconds);

/* Tensors in the entry's order. Floats are pseudo-random, integers zero, bools true. */
typedef struct bench_tensors {
    size_t input_count, output_count;
    mdot_input *inputs;
    mdot_output *outputs;
    int64_t (*dims)[MDOT_MAX_RANK]; /* one row of dims per input */
} bench_tensors;

mdot_status bench_make_tensors(const mdot_predictor *predictor, size_t entry, int64_t length,
                               bench_tensors *out_tensors, mdot_error *err);
void bench_free_tensors(bench_tensors *tensors);

/* Allocates zeroed and touched memory, aligned for any tensor; the caller frees it. NULL: memory ran out. */
void *bench_allocate(size_t bytes);

typedef struct bench_task {
    const mdot_predictor *predictor;
    size_t entry;
    int64_t length; /* 0 in an entry that has no length */
    int threads;    /* threads, each with its own context */
    int workers;    /* threads that share the calls on a context */
    double seconds;
} bench_task;

typedef struct bench_result {
    double first_call_us; /* first call on the first thread's context */
    double p50_us, p90_us, p99_us, p999_us;
    double calls_per_second; /* over all threads together */
    double peak_gflops;      /* peak of one core, measured alternately with the calls; 0: unknown */
    size_t calls;
} bench_result;

/* Runs the entry for about task->seconds. */
mdot_status bench_measure(const bench_task *task, bench_result *out_result, mdot_error *err);

/* Sorts in ascending order. The percentile is the least value with at least a fraction `quantile` of the values at or
 * below it. */
void bench_sort(float *values, size_t count);
double bench_percentile(const float *sorted, size_t count, double quantile);
double bench_median(float *values, size_t count); /* sorts them */

typedef struct bench_profile_task {
    const mdot_predictor *predictor;
    size_t entry, bucket;
    int64_t length; /* a length in that bucket */
    double seconds;
} bench_profile_task;

typedef struct bench_step { /* bucket kernels that run together, usually one */
    size_t first_kernel, kernel_count;
    double flops; /* 0: unknown at this length */
    double p50_us;
} bench_step;

typedef struct bench_profile {
    bench_step *steps; /* the caller frees it */
    size_t step_count, turns;
    double steps_us, call_us; /* sum over all separately measured steps; median of a whole call */
    double peak_gflops;       /* as in bench_result */
} bench_profile;

mdot_status bench_measure_profile(const bench_profile_task *task, bench_profile *out_profile, mdot_error *err);

/* A scheduler's round: `jobs` jobs, each a copy of one model at one of five batches, under the given number of
 * configurations. The configurations combine four GPU models with 1 to 16 GPUs, and then other layouts and
 * optimizers. */
typedef struct bench_round {
    const mdot_predictor *predictor;
    const mdot_job *const *models;
    size_t model_count, jobs, configurations;
    double seconds; /* time for each of the measurements; each is repeated at least three times */
} bench_round;

/* Milliseconds of a round. The least value has the least interference from other programs on the machine. */
typedef struct bench_round_time {
    double median_ms, least_ms;
    size_t rounds;
} bench_round_time;

typedef struct bench_round_result {
    bench_round_time cold;          /* mdot_predict_many: all pairs in one call, without cached features */
    bench_round_time encode;        /* mdot_encoding_create for every job */
    bench_round_time encoded;       /* mdot_evaluate for each job, all pairs, with cached features */
    double p50_us, p99_us, p999_us; /* mdot_evaluate for one configuration */
    size_t evaluations;
    double mean_operators; /* mean number of operators in a job */
} bench_round_result;

mdot_status bench_measure_round(const bench_round *round, bench_round_result *out_result, mdot_error *err);

/* ---- bench_peak_x86.c: multiply-add loops for bench_peak.c ------------------------------------------------------- */

typedef struct bench_peak_loop {
    const char *level; /* ISA level, for example "x86-64-v4" */
    void (*turn)(int64_t turns);
    int products, instructions; /* multiply-adds per instruction; instructions per turn */
    int64_t turns;              /* turns between two clock readings, tens of microseconds */
} bench_peak_loop;

/* Returns NULL for an unknown ISA level. */
#if defined(__x86_64__)
const bench_peak_loop *bench_peak_find_loop(const char *level);
#else
static inline const bench_peak_loop *bench_peak_find_loop(const char *level)
{
    (void)level;
    return NULL;
}
#endif
