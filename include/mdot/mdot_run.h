/* mdot_run.h — open an artefact, inspect it, and run its entry points on named tensors.
 *
 * mdot.h includes this header and states the library's rules: ownership, threading, memory, errors.
 */
#ifndef MDOT_RUN_H
#define MDOT_RUN_H

#include "mdot_base.h"

MDOT_BEGIN_DECLARATIONS

/* ---- Predictors: an opened artefact --------------------------------------------------------------------------- */

/* An opened artefact. Immutable.
 *
 * @threads any number may share a predictor
 */
typedef struct mdot_predictor mdot_predictor;

typedef struct mdot_open_options { /* zero selects every default */
    size_t struct_size;
    /* "x86-64-v3": use this ISA level's code instead of the CPU's best. NULL: the environment variable MDOT_CPU_ISA if
     * it is set */
    const char *cpu_isa;
    /* processor for calls: "cpu"; "cuda:1", the driver's second GPU; "cuda", the first; "auto", the first GPU or the
     * CPU, whichever answers faster in a trial at open. NULL: the environment variable MDOT_DEVICE, else "auto" */
    const char *device;
    /* in milliseconds; 0: 1000. The GPU has failed if it takes longer than this to answer or if the driver takes longer
     * to launch. For other work (starting, loading code, allocating, freeing) the driver has thirty times as long */
    uint32_t device_timeout_ms;
    void *(*allocate)(void *user, size_t bytes, size_t alignment); /* NULL: aligned_alloc and free */
    /* set both or neither; called by the threads that create and destroy objects */
    void (*release)(void *user, void *memory);
    void *user;
    /* "fp32", "bf16" or "fp16": use only images of this precision. NULL: the predictor's choice. If a GPU runs the
     * calls, the CPU behind it may have to use another precision */
    const char *kernel_precision;
} mdot_open_options;

/* Opens, checks and loads an artefact. All checks happen here, so that later calls are safe from a bad file. The file
 * is copied: it may be replaced, overwritten, truncated or removed while the artefact is open.
 *
 * One effect is process-wide: if the artefact has code for AMX tiles and the CPU has tiles, the library requests
 * Linux's permission for tiles (arch_prctl(2)), for all threads and permanently. Signal frames may then be about 8 KB
 * larger.
 *
 * The library looks for a GPU only if the artefact has code for one. Each GPU kernel has run once when this function
 * returns. The CPU is the fallback: if the GPU fails a call or misses the time limit, the CPU answers this and every
 * later call in the context (mdot_context_get_device_status).
 *
 * Library threads call the driver: one per predictor on a GPU and one per context. Therefore opening, creating,
 * running, destroying and closing return within limits even if the driver hangs. The resources of a hung call are
 * released when it returns; until then, open requests no GPU. Passing a launch to its thread takes about a microsecond,
 * or 10 to 30 us if the last launch was more than about 0.2 ms ago, because the thread sleeps by then. A child of fork
 * lacks these threads, so that the CPU answers there.
 *
 * @param path file name of an artefact
 * @param options NULL selects all defaults
 * @errors NOT_FOUND; IO (the path is no regular file); MALFORMED (another kind of file, or a truncated one);
 *     INCOMPATIBLE (ABI version, CPU ISA level, precision); CORRUPT (checksum); DEVICE (a GPU requested by name is
 *     absent, fails, or lacks code in the artefact); OUT_OF_MEMORY */
mdot_status mdot_predictor_open(const char *path, const mdot_open_options *options, mdot_predictor **out_predictor,
                                mdot_error *err);
/* Closes a predictor, which the caller must not use any more. Existing contexts keep working, and keep the predictor's
 * memory, borrowed pointers and memory functions alive until the last context is destroyed. For example, to switch to a
 * new artefact, open it, create contexts, close the old predictor, and let each thread change over at any time.
 *
 * @param predictor NULL is accepted */
void mdot_predictor_close(mdot_predictor *predictor);

/* Extent of a dimension: scale * length + offset elements, plus mdot_dim_floor. */
typedef struct mdot_dim {
    int64_t scale, offset; /* elements per length unit; elements at length 0 */
} mdot_dim;

/* Added to a rounded extent, for example behind a strided convolution: times * floor((step * length + start) / divisor)
 * elements. All fields are 0 if the extent is scale * length + offset. */
