/* bench_peak.c — the peak rate of this core: multiply-adds on registers only, as a reference for `mdot bench`. */
#include "cli/bench/bench.h"

#include <time.h>

/* CPU time of this thread alone, because other threads share the core. */
static double processor_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double bench_peak_gflops(const char *level, double seconds)
{
    const bench_peak_loop *loop = bench_peak_find_loop(level);
    if (loop == NULL) return 0;
    double begin = processor_seconds(), elapsed, turns = 0;
    do {
        loop->turn(loop->turns);
        turns += (double)loop->turns;
        elapsed = processor_seconds() - begin;
    } while (elapsed < seconds);
    return turns * loop->instructions * loop->products * 2 / elapsed * 1e-9;
}
