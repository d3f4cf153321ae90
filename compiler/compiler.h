/* compiler.h — declarations shared by the functions of mdotc.h. This folder is the outermost layer of libmdotc. Only
 * this folder and cli/ may use the frontend, ir, the code generator and the runtime together.
 *
 *   compile_model.c       mdotc_compile: the whole compilation, one call per stage
 *   predictor_metadata.c  column names and defaults of inputs, read from a model's metadata
 *   validate_options.c    validation of a caller's arguments
 *   targets.c             names of targets and precisions → targets of images
 *   onnx_test_check.c     mdotc_check: run an ONNX test directory through compiled code
 *   verify_model.c        mdotc_verify: compare compiled code with the reference evaluator
 *   verify_inputs.c       inputs to verify on, other than random ones
 *   fusion_hints.c        hints for patterns that were not fused
 *   data_set.c            tensors in files
 *   random_inputs.c       random inputs that a model can read
 *   model_rounding.c      the error permitted by the model's own number types
 *   element_bounds.c      the error permitted by the model's sensitivity
 *   bind_shapes.c         binds data of a test into its model if shapes depend on it
 *   compare_outputs.c     compares tensors of a run with the expected ones
 */
#pragma once

#include "codegen/backend.h"
#include "ir/graph.h"
#include "mdot/mdot.h"
#include "mdot/mdotc.h"

/* INVALID_ARGUMENT for missing or repeated names, for buckets that do not ascend or are out of bounds, and for NULL
 * lists with a count above zero. */
mdot_status co_check_entries(const mdotc_entry *entries, size_t count, mdot_error *err);
mdot_status co_check_options(const mdotc_options *options, mdot_error *err);
/* Refuses a tolerance below 0 or not finite. `what` is the name in messages: "tolerance". */
mdot_status co_check_tolerance(const char *what, double tolerance, mdot_error *err);

typedef struct co_hooks { /* every field may be NULL */
    const char *dump_pass;
    mdotc_message_fn dump;
    mdotc_message_fn warning;
    mdotc_progress_fn progress;
    void *user;
} co_hooks;

/* Runs the passes and the planner for every bucket, on a copy of the imported `graph`. A graph without a symbol makes
 * one plan and ignores `buckets`. With `allow_dropped`, a bucket that the model cannot reach (for example because
 * of a table of 512 positions) is dropped with a warning, and so are the later ones; at least one bucket must remain.
 * INVALID_ARGUMENT for a graph with a symbol if there are zero buckets. */
mdot_status co_plan_entry(const char *name, const ir_graph *graph, const int64_t *buckets, size_t bucket_count,
                          bool allow_dropped, const co_hooks *hooks, ir_arena *arena, cg_entry *out_entry,
                          mdot_error *err);

/* Reads the columns of each of the graph's inputs from its metadata, into the arena; NULL if the metadata omits them.
 * MALFORMED for an invalid list of default numbers for an input's last columns, or of names for the columns of a
 * configuration. A note that mdot does not know causes a warning. */
mdot_status co_read_columns(const ir_graph *graph, const co_hooks *hooks, ir_arena *arena,
                            const cg_columns **out_columns, mdot_error *err);

/* Issues hints about unfused matmuls and softmaxes, in a graph after all passes. */
void co_hint_unfused(const ir_graph *graph, const co_hooks *hooks);

/* Turns inputs of the graph whose contents determine a shape (axes, pads, …) into constants; values[i] is the tensor of
 * input i. They stay in the list of inputs. *out_names lists them; NULL if there are none. False if memory ran out. */
bool co_bind_shape_inputs(ir_graph *graph, const ir_tensor *const *values, const char **out_names);

typedef struct co_targets {
    cg_target target[MDOT_ABI_MAX_IMAGES]; /* in the order of cg_options; at least one is for a CPU */
    int count;
} co_targets;

/* Parses target `names`, by the backends' parsers, and `compute`, a list of "KIND=PRECISION" in which KIND is a
 * backend's name. An item without a kind applies to every backend that has the precision. A backend that the list omits
 * uses the first precision, and so do all if `compute` is NULL. If a backend gets several precisions, each target gets
 * one image per precision, and the first is preferred. A fallback backend (`is_default`) gets its usual targets if none
 * of them is named. INVALID_ARGUMENT lists the known names. */
