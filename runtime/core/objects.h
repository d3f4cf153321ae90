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
#ifndef RT_OBJECTS_H
#define RT_OBJECTS_H

#include "runtime/core/core.h"
#include "runtime/core/ragged_batch.h"

#include <stdatomic.h>

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
    rt_ragged_batch batch;     /* tensors of items that run together */
    void **states;             /* states of the components' extensions, in their order */
    rt_device_context *device; /* NULL: calls run on the CPU */
    mdot_error device_error;   /* why calls run on the CPU although the predictor has a device; otherwise MDOT_OK */
};

#endif
