/* fake_gpu.c — the fake libcuda (tests/fake_cuda) with additional functions for benchmarks/gpu, as a library without
 * setup. If MDOT_LIBCUDA names it, the packed programs run as on a GPU. An artefact's kernels are its CPU code, found
 * through the loaded image. Reported times are fictitious. If MDOT_FAKE_SPOIL is set, the artefact's answers are
 * wrong, which the checks must detect. Complaints of the fake driver are printed when the process ends, which then
 * fails. */
#include "benchmarks/gpu/gpu_device.h"
#include "runtime/core/cpu.h"
#include "runtime/core/table_reader.h"
#include "tests/fake_cuda/machine.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DECLARE(name, suffix, parameters) FAKE_CUDA_API int name##suffix parameters;
GPU_SYMBOL_MAP(DECLARE)
#undef DECLARE

/* ---- An artefact's kernels --------------------------------------------------------------------------------------- */

typedef struct cpu_code {
    mdot_abi_function function;
    const void *weights;
    void *scratch;
    const mdot_abi_tensor *output; /* the first output */
} cpu_code;

static void run_cpu_code(void *user, int64_t length, const unsigned char *weights, const void *const *inputs,
                         void *const *outputs)
{
    const cpu_code *code = user;
    (void)weights; /* these are packed for a GPU */
    const mdot_abi_call call = {.inputs = inputs,
                                .outputs = outputs,
                                .weights = code->weights,
                                .scratch = code->scratch,
                                .length = length,
                                .kernel_end = INT64_MAX,
                                .share_end = MDOT_ABI_WHOLE_SLICE};
    code->function(&call);
    if (getenv("MDOT_FAKE_SPOIL") != NULL && code->output->dtype == MDOT_DTYPE_F32) *(float *)outputs[0] *= 1.5f;
}

static void register_bucket(const mdot_abi_table *table, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                            const mdot_abi_image *image, const mdot_abi_image *cpu, const int64_t *mdot_code,
                            const unsigned char *weights)
{
    const mdot_abi_cuda_kernel *kernel = &rt_cuda_kernels(table, image)[bucket->number];
    const mdot_abi_cpu_function *function = &rt_cpu_functions(table, cpu)[bucket->number];
    size_t scratch_bytes = (function->scratch_bytes + MDOT_ABI_ALIGNMENT) / MDOT_ABI_ALIGNMENT * MDOT_ABI_ALIGNMENT;
    cpu_code *code = malloc(sizeof *code);
    if (code == NULL) abort();
    uintptr_t address = (uintptr_t)mdot_code + (uintptr_t)mdot_code[function->code];
    *code = (cpu_code){(mdot_abi_function)address, weights + cpu->weights_offset,
                       aligned_alloc(MDOT_ABI_ALIGNMENT, scratch_bytes), rt_outputs(table, entry)};
    if (code->scratch == NULL) abort();
    fake_cuda_register(rt_string(table, kernel->name_at), kernel, run_cpu_code, code);
}

/* The same choice as the runtime's, so that an answer has the same bits as the CPU's. */
static bool choose_image(const mdot_abi_table *table, const mdot_abi_image **out_image)
{
    rt_cpu cpu;
    rt_cpu_read(&cpu);
    return rt_cpu_choose(&cpu, table, getenv("MDOT_CPU_ISA"), NULL, out_image, NULL) == MDOT_OK;
}

static bool is_within(const unsigned char *base, const void *place)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)base;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(base + header->e_phoff);
    bool found = false;
    for (int i = 0; i < header->e_phnum; i++) {
        uintptr_t start = (uintptr_t)base + segments[i].p_vaddr, at = (uintptr_t)place;
        found = found || (segments[i].p_type == PT_LOAD && at >= start && at - start < segments[i].p_memsz);
    }
    return found;
}

/* Finds the artefact that contains `inside`: the nearest mapping before it that begins as an ELF file and reaches it.
 * The runtime maps artefacts by itself, so the dynamic loader does not know them. Returns NULL if the artefact is not
 * found. */
