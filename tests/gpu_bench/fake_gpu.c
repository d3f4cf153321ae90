/* fake_gpu.c — the fake libcuda (tests/fake_cuda) with additional functions for benchmarks/gpu, as a library without
 * setup. If MDOT_LIBCUDA names it, the packed programs run as on a GPU. An artefact's kernels are its CPU code, found
 * through the loaded image. The floor kernels return the values expected by floors.c. Reported times are fictitious. If
 * MDOT_FAKE_SPOIL is set, the artefact's answers are wrong, which the checks must detect. Complaints of the fake driver
 * are printed when the process ends, which then fails. */
#include "benchmarks/gpu/floors.h"
#include "benchmarks/gpu/gpu_device.h"
#include "runtime/core/cpu.h"
#include "runtime/core/table_reader.h"
#include "tests/fake_cuda/machine.h"

#include <elf.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DECLARE(name, suffix, parameters) FAKE_CUDA_API int name##suffix parameters;
GPU_SYMBOL_MAP(DECLARE)
#undef DECLARE
int cuLaunchCooperativeKernel(rt_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                              unsigned block_x, unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes,
                              rt_cu_stream stream, void **parameters);

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

/* ---- Kernels of the lower bounds --------------------------------------------------------------------------------- */

/* The count expected by floors.c. For a grid it depends on the number of blocks. */
typedef struct rounds {
    unsigned right, right_a_block;
} rounds;

static void run_rounds(void *user, int64_t length, const unsigned char *weights, const void *const *inputs,
                       void *const *outputs)
{
    enum { CYCLES = 1500, CYCLES_A_US = 1500 };
    const rounds *r = user;
    (void)weights, (void)inputs;
    floor_result *result = outputs[0];
    result->rounds = (unsigned)length;
    result->elapsed_cycles = (unsigned long long)length * CYCLES;
    result->elapsed_ns = result->elapsed_cycles * 1000 / CYCLES_A_US;
    for (int64_t i = 0; i < length; i++) result->cycles[i] = CYCLES;
    result->check = r->right + r->right_a_block * fake_cuda_last_launch().blocks;
}

static void run_sum(void *user, int64_t length, const unsigned char *weights, const void *const *inputs,
                    void *const *outputs)
{
    const uint32_t *in_parameter = user, *words = inputs[0];
    (void)weights;
    uint32_t count = in_parameter != NULL ? *in_parameter : (uint32_t)length, sum = 0;
    for (uint32_t i = 0; i < count; i++) sum += words[i];
    ((floor_result *)outputs[0])->check = sum;
}

static void register_floors(void)
{
    static rounds of_grid = {0, FLOOR_CHECKS}, of_cluster = {FLOOR_CHECKS, 0}, of_signals = {FLOOR_ROUNDS, 0};
    static uint32_t small = FLOOR_SMALL_WORDS, large = FLOOR_LARGE_WORDS;
    static const struct {
        const char *name;
        fake_cuda_body *body;
        void *user;
        mdot_abi_cuda_kernel abi;
    } kernels[] = {
        {"floor_grid_barrier", run_rounds, &of_grid, {.threads = FLOOR_THREADS}},
        {"floor_cluster_barrier_8", run_rounds, &of_cluster, {.threads = FLOOR_THREADS}},
        {"floor_cluster_barrier_16", run_rounds, &of_cluster, {.threads = FLOOR_THREADS}},
        {"floor_push", run_rounds, &of_signals, {.threads = FLOOR_THREADS}},
        {"floor_flag", run_rounds, &of_signals, {.threads = 32}},
        {"floor_memory_input", run_sum, NULL, {.threads = FLOOR_THREADS}},
        {"floor_small_parameter",
         run_sum,
         &small,
         {.threads = FLOOR_THREADS, .inline_input_bytes = 4 * FLOOR_SMALL_WORDS}},
        {"floor_large_parameter",
         run_sum,
         &large,
         {.threads = FLOOR_THREADS, .inline_input_bytes = 4 * FLOOR_LARGE_WORDS}},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++)
        fake_cuda_register(kernels[i].name, &kernels[i].abi, kernels[i].body, kernels[i].user);
}

static void register_kernels(const void *image)
{
    if (!register_artefact(image)) register_floors();
}

__attribute__((constructor)) static void begin(void) { fake_cuda_on_load(register_kernels); }

__attribute__((destructor)) static void end(void)
{
    if (fake_cuda_complaint() == NULL) return;
    fprintf(stderr, "the fake driver complains: %s\n", fake_cuda_complaint());
    _exit(70);
}

/* ---- Persistent kernel ------------------------------------------------------------------------------------------- */

typedef struct resident {
    const uint32_t *request;
    uint32_t *done;
} resident;

static pthread_t resident_thread;
static bool is_resident;