typedef struct mdot_dim_floor {
    int32_t times;   /* elements per floor unit, above 0 */
    int32_t step;    /* length factor, 1 to divisor - 1 */
    int32_t start;   /* summand, 0 to divisor - 1 */
    int32_t divisor; /* divisor, 2 to 2^16 */
} mdot_dim_floor;

typedef struct mdot_tensor_info { /* one input or output of an entry point; tensors are dense and row-major */
    size_t struct_size;
    const char *name;                    /* tensor name in the model */
    mdot_dtype dtype;                    /* element type */
    int rank;                            /* dimensions, 0 to MDOT_MAX_RANK */
    mdot_dim dim[MDOT_MAX_RANK];         /* extents; zero from `rank` on */
    const char *columns;                 /* column names, separated by commas; empty if the artefact omits them */
    mdot_dim_floor floor[MDOT_MAX_RANK]; /* of an output; 0 for inputs */
} mdot_tensor_info;

/* The extent of dimension `axis` (0 … rank - 1) at a length from 1 on, without an overflow check. */
static inline int64_t mdot_tensor_extent(const mdot_tensor_info *tensor, int axis, int64_t length)
{
    const mdot_dim *dim = &tensor->dim[axis];
    const mdot_dim_floor *floor = &tensor->floor[axis];
    int64_t extent = dim->scale * length + dim->offset;
    return floor->times == 0 ? extent
                             : extent + floor->times * ((floor->step * length + floor->start) / floor->divisor);
}

/* One kernel in a bucket. */
typedef struct mdot_kernel_info {
    size_t struct_size;
    const char *name; /* symbol in the artefact less its suffix, such as ".v3" or ".v4" */
    const char *kind; /* "linear", "attention", "norm", "nest", "sequential" */
    double flops;     /* FLOPs per call at full length */
    /* index of the bucket step with this kernel; small kernels run together in one step (mdot_run_step) */
    size_t step;
} mdot_kernel_info;

/* A bucket: the code for a range of lengths. */
typedef struct mdot_bucket_info {
    size_t struct_size;
    int64_t max_length;   /* 0 in an entry that has no length */
    size_t scratch_bytes; /* working memory for one call; part of every context */
    double flops;         /* per call at full length */
    size_t kernel_count;  /* kernels that one call runs */
} mdot_bucket_info;

/* An entry point. */
typedef struct mdot_entry_info {
    size_t struct_size;
    const char *name;      /* entry name, for example "run"; borrowed */
    size_t input_count;    /* number of inputs */
    size_t output_count;   /* number of outputs */
    size_t bucket_count;   /* number of buckets, at least 1 */
    bool has_length;       /* false: every dimension is a constant */
    uint64_t schema_hash;  /* equal for equal input and output names, types and shapes */
    int64_t min_length;    /* shortest length: 1 by default; 0 for an entry without a length */
    size_t items_together; /* most items that mdot_run_many computes together; 1: one after the other */
} mdot_entry_info;

/* Code and weights for one kind of processor. */
typedef struct mdot_image_info {
    size_t struct_size;
    const char *kind;             /* "cpu", "cuda" */
    const char *target;           /* "x86-64-v4"; or "sm_90a", an architecture of NVIDIA's GPUs */
    const char *kernel_precision; /* the matrix kernels' precision: "bf16", "fp16", "fp32" */
    size_t image_bytes;           /* size of the code; on a GPU, of the cubin */
    size_t weights_bytes;         /* size of the weights; images share equal weights in the file */
} mdot_image_info;

typedef struct mdot_image_kernel_info { /* one bucket's code: one launch on a GPU, one call on a CPU */
    size_t struct_size;
    /* function name in the cubin. Empty in a CPU image, which sets only `threads` (to 1) and scratch_bytes */
    const char *name;
    unsigned threads;             /* threads per block */
    unsigned grid_barriers;       /* number of waits in which all blocks of a prediction meet */
    unsigned registers;           /* registers per thread */
    unsigned tensor_instructions; /* tensor-core instructions in the code */
    unsigned barriers;            /* hardware barriers per block, at most 16 */
    size_t shared_bytes;          /* static and dynamic shared memory per block */
    size_t local_bytes;           /* local memory per thread; 0 if all values are in registers */
    size_t spill_bytes;           /* size of the code's register spills, stores and loads together */
    size_t inline_input_bytes;    /* inputs up to this size are passed with the launch */
    size_t scratch_bytes;         /* scratch memory per prediction */
    size_t code_bytes;            /* instruction bytes */
} mdot_image_kernel_info;

