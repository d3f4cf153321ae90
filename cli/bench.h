/* bench.h — what `mdot bench` is made of: bench.c reads the command line and prints, measure.c measures an entry,
 * bench_profile.c its kernels, bench_round.c a scheduler's round; bench_tensors.c has what is called with, bench_peak.c is the yardstick. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "mdot/mdot.h"

/* Monotonic seconds. */
double bench_now(void);

/* GFLOP/s of a CPU level's multiply-adds, f32, pairs or tiles of bf16, on this core, over about `seconds` of this
 * thread. The machine has to run that level: one at which a predictor is open. 0: not known for that level. */
double bench_peak_gflops(const char *level, double seconds);

/* ---- bench_tensors.c --------------------------------------------------------------------------------------------------- */

/* In the entry's order. Floats are made up, integers zero, bools true. */
typedef struct bench_tensors {
    size_t input_count, output_count;
    mdot_input *inputs;
    mdot_output *outputs;
    int64_t (*dims)[MDOT_MAX_RANK]; /* of the inputs */
} bench_tensors;

mdot_status bench_make_tensors(const mdot_predictor *predictor, size_t entry, int64_t length,
                               bench_tensors *out_tensors, mdot_error *err);
void bench_free_tensors(bench_tensors *tensors);

/* Aligned for any tensor, zero and touched; to be freed. NULL: there is no memory. */
void *bench_allocate(size_t bytes);

/* ---- measure.c --------------------------------------------------------------------------------------------------- */

typedef struct bench_task {
    const mdot_predictor *predictor;
    size_t entry;
    int64_t length; /* 0 in an entry without one */
    int threads;    /* each with a context */
    int workers;    /* that share a context's calls */
    double seconds;
} bench_task;

typedef struct bench_result {
    double first_call_us; /* the first call of the first thread's context */
    double p50_us, p90_us, p99_us, p999_us;
    double calls_per_second; /* of all threads together */
    double peak_gflops;      /* of one core, measured in turns with the calls; 0: not known */
    size_t calls;
} bench_result;

/* Runs the entry for about task->seconds. */
mdot_status bench_measure(const bench_task *task, bench_result *out_result, mdot_error *err);

/* Ascending; then the least value that at least `share` of them do not exceed. */
void bench_sort(float *values, size_t count);
double bench_percentile(const float *sorted, size_t count, double share);

/* ---- bench_profile.c --------------------------------------------------------------------------------------------------- */

typedef struct bench_profile_task {
    const mdot_predictor *predictor;
    size_t entry, bucket;
    int64_t length; /* one that runs in that bucket */
    double seconds;
} bench_profile_task;

typedef struct bench_step { /* kernels of the bucket that run together, mostly one */
    size_t first_kernel, kernel_count;
    double flops; /* 0: not known at this length */
    double p50_us;
} bench_step;

typedef struct bench_profile {
    bench_step *steps; /* to be freed */
    size_t step_count, turns;
    double steps_us, call_us; /* all steps together, one by one; a whole call's median */
    double peak_gflops;       /* as in bench_result */
} bench_profile;

mdot_status bench_measure_profile(const bench_profile_task *task, bench_profile *out_profile, mdot_error *err);

/* ---- bench_round.c ----------------------------------------------------------------------------------------------------- */

/* A scheduler's round: `jobs` jobs, each a copy of one of the models at one of five batches, under so many
 * configurations each, four GPUs in numbers of 1 to 16 and then other layouts and optimizers. */
typedef struct bench_round {
    const mdot_predictor *predictor;
    const mdot_job *const *models;
    size_t model_count, jobs, configurations;
    double seconds; /* for each of the measurements; each is made three times at least */
} bench_round;

/* Milliseconds of a round; the least is what neighbours on the machine left alone. */
typedef struct bench_round_time {
    double median_ms, least_ms;
    size_t rounds;
} bench_round_time;

typedef struct bench_round_result {
    bench_round_time cold;          /* all pairs in one call, nothing known before: mdot_predict_many */
    bench_round_time encode;        /* mdot_encoding_create of every job */
    bench_round_time encoded;       /* all pairs, jobs encoded before: mdot_evaluate for each job */
    double p50_us, p99_us, p999_us; /* of mdot_evaluate for one configuration */
    size_t prices;
    double mean_operators; /* of a job */
} bench_round_result;

mdot_status bench_measure_round(const bench_round *round, bench_round_result *out_result, mdot_error *err);

#endif
