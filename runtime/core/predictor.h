/* predictor.h — declarations shared by core's files. Other components include core.h, and users include mdot/mdot.h.
 *
 *   open      artefact_copy.c copies the file, elf_sections.c finds the sections, table_check.c checks their contents, cpu.c picks the image,
 *             loader.c maps the segments and touches their pages; device.c selects the device; predictor.c calls them
 *             in order
 *   describe  info.c
 *   run       context.c, run.c, workers.c; several items in one call: ragged_batch.c, batch_items.c
 *
 * All data from the file is checked once, at open. Afterwards the table is trusted and read in place.
 */
#ifndef RT_PREDICTOR_H
#define RT_PREDICTOR_H

#include "base/elf_read.h"
#include "runtime/core/core.h"

#include <stdatomic.h>

/* ---- allocator.c ------------------------------------------------------------------------------------------------- */

/* Returns INVALID_ARGUMENT if only one of the two functions is given. */
mdot_status rt_allocator_init(rt_allocator *allocator, const mdot_open_options *options, mdot_error *err);

/* ---- cpu.c: ISA levels ------------------------------------------------------------------------------------------- */

enum { RT_CPU_MAY_USE_TILES = 1 };

/* The CPUID words and operating-system state that the ISA levels depend on. */
typedef struct rt_cpu {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx;
    uint32_t leaf7_edx;
    uint32_t leaf7_1_eax; /* sub-leaf 1 */
    uint32_t extended1_ecx;
    uint32_t permissions; /* RT_CPU_MAY_…: features that must be requested from the operating system */
    uint32_t xcr0;        /* register state that the operating system saves; 0 if XGETBV is disabled */
    char vendor[12];      /* for example "AuthenticAMD", not NUL-terminated */
} rt_cpu;

void rt_cpu_read(rt_cpu *out_cpu);
/* Does an artefact have an image with AMX tiles? The second function requests permission for tiles from the
 * operating system, if the CPU has them. */
bool rt_cpu_has_tiles(const mdot_abi_table *table);
void rt_cpu_ask_for_tiles(rt_cpu *cpu);
/* NULL if every feature that `level` needs is present, otherwise the name of the first missing one. */
const char *rt_cpu_missing(const rt_cpu *cpu, uint32_t level);
/* Returns MDOT_CPU_NONE for an unknown name. */
uint32_t rt_cpu_isa_find(const char *name);
/* The reason why a CPU that runs `level` is known to be faster at the next lower level, as "is slower here: …";
 * otherwise NULL. */
const char *rt_cpu_slower(const rt_cpu *cpu, uint32_t level);
/* Selects the image that `cpu` runs (mdot_abi_image defines the order): of the level `forced` and, if `cpu` runs
 * one, in the precision `compute`; NULL means any. Returns INVALID_ARGUMENT if `forced` is unknown, and INCOMPATIBLE
 * if the machine can run no image of the artefact. */
mdot_status rt_cpu_choose(const rt_cpu *cpu, const mdot_abi_table *table, const char *forced,
                          const char *kernel_precision, const mdot_abi_image **out_image, mdot_error *err);

/* The reason why `image` is used instead of the last CPU image, for example "x86-64-amx needs AMX-TILE, which this
 * machine lacks"; "" if it is the last one. */
void rt_cpu_explain(const rt_cpu *cpu, const mdot_abi_table *table, const mdot_abi_image *image, char *text,
                    size_t size);

/* ---- elf_sections.c: positions in the file ------------------------------------------------------------------------------ */

typedef struct rt_section {
    uint64_t offset, address, size_bytes; /* offset in the file; address in memory relative to the load address */
} rt_section;

typedef struct rt_elf {
    bs_elf file;
    rt_section table, code, weights;
    rt_section cubins, cuda_weights; /* address 0: the file lacks the section */
} rt_elf;

/* Checks that `bytes` is a shared object for this machine that needs no dynamic loader, and that the artefact's
 * sections are inside read-only segments. Otherwise returns MALFORMED or INCOMPATIBLE. */
mdot_status rt_elf_read(const void *bytes, uint64_t size_bytes, rt_elf *out_elf, mdot_error *err);
bool rt_elf_is_code(const rt_elf *elf, uint64_t address);

/* ---- table_check.c: the file's table
 * ------------------------------------------------------------------------------------- */

/* Checks magic, versions, sizes and checksum, then every offset and count of the table and every code address. */
mdot_status rt_table_check(const rt_elf *elf, mdot_error *err);

/* ---- artefact_copy.c: a private copy of the file's bytes ------------------------------------------------------------------ */

typedef struct rt_copy {
    int descriptor; /* memfd; -1: ordinary memory */
    unsigned char *bytes;
    size_t size_bytes;
} rt_copy;

/* Copies the file's bytes, or the first few if it is not an ELF file. rt_copy_free frees the copy; mappings made
 * from it remain. */
mdot_status rt_copy_make(int file, uint64_t size_bytes, rt_copy *out_copy, mdot_error *err);
void rt_copy_free(rt_copy *copy);
/* Maps whole pages of the copy from `offset` on over those at `at`. */
mdot_status rt_copy_map(const rt_copy *copy, uint64_t offset, size_t size_bytes, int protection, void *at,
                        mdot_error *err);
/* Frees the memory of such pages, which must not be read again. */
void rt_copy_forget(const rt_copy *copy, uint64_t offset, size_t size_bytes, void *at);

/* ---- loader.c: the file as loaded code -------------------------------------------------------------------------- */

typedef struct rt_library {
    rt_artefact artefact;
    atomic_uint references; /* see rt_artefact_keep */
    void *memory;
    size_t size_bytes;
} rt_library;

