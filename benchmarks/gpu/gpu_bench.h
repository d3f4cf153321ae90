/* gpu_bench.h — the measurements of `gpu_bench`, one file each; gpu_bench.c reads the command line. */
#pragma once

#include "mdot/mdot.h"

#include <stdio.h>

typedef struct bench_options {
    const char *artefact, *name; /* artefact path, and the name in rows */
    double seconds;              /* total time for measurements */
} bench_options;

/* Each function writes rows (result_rows.h) to `out` as they are measured. MDOT_DEVICE if a result was wrong. */
mdot_status bench_machine(const bench_options *options, FILE *out, mdot_error *err); /* gpu_bench.c */
mdot_status bench_latency(const bench_options *options, FILE *out, mdot_error *err);
mdot_status bench_batch(const bench_options *options, FILE *out, mdot_error *err);
