/* bench.h — what `mdot bench` is made of: bench.c reads the command line and prints, measure.c measures, peak.c is the
 * yardstick. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include "mdot/mdot.h"

/* Monotonic seconds. */
double bench_now(void);

/* Single-precision GFLOP/s of FMAs with the vector width of a CPU level, on this core, over about `seconds`. 0: not
 * known for that level. */
double bench_peak_gflops(const char *level, double seconds);

typedef struct bench_task {
    const mdot_predictor *predictor;
    size_t entry;
    int64_t length; /* 0 in an entry without one */
    int threads;
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

#endif
