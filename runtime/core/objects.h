/* objects.h — the public objects of runtime/core in memory.
 *
 *   open      artefact_copy.c copies the file, elf_sections.c finds the sections, table_check.c checks their contents,
 *             cpu.c picks the image, loader.c maps the segments and touches their pages; device.c selects the device;
 *             predictor.c calls them in order
 *   describe  info.c
 *   run       context.c, run.c, workers.c; several items in one call: ragged_batch.c, batch_items.c
 *
 * All data from the file is checked once, at open. Afterwards the table is trusted and read in place.
 */
#pragma once

#include "runtime/core/core.h"

#include <stdatomic.h>

/* ---- ragged_batch.c: items of an entry that run together --------------------------------------------------------- */

typedef struct rt_ragged_batch {
    unsigned char *tensors; /* inputs and outputs of all items, concatenated per tensor; NULL if no entry runs items
                             * together */
    void **outputs;         /* pointers of each item, in the entry's order */
} rt_ragged_batch;

/* The bucket whose code runs an entry's items together. One bucket serves all of them, because kernels are the same
 * for all lengths. NULL if items run separately. */
const mdot_abi_bucket *rt_ragged_bucket(const mdot_abi_table *table, const mdot_abi_entry *entry);
/* Most items in one run; 1 if they run separately. */
uint32_t rt_ragged_batch_rows(const mdot_abi_table *table, const mdot_abi_entry *entry);

/* Most bytes in a tensor of all items, and in several such tensors. Each tensor is aligned to MDOT_ABI_ALIGNMENT. */
size_t rt_tensor_capacity_bytes(const mdot_abi_bucket *bucket, const mdot_abi_tensor *tensor);
size_t rt_tensors_bytes(const mdot_abi_bucket *bucket, const mdot_abi_tensor *tensors, uint32_t count);

/* Allocates memory for the items of any entry. Returns OUT_OF_MEMORY on failure. */
mdot_status rt_ragged_batch_create(const rt_allocator *allocator, const mdot_abi_table *table,
                                   rt_ragged_batch *out_batch, mdot_error *err);
void rt_ragged_batch_destroy(const rt_allocator *allocator, rt_ragged_batch *batch);

/* ---- The objects ------------------------------------------------------------------------------------------------- */

struct mdot_predictor {
    atomic_size_t references; /* one until it is closed, and one for each context */
    rt_allocator allocator;
    const rt_components *components;
    struct rt_library *library;                          /* loader.h */
    const mdot_abi_table *table;                         /* owned by the library */
    const mdot_abi_image *image;                         /* the image that the CPU runs */
    const mdot_abi_cpu_function *functions;              /* the image's functions, indexed by bucket number */
    char cpu_reason[160];                                /* why a later image is unused */
    rt_device *device;                                   /* NULL: calls run on the CPU */
    const rt_device_ops *device_ops;                     /* functions of the device */
    bool device_is_required;                             /* requested by name: a context that lacks it is an error */
    char device_reason[sizeof((mdot_error){0}.message)]; /* why this device was chosen */
};

struct mdot_context {
    const mdot_predictor *predictor;
    void *scratch;
    struct rt_workers *workers; /* NULL: the caller's thread only */
    const void **inputs;        /* of the call in preparation; sized for the entry with the most tensors */
    void **outputs;
    rt_ragged_batch batch;     /* tensors of items in one run */
    void **states;             /* the components' extension states, in order */
    rt_device_context *device; /* NULL: calls run on the CPU */
    mdot_error device_error;   /* why calls run on the CPU although the predictor has a device; otherwise MDOT_OK */
};

/* ---- Parts of the objects: allocator.c, context.c, device.c, lifetime.c ------------------------------------------ */

/* Returns INVALID_ARGUMENT if only one of the two functions is given. */
mdot_status rt_allocator_init(rt_allocator *allocator, const mdot_open_options *options, mdot_error *err);

/* Also usable while the predictor is being opened. `options` have been resolved. */
mdot_status rt_context_create(const mdot_predictor *predictor, const mdot_context_options *options,
                              mdot_context **out_context, mdot_error *err);

/* Sets predictor->device according to options->device, after all other parts are open. On failure it holds no
 * resources. */
mdot_status rt_device_open(mdot_predictor *predictor, const mdot_open_options *options, mdot_error *err);
void rt_device_close(mdot_predictor *predictor);