/* An opened artefact as a whole. Its strings are borrowed from the predictor. */
typedef struct mdot_predictor_info {
    size_t struct_size;
    const char *name;                    /* predictor name: mdotc_options.name */
    const char *compiler;                /* "mdot 0.2.0, LLVM 19.1.7" */
    const char *kernel_precision;        /* the matrix kernels' precision on the CPU: "fp32", "bf16" */
    const char *cpu_isa;                 /* target of the CPU image in use: "x86-64-v4" */
    size_t entry_count;                  /* entry points, at least 1 */
    size_t image_count;                  /* images in the artefact, CPUs first */
    size_t weights_bytes;                /* weights in all CPU images together */
    size_t file_bytes;                   /* artefact size */
    const char *device;                  /* "cpu", "cuda:0" */
    const char *device_name;             /* "NVIDIA H200"; empty for the CPU */
    const char *device_kernel_precision; /* the matrix kernels' precision on the device: "fp32", "bf16", "fp16" */
    const char *device_reason; /* reason for the choice of device: "cuda:0 answers in 28 us, the CPU in 5231 us" */
    /* reason why a more capable CPU image is unused: "x86-64-amx needs AMX-TILE, which this machine lacks"; empty if
     * the last image is in use */
    const char *cpu_reason;
    /* PyTorch's version if the configuration leaves it open, as 100 * major + minor; 0: the predictor does not state
     * it */
    uint32_t assumed_torch;
    uint32_t reserved; /* 0 */
} mdot_predictor_info;

/* Describes an opened artefact.
 *
 * @param out_info receives the description; its strings are borrowed from the predictor
 * @errors INVALID_ARGUMENT for NULL or an invalid struct_size
 */
mdot_status mdot_predictor_get_info(const mdot_predictor *predictor, mdot_predictor_info *out_info);
/* Finds an entry point by name.
 *
 * @param name for example "predict"
 * @param out_entry receives the entry's index
 * @errors NOT_FOUND, INVALID_ARGUMENT for NULL */
mdot_status mdot_predictor_find_entry(const mdot_predictor *predictor, const char *name, size_t *out_entry);
/* Describes an entry point.
 *
 * @param entry index below entry_count
 * @param out_info receives the description; strings are borrowed from the predictor
 * @errors OUT_OF_RANGE for an index beyond the count; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_predictor_get_entry(const mdot_predictor *predictor, size_t entry, mdot_entry_info *out_info);
/* Describes an entry point's input.
 *
 * @param entry entry index, below entry_count
 * @param input input index, below input_count
 * @param out_info receives name, type and shape; strings are borrowed from the predictor
 * @errors OUT_OF_RANGE for an index beyond the count; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_predictor_get_input(const mdot_predictor *predictor, size_t entry, size_t input,
                                     mdot_tensor_info *out_info);
/* Describes an entry point's output.
 *
 * @param entry entry index, below entry_count
 * @param output output index, below output_count
 * @param out_info receives name, type and shape; strings are borrowed from the predictor
 * @errors OUT_OF_RANGE for an index beyond the count; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_predictor_get_output(const mdot_predictor *predictor, size_t entry, size_t output,
                                      mdot_tensor_info *out_info);
/* Describes a bucket: the code for a range of lengths.
 *
 * @param entry entry index, below entry_count
 * @param bucket bucket index, below bucket_count
 * @param out_info receives the description
 * @errors OUT_OF_RANGE for an index beyond the count; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_predictor_get_bucket(const mdot_predictor *predictor, size_t entry, size_t bucket,
                                      mdot_bucket_info *out_info);
/* Describes a kernel in a bucket.
 *
 * @param entry entry index, below entry_count
 * @param bucket bucket index, below bucket_count
 * @param kernel kernel index in execution order, below kernel_count
 * @param out_info receives the description; strings are borrowed from the predictor
 * @errors OUT_OF_RANGE for an index beyond the count; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_predictor_get_kernel(const mdot_predictor *predictor, size_t entry, size_t bucket, size_t kernel,
                                      mdot_kernel_info *out_info);
/* Describes an image: the code and weights for one kind of processor.
 *
 * @param image image index, below image_count
 * @param out_info receives the description; strings are borrowed from the predictor
 * @errors OUT_OF_RANGE for an index beyond the count; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_predictor_get_image(const mdot_predictor *predictor, size_t image, mdot_image_info *out_info);
/* Describes one bucket's code in one image.
 *
 * @param image image index, below image_count
 * @param entry entry index, below entry_count
 * @param bucket bucket index, below bucket_count
 * @param out_info receives the description; strings are borrowed from the predictor
 * @errors OUT_OF_RANGE for an index beyond the count; INVALID_ARGUMENT for NULL or an invalid struct_size */