static const unsigned char *find_artefact(const void *inside)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    const unsigned char *found = NULL;
    char line[4096];
    uintptr_t start;
    char readable;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (sscanf(line, "%" SCNxPTR "-%*x %c", &start, &readable) != 2 || readable != 'r') continue;
        if (start > (uintptr_t)inside) break;
        const Elf64_Ehdr *header = (const Elf64_Ehdr *)start;
        bool is_one = memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 && header->e_machine == EM_X86_64;
        if (is_one && is_within((const unsigned char *)start, inside)) found = (const unsigned char *)start;
    }
    if (maps != NULL) fclose(maps);
    return found;
}

/* Finds a symbol in a mapped artefact. The symbol table ends where the names start, as linkers place them. */
static const void *find_symbol(const unsigned char *base, const char *name)
{
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)base;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(base + header->e_phoff);
    const Elf64_Dyn *dynamic = NULL;
    for (int i = 0; i < header->e_phnum; i++)
        if (segments[i].p_type == PT_DYNAMIC) dynamic = (const Elf64_Dyn *)(base + segments[i].p_vaddr);
    const Elf64_Sym *symbols = NULL;
    const char *names = NULL;
    for (; dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_SYMTAB) symbols = (const Elf64_Sym *)(base + dynamic->d_un.d_ptr);
        if (dynamic->d_tag == DT_STRTAB) names = (const char *)(base + dynamic->d_un.d_ptr);
    }
    if (symbols == NULL || names == NULL) return NULL;
    for (; (const char *)symbols < names; symbols++)
        if (strcmp(names + symbols->st_name, name) == 0) return base + symbols->st_value;
    return NULL;
}

/* Registers the code of the artefact around the image. */
static bool register_artefact(const void *image)
{
    const unsigned char *base = find_artefact(image);
    if (base == NULL) return false;
    const mdot_abi_table *table = find_symbol(base, MDOT_ABI_SYMBOL_TABLE);
    const unsigned char *cubins = find_symbol(base, MDOT_ABI_SYMBOL_CUBINS);
    const int64_t *code = find_symbol(base, MDOT_ABI_SYMBOL_CODE);
    const unsigned char *weights = find_symbol(base, MDOT_ABI_SYMBOL_WEIGHTS);
    const mdot_abi_image *cpu = NULL, *found = NULL;
    if (table == NULL || cubins == NULL || !choose_image(table, &cpu)) return false;
    for (uint32_t i = 0; i < table->image_count; i++) {
        const mdot_abi_image *candidate = rt_image(table, i);
        if (candidate->kind == MDOT_IMAGE_CUDA && cubins + candidate->code_offset == image) found = candidate;
    }
    for (uint32_t e = 0; found != NULL && e < table->entry_count; e++) {
        const mdot_abi_entry *entry = rt_entry(table, e);
        for (uint32_t b = 0; b < entry->bucket_count; b++)
            register_bucket(table, entry, &rt_buckets(table, entry)[b], found, cpu, code, weights);
    }
    return found != NULL;
}

static void register_kernels(const void *image)
{
    if (!register_artefact(image)) abort();
}

__attribute__((constructor)) static void begin(void) { fake_cuda_on_load(register_kernels); }

__attribute__((destructor)) static void end(void)
{
    if (fake_cuda_complaint() == NULL) return;
    fprintf(stderr, "the fake driver complains: %s\n", fake_cuda_complaint());
    _exit(70);
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

struct gpu_event_object {
    bool is_recorded;
};

int cuEventCreate(gpu_event *out_event, unsigned flags)
{
    (void)flags;
    *out_event = calloc(1, sizeof **out_event);
    return *out_event != NULL ? RT_CU_SUCCESS : RT_CU_OUT_OF_MEMORY;
}

int cuEventRecord(gpu_event event, rt_cu_stream stream)
{
    (void)stream;
    event->is_recorded = true;
    return RT_CU_SUCCESS;
}

int cuEventSynchronize(gpu_event event) { return event->is_recorded ? RT_CU_SUCCESS : INVALID_HANDLE; }

int cuEventElapsedTime(float *out_ms, gpu_event start, gpu_event end_event)
{
    if (!start->is_recorded || !end_event->is_recorded) return INVALID_HANDLE;
    *out_ms = 0.01f;
    return RT_CU_SUCCESS;
}

int cuEventDestroy_v2(gpu_event event)
{
    free(event);
    return RT_CU_SUCCESS;
}
