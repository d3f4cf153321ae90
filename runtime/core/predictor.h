/* predictor.h — what core's files share among themselves; the other rooms include core.h, users mdot/mdot.h.
 *
 *   open      artefact_copy.c copies the file, elf_sections.c finds the sections, table_check.c checks what they say, cpu.c picks the image,
 *             loader.c maps the segments and touches their pages; device.c settles where calls run; predictor.c has
 *             the order
 *   describe  info.c
 *   run       context.c, run.c, workers.c; several items in one call: ragged_batch.c, batch_items.c
 *
 * Everything that comes from the file is checked once, at open; afterwards the table is trusted and read in place.
 */
#ifndef RT_PREDICTOR_H
#define RT_PREDICTOR_H

#include "base/elf_read.h"
#include "runtime/core/core.h"

#include <stdatomic.h>

/* ---- allocator.c ------------------------------------------------------------------------------------------------- */

/* INVALID_ARGUMENT when only one of the two functions is there. */
mdot_status rt_allocator_init(rt_allocator *allocator, const mdot_open_options *options, mdot_error *err);

/* ---- cpu.c: feature levels -------------------------------------------------------------------------------------- */

enum { RT_CPU_MAY_USE_TILES = 1 };

/* What the CPU and the operating system report, as far as the levels need it. */
typedef struct rt_cpu {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx;
    uint32_t leaf7_edx;
    uint32_t leaf7_1_eax; /* of sub-leaf 1 */
    uint32_t extended1_ecx;
    uint32_t permissions; /* RT_CPU_MAY_…, for what has to be asked for */
    uint32_t xcr0;        /* register state that the operating system saves; 0 where XGETBV is not enabled */
    char vendor[12];      /* "AuthenticAMD", without a NUL */
} rt_cpu;

void rt_cpu_read(rt_cpu *out_cpu);
/* Whether an artefact has an image with matrix tiles; asks the operating system for what it needs, where the CPU has
 * them. */
bool rt_cpu_has_tiles(const mdot_abi_table *table);
void rt_cpu_ask_for_tiles(rt_cpu *cpu);
/* NULL when everything that `level` needs is there, else the name of the first feature that is missing. */
const char *rt_cpu_missing(const rt_cpu *cpu, uint32_t level);
/* MDOT_CPU_NONE for names that are no level. */
uint32_t rt_cpu_isa_find(const char *name);
/* Why a CPU that runs `level` is better off at the level below, as far as that is known, as "is slower here: …"; NULL:
 * it is not. */
const char *rt_cpu_slower(const rt_cpu *cpu, uint32_t level);
/* The image that `cpu` runs (mdot_abi_image says which), of those for the level named `forced` and, where it runs
 * one, in the arithmetic `compute`; NULL: any. INVALID_ARGUMENT when `forced` is no level's name, INCOMPATIBLE when the
 * artefact has none that the machine runs. */
mdot_status rt_cpu_choose(const rt_cpu *cpu, const mdot_abi_table *table, const char *forced,
                          const char *kernel_precision, const mdot_abi_image **out_image, mdot_error *err);

/* Why `image` and not the last of the CPU's: "x86-64-amx needs AMX-TILE, which this machine lacks"; "" where it is. */
void rt_cpu_explain(const rt_cpu *cpu, const mdot_abi_table *table, const mdot_abi_image *image, char *text,
                    size_t size);

/* ---- elf_sections.c: where things are in the file ----------------------------------------------------------------------- */

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

/* ---- table_check.c: what the file says about itself ------------------------------------------------------------------- */

/* Magic, versions, sizes, checksum, then every offset and count of the table and every code address. */
mdot_status rt_table_check(const rt_elf *elf, mdot_error *err);

/* ---- artefact_copy.c: the file's bytes, out of everyone's reach ----------------------------------------------------------- */

typedef struct rt_copy {
    int descriptor; /* of memory; -1: ordinary memory */
    unsigned char *bytes;
    size_t size_bytes;
} rt_copy;

/* Of the file's bytes, or of the first few where they are no ELF file's. rt_copy_free takes it, what was mapped from it
 * stays. */
mdot_status rt_copy_make(int file, uint64_t size_bytes, rt_copy *out_copy, mdot_error *err);
void rt_copy_free(rt_copy *copy);
/* Whole pages of it from `offset` on, put over those at `at`. */
mdot_status rt_copy_map(const rt_copy *copy, uint64_t offset, size_t size_bytes, int protection, void *at,
                        mdot_error *err);
/* Gives the memory of such pages back; they are not read again. */
void rt_copy_forget(const rt_copy *copy, uint64_t offset, size_t size_bytes, void *at);

/* ---- loader.c: the file as loaded code -------------------------------------------------------------------------- */

typedef struct rt_library {
    rt_artefact artefact;
    atomic_uint references; /* rt_artefact_keep */
    void *memory;
    size_t size_bytes;
} rt_library;

/* Loads what `elf` was read from and touches its pages, but for those of a device. rt_artefact_release takes it. */
mdot_status rt_library_open(const rt_copy *copy, const rt_elf *elf, rt_library **out_library, mdot_error *err);
/* What only a device reads is not needed any more, unless somebody keeps it. */
void rt_library_forget_device(rt_library *library, const rt_copy *copy, const rt_elf *elf);

