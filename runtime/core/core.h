/* core.h — the interface of runtime/core: functions for the runtime's other components, and the tables of functions
 * from them.
 *
 *   core/     opens, checks, describes and runs an artefact on the CPU; includes no file of the other components
 *   cuda/     a kind of device: rt_device_ops (cuda.h)
 *   job/      jobs in memory and in files; perf/ analyses them: rt_job_analyzer (job_analyzer.h)
 *   predict/  predictions of jobs over rt_run_many, with its own tensors in every context: rt_extension
 *             (predictor_tensors.h)
 *
 * Core reaches the other components only through rt_components, a constant table in every predictor and every job.
 * runtime/components.c fills it, and tests fill others. The artefact's table is read in place (table_reader.h), because
 * it was checked at open. */
#pragma once

#include "mdot/mdot_predict.h"
#include "runtime/core/handle_validation.h"
#include "runtime/core/table_reader.h"

/* ---- allocator.c: the caller's memory functions, or libc's ----------------------------------------------------- */

typedef struct rt_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory);
    void *user;
} rt_allocator;

/* Returns zeroed, 64-byte aligned memory of at least one byte; NULL if memory runs out. */
void *rt_alloc(const rt_allocator *allocator, size_t bytes);
/* The same with only the first `touched` bytes cleared. */
void *rt_alloc_touched(const rt_allocator *allocator, size_t bytes, size_t touched);
void rt_free(const rt_allocator *allocator, void *memory);

/* ---- An open artefact in memory ---------------------------------------------------------------------------------- */

typedef struct rt_artefact {
    const mdot_abi_table *table;
    const int64_t *code;
    const unsigned char *weights;
    const unsigned char *cubins, *cuda_weights; /* NULL in an artefact that lacks CUDA images, and after opening */
} rt_artefact;

/* loader.c: reference count of an artefact's memory, freed by the last release. Besides the predictor, a component
 * keeps a reference if it may read the artefact after the predictor is closed. */
void rt_artefact_keep(const rt_artefact *artefact);
void rt_artefact_release(const rt_artefact *artefact);

/* Borrowed for the predictor's life. */
const rt_artefact *rt_predictor_artefact(const mdot_predictor *predictor);
const rt_allocator *rt_predictor_allocator(const mdot_predictor *predictor);

/* lifetime.c: reference count of a predictor, freed by the last release. */
void rt_predictor_keep(const mdot_predictor *predictor);
void rt_predictor_release(const mdot_predictor *predictor);

/* ---- Running: run.c ---------------------------------------------------------------------------------------------- */

/* One item among several in a call: tensors in the entry's order. */
typedef struct rt_item {
    const void *const *inputs;
    void *const *outputs;
} rt_item;

/* Runs `entry` once for each item, all at one length, which the caller has checked. Always succeeds, because the CPU
 * answers if the device fails; rt_fell_back reports this. Allocates no memory. All answers in one call come from one
 * device. */
void rt_run_many(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                 size_t count);

/* True if the context's device has failed and the CPU answers: MDOT_WARN_FALLBACK. */
bool rt_fell_back(const mdot_context *context);

/* ---- Devices: implemented by a component that runs artefacts elsewhere than on the CPU -------------------------- */

/* A device prepared for one predictor. The component's own structure begins with this one, with strings for
 * mdot_predictor_info. They are borrowed while the device is open. */
typedef struct rt_device {
    const char *id;               /* for example "cuda:0" */
    const char *name;             /* for example "NVIDIA H200" */
    const char *kernel_precision; /* precision, for example "bf16" */
} rt_device;

/* A thread's state on the device, defined by the component. */
typedef struct rt_device_context rt_device_context;

typedef struct rt_device_request {
    const rt_artefact *artefact; /* outlives the device */
    int ordinal;
    uint32_t timeout_ms;          /* a device that takes longer than this to answer has failed */
    const char *kernel_precision; /* allowed image precision; NULL: any */
} rt_device_request;

typedef struct rt_device_ops {
    const char *name; /* the name in the option `device`: "cuda" means "cuda:0"; also "cuda:1" … */

    /* Loads code and uploads weights. Returns DEVICE, also if the artefact lacks code for such a device,
     * INCOMPATIBLE if it has code only in other precisions, or OUT_OF_MEMORY. */
    mdot_status (*open)(const rt_device_request *request, rt_device **out_device, mdot_error *err);
    /* Called after its contexts are destroyed. */
    void (*close)(rt_device *device);

    mdot_status (*create_context)(rt_device *device, rt_device_context **out_context, mdot_error *err);
    void (*destroy_context)(rt_device_context *context);

    /* Runs all items, like rt_run_many. Returns DEVICE or OUT_OF_MEMORY on failure. The outputs are then undefined,
     * and the device is never used again. */
    mdot_status (*run)(rt_device_context *context, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                       int64_t length, const rt_item *items, size_t count, mdot_error *err);
} rt_device_ops;

/* ---- Extensions: a component's state in every context ----------------------------------------------------------- */

typedef struct rt_extension {
    /* Called when a context is created. Success with NULL means that this artefact needs no state. */
    mdot_status (*create)(const mdot_predictor *predictor, void **out_state, mdot_error *err);
    void (*destroy)(const mdot_predictor *predictor, void *state); /* never called with NULL */
} rt_extension;

/* The context's state of `extension`, borrowed; NULL if it has none. */
void *rt_context_state(const mdot_context *context, const rt_extension *extension);
const mdot_predictor *rt_context_predictor(const mdot_context *context);

/* ---- Analyses of jobs: made by a component ----------------------------------------------------------------------- */

/* A job's properties for predictions, independent of the configuration, defined by the component. */
typedef struct rt_analysis rt_analysis;

typedef struct rt_job_analyzer {
    /* Called once when a job is created, after everything else about the job is known. Returns NULL if memory runs
     * out. */
    rt_analysis *(*create)(const mdot_job *job);
    void (*destroy)(rt_analysis *analysis); /* never called with NULL */
    /* Activation bytes per sample at the peak of a forward and backward pass, on one GPU. The precision is FP32, AMP or
     * BF16, and the attention is EAGER or FLASH. */
    double (*activation_bytes)(const rt_analysis *analysis, mdot_precision precision, mdot_attention attention,
                               mdot_recompute recompute);
} rt_job_analyzer;

/* ---- Opening: predictor.c ---------------------------------------------------------------------------------------- */

/* The components besides core. Both lists end with NULL. */
typedef struct rt_components {
    const rt_device_ops *const *devices; /* in the order in which "auto" tries them */
    const rt_extension *const *extensions;
    const rt_job_analyzer *analyzer;
} rt_components;

/* mdot_predictor_open with these components, which must outlive the predictor. */
mdot_status rt_predictor_open(const rt_components *components, const char *path, const mdot_open_options *options,
                              mdot_predictor **out_predictor, mdot_error *err);
