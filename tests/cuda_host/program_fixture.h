/* program_fixture.h — models as CUDA programs in the emulator, compared with the reference evaluation. Failures fail
 * the running test. */
#pragma once

#include "codegen/codegen.h"
#include "codegen/cuda/cuda_program.h"
#include "tests/cuda_host/cuda_host_fixture.h"

typedef struct program {
    ir_arena *arena;
    const ir_graph *model; /* as imported, for the reference evaluation */
    cg_entry entry;
    cg_compute kernel_precision;
    cu_program code;
    cuda_host_module *module;
} program;

/* A program with one entry "predict" for ascending buckets (end with 0; only 0 if the model has no length). */
program program_from_file(const char *path, const int64_t *buckets, cg_compute kernel_precision, cuda_host_mode checks);
/* The same with another schedule than cu_blocks. */
program program_in_schedule(const char *path, const int64_t *buckets, cg_compute kernel_precision,
                            const cu_schedule *schedule);
/* The same, but returns false with a message and no program if the model has no CUDA code (MDOT_UNSUPPORTED). */
bool program_try_file(const char *path, const int64_t *buckets, cg_compute kernel_precision, cuda_host_mode checks,
                      program *out_program, mdot_error *err);
program program_from_notation(const char *graph, const int64_t *buckets, cg_compute kernel_precision,
                              cuda_host_mode checks);
/* The same with the fields that are not NULL here. */
typedef struct program_variant {
    const char *const *names; /* names of the inputs, then each node with the results, in order */
    const cu_schedule *schedule;
} program_variant;
program program_from_variant(const char *graph, const program_variant *variant, const int64_t *buckets,
                             cg_compute kernel_precision, cuda_host_mode checks);
void program_done(program *p);

typedef struct program_run {
    int bucket;
    int64_t length;
    unsigned blocks, items; /* 0 counts as 1 */
    unsigned seed;
    bool inputs_in_memory; /* although they would fit into the parameter */
    const char *skip;      /* a deletion, as in cuda_host_launch */
    int skip_line;
    /* Errors are relative to the greatest output, but at least to this typical magnitude, because an output may
     * cancel to almost zero. */
    double magnitude;
    bool in_f32;      /* the expected results have every operator's result rounded to f32 */
    double tolerance; /* 0 = the precision's tolerance */
} program_run;

/* Runs the program on random inputs, which differ for each item. Returns false with a message if it faulted or a
 * result is wrong. */
bool program_try(const program *p, const program_run *run, cuda_host_report *report, char *message, size_t size);
void assert_program_right(const program *p, const program_run *run);

/* Compiles the program for a GPU architecture if NVRTC is installed, and asserts that all kernels keep the stack
 * empty. */
void assert_program_fits(const program *p, int sm);

/* Checks a graph in notation in every precision, and in clusters of two blocks, in a bucket of 64, at each length (end
 * with 0). NULL: the graph has no length. */
void assert_graph_right(const char *graph, const int64_t *lengths);