mdot_status co_parse_targets(const char *const *names, size_t count, const char *kernel_precision,
                             co_targets *out_targets, mdot_error *err);

/* Opens an artefact and runs each entry on zeros at its shortest length. Accepts code for other processors than this
 * one unrun. */
mdot_status co_try_artefact(const char *path, mdot_error *err);

/* A run's tensor: dense data of a dtype with constant dims. */
typedef struct co_tensor {
    const char *name;
    mdot_dtype dtype;
    int rank;
    int64_t dims[MDOT_MAX_RANK];
    int64_t count;
    void *data; /* 64-byte aligned */
} co_tensor;

/* Allocates the inputs or the outputs of an entry at a length. */
mdot_status co_create_tensors(const mdot_predictor *predictor, size_t entry, int64_t length, bool are_inputs,
                              size_t count, ir_arena *arena, co_tensor *out_tensors, mdot_error *err);

/* Largest differences between the tensor of a run and the expected one (ir_wide keeps the reference's double
 * precision). NaN equals NaN and an infinity equals itself. Non-floating types must be equal: any difference is
 * infinite. */
typedef struct co_difference {
    double absolute; /* max |got - want| */
    double relative; /* max of |got - want| / max(1, |want|), element by element */
    double excess;   /* max of |got - want| / (absolute tolerance + relative tolerance * |want|); fails above 1 */
    int64_t index;   /* index of the element of `excess` */
} co_difference;
/* Returns |actual - expected|; NaN equals NaN and an infinity equals itself. */
double co_distance(double actual, double expected);
/* Fails only if memory ran out. */
mdot_status co_compare(const co_tensor *actual, const ir_wide *expected, double relative_tolerance,
                       double absolute_tolerance, co_difference *out_difference, mdot_error *err);

enum { CO_MAX_TENSORS = 256 };
/* Reads FOLDER/KIND_0.pb, FOLDER/KIND_1.pb, … up to the first missing file. The array holds CO_MAX_TENSORS. */
mdot_status co_read_tensors(ir_arena *arena, const char *folder, const char *kind, const ir_tensor **out_tensors,
                            int *out_count, mdot_error *err);
/* Reinterprets a tensor as the declared type. ONNX's data sets store bfloat16 bits as u16, because NumPy lacks the
 * type. */
const ir_tensor *co_reinterpret(ir_arena *arena, const ir_tensor *stored, mdot_dtype declared);
/* Returns the length at which a symbolic type has the tensor's dims; -1 if it is absent, 0 if every dim is constant. */
int64_t co_solve_length(const ir_type *type, const ir_tensor *tensor);

/* An entry's inputs from the caller, in the graph's order, and the length; 0 if the entry has none. */
typedef struct co_verify_inputs {
    const ir_tensor **tensors;
    int64_t length;
} co_verify_inputs;
/* Reads FOLDER/input_0.pb and so on, as in ONNX's tests. INVALID_ARGUMENT if they differ from the graph's inputs. */
mdot_status co_verify_inputs_in_folder(const ir_graph *graph, const char *folder, ir_arena *arena,
                                       co_verify_inputs *out_inputs, mdot_error *err);
/* Creates the entry's inputs for jobs[i] under configuration i. Errors are those of mdot_job_inputs_create, with the
 * pair's index. */