static void *serve(void *argument)
{
    const resident *r = argument;
    uint32_t request = 0;
    while (request != FLOOR_STOP) {
        request = __atomic_load_n(r->request, __ATOMIC_ACQUIRE);
        __atomic_store_n(r->done, request, __ATOMIC_RELEASE);
        sched_yield();
    }
    return NULL;
}

static int start_resident(const mdot_abi_cuda_call *call)
{
    static resident r;
    int result = machine_enter_context("cuLaunchCooperativeKernel");
    const object *request = machine_find_address(call->input, sizeof(uint32_t));
    const object *done = machine_find_address(call->done, sizeof(uint32_t));
    if (result == RT_CU_SUCCESS && (request == NULL || done == NULL)) result = INVALID_VALUE;
    if (result == RT_CU_SUCCESS) {
        r = (resident){machine_pointer(request, call->input), machine_pointer(done, call->done)};
        is_resident = pthread_create(&resident_thread, NULL, serve, &r) == 0;
    }
    return machine_leave(result);
}

/* ---- Launches and graphs of launches ----------------------------------------------------------------------------- */

typedef struct launch {
    rt_cu_function function;
    unsigned blocks, threads;
    mdot_abi_cuda_call call;
} launch;

struct gpu_graph_object { /* kernels whose parameters contain no inputs */
    int count;
    launch launches[64];
};
struct gpu_graph_exec_object {
    struct gpu_graph_object graph;
};
static struct gpu_graph_object *capturing;

static const char *name_of(rt_cu_function function) { return ((const object *)function)->name; }

int cuLaunchKernel(rt_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                   unsigned block_y, unsigned block_z, unsigned dynamic_shared_bytes, rt_cu_stream stream,
                   void **parameters, void **extra)
{
    if (extra != NULL) return INVALID_VALUE;
    if (capturing != NULL) {
        if (capturing->count == 64) return INVALID_VALUE;
        launch *l = &capturing->launches[capturing->count++];
        *l = (launch){function, grid_x, block_x, {0}};
        memcpy(&l->call, parameters[0], sizeof l->call);
        return RT_CU_SUCCESS;
    }
    if (strcmp(name_of(function), "floor_empty") == 0) return RT_CU_SUCCESS;
    if (strcmp(name_of(function), "floor_resident") == 0) return start_resident(parameters[0]);
    if (is_resident) {
        pthread_join(resident_thread, NULL);
        is_resident = false;
    }
    return cuLaunchCooperativeKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, dynamic_shared_bytes,
                                     stream, parameters);
}

int cuStreamBeginCapture_v2(rt_cu_stream stream, int mode)
{
    (void)stream, (void)mode;
    if (capturing != NULL) return INVALID_VALUE;
    capturing = calloc(1, sizeof *capturing);
    return capturing != NULL ? RT_CU_SUCCESS : RT_CU_OUT_OF_MEMORY;
}

int cuStreamEndCapture(rt_cu_stream stream, gpu_graph *out_graph)
{
    (void)stream;
    *out_graph = capturing;
    capturing = NULL;
    return RT_CU_SUCCESS;
}

int cuGraphInstantiateWithFlags(gpu_graph_exec *out_exec, gpu_graph graph, unsigned long long flags)
{
    if (flags != 0) return INVALID_VALUE;
    *out_exec = malloc(sizeof **out_exec);
    if (*out_exec == NULL) return RT_CU_OUT_OF_MEMORY;
    (*out_exec)->graph = *graph;
    return RT_CU_SUCCESS;
}

int cuGraphLaunch(gpu_graph_exec exec, rt_cu_stream stream)
{
    int result = RT_CU_SUCCESS;
    for (int i = 0; i < exec->graph.count && result == RT_CU_SUCCESS; i++) {
        launch *l = &exec->graph.launches[i];
        void *parameters[] = {&l->call};
        result = cuLaunchKernel(l->function, l->blocks, 1, 1, l->threads, 1, 1, 0, stream, parameters, NULL);
    }
    return result;
}

int cuGraphExecDestroy(gpu_graph_exec exec)
{
    free(exec);
    return RT_CU_SUCCESS;
}

int cuGraphDestroy(gpu_graph graph)
{
    free(graph);
    return RT_CU_SUCCESS;
}

/* ---- Copies and events ------------------------------------------------------------------------------------------- */

/* The copy is complete before later launches in the stream. */
int cuMemcpyHtoDAsync_v2(rt_cu_address to, const void *from, size_t size_bytes, rt_cu_stream stream)
{
    int result = machine_enter_context("cuMemcpyHtoD");
    const object *o = machine_find_address(to, size_bytes);
    if (result == RT_CU_SUCCESS && (o == NULL || machine_find(STREAM, stream) == NULL)) result = INVALID_VALUE;
    if (result == RT_CU_SUCCESS) memcpy(machine_pointer(o, to), from, size_bytes);
    return machine_leave(result);
}

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
