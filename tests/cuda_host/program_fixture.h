/* program_fixture.h — models as CUDA programs in the emulator, held to the reference evaluation.
 *
 * Failures fail the running test.
 */
#ifndef PROGRAM_FIXTURE_H
#define PROGRAM_FIXTURE_H

#include "codegen/cuda/cuda_generate.h"
#include "tests/cuda_host/cuda_host_fixture.h"

typedef struct program {
    ir_arena *arena;
    const ir_graph *model; /* as imported, for the reference */
    cg_entry entry;
    cg_compute kernel_precision;
    cu_program code;
    cuda_host_module *module;
} program;

/* A program of one entry "predict" for ascending buckets (end with 0; just 0 where the model has no length). */
program program_from_file(const char *path, const int64_t *buckets, cg_compute kernel_precision, cuda_host_mode checks);
/* False, with a message and no program, where the model has no CUDA code (MDOT_UNSUPPORTED); else as above. */
bool program_try_file(const char *path, const int64_t *buckets, cg_compute kernel_precision, cuda_host_mode checks,
                      program *out_program, mdot_error *err);
program program_from_notation(const char *graph, const int64_t *buckets, cg_compute kernel_precision,
                              cuda_host_mode checks);
/* The same with what is not NULL here. */
typedef struct program_variant {
    const char *const *names; /* of the inputs, then of each node and its results, in order */
    const cu_schedule *schedule;
} program_variant;
program program_from_variant(const char *graph, const program_variant *variant, const int64_t *buckets,
                             cg_compute kernel_precision, cuda_host_mode checks);
void program_done(program *p);

typedef struct program_run {
    int bucket;
    int64_t length;
    unsigned blocks, items; /* 0 stands for 1 */
    unsigned seed;
    bool inputs_in_memory; /* though they fit the parameter */
    const char *skip;      /* a deletion, as in cuda_host_launch */
    int skip_line;
    /* Errors count relative to the greatest output, but no less than this: what outputs usually are, where one may
     * cancel to nearly nothing. */
    double magnitude;
    double tolerance; /* 0: the arithmetic's */
} program_run;

/* Runs it on random inputs, another for each item. False: it faulted or the result is wrong; the message says what. */
bool program_try(const program *p, const program_run *run, cuda_host_report *report, char *message, size_t size);
void assert_program_right(const program *p, const program_run *run);

/* Compiles it for a card, where NVRTC is installed, and asserts that no kernel keeps anything on a stack. */
void assert_program_fits(const program *p, int sm);

#endif