mdot_status mdot_predictor_get_image_kernel(const mdot_predictor *predictor, size_t image, size_t entry, size_t bucket,
                                            mdot_image_kernel_info *out_info);

/* ---- Contexts: one thread's working memory ------------------------------------------------------------------ */

/* One thread's working memory.
 *
 * @threads a context belongs to one thread at a time
 */
typedef struct mdot_context mdot_context;

/* Creates a context: one thread's working memory. It allocates scratch memory for the largest bucket of every
 * entry and touches the first 16 MiB; calls commit the rest as far as they reach. On a GPU it also allocates memory
 * for launches with many predictions at once: up to 256 MiB on the device, less if less is free, and 64 MiB pinned on
 * the host.
 *
 * @errors OUT_OF_MEMORY; DEVICE if the GPU was requested by name and fails */
mdot_status mdot_context_create(const mdot_predictor *predictor, mdot_context **out_context, mdot_error *err);

/* Calls work(argument, i) once for every i below `count`, on any threads, in parallel or in sequence. Returns when
 * all calls have returned. */
typedef void (*mdot_parallel_for_fn)(void *user, void (*work)(void *argument, uint32_t i), void *argument,
                                     uint32_t count);

typedef struct mdot_context_options { /* zero selects every default */
    size_t struct_size;
    uint32_t threads;  /* threads that share a call on the CPU, the caller's included, up to 64; 0: 1 */
    uint32_t reserved; /* must be 0 */
    /* runs the work on the caller's threads; called once per shared call, with `threads` pieces. NULL: the context
     * starts its own threads */
    mdot_parallel_for_fn parallel_for;
    void *user;
} mdot_context_options;

/* Creates a context for calls that several threads share. Calls at a length from 256 on are divided. Shorter calls run
 * on the caller's thread and cost the same as in a single-threaded context. Results are identical bit for bit for any
 * number of threads.
 *
 * The context's own threads sleep between calls, block all signals, and end with the context. A call wakes sleeping
 * threads with one system call, and never waits for a missing thread. A child of fork lacks these threads: calls run on
 * the caller's thread only, and the context is destroyed as usual.
 *
 * @param options NULL selects all defaults
 * @errors INVALID_ARGUMENT for more than 64 threads; OUT_OF_MEMORY also if thread creation fails; DEVICE as above */
mdot_status mdot_context_create_with(const mdot_predictor *predictor, const mdot_context_options *options,
                                     mdot_context **out_context, mdot_error *err);
/* Destroys a context and ends its threads.
 *
 * @param context NULL is accepted
 */
void mdot_context_destroy(mdot_context *context);

/* Returns MDOT_OK while calls run on the device in mdot_predictor_info. Otherwise the GPU has failed in this context
 * and calls run on the CPU.
 *
 * @param out_message receives the reason, borrowed from the context; "" while the device works
 * @return MDOT_OK, or the status of the GPU's failure
 * @errors every status of a failed GPU, usually DEVICE; INVALID_ARGUMENT for NULL */
mdot_status mdot_context_get_device_status(const mdot_context *context, const char **out_message);

typedef struct mdot_input { /* a dense row-major tensor, aligned to its element size */
    const char *name;       /* name of a predictor input */
    mdot_dtype dtype;       /* element type, which must be the input's */
    int rank;               /* dimensions, 0 to MDOT_MAX_RANK */
    const int64_t *dims;    /* `rank` extents in elements; may be NULL if rank is 0 */
    const void *data;       /* its elements */
} mdot_input;

/* Memory for one output, which the call fills as a dense row-major tensor. */
typedef struct mdot_output {
    const char *name;  /* name of a predictor output */
    void *data;        /* aligned to the element size */
    size_t size_bytes; /* bytes in `data`; OUT_OF_RANGE if it is too small */
} mdot_output;

