/* codegen.h — plans → one artefact. What an artefact can be made for stands in backend.h. */
#ifndef CG_CODEGEN_H
#define CG_CODEGEN_H

#include "ir/plan/plan.h"
#include "mdot/mdot_abi.h"

/* What a model says of an input's columns (mdot_abi_tensor). */
typedef struct cg_columns {
    int default_count; /* last columns, and what they are to a runtime that has none of them */
    const float *defaults;
    const char *names; /* of all of them, separated by commas; NULL: not said */
} cg_columns;

/* One entry point: its plans share inputs, outputs and weights and differ in the bucket. */
typedef struct cg_entry {
    const char *name;
    const ir_graph *graph;     /* for the names and types of inputs and outputs */
    const cg_columns *columns; /* of each input; NULL: nothing is said of them */
    int plan_count;            /* ascending in max_length */
    pl_plan *const *plans;
} cg_entry;

/* What the factors of matrix kernels are rounded to. Sums, norms, softmax and the residual stream are f32 in all. */
typedef enum cg_compute { CG_FP32, CG_BF16, CG_FP16, CG_COMPUTES } cg_compute;
const char *cg_compute_name(cg_compute kernel_precision); /* "fp32", "bf16", "fp16": mdot_abi_image.compute_at */

/* What one image is made for. Targets stand in lists in the order of mdot_abi_table.images_at, none twice. */
typedef struct cg_target {
    mdot_image_kind kind; /* these three are mdot_abi_image's */
    uint32_t number, variant;
    cg_compute kernel_precision;
} cg_target;

typedef struct cg_options {
    const char *predictor_name;
    int target_count;
    const cg_target *targets; /* at least one for a CPU (cg_add_target keeps them in order) */
    const char *dump;         /* of a backend's (cg_backend.dumps), else NULL */
    void (*dump_text)(void *user, const char *text);
    void (*warning)(void *user, const char *text);
    void (*progress)(void *user, const char *step, size_t done, size_t total);
    void *user;
    bool in_process; /* no child for what may end its process (subprocess.h) */
} cg_options;

/* Generates code for every entry, bucket and target, packs the weights, links, and puts the artefact at `path` by
 * rename: it appears complete or not at all. Constants that several plans share (the same ir_tensor, or equal bytes)
 * are stored once; kernels with equal specifications are generated once. What GPUs cannot run is left out of their code
 * with a warning (cuda/cuda_backend.h). */
mdot_status cg_write_artefact(const cg_entry *entries, int entry_count, const cg_options *options, const char *path,
                              ir_arena *arena, mdot_error *err);

#endif
