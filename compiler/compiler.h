/* compiler.h — what the functions of mdotc.h share. This folder is the outermost layer of libmdotc: it alone, beside
 * cli/, may use the frontend, ir, the code generator and the runtime together.
 *
 *   compile.c     mdotc_compile: the whole compilation, a call a stage
 *   arguments.c   what a program may hand to these functions
 *   targets.c     names of targets → CPU levels and GPU architectures
 *   check.c       mdotc_check: an ONNX test directory through compiled code
 *   verify.c      mdotc_verify: compiled code against the reference evaluator
 *   specialise.c  data of a test bound into its model where shapes depend on it
 *   compare.c     tensors out of a run against the tensors that should be
 */
#ifndef CO_COMPILER_H
#define CO_COMPILER_H

#include "codegen/codegen.h"
#include "ir/graph.h"
#include "mdot/mdot.h"
#include "mdot/mdotc.h"

/* INVALID_ARGUMENT for names that are missing or there twice, buckets that do not ascend or are out of bounds, lists
 * that are counted and not there. */
mdot_status co_check_entries(const mdotc_entry *entries, size_t count, mdot_error *err);
mdot_status co_check_options(const mdotc_options *options, mdot_error *err);
/* `what` names it: "tolerance". Finite and not negative. */
mdot_status co_check_tolerance(const char *what, double tolerance, mdot_error *err);

typedef struct co_hooks { /* all may be NULL */
    const char *dump_pass;
    mdotc_message_fn dump;
    mdotc_message_fn warning;
    mdotc_progress_fn progress;
    void *user;
} co_hooks;

/* Runs the passes and the planner on a copy of the imported `graph` for every bucket. A graph without a symbol makes
 * one plan and `buckets` is not read. With `drop_infeasible`, buckets from the first on that the model cannot reach (a
 * table of 512 positions, say) are left out with a warning, so long as one remains. INVALID_ARGUMENT for a graph with a
 * symbol and no bucket. */
mdot_status co_plan_entry(const char *name, const ir_graph *graph, const int64_t *buckets, size_t bucket_count,
                          bool drop_infeasible, const co_hooks *hooks, ir_arena *arena, cg_entry *out_entry,
                          mdot_error *err);

/* Turns the graph's inputs whose content decides a shape (axes, pads, …) into constants, values[i] being input i's
 * tensor; they stay in the list of inputs. *out_names lists them, NULL for none. False when memory is out. */
bool co_bind_shape_inputs(ir_graph *graph, const ir_tensor *const *values, const char **out_names);

enum { DR_MAX_CUDA_TARGETS = 32 };

typedef struct co_targets { /* both ascending, nothing twice */
    mdot_cpu_level levels[MDOT_ABI_MAX_IMAGES];
    int level_count; /* at least one */
    cg_cuda_target cuda[DR_MAX_CUDA_TARGETS];
    int cuda_count;
} co_targets;

/* "cpu", "cpu:<level>", "cuda" and "sm_<number>[a]". No CPU target given: every level, since the CPU stands behind
 * every GPU. INVALID_ARGUMENT lists the known. */
mdot_status co_parse_targets(const char *const *targets, size_t count, co_targets *out_targets, mdot_error *err);
/* "bf16" or "fp32"; NULL: "bf16". INVALID_ARGUMENT for others. */
mdot_status co_parse_compute(const char *compute, bool *out_fp32, mdot_error *err);

/* A tensor of a run: dense data of a dtype under concrete dims. */
typedef struct co_tensor {
    const char *name;
    mdot_dtype dtype;
    int rank;
    int64_t dims[MDOT_MAX_RANK];
    int64_t count;
    void *data; /* 64-byte aligned */
} co_tensor;

/* Storage for one input or output of an entry at a length. */
mdot_status co_tensor_create(ir_arena *arena, const mdot_tensor_info *info, int64_t length, co_tensor *out_tensor,
                             mdot_error *err);

/* Largest differences between what came and what should have come (ir_wide keeps the reference's double precision).
 * NaN agrees with NaN and an infinity with itself. Non-floating types must be equal: any difference is infinite. */
typedef struct co_difference {
    double absolute; /* max |got - want| */
    double relative; /* the same over max(1, |want|), element by element */
    double scaled;   /* max |got - want| / max(1e-3, max |want|) */
    double excess;   /* max of |got - want| / (absolute tolerance + relative tolerance * |want|): above 1 fails */
    int64_t where;   /* the element of `excess` */
} co_difference;
co_difference co_compare(const co_tensor *got, const ir_wide *want, double relative_tolerance,
                         double absolute_tolerance);

/* Runs one entry of an opened predictor. */
mdot_status co_run(mdot_context *context, size_t entry, const co_tensor *inputs, size_t input_count, co_tensor *outputs,
                   size_t output_count, ir_arena *arena, mdot_error *err);

#endif
