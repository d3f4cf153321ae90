/* mdot_run.h — an artefact opened, what is in it, and its entry points on named tensors.
 *
 * mdot.h includes this header and says what holds for all of the library: ownership, threading, memory, errors.
 */
#ifndef MDOT_RUN_H
#define MDOT_RUN_H

#include "mdot_base.h"

#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/* ---- Predictors: an opened artefact --------------------------------------------------------------------------- */

typedef struct mdot_predictor mdot_predictor;

typedef struct mdot_open_options { /* zero means default throughout */
    size_t struct_size;
    const char *cpu_isa; /* "x86-64-v3": use this level's code instead of the best one that the CPU runs. NULL: what
                              the environment variable MDOT_CPU_ISA says, if it is set */
    const char *device; /* where calls run. "cpu"; "cuda:1", the driver's second GPU, or "cuda", its first; "auto": that
                           first one or the CPU, whichever answers faster when tried here. NULL: what the environment
                           variable MDOT_DEVICE says, else "auto" */
    uint32_t device_timeout_ms; /* a GPU that does not answer within this time has failed, and so has a driver that does
                                   not launch within it, or takes thirty times as long for anything else: to start, to
                                   load code, to find memory or to free it; 0: 1000 */
    void *(*allocate)(void *user, size_t bytes, size_t alignment); /* NULL: aligned_alloc and free */
    void (*release)(void *user, void *memory); /* both or neither; called by the threads that create and destroy */
    void *user;
    const char
        *kernel_precision; /* "fp32", "bf16", "fp16": of the artefact's images those of this arithmetic alone. NULL: the
                            predictor's choice. Where a GPU answers, the CPU behind it may have to do so in another */
} mdot_open_options;

/* Opens, checks and loads the artefact at `path`; options may be NULL. Everything that can fail later fails here:
 * NOT_FOUND, IO (no regular file), MALFORMED (no artefact, truncated), INCOMPATIBLE (ABI version, CPU level,
 * arithmetic), CORRUPT (checksum), DEVICE (a GPU that was asked for by name is not there, lacks code in the artefact or
 * fails), OUT_OF_MEMORY. The file is copied: it may be replaced, overwritten, truncated or removed while it is open.
 *
 * One thing changes the process: where the artefact has code for AMX tiles and the CPU has tiles, Linux is asked to
 * permit them (arch_prctl(2)), to all threads and for good. Frames of signals may then be some 8 KB larger.
 *
 * A GPU is looked for only when the artefact has code for one. On a GPU each kernel has run once when this returns.
 * The CPU stands behind it: a call that the GPU fails, or does not answer in time, is answered by the CPU, and so is
 * every later one of its context (mdot_context_get_device_status).
 *
 * The driver's calls are made by threads of the library's own, one for a predictor on a GPU and one for each of its
 * contexts, so that opening, creating, running, destroying and closing return within limits whatever the driver does.
 * What a call that does not return still holds is left behind until it does, and no GPU is asked for before. Handing a
 * launch to the thread takes about a microsecond; ten to thirty where the last one is more than some 0.2 ms ago and the
 * thread has gone to sleep. A child of fork has no such threads: the CPU answers there. */
mdot_status mdot_predictor_open(const char *path, const mdot_open_options *options, mdot_predictor **out_predictor,
                                mdot_error *err);
/* Contexts made from the predictor go on answering, and keep it, with what it lends and the memory functions of its
 * options, until the last of them is destroyed: to take a new artefact, open it, make contexts, close the old one and
 * let each thread change over when it likes. The predictor itself is not used any more. */
void mdot_predictor_close(mdot_predictor *predictor);

typedef struct mdot_dim { /* scale * length + offset elements */
    int64_t scale, offset;
} mdot_dim;

typedef struct mdot_tensor_info { /* one input or output of an entry point; tensors are dense and row-major */
    size_t struct_size;
    const char *name;
    mdot_dtype dtype;
    int rank;
    mdot_dim dim[MDOT_MAX_RANK];
    const char *columns; /* what its columns are, names separated by commas; empty where the artefact does not say */
} mdot_tensor_info;

typedef struct mdot_kernel_info {
    size_t struct_size;
    const char *name; /* with ".v3" or ".v4" appended, the symbol in the artefact */
    const char *kind; /* "linear", "attention", "norm", "nest", "sequential" */
    double flops;     /* at full length */
    size_t step;      /* of the bucket's, that it is part of: what is small runs together (mdot_run_step) */
} mdot_kernel_info;

