/* predictor.h — what core's files share among themselves; the other rooms include core.h, users mdot/mdot.h.
 *
 *   open      predictor.c maps the file, elf.c finds the sections, table.c checks what they say, cpu.c picks the image,
 *             loader.c hands the file to the dynamic loader and touches its pages; device.c settles where calls run
 *   describe  info.c
 *   run       context.c, run.c
 *
 * Everything that comes from the file is checked once, at open; afterwards the table is trusted and read in place.
 */
#ifndef RT_PREDICTOR_H
#define RT_PREDICTOR_H

#include "base/elf_read.h"
#include "runtime/core/core.h"

/* ---- allocator.c ------------------------------------------------------------------------------------------------- */

/* INVALID_ARGUMENT when only one of the two functions is there. */
mdot_status rt_allocator_init(rt_allocator *allocator, const mdot_open_options *options, mdot_error *err);

/* ---- cpu.c: feature levels -------------------------------------------------------------------------------------- */

/* What the CPU and the operating system report, as far as the levels need it. */
typedef struct rt_cpu {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx;
    uint32_t extended1_ecx;
    uint32_t xcr0; /* register state that the operating system saves; 0 where XGETBV is not enabled */
} rt_cpu;

void rt_cpu_read(rt_cpu *out_cpu);
/* NULL when everything that `level` needs is there, else the name of the first feature that is missing. */
const char *rt_cpu_missing(const rt_cpu *cpu, uint32_t level);
/* MDOT_CPU_NONE for names that are no level. */
uint32_t rt_cpu_level_find(const char *name);
/* The best image that `cpu` runs, or the one for the level named `forced` (NULL: none is). INVALID_ARGUMENT when that
 * is no level's name, INCOMPATIBLE when the artefact and the machine have none in common. */
mdot_status rt_cpu_choose(const rt_cpu *cpu, const mdot_abi_table *table, const char *forced,
                          const mdot_abi_image **out_image, mdot_error *err);

/* ---- elf.c: where things are in the file ----------------------------------------------------------------------- */

typedef struct rt_section {
    uint64_t offset, address, size_bytes; /* in the file; in memory, relative to the load address */
} rt_section;

typedef struct rt_elf {
    bs_elf file;
    rt_section table, code, weights;
    rt_section cubins, cuda_weights; /* address 0: the file has none */
} rt_elf;

/* Checks that `bytes` is a shared object for this machine that asks nothing of the dynamic loader, with the artefact's
 * sections inside read-only segments. MALFORMED or INCOMPATIBLE otherwise. */
mdot_status rt_elf_read(const void *bytes, uint64_t size_bytes, rt_elf *out_elf, mdot_error *err);
bool rt_elf_is_code(const rt_elf *elf, uint64_t address);

/* ---- table.c: what the file says about itself ------------------------------------------------------------------- */

/* Magic, versions, sizes, checksum, then every offset and count of the table and every code address. */
mdot_status rt_table_check(const rt_elf *elf, mdot_error *err);

/* ---- loader.c: the file as loaded code -------------------------------------------------------------------------- */

typedef struct rt_library {
    void *handle;
    rt_artefact artefact;
} rt_library;

/* Loads the checked file behind `descriptor`, which is not needed afterwards, and touches its pages. */
mdot_status rt_library_open(int descriptor, const rt_elf *elf, rt_library *out_library, mdot_error *err);
void rt_library_close(rt_library *library);

/* ---- The public objects ------------------------------------------------------------------------------------------ */

struct mdot_predictor {
    rt_allocator allocator;
    const rt_rooms *rooms;
    rt_library library;
    const mdot_abi_table *table;                         /* the library's */
    const mdot_abi_image *image;                         /* that the CPU runs */
    const mdot_abi_cpu_function *functions;              /* its, by a bucket's number */
    rt_device *device;                                   /* NULL: calls run on the CPU */
    const rt_device_ops *device_ops;                     /* the device's */
    bool device_is_required;                             /* asked for by name: a context without it is an error */
    char device_reason[sizeof((mdot_error){0}.message)]; /* why this device */
};

struct mdot_context {
    const mdot_predictor *predictor;
    void *scratch;
    const void **inputs; /* of the call being prepared; room for the entry with the most */
    void **outputs;
    void **states;             /* of the rooms' extensions, in their order */
    rt_device_context *device; /* NULL: calls run on the CPU */
    mdot_error device_error;   /* why they do although the predictor has a device; MDOT_OK otherwise */
};

/* ---- device.c: where a predictor's calls run --------------------------------------------------------------------- */

/* Settles predictor->device as options->device asks, once everything else is open. On failure nothing is held. */
mdot_status rt_device_open(mdot_predictor *predictor, const mdot_open_options *options, mdot_error *err);
void rt_device_close(mdot_predictor *predictor);

/* ---- run.c ------------------------------------------------------------------------------------------------------- */

/* rt_run_many on the CPU, whatever the device. */
void rt_run_on_cpu(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                   size_t count);

#endif