/* Maps the segments of `elf` and touches their pages except those that only a device reads. rt_artefact_release
 * frees the library. */
mdot_status rt_library_open(const rt_copy *copy, const rt_elf *elf, rt_library **out_library, mdot_error *err);
/* Frees the sections that only a device reads, unless another reference to the artefact exists. */
void rt_library_forget_device(rt_library *library, const rt_copy *copy, const rt_elf *elf);

/* ---- workers.c: threads that share a call ----------------------------------------------------------------------- */

enum { RT_MOST_WORKERS = 64 };

/* The workers of one context, including the caller's thread. */
typedef struct rt_workers rt_workers;

/* `options` has at least two threads. */
mdot_status rt_workers_create(const rt_allocator *allocator, const mdot_context_options *options,
                              rt_workers **out_workers, mdot_error *err);
void rt_workers_destroy(const rt_allocator *allocator, rt_workers *workers); /* accepts NULL */

/* True if a call of this length is long enough to be shared. */
bool rt_workers_split(const rt_workers *workers, int64_t length);

/* The end of the step that begins at `begin`. A split kernel is a step of its own. Consecutive kernels that are not
 * split form one step (mdot_abi_call). */
static inline uint32_t rt_step_end(const mdot_abi_kernel *kernels, uint32_t kernel_count, uint32_t begin)
{
    uint32_t end = begin + 1;
    if (kernels[begin].is_split == 0)
        while (end < kernel_count && kernels[end].is_split == 0) end++;
    return end;
}

/* A bucket's code and kernels. */
typedef struct rt_code {
    mdot_abi_function function;
    const mdot_abi_kernel *kernels;
} rt_code;

/* Runs the kernels of every call, one call after the other. All workers that arrive share the work. The calls' share
 * and worker fields are set here. */
void rt_workers_run(rt_workers *workers, const rt_code *code, const mdot_abi_call *calls, size_t count);

/* ---- ragged_batch.c: items that run together ---------------------------------------------------------------------------- */

typedef struct rt_ragged_batch {
    unsigned char *tensors; /* inputs and outputs of all items, concatenated per tensor; NULL if no entry runs items
                             * together */
    void **outputs;         /* pointers of each item, in the entry's order */
} rt_ragged_batch;

/* The bucket whose code runs an entry's items together. One bucket serves all of them, because kernels are the same
 * for all lengths. NULL if items run separately. */
const mdot_abi_bucket *rt_ragged_bucket(const mdot_abi_table *table, const mdot_abi_entry *entry);
/* Maximum number of items that run together; 1 if they run separately. */
uint32_t rt_ragged_batch_rows(const mdot_abi_table *table, const mdot_abi_entry *entry);

/* Maximum bytes of a tensor of all items, and of several such tensors. Each tensor is aligned to MDOT_ABI_ALIGNMENT. */
size_t rt_tensor_capacity_bytes(const mdot_abi_bucket *bucket, const mdot_abi_tensor *tensor);
size_t rt_tensors_bytes(const mdot_abi_bucket *bucket, const mdot_abi_tensor *tensors, uint32_t count);

/* Allocates memory for the items of any entry. Returns OUT_OF_MEMORY on failure. */
mdot_status rt_ragged_batch_create(const mdot_predictor *predictor, rt_ragged_batch *out_joint, mdot_error *err);
void rt_ragged_batch_destroy(const mdot_predictor *predictor, rt_ragged_batch *joint);

/* ---- The public objects ------------------------------------------------------------------------------------------ */

struct mdot_predictor {
    atomic_size_t references; /* one until it is closed, and one for each context */
    rt_allocator allocator;
    const rt_components *components;
    rt_library *library;
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
    rt_workers *workers; /* NULL: the caller's thread only */
    const void **inputs; /* of the call in preparation; sized for the entry with the most tensors */
    void **outputs;
    rt_ragged_batch joint;     /* tensors of items that run together */
    void **states;             /* states of the components' extensions, in their order */
    rt_device_context *device; /* NULL: calls run on the CPU */
    mdot_error device_error;   /* why calls run on the CPU although the predictor has a device; otherwise MDOT_OK */
};

/* ---- context.c --------------------------------------------------------------------------------------------------- */

/* Also usable while the predictor is being opened. `options` have been resolved. */
mdot_status rt_context_create(const mdot_predictor *predictor, const mdot_context_options *options,
                              mdot_context **out_context, mdot_error *err);

/* ---- lifetime.c ------------------------------------------------------------------------------------------------- */

void rt_device_close(mdot_predictor *predictor);

/* ---- device.c: where a predictor's calls run --------------------------------------------------------------------- */

/* Sets predictor->device according to options->device, after all other parts are open. On failure it holds no
 * resources. */
mdot_status rt_device_open(mdot_predictor *predictor, const mdot_open_options *options, mdot_error *err);

/* ---- run.c ------------------------------------------------------------------------------------------------------- */

/* The CPU code of a bucket, and an ordinary call of it, whose inputs and outputs the caller fills in. */
rt_code rt_code_of(const mdot_context *context, const mdot_abi_bucket *bucket);
mdot_abi_call rt_call_of(const mdot_context *context, const mdot_abi_bucket *bucket, int64_t length);

/* Return OUT_OF_RANGE with a message that gives the valid range. */
mdot_status rt_check_entry(const mdot_abi_table *table, size_t entry, mdot_error *err);
mdot_status rt_check_length(const mdot_abi_table *table, const mdot_abi_entry *entry, int64_t length, mdot_error *err);

/* rt_run_many on the CPU, regardless of the device. */
void rt_run_on_cpu(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                   size_t count);

#endif