typedef struct mdot_bucket_info {
    size_t struct_size;
    int64_t max_length;   /* 0 in an entry without a length */
    size_t scratch_bytes; /* working memory of one call; part of every context */
    double flops;         /* of one call at full length */
    size_t kernel_count;
} mdot_bucket_info;

typedef struct mdot_entry_info {
    size_t struct_size;
    const char *name;
    size_t input_count, output_count, bucket_count;
    bool has_length;       /* false: every dimension is a number */
    uint64_t schema_hash;  /* equal for equal input and output names, types and shapes */
    int64_t min_length;    /* the least length of a call: 1 unless compiled otherwise; 0 without a length */
    size_t items_together; /* that mdot_run_many takes at once, at most; 1: one after the other */
} mdot_entry_info;

/* Code for one kind of processor, with the weights that it reads. */
typedef struct mdot_image_info {
    size_t struct_size;
    const char *kind;             /* "cpu", "cuda" */
    const char *target;           /* "x86-64-v4"; "sm_90a", an architecture of NVIDIA's GPUs */
    const char *kernel_precision; /* arithmetic of the matrix kernels: "bf16", "fp16", "fp32" */
    size_t image_bytes;           /* of its code; on a GPU of the cubin */
    size_t weights_bytes;         /* that it reads; images share in the file what is equal */
} mdot_image_info;

typedef struct mdot_image_kernel_info { /* what one bucket runs: on a GPU in one launch, on a CPU in one call */
    size_t struct_size;
    const char *name;             /* the function in the cubin; empty in a CPU image, of which threads, 1, and
                                     scratch_bytes alone are told */
    unsigned threads;             /* of a block */
    unsigned grid_barriers;       /* how often all blocks of a prediction wait for one another */
    unsigned registers;           /* of a thread */
    unsigned tensor_instructions; /* for tensor cores, in the code */
    unsigned barriers;            /* of a block in hardware, of 16 */
    size_t shared_bytes;          /* of a block, dynamic ones included */
    size_t local_bytes;           /* of a thread, in memory: 0 in a kernel that keeps all in registers */
    size_t spill_bytes;           /* stores and loads of registers that did not suffice, in the code */
    size_t inline_input_bytes;    /* inputs up to this size travel with the launch */
    size_t scratch_bytes;         /* of a prediction */
    size_t code_bytes;
} mdot_image_kernel_info;

typedef struct mdot_predictor_info {
    size_t struct_size;
    const char *name;
    const char *compiler;         /* "mdot 0.3.0, LLVM 19.1.7" */
    const char *kernel_precision; /* arithmetic of the matrix kernels on the CPU: "fp32", "bf16" */
    const char *cpu_isa;          /* target of the CPU image in use: "x86-64-v4" */
    size_t entry_count;
    size_t image_count; /* kinds of processors that the artefact has code for, CPUs first */
    size_t weights_bytes, file_bytes;
    const char *device;                  /* "cpu", "cuda:0" */
    const char *device_name;             /* "NVIDIA H200"; empty for the CPU */
    const char *device_kernel_precision; /* arithmetic of the matrix kernels there: "fp32", "bf16", "fp16" */
    const char *device_reason;           /* why it is that one: "cuda:0 answers in 28 us, the CPU in 5231 us" */
    const char *cpu_reason; /* why no later one of the CPU images: "x86-64-amx needs AMX-TILE, which this machine
                                   lacks"; empty where the last is in use */
} mdot_predictor_info;

/* Accessors. Indices beyond the counts are OUT_OF_RANGE, a struct_size that is none INVALID_ARGUMENT; strings are lent
 * by the predictor. */
mdot_status mdot_predictor_get_info(const mdot_predictor *predictor, mdot_predictor_info *out_info);
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
mdot_status mdot_predictor_get_image(const mdot_predictor *predictor, size_t image, mdot_image_info *out_info);
mdot_status mdot_predictor_get_image_kernel(const mdot_predictor *predictor, size_t image, size_t entry, size_t bucket,
                                            mdot_image_kernel_info *out_info);

/* ---- Contexts: what one thread needs to run -------------------------------------------------------------------- */

typedef struct mdot_context mdot_context;

/* Allocates and touches the scratch memory of the largest bucket of every entry and, on a GPU, what launches of many
 * predictions at once need: up to 256 MiB there, less where less is free, and 64 MiB of pinned memory here.
 * OUT_OF_MEMORY; DEVICE where a GPU was asked for by name and fails. */
mdot_status mdot_context_create(const mdot_predictor *predictor, mdot_context **out_context, mdot_error *err);

/* Runs work(argument, i) for every i below `count`, each once, on any threads and side by side or not, and returns when
 * all have returned. */