/* Runs an entry point once. Inputs and outputs may come in any order, each exactly once. The input dimensions determine
 * the length, and the smallest sufficient bucket runs. The cost depends on the length, rather than on the bucket.
 * Indices in the data (for example of an embedding) are clamped to the table. If a mask of -inf hides every key from a
 * query, the attention result is zero, rather than NaN.
 *
 * @param entry index below entry_count
 * @param inputs one for each entry input, in any order
 * @param input_count entries in `inputs`
 * @param outputs one for each entry output, in any order
 * @param output_count entries in `outputs`
 * @errors INVALID_ARGUMENT for a missing, unknown or repeated name and for a wrong dtype or rank; OUT_OF_RANGE for a
 *     length beyond the largest bucket and for inputs with different lengths */
mdot_status mdot_run(mdot_context *context, size_t entry, const mdot_input *inputs, size_t input_count,
                     const mdot_output *outputs, size_t output_count, mdot_error *err);

/* Like mdot_run, with arrays in the entry's order instead of names. Only the length is checked, so use it after one
 * check of all other properties.
 *
 * @param entry index below entry_count
 * @param length number of rows, from min_length to the largest bucket; 0 for an entry without a length
 * @param inputs dense tensors in the entry's order
 * @param outputs memory for the outputs in the entry's order
 * @errors OUT_OF_RANGE for a length beyond these limits */
mdot_status mdot_run_ordered(mdot_context *context, size_t entry, int64_t length, const void *const *inputs,
                             void *const *outputs, mdot_error *err);

/* Runs a single step of such a call, for measurements. The step runs on the CPU on the calling thread. To reproduce
 * mdot_run_ordered on the CPU bit for bit, run all steps of a bucket once, in order, on the same inputs and outputs,
 * and make no other call with the context in between.
 *
 * @param entry index below entry_count
 * @param length number of rows, from min_length to the largest bucket; 0 for an entry without a length
 * @param inputs dense tensors in the entry's order
 * @param outputs memory for the outputs in the entry's order
 * @param step step index, counted from 0 as in mdot_kernel_info
 * @errors OUT_OF_RANGE for an invalid length or step */
mdot_status mdot_run_step(mdot_context *context, size_t entry, int64_t length, const void *const *inputs,
                          void *const *outputs, size_t step, mdot_error *err);

typedef struct mdot_item {     /* one call among several; the fields are arguments of mdot_run_ordered */
    int64_t length;            /* number of rows; 0 for an entry without a length */
    const void *const *inputs; /* dense tensors in the entry's order */
    void *const *outputs;      /* memory for the outputs in the entry's order */
} mdot_item;

/* Runs mdot_run_ordered for each of several items. Lengths may differ, without padding. An item's result is independent
 * of the other items; only the rounding of a vector's last elements may differ from a separate call.
 *
 * Consecutive items are computed together, up to mdot_entry_info.items_together items, while the lengths add up to at
 * most 128 (or the smallest bucket, if greater). Row-wise kernels such as linears and norms then process all rows at
 * once and read the weights once. This pays for items with a few rows and for models with weights beyond every cache;
 * beyond about 30 rows it hardly matters. Kernels across the length, such as attention, run item by item. Entries
 * without a length, and entries mostly across it, run one item after the other: items_together is 1. A GPU computes all
 * items with equal length together.
 *
 * @param entry index below entry_count
 * @param items the calls; outputs of different items must not overlap
 * @param count number of items; 0 does nothing
 * @errors INVALID_ARGUMENT for an item without inputs or outputs, OUT_OF_RANGE for a length beyond the entry's limits.
 *     The message names the item's index, and all items are skipped */
mdot_status mdot_run_many(mdot_context *context, size_t entry, const mdot_item *items, size_t count, mdot_error *err);

/* Finds the bucket for a length.
 *
 * @param entry index below entry_count
 * @param length number of rows
 * @param out_bucket receives the bucket's index
 * @errors OUT_OF_RANGE beyond the largest bucket; INVALID_ARGUMENT for NULL */
mdot_status mdot_predictor_find_bucket(const mdot_predictor *predictor, size_t entry, int64_t length,
                                       size_t *out_bucket);

MDOT_END_DECLARATIONS
#endif
