/* cg_harness.h — runs generated CPU code in a unit test: LLVM module or plan → object → shared object → function
 * pointer. Linking refuses undefined symbols, as in an artefact. Therefore every test with this harness also shows that
 * the code makes no calls to libraries. Toolchain failures fail the running test. */
#pragma once

#include "codegen/cpu/emit.h"
#include "tests/support/guard.h"

/* Whether this machine runs the code of a level. With an emulator (remote_code.h), exactly the levels of AArch64. */
bool harness_runs(mdot_cpu_isa level);
/* The same, and the level has code in fp32. */
bool harness_runs_fp32(mdot_cpu_isa level);

/* The targets for tests: fp32 and bf16 on every level that this machine supports. Instructions that it may lack run as
 * substitutes. The function prints the target list once. */
const cg_cpu_target *const *harness_targets(int *out_count);

/* ---- Hand-written functions: begin, emit functions with `e`, load, get, end ------------------------------------- */

typedef struct harness_library { /* a linked shared object: loaded here, or a file for the emulator */
    void *handle;
    char *path;
} harness_library;

typedef struct harness {
    LLVMContextRef context;
    LLVMModuleRef module;
    cg_emitter e;
    harness_library library;
} harness;

void harness_begin(harness *h, mdot_cpu_isa level);
void harness_begin_for(harness *h, const cg_cpu_target *target);
/* Begins `void name(ptr, …, i64 length)`. */
void harness_begin_function(cg_emitter *e, const char *name, int pointer_count);
void harness_load(harness *h);                         /* assembles, links and loads the emitted code */
void *harness_get(const harness *h, const char *name); /* only without an emulator */
/* Calls a function of two, three or six buffers and a length. */
void harness_call(const harness *h, const char *name, const guarded *const *buffers, int count, int64_t length);
void harness_end(harness *h);

/* ---- Whole plans, through cg_cpu_make_images --------------------------------------------------------------------- */

typedef struct harness_plan {
    harness_library library;
    const pl_plan *plan;
    void *weights;
    size_t weight_bytes;
    mdot_abi_function function; /* only without an emulator */
    size_t scratch_bytes, worker_bytes;
    int kernel_count;
    int *step_end; /* per kernel: the end of the step begun by the kernel (mdot_abi_call) */
} harness_plan;

/* Loads one level's code of a plan, and its weights. */
void harness_load_plan(harness_plan *h, pl_plan *plan, mdot_cpu_isa level);
void harness_load_plan_for(harness_plan *h, pl_plan *plan, const cg_cpu_target *target);
/* Inputs and outputs are in the plan's order. Scratch memory is poisoned before the call, and its end is checked
 * after it. */
void harness_call_plan(const harness_plan *h, const void *const *inputs, void *const *outputs, int64_t length);
/* The same, one kernel at a time. Each kernel is split into slices at `cuts`, which ascend and are fractions of 2^32.
 * Each slice runs as another worker, the last slice first. */
void harness_call_slices(const harness_plan *h, const void *const *inputs, void *const *outputs, int64_t length,
                         const int64_t *cuts, int cut_count);
void harness_unload_plan(harness_plan *h);

/* Loads, calls and unloads. */
void harness_run_plan(pl_plan *plan, mdot_cpu_isa level, const void *const *inputs, void *const *outputs,
                      int64_t length);
