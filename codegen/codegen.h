/* codegen.h — the input of the code generator, as data: entries, targets, options. artefact.h generates code from
 * it. */
#pragma once

#include "mdot/mdot_abi.h"
#include "plan/plan.h"

#include <stdint.h>

/* ---- a processor architecture: the properties that object files, the linker and LLVM need. Every target of
 * the architecture points to its row (cpu/cpu_target.c). One artefact holds code for the CPUs of one machine.
 */

enum { CG_LINKERS = 3 };

typedef struct cg_machine {
    const char *name;                /* for example "x86-64" */
    uint16_t elf_machine;            /* e_machine in object files: EM_X86_64 */
    const char *emulation;           /* output format of GNU ld and lld: -m */
    const char *linkers[CG_LINKERS]; /* linkers, preferred first */
    const char *triple;              /* target triple of LLVM's module */
    const char *baseline_cpu;        /* LLVM's target-cpu for functions that name no other */
    void (*prepare_llvm)(void);      /* registers LLVM's code generator; idempotent and thread-safe */
} cg_machine;

/* Most bytes of CPU code and its weights. Code addresses them relative to itself, in 32 bits with a sign; the rest is
 * for padding and constants. */
#define CG_MAX_WEIGHT_BYTES (((size_t)1 << 31) - ((size_t)16 << 20))

/* A model's description of an input's columns (mdot_abi_tensor). */
typedef struct cg_columns {
    int default_count; /* trailing columns with a default value, for a runtime that lacks them */
    const float *defaults;
    const char *names;      /* names of all columns, separated by commas; NULL if unknown */
    uint32_t assumed_torch; /* mdot_abi_tensor.assumed_torch; 0 if unknown */
} cg_columns;

/* One entry point. Its plans share inputs, outputs and weights and differ in the bucket. */
typedef struct cg_entry {
    const char *name;
    const ir_graph *graph;     /* for the names and types of inputs and outputs */
    const cg_columns *columns; /* one per input; NULL if unknown */
    int plan_count;            /* ascending by max_length */
    pl_plan *const *plans;
} cg_entry;

/* The rounding type for factors in matrix kernels. Sums, norms, softmax and the residual stream always use f32. */
typedef enum cg_compute { CG_FP32, CG_BF16, CG_FP16, CG_COMPUTES } cg_compute;

/* An image's target. Target lists are unique and in the order of mdot_abi_table.images_at. */
typedef struct cg_target {
    mdot_image_kind kind; /* these three are fields of mdot_abi_image */
    uint32_t number, variant;
    cg_compute kernel_precision;
} cg_target;

typedef struct cg_options {
    const char *predictor_name;
    int target_count;
    const cg_target *targets; /* at least one CPU target (cg_add_target keeps the order) */
    const char *dump;         /* name of a backend's dump (cg_backend.dumps), or NULL */
    void (*dump_text)(void *user, const char *text);
    void (*warning)(void *user, const char *text);
    void (*progress)(void *user, const char *step, size_t done, size_t total);
    void *user;
    /* Accepts the linked file before it gets its name; NULL accepts every file. */
    mdot_status (*check)(const char *path, mdot_error *err);
    bool in_process; /* run work that may end the process here rather than in a child (subprocess.h) */
} cg_options;

/* ---- target.c: lists of targets, and the names of precisions ----------------------------------------------------- */

/* Inserts a target into a list of `*count` with capacity MDOT_ABI_MAX_IMAGES. It goes after lesser targets and after
 * those that differ only in precision. A duplicate is ignored. Returns INVALID_ARGUMENT if the list is full. */
mdot_status cg_add_target(cg_target *targets, int *count, cg_target target, mdot_error *err);
/* The options' targets with one kind, which are consecutive. */
const cg_target *cg_targets_of(const cg_options *options, mdot_image_kind kind, int *out_count);

const char *cg_compute_name(cg_compute kernel_precision); /* "fp32", "bf16", "fp16": mdot_abi_image.compute_at */
