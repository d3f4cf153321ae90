/* compiler.h — what the functions of mdotc.h share. This folder is the outermost layer of libmdotc: it alone, beside
 * cli/, may use the frontend, ir, the code generator and the runtime together.
 *
 *   compile_model.c     mdotc_compile: the whole compilation, a call a stage
 *   predictor_metadata.c     what a model says of its inputs' columns: their names, and what a runtime takes that lacks some
 *   validate_options.c   what a program may hand to these functions
 *   targets.c     names of targets and of arithmetics → what images are made for
 *   onnx_test_check.c       mdotc_check: an ONNX test directory through compiled code
 *   verify_model.c      mdotc_verify: compiled code against the reference evaluator
 *   verify_inputs.c       inputs that are not random, to verify on
 *   fusion_hints.c       what was spelt in a way that is not recognised
 *   data_set.c    tensors in files
 *   random_inputs.c        random inputs that a model can read
 *   bind_shapes.c  data of a test bound into its model where shapes depend on it
 *   compare_outputs.c     tensors out of a run against the tensors that should be
 */
#ifndef CO_COMPILER_H
#define CO_COMPILER_H

#include "codegen/backend.h"
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

/* Of each of the graph's inputs what its metadata says of the columns, in the arena; NULL: nothing. MALFORMED for what
 * is no list of numbers for an input's last columns, or of names for those of a configuration; a warning for notes that
 * mdot does not know. */
mdot_status co_read_columns(const ir_graph *graph, const co_hooks *hooks, ir_arena *arena,
                            const cg_columns **out_columns, mdot_error *err);

/* Tells which matrix products and softmaxes of a graph after its passes no fused kernel was found for. */
void co_hint_unfused(const ir_graph *graph, const co_hooks *hooks);

/* Turns the graph's inputs whose content decides a shape (axes, pads, …) into constants, values[i] being input i's
 * tensor; they stay in the list of inputs. *out_names lists them, NULL for none. False when memory is out. */
bool co_bind_shape_inputs(ir_graph *graph, const ir_tensor *const *values, const char **out_names);

typedef struct co_targets {
    cg_target target[MDOT_ABI_MAX_IMAGES]; /* as cg_options wants them; at least one for a CPU */
    int count;
} co_targets;

/* `names` are those that the backends parse, and `compute` a list of "KIND=ARITHMETIC", KIND being a backend's name;
 * what has none is that of every backend but those that stand behind. NULL, and where a backend is not named: its
 * first. Of several arithmetics for one backend a target gets an image each, the first being preferred. Where no target
 * of a backend that stands behind is named, its usual ones are there. INVALID_ARGUMENT lists the known. */
mdot_status co_parse_targets(const char *const *names, size_t count, const char *kernel_precision,
                             co_targets *out_targets, mdot_error *err);

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
/* Fails when memory is out alone. */
mdot_status co_compare(const co_tensor *got, const ir_wide *want, double relative_tolerance, double absolute_tolerance,
                       co_difference *out_difference, mdot_error *err);
/* `scaled` of two of the evaluator's results of one type. */
double co_scaled_difference(const ir_wide *got, const ir_wide *want);

enum { CO_MAX_TENSORS = 256 };
/* FOLDER/KIND_0.pb, FOLDER/KIND_1.pb, … up to the first that is not there; room for CO_MAX_TENSORS. */
mdot_status co_read_tensors(ir_arena *arena, const char *folder, const char *kind, const ir_tensor **out_tensors,
                            int *out_count, mdot_error *err);
/* ONNX's data sets hold bfloat16 as the same bits under u16, for want of a type in NumPy. */
const ir_tensor *co_under_type(ir_arena *arena, const ir_tensor *stored, mdot_dtype declared);
/* The length at which a symbolic type has the tensor's dims; -1 where there is none, 0 where no dim is symbolic. */
int64_t co_solve_length(const ir_type *type, const ir_tensor *tensor);

/* Inputs of an entry that were given, in the graph's order, and the length at which they are; 0: it has none. */
typedef struct co_verify_inputs {
    const ir_tensor **tensors;
    int64_t length;
} co_verify_inputs;
/* FOLDER/input_0.pb and so on, as ONNX's tests have them. INVALID_ARGUMENT where they are not the graph's inputs. */
mdot_status co_verify_inputs_in_folder(const ir_graph *graph, const char *folder, ir_arena *arena,
                                       co_verify_inputs *out_given, mdot_error *err);
/* What the entry reads of jobs[i] under configuration i: mdot_job_inputs_create's errors, with the pair's number. */
mdot_status co_verify_inputs_of_jobs(const ir_graph *graph, mdot_context *context, size_t entry,
                                     const mdot_job *const *jobs, const mdot_configuration *configurations,
                                     size_t count, ir_arena *arena, co_verify_inputs *out_given, mdot_error *err);

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t co_next_random(uint64_t *state);
/* Content for input `input` of a graph that has types, of the shape that it has at the length: floats are normal, masks
 * scattered, integers that index a table, a dimension or the length itself lie within it. NULL when memory is out. */
ir_wide *co_random_input(const ir_graph *typed, int input, int64_t length, const co_tensor *shape, uint64_t *state,
                         ir_arena *arena);
/* How far off an output may be, relative to the largest, because the model itself computes in 16 bits: a few times the
 * spacing of its coarsest type. 0 for a model that does not. */
double co_rounding(const ir_graph *typed);

/* Runs one entry of an opened predictor. */
mdot_status co_run(mdot_context *context, size_t entry, const co_tensor *inputs, size_t input_count, co_tensor *outputs,
                   size_t output_count, ir_arena *arena, mdot_error *err);

#endif