/* ---- workers.c: threads that share a call ----------------------------------------------------------------------- */

enum { RT_MOST_WORKERS = 64 };

/* Those of one context, its caller's thread included. */
typedef struct rt_workers rt_workers;

/* `options` has two threads or more. */
mdot_status rt_workers_create(const rt_allocator *allocator, const mdot_context_options *options,
                              rt_workers **out_workers, mdot_error *err);
void rt_workers_destroy(const rt_allocator *allocator, rt_workers *workers); /* NULL is none */

/* Whether a call at this length is worth sharing. */
bool rt_workers_split(const rt_workers *workers, int64_t length);

/* One behind the last kernel of the step that begins at `begin`: a kernel that is split is a step, and so are those
 * together that are not split and follow one another (mdot_abi_call). */
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

/* Runs the kernels of every call, one call after the other, each shared by all workers that come; their shares and
 * workers' numbers are set here. */
void rt_workers_run(rt_workers *workers, const rt_code *code, const mdot_abi_call *calls, size_t count);

/* ---- ragged_batch.c: items that are taken together ---------------------------------------------------------------------- */

typedef struct rt_ragged_batch {
    unsigned char *tensors; /* of all items, each input and output one behind the other; NULL: no entry takes items
                               together */
    void **outputs;         /* of each item, in the entry's order */
} rt_ragged_batch;

/* The bucket whose code takes an entry's items together: kernels are the same for all lengths, so it is one for all of
 * them. NULL: items are not taken together. */
const mdot_abi_bucket *rt_ragged_bucket(const mdot_abi_table *table, const mdot_abi_entry *entry);
/* How many it takes at most; 1: none are taken together. */
uint32_t rt_ragged_batch_rows(const mdot_abi_table *table, const mdot_abi_entry *entry);

/* Of a tensor of all items, or of several, at most; each begins at MDOT_ABI_ALIGNMENT. */
size_t rt_tensor_capacity_bytes(const mdot_abi_bucket *bucket, const mdot_abi_tensor *tensor);
size_t rt_tensors_bytes(const mdot_abi_bucket *bucket, const mdot_abi_tensor *tensors, uint32_t count);

/* Room for any entry's. OUT_OF_MEMORY. */
mdot_status rt_ragged_batch_create(const mdot_predictor *predictor, rt_ragged_batch *out_joint, mdot_error *err);
void rt_ragged_batch_destroy(const mdot_predictor *predictor, rt_ragged_batch *joint);

/* ---- The public objects ------------------------------------------------------------------------------------------ */

struct mdot_predictor {
    atomic_size_t references; /* its own until it is closed, and one of each context */
    rt_allocator allocator;
    const rt_components *rooms;
    rt_library *library;
    const mdot_abi_table *table;                         /* the library's */
    const mdot_abi_image *image;                         /* that the CPU runs */
    const mdot_abi_cpu_function *functions;              /* its, by a bucket's number */
    char cpu_reason[160];                                /* why no later image */
    rt_device *device;                                   /* NULL: calls run on the CPU */
    const rt_device_ops *device_ops;                     /* the device's */
    bool device_is_required;                             /* asked for by name: a context without it is an error */
    char device_reason[sizeof((mdot_error){0}.message)]; /* why this device */
};

struct mdot_context {
    const mdot_predictor *predictor;
    void *scratch;
    rt_workers *workers; /* NULL: the caller's thread alone */
    const void **inputs; /* of the call being prepared; room for the entry with the most */
    void **outputs;
    rt_ragged_batch joint;     /* of items that are taken together */
    void **states;             /* of the rooms' extensions, in their order */
    rt_device_context *device; /* NULL: calls run on the CPU */
    mdot_error device_error;   /* why they do although the predictor has a device; MDOT_OK otherwise */
};

/* ---- context.c --------------------------------------------------------------------------------------------------- */

/* Of a predictor that is being opened, too. `options` have been read: they say how many threads. */
mdot_status rt_context_create(const mdot_predictor *predictor, const mdot_context_options *options,
                              mdot_context **out_context, mdot_error *err);

/* ---- lifetime.c ------------------------------------------------------------------------------------------------- */

void rt_device_close(mdot_predictor *predictor);

/* ---- device.c: where a predictor's calls run --------------------------------------------------------------------- */

/* Settles predictor->device as options->device asks, once everything else is open. On failure nothing is held. */
mdot_status rt_device_open(mdot_predictor *predictor, const mdot_open_options *options, mdot_error *err);

/* ---- run.c ------------------------------------------------------------------------------------------------------- */

/* What the CPU runs of a bucket, and an ordinary call of it, which lacks inputs and outputs. */
rt_code rt_code_of(const mdot_context *context, const mdot_abi_bucket *bucket);
mdot_abi_call rt_call_of(const mdot_context *context, const mdot_abi_bucket *bucket, int64_t length);

/* OUT_OF_RANGE, with what there is. */
mdot_status rt_check_entry(const mdot_abi_table *table, size_t entry, mdot_error *err);
mdot_status rt_check_length(const mdot_abi_table *table, const mdot_abi_entry *entry, int64_t length, mdot_error *err);

/* rt_run_many on the CPU, whatever the device. */
void rt_run_on_cpu(mdot_context *context, const mdot_abi_entry *entry, int64_t length, const rt_item *items,
                   size_t count);

#endif
