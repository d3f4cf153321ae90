/* mdot.h — predict how long a deep-learning training step takes, in microseconds, from a scheduler's loop.
 *
 * Two layers share one artefact (predictor.mdot):
 *
 *   jobs      mdot_job + mdot_configuration → mdot_prediction. What a scheduler uses.
 *   tensors   mdot_run: an entry point of the artefact on named tensors. What the job layer is built on.
 *
 * The tensor layer is implemented by libmdot; the functions marked [job layer] are declared here so that the
 * interface is settled, and come with the job reader (libmdotjob for those that read ONNX).
 *
 * Ownership   create and open hand over an object, destroy and close take it back and accept NULL. Pointers got by an
 *             accessor are lent and live as long as their object. Arrays and strings passed in are the caller's.
 * Threading   A predictor and a job are immutable once made: any number of threads may share them. A context belongs to
 *             one thread at a time. Nothing here takes a lock.
 * Memory      Opening and creating allocate, map and touch everything. Running and predicting allocate nothing and, on
 *             the CPU, make no system call.
 * Units       Times are milliseconds of wall clock, sizes are bytes, as the names say.
 * Errors      See mdot_base.h. On failure results are untouched.
 * Trust       An artefact is native code. Checksums find damage, not malice: open only what you trust.
 */
#ifndef MDOT_H
#define MDOT_H

#include "mdot_base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MDOT_VERSION_STRING "0.1.0"

/* The library's version, "0.1.0"; static. */
const char *mdot_version(void);

/* ---- Predictors: an opened artefact --------------------------------------------------------------------------- */

typedef struct mdot_predictor mdot_predictor;

typedef struct mdot_open_options { /* zero means default throughout */
    const char *cpu_level; /* "x86-64-v3": use this level's code instead of the best one that the CPU runs. NULL: what the
                              environment variable MDOT_CPU_LEVEL says, if it is set */
    void *(*allocate)(void *user, size_t bytes, size_t alignment); /* NULL: aligned_alloc and free */
    void (*release)(void *user, void *memory); /* both or neither; called by the threads that create and destroy */
    void *user;
} mdot_open_options;

/* Opens, checks and loads the artefact at `path`; options may be NULL. Everything that can fail later fails here:
 * NOT_FOUND, IO, MALFORMED (no artefact, truncated), INCOMPATIBLE (ABI version, CPU level), CORRUPT (checksum),
 * OUT_OF_MEMORY. The file may be replaced or removed while it is open. */
mdot_status mdot_predictor_open(const char *path, const mdot_open_options *options, mdot_predictor **out_predictor,
                                mdot_error *err);
/* Contexts made from the predictor must be destroyed first. */
void mdot_predictor_close(mdot_predictor *predictor);

typedef struct mdot_dim { /* scale * length + offset elements */
    int64_t scale, offset;
} mdot_dim;

typedef struct mdot_tensor_info { /* one input or output of an entry point; tensors are dense and row-major */
    const char *name;
    mdot_dtype dtype;
    int rank;
    mdot_dim dim[MDOT_MAX_RANK];
} mdot_tensor_info;

typedef struct mdot_kernel_info {
    const char *name; /* with ".v3" or ".v4" appended, the symbol in the artefact */
    const char *kind; /* "linear", "attention", "norm", "nest", "sequential" */
    double flops;     /* at full length */
} mdot_kernel_info;

typedef struct mdot_bucket_info {
    int64_t max_length;   /* 0 in an entry without a length */
    size_t scratch_bytes; /* working memory of one call; part of every context */
    double flops;         /* of one call at full length */
    size_t kernel_count;
} mdot_bucket_info;

typedef struct mdot_entry_info {
    const char *name;
    size_t input_count, output_count, bucket_count;
    bool has_length; /* false: every dimension is a number */
    uint64_t schema_hash; /* equal for equal input and output names, types and shapes */
} mdot_entry_info;

typedef struct mdot_predictor_info {
    const char *name;
    const char *compiler;  /* "mdot 0.1.0, LLVM 19.1.7" */
    const char *compute;   /* arithmetic of the matrix kernels: "fp32" */
    const char *cpu_level; /* the level in use */
    size_t level_count, entry_count;
    size_t weights_bytes, file_bytes;
} mdot_predictor_info;

/* Accessors. Indices beyond the counts are OUT_OF_RANGE; strings are lent by the predictor. */
void mdot_predictor_get_info(const mdot_predictor *predictor, mdot_predictor_info *out_info);
mdot_status mdot_predictor_get_level(const mdot_predictor *predictor, size_t level, const char **out_name);
mdot_status mdot_predictor_find_entry(const mdot_predictor *predictor, const char *name, size_t *out_entry);
mdot_status mdot_predictor_get_entry(const mdot_predictor *predictor, size_t entry, mdot_entry_info *out_info);
mdot_status mdot_predictor_get_input(const mdot_predictor *predictor, size_t entry, size_t input,
                                     mdot_tensor_info *out_info);
mdot_status mdot_predictor_get_output(const mdot_predictor *predictor, size_t entry, size_t output,
                                      mdot_tensor_info *out_info);
mdot_status mdot_predictor_get_bucket(const mdot_predictor *predictor, size_t entry, size_t bucket,
                                      mdot_bucket_info *out_info);
mdot_status mdot_predictor_get_kernel(const mdot_predictor *predictor, size_t entry, size_t bucket, size_t kernel,
                                      mdot_kernel_info *out_info);

