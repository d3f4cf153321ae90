/* core.h — the contract of runtime/core: what the runtime's other rooms may use of it, and what they bring to it.
 *
 *   core/   opens, checks, describes and runs an artefact, on the CPU by itself; includes nothing of the others
 *   cuda/   a kind of device: rt_device_ops (cuda.h)
 *   job/    predictions of jobs over rt_run_many, with tensors of its own in every context: rt_extension (predict_extension.h)
 *
 * Core reaches the other rooms through rt_components alone, a table of constants that every predictor carries.
 * runtime/components.c fills it; tests fill others. What the artefact's table says is read in place (table_check.h): it was
 * checked at open.
 */
#ifndef RT_CORE_H
#define RT_CORE_H

#include "runtime/core/handle_validation.h"
#include "runtime/core/table_check.h"

/* ---- allocator.c: the caller's memory functions, or libc's ----------------------------------------------------- */

typedef struct rt_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory);
    void *user;
} rt_allocator;

/* Zeroed and 64-byte aligned; never of no bytes. NULL when memory is out. */
void *rt_alloc(const rt_allocator *allocator, size_t bytes);
void rt_free(const rt_allocator *allocator, void *memory);

/* ---- What an open artefact has in memory ------------------------------------------------------------------------- */

typedef struct rt_artefact {
    const mdot_abi_table *table;
    const int64_t *code;
    const unsigned char *weights;
    const unsigned char *cubins, *cuda_weights; /* NULL in an artefact without CUDA images, and once it is open */
} rt_artefact;

/* loader.c: who keeps an artefact's memory releases it; with the last one it goes. Beside its predictor that is who may
 * go on reading it when the predictor is closed. */
void rt_artefact_keep(const rt_artefact *artefact);
void rt_artefact_release(const rt_artefact *artefact);

/* Lent for the predictor's life. */
const rt_artefact *rt_predictor_artefact(const mdot_predictor *predictor);
const rt_allocator *rt_predictor_allocator(const mdot_predictor *predictor);

/* lifetime.c: who keeps a predictor releases it; with the last one it ends. */
void rt_predictor_keep(const mdot_predictor *predictor);
void rt_predictor_release(const mdot_predictor *predictor);

/* ---- Running: run.c ---------------------------------------------------------------------------------------------- */

/* One prediction of several: tensors in the entry's order. */
typedef struct rt_item {
    const void *const *inputs;
    void *const *outputs;
} rt_item;

/* Runs `entry` once for each item, all at one length, which has been checked. Cannot fail: what the device does not
 * answer the CPU does, and rt_fell_back tells. Allocates nothing. Answers of one call all come from one device. */
void rt_run_many(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                 size_t count);

/* The context's device has failed and the CPU answers: MDOT_WARN_FALLBACK. */
bool rt_fell_back(const mdot_context *context);

/* ---- Devices: what a room brings that runs artefacts elsewhere than on the CPU ----------------------------------- */

/* A device made ready for one predictor: the room's own structure begins with what mdot_predictor_info tells of it,
 * lent as long as it is open. */
typedef struct rt_device {
    const char *id;               /* "cuda:0" */
    const char *name;             /* "NVIDIA H200" */
    const char *kernel_precision; /* "bf16" */
} rt_device;

/* What one thread needs on it; only the room knows what that is. */
typedef struct rt_device_context rt_device_context;

typedef struct rt_device_request {
    const rt_artefact *artefact; /* outlives the device */
    int ordinal;
    uint32_t timeout_ms;          /* a device that does not answer within this time has failed */
    const char *kernel_precision; /* of the artefact's images those in this arithmetic alone; NULL: any */
} rt_device_request;

typedef struct rt_device_ops {
    const char *name; /* as the option `device` has it: "cuda", which is "cuda:0"; "cuda:1" … */

    /* Code loaded and weights uploaded. DEVICE, also where the artefact has no code for such a device; INCOMPATIBLE
     * where it has some in other arithmetics; or OUT_OF_MEMORY. */
    mdot_status (*open)(const rt_device_request *request, rt_device **out_device, mdot_error *err);
    /* After its contexts are destroyed. */
    void (*close)(rt_device *device);

    mdot_status (*create_context)(rt_device *device, rt_device_context **out_context, mdot_error *err);
    void (*destroy_context)(rt_device_context *context);

    /* All items, as rt_run_many. DEVICE or OUT_OF_MEMORY, outputs then undefined: it is not asked again. */
    mdot_status (*run)(rt_device_context *context, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                       int64_t length, const rt_item *items, size_t count, mdot_error *err);
} rt_device_ops;

/* ---- Extensions: what a room keeps in every context -------------------------------------------------------------- */

typedef struct rt_extension {
    /* Made with the context. NULL: nothing is needed for this artefact, which is no failure. */
    mdot_status (*create)(const mdot_predictor *predictor, void **out_state, mdot_error *err);
    void (*destroy)(const mdot_predictor *predictor, void *state); /* not called with NULL */
} rt_extension;

/* What `extension` has made for the context, lent; NULL: nothing. */
void *rt_context_state(const mdot_context *context, const rt_extension *extension);
const mdot_predictor *rt_context_predictor(const mdot_context *context);

/* ---- Opening: predictor.c ---------------------------------------------------------------------------------------- */

/* What there is beside core; both lists end with NULL. */
typedef struct rt_components {
    const rt_device_ops *const *devices; /* in the order in which "auto" tries them */
    const rt_extension *const *extensions;
} rt_components;

/* mdot_predictor_open over these rooms, which outlive the predictor. */
mdot_status rt_predictor_open(const rt_components *rooms, const char *path, const mdot_open_options *options,
                              mdot_predictor **out_predictor, mdot_error *err);

#endif