typedef void (*mdot_parallel_for_fn)(void *user, void (*work)(void *argument, uint32_t i), void *argument,
                                     uint32_t count);

typedef struct mdot_context_options { /* zero means default throughout */
    size_t struct_size;
    uint32_t threads;                  /* that share a call on the CPU, the caller's included, up to 64; 0: 1 */
    uint32_t reserved;                 /* 0 */
    mdot_parallel_for_fn parallel_for; /* the caller's threads: called once in a call that is shared, with `threads`
                                          pieces of work. NULL: threads of the context's own */
    void *user;
} mdot_context_options;

/* A context whose calls several threads share; options may be NULL. Calls at lengths from 256 on are divided, shorter
 * ones are the caller's alone and cost what they do without threads. Results are the same, bit for bit, for any number
 * of them. Threads of its own sleep between calls, block all signals, and end with the context; a call wakes them by
 * one system call, or none where they have not gone to sleep yet, and waits for none that does not come. A child of
 * fork has none of them: there its calls are the caller's alone, and it is destroyed as ever.
 * INVALID_ARGUMENT for more threads than there may be; OUT_OF_MEMORY also where a thread cannot be made. */
mdot_status mdot_context_create_with(const mdot_predictor *predictor, const mdot_context_options *options,
                                     mdot_context **out_context, mdot_error *err);
void mdot_context_destroy(mdot_context *context);

/* MDOT_OK while calls run where mdot_predictor_get_info says. Otherwise the GPU has failed this context: what happened,
 * and the reason in *out_message, lent. Calls run on the CPU since then. */
mdot_status mdot_context_get_device_status(const mdot_context *context, const char **out_message);

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
 * dimensions settle the length, and the smallest bucket that holds it runs, at the cost of the length, not of the
 * bucket. INVALID_ARGUMENT for a missing, unknown or repeated name, dtype or rank; OUT_OF_RANGE for a length beyond the
 * largest bucket or inputs whose lengths differ. Indices in the data (of an embedding, say) that are outside their
 * table are clamped to it, and a query that a mask of -inf hides every key from attends to nothing: zeros, not NaN. */
mdot_status mdot_run(mdot_context *context, size_t entry, const mdot_input *inputs, size_t input_count,
                     const mdot_output *outputs, size_t output_count, mdot_error *err);

/* The same without names and checks of names: arrays in the entry's order, the length given (0 without one). Only the
 * length is checked. For callers that settled everything else once. */
mdot_status mdot_run_ordered(mdot_context *context, size_t entry, int64_t length, const void *const *inputs,
                             void *const *outputs, mdot_error *err);

/* One step of such a call alone, for measuring: step 0 and on, as mdot_kernel_info tells them, on the CPU and on the
 * calling thread. All steps of a bucket, each once and in their order, on the same inputs and outputs and with no other
 * call of the context between them, give what mdot_run_ordered gives on the CPU, bit for bit. OUT_OF_RANGE for a length
 * or a step that is not there. */
mdot_status mdot_run_step(mdot_context *context, size_t entry, int64_t length, const void *const *inputs,
                          void *const *outputs, size_t step, mdot_error *err);

typedef struct mdot_item { /* one of several calls of an entry: what mdot_run_ordered takes */
    int64_t length;
    const void *const *inputs;
    void *const *outputs;
} mdot_item;

/* mdot_run_ordered for each of `count` items, whose lengths may differ, without padding. An item's answer is its own
 * call's, whatever the others are; only how a vector's last elements round may differ.
 *
 * Items are taken together, up to mdot_entry_info.items_together one after the other in the array, as long as their
 * lengths add up to 128 or less (to the smallest bucket, where that is greater): what computes each row by itself, as
 * linears and norms do, then does the rows of all of them at once and reads its weights once. That pays for items of a
 * few rows, and for models whose weights no cache holds; beyond some 30 rows it hardly matters. What looks across the
 * length, as attention does, is done item by item. Entries without a length, and those that look across it for the most
 * part, run an item after the other: items_together is 1. A GPU takes the items of each length together.
 *
 * INVALID_ARGUMENT for an item without inputs or outputs, OUT_OF_RANGE for a length that the entry does not take; the
 * message has the item's number, and then none has run. Of no items it does nothing. Outputs of different items do not
 * overlap. */
mdot_status mdot_run_many(mdot_context *context, size_t entry, const mdot_item *items, size_t count, mdot_error *err);

/* Bucket index that a length would run in. OUT_OF_RANGE beyond the largest. */
mdot_status mdot_predictor_find_bucket(const mdot_predictor *predictor, size_t entry, int64_t length,
                                       size_t *out_bucket);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif
#endif
