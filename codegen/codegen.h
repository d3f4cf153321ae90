/* codegen.h — plans → one artefact. */
#ifndef CG_CODEGEN_H
#define CG_CODEGEN_H

#include "ir/plan/plan.h"
#include "mdot/mdot_abi.h"

/* One entry point: its plans share inputs, outputs and weights and differ in the bucket. */
typedef struct cg_entry {
    const char *name;
    const ir_graph *graph; /* for the names and types of inputs and outputs */
    int plan_count;        /* ascending in max_length */
    pl_plan *const *plans;
} cg_entry;

/* An architecture of GPUs: {90, true} for sm_90a. */
typedef struct cg_cuda_target {
    int sm;
    bool is_accelerated;
} cg_cuda_target;

typedef struct cg_options {
    const char *predictor_name;
    int level_count;
    const mdot_cpu_level *levels; /* ascending */
    int cuda_target_count;
    const cg_cuda_target *cuda_targets; /* ascending, accelerated after plain, each once */
    bool cuda_fp32;                     /* matrices in f32 there, without tensor cores */
    const char *dump;                   /* "llvm", "asm", "cuda" or "ptxas", else NULL */
    void (*dump_text)(void *user, const char *text);
    void (*warning)(void *user, const char *text);
    void (*progress)(void *user, const char *step, size_t done, size_t total);
    void *user;
} cg_options;

/* Generates code for every entry, bucket, level and GPU architecture, packs the weights, links, and puts the artefact
 * at `path` by rename: it appears complete or not at all. Constants that several plans share (the same ir_tensor, or
 * equal bytes) are stored once; kernels with equal specifications are generated once. What GPUs cannot run is left out
 * of their code with a warning (cuda/cuda.h). */
mdot_status cg_write_artefact(const cg_entry *entries, int entry_count, const cg_options *options, const char *path,
                              ir_arena *arena, mdot_error *err);

#endif