/* ---- Contexts: what one thread needs to run -------------------------------------------------------------------- */

typedef struct mdot_context mdot_context;

/* Allocates and touches the scratch memory of the largest bucket of every entry. */
mdot_status mdot_context_create(const mdot_predictor *predictor, mdot_context **out_context, mdot_error *err);
void mdot_context_destroy(mdot_context *context);

typedef struct mdot_input { /* a dense row-major tensor, aligned to its element size */
    const char *name;
    mdot_dtype dtype;
    int rank;
    const int64_t *dims;
    const void *data;
} mdot_input;

typedef struct mdot_output {
    const char *name;
    void *data;        /* aligned to the element size */
    size_t size_bytes; /* of `data`; too little is OUT_OF_RANGE */
} mdot_output;

/* Runs entry point `entry` (an index) once. Inputs and outputs may come in any order but each exactly once; the inputs'
 * dimensions settle the length, and the smallest bucket that holds it runs, at the cost of the length, not of the bucket.
 * INVALID_ARGUMENT for a missing, unknown or repeated name, dtype or rank; OUT_OF_RANGE for a length beyond the largest
 * bucket or inputs whose lengths differ. Indices in the data (of an embedding, say) that are outside their table are
 * clamped to it. */
mdot_status mdot_run(mdot_context *context, size_t entry, const mdot_input *inputs, size_t input_count,
                     const mdot_output *outputs, size_t output_count, mdot_error *err);

/* The same without names and checks of names: arrays in the entry's order, the length given (0 without one). Only the
 * length is checked. For callers that settled everything else once. */
mdot_status mdot_run_ordered(mdot_context *context, size_t entry, int64_t length, const void *const *inputs,
                             void *const *outputs, mdot_error *err);

/* Bucket index that a length would run in. OUT_OF_RANGE beyond the largest. */
mdot_status mdot_predictor_find_bucket(const mdot_predictor *predictor, size_t entry, int64_t length,
                                       size_t *out_bucket);

/* ---- Jobs [job layer] ------------------------------------------------------------------------------------------ */

/* A training job's operator sequence: types, configurations and per-sample loads. It holds no weights and no names. */
typedef struct mdot_job mdot_job;

/* From a `.job` file or its bytes, as written by mdot_job_save; the bytes are not kept. MALFORMED or CORRUPT otherwise. */
mdot_status mdot_job_load(const char *path, mdot_job **out_job, mdot_error *err);
mdot_status mdot_job_parse(const void *bytes, size_t size_bytes, mdot_job **out_job, mdot_error *err);
mdot_status mdot_job_save(const mdot_job *job, const char *path, mdot_error *err);
void mdot_job_destroy(mdot_job *job);

typedef enum mdot_precision { MDOT_PRECISION_FP32, MDOT_PRECISION_TF32, MDOT_PRECISION_AMP } mdot_precision;
typedef enum mdot_layout { MDOT_LAYOUT_NCHW, MDOT_LAYOUT_NHWC } mdot_layout;
typedef enum mdot_optimizer { MDOT_OPTIMIZER_SGD, MDOT_OPTIMIZER_ADAM, MDOT_OPTIMIZER_ADAMW } mdot_optimizer;

typedef struct mdot_configuration {
    int64_t batch;   /* samples a step on one GPU, at least 1 */
    const char *gpu; /* a name of mdot_gpu_name */
    int gpu_count;   /* data-parallel workers; 0 means 1 */
    mdot_precision precision;
    mdot_layout layout;
    mdot_optimizer optimizer;
} mdot_configuration;

/* What the prediction stands on; a bit set means less trust. */
enum {
    MDOT_WARN_UNKNOWN_OPERATOR = 1u << 0, /* the job has operators that the predictor never saw */
    MDOT_WARN_OUTSIDE_TRAINING = 1u << 1, /* batch, GPU or loads beyond the training data */
    MDOT_WARN_SHORTENED = 1u << 2,        /* operators were merged to fit the largest bucket */
    MDOT_WARN_FALLBACK = 1u << 3          /* a GPU failed and the CPU answered */
};

typedef struct mdot_prediction {
    double step_ms;                    /* one training step: forward, backward, optimizer */
    double lower_ms, upper_ms;         /* 90 % interval */
    uint64_t peak_memory_bytes;        /* weights, gradients, optimizer state and live activations */
    bool fits;                         /* peak_memory_bytes against the GPU's memory */
    uint32_t warnings;
} mdot_prediction;

/* Names that configurations may use, ending with NULL; static. */
const char *const *mdot_gpu_names(void);

/* One prediction. INVALID_ARGUMENT names the unknown GPU or the bad field. */
mdot_status mdot_predict(mdot_context *context, const mdot_job *job, const mdot_configuration *configuration,
                         mdot_prediction *out_prediction, mdot_error *err);

/* `count` (job, configuration) pairs at once; out_predictions[i] answers pair i. All or nothing. */
mdot_status mdot_predict_many(mdot_context *context, const mdot_job *const *jobs,
                              const mdot_configuration *configurations, size_t count,
                              mdot_prediction *out_predictions, mdot_error *err);

/* One job under `count` configurations: what belongs to the job alone is computed once. All or nothing. */
mdot_status mdot_sweep(mdot_context *context, const mdot_job *job, const mdot_configuration *configurations,
                       size_t count, mdot_prediction *out_predictions, mdot_error *err);

#ifdef __cplusplus
}
#endif
#endif