mdot_status co_verify_inputs_of_jobs(const ir_graph *graph, mdot_context *context, size_t entry,
                                     const mdot_job *const *jobs, const mdot_configuration *configurations,
                                     size_t count, ir_arena *arena, co_verify_inputs *out_inputs, mdot_error *err);

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t co_next_random(uint64_t *state);
typedef enum co_style {
    CO_NORMAL,   /* floats normally distributed; a fifth of each mask off, but not a row's first element */
    CO_POSITIVE, /* floats e^x of these, for roots and logarithms */
    CO_ABOVE,    /* floats above 3, for Acosh and logarithms of logarithms */
    CO_BELOW,    /* floats below -3 */
    CO_UNIT,     /* floats between 0 and 1, for probabilities */
    CO_WIDE,     /* floats eight times as great; integers from 0 to 9 */
    CO_NARROW,   /* floats a sixteenth as great, for functions that saturate; integers as in CO_WIDE */
    CO_VAST,     /* integers of any size up to 2^20 and of both signs, where no table limits them */
    CO_MASKED    /* the first row of each mask is off */
} co_style;
/* Fills a typed graph's input `input` in this shape, for a length. Integers that index a table, a dimension or the
 * length stay within range; successive calls with one *cursor, from 0 on, draw the whole range before they repeat.
 * NULL if memory ran out. */
ir_wide *co_random_input(const ir_graph *typed, int input, int64_t length, const co_tensor *shape, co_style style,
                         int64_t *cursor, uint64_t *state, ir_arena *arena);
/* The exclusive upper bound of the input's integers; INT64_MAX: no table, dimension or length limits them. */
int64_t co_index_bound(const ir_graph *typed, int input, int64_t length);
/* Returns the permitted error, relative to the largest value, if the model itself computes in 16 bits: a few times the
 * coarsest type's spacing. 0 if the model computes in wider types only. *out_quantised includes the steps of quantised
 * values. */
double co_rounding(const ir_graph *typed, double *out_quantised);
/* Per output, one step of the quantised values that it consists of, because right code may round a value between two
 * steps to either. 0: other outputs. False: memory ran out. */
bool co_find_steps(const ir_graph *typed, ir_arena *arena, double *out_steps);

/* ---- element_bounds.c: the error that an output's elements may have, from the model's own sensitivity ------------ */

enum { CO_HALF_TYPES = 2 }; /* bf16, fp16 */

/* One output of the model by several evaluations (ir/ops.h). */
typedef struct co_expected {
    const ir_wide *exact, *single, *noisy;
    const ir_wide *rounded[CO_HALF_TYPES]; /* NULL: no code multiplies in this type */
} co_expected;

/* Per element of an output, in one precision of the code. */
typedef struct co_bounds {
    double *scale; /* greatest magnitude of the column (the last dimension), or of the channel (dimension 1) if that is
                      less, times the row's greatest share of that */
    double *error; /* permitted error */
    double *rounding; /* change by 16-bit factors; NULL: the code multiplies in f32 */
    double base;      /* permitted relative to the scale if rounding changes nothing by more */
    double tight;     /* the same without rounding to quantised steps */
    double moved;     /* share of elements that rounding changes by more than that */
    double step;      /* permitted for a few elements of quantised outputs (co_find_steps) */
} co_bounds;
/* The permitted error is `base` times the scale; or more, if rounding changes the element, its column or its row by
 * more in the model itself. half: index in `rounded`, or -1. *typical collects the median sensitivity over all
 * lengths, for outputs with few elements. *out_vague: share of elements with a bound above a tenth of the scale; such
 * values say little. False: memory ran out. */
bool co_find_bounds(const co_expected *expected, bool has_channels, int half, double base, double step, double tight,
                    double units, double *typical, ir_arena *arena, co_bounds *out_bounds, double *out_vague);

typedef struct co_worst { /* where the error is the greatest part of what is permitted */
    double share;         /* error over permitted error; passes up to 1 */
    double error, bound;  /* both relative to the scale */
    double moved;         /* share of elements with an error above `tight` */
    int64_t length;       /* of the run, from the caller */
} co_worst;
/* Integers must equal one of the evaluations. For 16-bit code, the mean square error of each column is limited, too.
 * `skips_nan`: elements that are NaN in the model are left out. Infinite if the type or the shape differs. */
mdot_status co_find_worst(const co_tensor *actual, const co_expected *expected, const co_bounds *bounds, bool skips_nan,
                          co_worst *out_worst, mdot_error *err);

/* Runs one entry of an opened predictor. */
mdot_status co_run(mdot_context *context, size_t entry, const co_tensor *inputs, size_t input_count, co_tensor *outputs,
                   size_t output_count, ir_arena *arena, mdot_error *err);
