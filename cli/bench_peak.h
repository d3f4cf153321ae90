/* bench_peak.h — multiply-add loops of one processor family, for bench_peak.c. */
#ifndef CLI_BENCH_PEAK_H
#define CLI_BENCH_PEAK_H

#include <stddef.h>
#include <stdint.h>

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

#endif
