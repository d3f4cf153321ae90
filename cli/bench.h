/* bench.h — what `mdot bench` is made of: bench.c reads the command line and prints, measure.c measures an entry,
 * round.c a scheduler's round, peak.c is the yardstick. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "mdot/mdot.h"

/* Monotonic seconds. */
double bench_now(void);

/* GFLOP/s of a CPU level's multiply-adds, f32 or pairs of bf16, on this core, over about `seconds`. 0: not known for
 * that level. */
double bench_peak_gflops(const char *level, double seconds);

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

/* Runs the entry on made-up inputs for about task->seconds: floats at random, integers zero, bools true. */
mdot_status bench_measure(const bench_task *task, bench_result *out_result, mdot_error *err);

/* Ascending; then the least value that at least `share` of them do not exceed. */
void bench_sort(float *values, size_t count);
double bench_percentile(const float *sorted, size_t count, double share);

/* ---- round.c ----------------------------------------------------------------------------------------------------- */

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
    bench_round_time encoded;       /* all pairs, jobs encoded before: mdot_price for each job */
    double p50_us, p99_us, p999_us; /* of mdot_price for one configuration */
    size_t prices;
    double mean_operators; /* of a job */
} bench_round_result;

mdot_status bench_measure_round(const bench_round *round, bench_round_result *out_result, mdot_error *err);

#endif
