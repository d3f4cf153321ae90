/* predictor.h — what the runtime's files share; users include mdot/mdot.h only.
 *
 *   open      predictor.c maps the file, elf.c finds the sections, table.c checks what they say, cpu.c picks the level,
 *             loader.c hands the file to the dynamic loader and touches its pages
 *   describe  info.c
 *   run       context.c, run.c; on a GPU: device.h
 *
 * Everything that comes from the file is checked once, at open; afterwards the table is trusted and read in place.
 */
#ifndef RT_PREDICTOR_H
#define RT_PREDICTOR_H

#include "mdot/mdot.h"
#include "mdot/mdot_abi.h"

/* ---- allocator.c: the caller's memory functions, or libc's ----------------------------------------------------- */

typedef struct rt_allocator {
    void *(*allocate)(void *user, size_t bytes, size_t alignment);
    void (*release)(void *user, void *memory);
    void *user;
} rt_allocator;

/* INVALID_ARGUMENT when only one of the two functions is there. */
mdot_status rt_allocator_init(rt_allocator *allocator, const mdot_open_options *options, mdot_error *err);
/* Zeroed and 64-byte aligned; never of no bytes. NULL when memory is out. */
void *rt_alloc(const rt_allocator *allocator, size_t bytes);
void rt_free(const rt_allocator *allocator, void *memory);

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
/* "x86-64-v3"; "unknown" for levels of newer compilers. */
const char *rt_cpu_level_name(uint32_t level);
/* MDOT_CPU_NONE for names that are no level. */
uint32_t rt_cpu_level_find(const char *name);
/* Index in table->levels of the best level that `cpu` runs, or of the one named `forced` (NULL: none is).
 * INVALID_ARGUMENT when that is no level's name, INCOMPATIBLE when the artefact and the machine have none in common. */
mdot_status rt_cpu_choose(const rt_cpu *cpu, const mdot_abi_table *table, const char *forced, uint32_t *out_index,
                          mdot_error *err);

/* ---- elf.c: where things are in the file ----------------------------------------------------------------------- */

typedef struct rt_section {
    uint64_t offset, address, size_bytes; /* in the file; in memory, relative to the load address */
} rt_section;

typedef struct rt_elf {
    const unsigned char *bytes;
    uint64_t size_bytes;
    uint64_t segments_at;
    uint32_t segment_count;
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

static inline const char *rt_string(const mdot_abi_table *table, uint32_t at)
{
    return at == 0 ? "" : (const char *)table + at;
}
static inline const mdot_abi_entry *rt_entry(const mdot_abi_table *table, size_t entry)
{
    return (const mdot_abi_entry *)((const char *)table + table->entries_at) + entry;
}
static inline const mdot_abi_tensor *rt_inputs(const mdot_abi_table *table, const mdot_abi_entry *entry)
{
    return (const mdot_abi_tensor *)((const char *)table + entry->inputs_at);
}
static inline const mdot_abi_tensor *rt_outputs(const mdot_abi_table *table, const mdot_abi_entry *entry)
{
    return (const mdot_abi_tensor *)((const char *)table + entry->outputs_at);
}
static inline const mdot_abi_bucket *rt_buckets(const mdot_abi_table *table, const mdot_abi_entry *entry)
{
    return (const mdot_abi_bucket *)((const char *)table + entry->buckets_at);
}
static inline const mdot_abi_kernel *rt_kernels(const mdot_abi_table *table, const mdot_abi_bucket *bucket)
{
    return (const mdot_abi_kernel *)((const char *)table + bucket->kernels_at);
}
static inline const mdot_abi_cuda_image *rt_cuda_image(const mdot_abi_table *table, size_t image)
{
    return (const mdot_abi_cuda_image *)((const char *)table + table->cuda_images_at) + image;
}
/* Where a bucket's kernel and its resources stand in an image's arrays. */
static inline size_t rt_cuda_index(const mdot_abi_table *table, const mdot_abi_bucket *bucket)
{
    return bucket->first_code / table->level_count;
}
static inline const mdot_abi_cuda_kernel *rt_cuda_kernels(const mdot_abi_table *table, const mdot_abi_cuda_image *image)
{
    return (const mdot_abi_cuda_kernel *)((const char *)table + image->kernels_at);
}
static inline const mdot_abi_cuda_resources *rt_cuda_resources(const mdot_abi_table *table,
                                                               const mdot_abi_cuda_image *image)
{
    return (const mdot_abi_cuda_resources *)((const char *)table + image->resources_at);
}

/* ---- loader.c: the file as loaded code -------------------------------------------------------------------------- */

typedef struct rt_library {
    void *handle;
    const mdot_abi_table *table;
    const int64_t *code;
    const void *weights;
    const unsigned char *cubins, *cuda_weights; /* NULL in an artefact without CUDA images; not touched at open */
} rt_library;

/* Loads the checked file behind `descriptor`, which is not needed afterwards, and touches its pages. */
mdot_status rt_library_open(int descriptor, const rt_elf *elf, rt_library *out_library, mdot_error *err);
void rt_library_close(rt_library *library);

/* ---- The public objects ------------------------------------------------------------------------------------------ */

struct mdot_predictor {
    rt_allocator allocator;
    rt_library library;
    const mdot_abi_table *table;
    uint32_t level;                                      /* index in table->levels */
    struct rt_cuda *cuda;                                /* NULL: calls run on the CPU */
    bool device_is_required;                             /* asked for by name: a context without it is an error */
    char device_reason[sizeof((mdot_error){0}.message)]; /* why this device */
};

struct mdot_context {
    const mdot_predictor *predictor;
    void *scratch;
    const void **inputs; /* of the call being prepared; room for the entry with the most */
    void **outputs;
    struct rt_job_tensors *jobs;  /* predict.h; NULL: the artefact predicts no jobs */
    struct rt_cuda_context *cuda; /* NULL: calls run on the CPU */
    mdot_error device_error;      /* why they do although the predictor has a GPU; MDOT_OK otherwise */
};

static inline bool rt_has_length(const mdot_abi_dim *dim)
{
    return dim->scale != 0;
}

/* Elements of a tensor; the checks at open have ruled overflow out for lengths up to the largest bucket's. */
static inline uint64_t rt_element_count(const mdot_abi_tensor *tensor, int64_t length)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < tensor->rank; i++)
        count *= (uint64_t)(tensor->dim[i].scale * length + tensor->dim[i].offset);
    return count;
}

static inline uint64_t rt_tensor_bytes(const mdot_abi_tensor *tensor, int64_t length)
{
    return rt_element_count(tensor, length) * mdot_dtype_size_bytes((mdot_dtype)tensor->dtype);
}

#endif
