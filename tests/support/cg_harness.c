/* cg_harness.c — see cg_harness.h. */
#include "tests/support/cg_harness.h"
#include "tests/support/assertions.h"

#include "codegen/cpu/cpu_images.h"
#include "codegen/cpu/object.h"
#include "plan/kernel_kind.h"
#include "tests/support/amx_emulator.h"
#include "tests/support/remote_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool harness_runs(mdot_cpu_isa level)
{
    bool is_aarch64 = level == MDOT_CPU_AARCH64_NEON || level == MDOT_CPU_AARCH64_BF16;
    if (remote_is_used() || is_aarch64) return remote_is_used() && is_aarch64;
    switch (level) {
    case MDOT_CPU_X86_64_V3: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case MDOT_CPU_X86_64_V4:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case MDOT_CPU_X86_64_BF16:
    case MDOT_CPU_X86_64_AMX: /* its AMX instructions can be emulated */
        return harness_runs(MDOT_CPU_X86_64_V4) && __builtin_cpu_supports("avx512bf16");
    default: return false;
    }
}

bool harness_runs_fp32(mdot_cpu_isa level) { return cg_cpu_target_find(level, CG_FP32) != NULL && harness_runs(level); }

/* ---- Targets ---------------------------------------------------------------------------------------------------- */

static cg_cpu_target in_bf16(mdot_cpu_isa level, const char *name, cg_matmul_kind matmul)
{
    cg_cpu_target target = *cg_cpu_target_find(level, CG_FP32);
    target.name = name;
    target.kernel_precision = CG_BF16;
    target.matmul = matmul;
    target.layout = &cg_layout_bf16;
    return target;
}

/* The kernel shapes of v4, for any machine. */
static cg_cpu_target use_generic_vectors(const char *name, cg_matmul_kind matmul)
{
    cg_cpu_target target = in_bf16(MDOT_CPU_X86_64_V4, name, matmul);
    target.use_generic_vectors = true;
    target.cpu = "x86-64-v3";
    target.features = "";
    target.tune = "znver3";
    return target;
}

const cg_cpu_target *const *harness_targets(int *out_count)
{
    enum { MOST = 12 };
    static cg_cpu_target rows[MOST];
    static const cg_cpu_target *list[MOST];
    static int count;
    static bool emulates;
    *out_count = count;
    if (emulates) amx_emulator_install(); /* cmocka restores signal handlers between tests */
    if (count > 0) return list;
    bool v3 = harness_runs(MDOT_CPU_X86_64_V3), v4 = harness_runs(MDOT_CPU_X86_64_V4);
    if (v3) list[count++] = cg_cpu_target_find(MDOT_CPU_X86_64_V3, CG_FP32);
    if (v4) list[count++] = cg_cpu_target_find(MDOT_CPU_X86_64_V4, CG_FP32);
    int made = 0;
    if (v3) rows[made++] = in_bf16(MDOT_CPU_X86_64_V3, "x86-64-v3, bf16 widened", CG_MATMUL_BF16_WEIGHTS);
    if (v4) rows[made++] = in_bf16(MDOT_CPU_X86_64_V4, "x86-64-v4, bf16 widened", CG_MATMUL_BF16_WEIGHTS);
    if (harness_runs(MDOT_CPU_X86_64_BF16)) {
        rows[made] = in_bf16(MDOT_CPU_X86_64_V4, "vdpbf16ps", CG_MATMUL_BF16);
        rows[made++].features = "+avx512bf16,-prefer-256-bit";
    }
    if (v3) rows[made++] = use_generic_vectors("vdpbf16ps in plain vectors", CG_MATMUL_BF16);
    if (harness_runs(MDOT_CPU_X86_64_AMX)) {
        bool native = amx_is_native();
        rows[made] = in_bf16(MDOT_CPU_X86_64_V4, native ? "AMX" : "AMX, emulated", CG_MATMUL_AMX);
        rows[made++].features = "+amx-tile,+amx-bf16,+avx512bf16,-prefer-256-bit";
        emulates = !native;
        if (emulates) amx_emulator_install();
    }
    if (v3) rows[made++] = use_generic_vectors("AMX in plain vectors", CG_MATMUL_AMX);
    if (harness_runs(MDOT_CPU_AARCH64_NEON)) {
        list[count++] = cg_cpu_target_find(MDOT_CPU_AARCH64_NEON, CG_FP32);
        list[count++] = cg_cpu_target_find(MDOT_CPU_AARCH64_NEON, CG_BF16);
        list[count++] = cg_cpu_target_find(MDOT_CPU_AARCH64_BF16, CG_BF16);
    }
    printf("code for:");
    for (int i = 0; i < made; i++) list[count++] = &rows[i];
    for (int i = 0; i < count; i++) printf("%s %s", i > 0 ? ";" : "", list[i]->name);
    printf("%s\n", harness_runs(MDOT_CPU_X86_64_BF16) ? "" : "; no vdpbf16ps on this machine");
    *out_count = count;
    return list;
}

static void write_file(const char *path, const void *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

/* Links an object into a shared object without imports, and loads it. For the emulator, the file stays until
 * close_library. */
static harness_library load_object(const void *object, size_t bytes, const cg_machine *machine)
{
    harness_library library = {0};
    char folder[] = "/tmp/mdot_harness_XXXXXX", input[64], output[64], command[256];
    assert_non_null(mkdtemp(folder));
    snprintf(input, sizeof input, "%s/code.o", folder);
    snprintf(output, sizeof output, "%s/code.so", folder);
    write_file(input, object, bytes);
    const int absent = 127; /* the shell's exit status for a command that it cannot find */
    int linked = -1;
    for (int i = 0; i < CG_LINKERS; i++) {
        snprintf(command, sizeof command, "%s -m %s -shared -nostdlib -z defs -z noexecstack -z text -o %s %s",
                 machine->linkers[i], machine->emulation, output, input);
        linked = system(command);
        if (!WIFEXITED(linked) || WEXITSTATUS(linked) != absent) break;
    }
    bool is_remote = remote_is_used();
    if (linked == 0 && !is_remote) library.handle = dlopen(output, RTLD_NOW | RTLD_LOCAL);
    unlink(input);
    if (is_remote && linked == 0) {
        library.path = strdup(output);
        assert_non_null(library.path);
        return library;
    }
    unlink(output);
    rmdir(folder);
    assert_int_equal(linked, 0);
    if (!library.handle) fail_msg("dlopen: %s", dlerror());
    return library;
}

static void close_library(harness_library *library)
{
    if (library->handle) dlclose(library->handle);
    if (library->path) {
        unlink(library->path);
        *strrchr(library->path, '/') = '\0';
        rmdir(library->path);
        free(library->path);
    }
    *library = (harness_library){0};
}

void harness_begin(harness *h, mdot_cpu_isa level) { harness_begin_for(h, cg_cpu_target_find(level, CG_FP32)); }

void harness_begin_for(harness *h, const cg_cpu_target *target)
{
    h->context = LLVMContextCreate();
    h->module = LLVMModuleCreateWithNameInContext("harness", h->context);
    h->library = (harness_library){0};
    cg_emitter_init(&h->e, h->module, target);
}

void harness_begin_function(cg_emitter *e, const char *name, int pointer_count)
{
    LLVMTypeRef parameters[CG_MAX_POINTERS + 1];
    assert_compare(pointer_count, <=, CG_MAX_POINTERS);
    for (int i = 0; i < pointer_count; i++) parameters[i] = e->ptr;
    parameters[pointer_count] = e->i64;
    cg_begin_function(e, name, parameters, pointer_count + 1);
    e->length = LLVMGetParam(e->function, (unsigned)pointer_count);
}

void harness_load(harness *h)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(h->module); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f)) LLVMSetVisibility(f, LLVMDefaultVisibility);
    mdot_error err;
    void *object = NULL;
    size_t bytes = 0;
    if (cg_assemble(h->module, h->e.target->machine, NULL, NULL, NULL, &object, &bytes, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    h->library = load_object(object, bytes, h->e.target->machine);
    free(object);
}

void *harness_get(const harness *h, const char *name)
{
    void *symbol = h->library.handle ? dlsym(h->library.handle, name) : NULL;
    if (!symbol) fail_msg("no function %s", name);
    return symbol;
}

/* The pages of a guarded buffer, so guard_intact checks them after the call. */
static remote_memory pages_of(const guarded *g)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *first = g->mapping + page;
    return (remote_memory){{.bytes = (int64_t)(g->mapping_bytes - 2 * page),
                            .data_at = (unsigned char *)g->data - first,
                            .is_returned = true,
                            .fill = -1},
                           first};
}

static remote_call call_of(const harness_library *library, const char *function)
{
    remote_call call = {0};
    snprintf(call.library, sizeof call.library, "%s", library->path);
    snprintf(call.function, sizeof call.function, "%s", function);
    return call;
}

void harness_call(const harness *h, const char *name, const guarded *const *buffers, int count, int64_t length)
{
    enum { MOST = 7 };
    assert_compare(count, <=, MOST);
    if (h->library.path) {
        remote_memory memory[MOST];
        for (int i = 0; i < count; i++) memory[i] = pages_of(buffers[i]);
        remote_call call = call_of(&h->library, name);
        call.buffer_count = count;
        call.length = length;
        remote_run(&call, memory, NULL);
        return;
    }
    uintptr_t symbol = (uintptr_t)harness_get(h, name);
    void *p[MOST] = {NULL};
    for (int i = 0; i < count; i++) p[i] = buffers[i]->data;
    switch (count) {
    case 2: ((void (*)(void *, void *, int64_t))symbol)(p[0], p[1], length); break;
    case 3: ((void (*)(void *, void *, void *, int64_t))symbol)(p[0], p[1], p[2], length); break;
    case 6:
        ((void (*)(void *, void *, void *, void *, void *, void *, int64_t))symbol)(p[0], p[1], p[2], p[3], p[4], p[5],
                                                                                    length);
        break;
    default: fail_msg("%s has %d buffers", name, count);
    }
}

void harness_end(harness *h)
{
    close_library(&h->library);
    cg_emitter_done(&h->e);
    LLVMDisposeModule(h->module);
    LLVMContextDispose(h->context);
}

/* ---- Plans ------------------------------------------------------------------------------------------------------ */

static size_t aligned_bytes(int64_t bytes)
{
    return ((size_t)bytes + MDOT_ABI_ALIGNMENT - 1) & ~(size_t)(MDOT_ABI_ALIGNMENT - 1);
}

void harness_load_plan(harness_plan *h, pl_plan *plan, mdot_cpu_isa level)
{
    harness_load_plan_for(h, plan, cg_cpu_target_find(level, CG_FP32));
}

void harness_load_plan_for(harness_plan *h, pl_plan *plan, const cg_cpu_target *target)
{
    pl_plan *plans[] = {plan};
    cg_entry entry = {.name = "run", .graph = plan->graph, .plan_count = 1, .plans = plans};
    cg_options options = {.predictor_name = "harness", .in_process = true};
    cg_cpu_images images;
    mdot_error err;
    ir_arena *arena = ir_arena_create(0);
    assert_non_null(arena);
    if (cg_cpu_make_images_for(&target, 1, &entry, 1, &options, arena, &images, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    h->weights = aligned_alloc(MDOT_ABI_ALIGNMENT, images.weights.size_bytes);
    assert_non_null(h->weights);
    memcpy(h->weights, images.weights.bytes, images.weights.size_bytes);
    h->weight_bytes = images.weights.size_bytes;
    h->plan = plan;
    h->library = load_object(images.code, images.code_bytes, target->machine);
    const int64_t *code = h->library.handle ? dlsym(h->library.handle, MDOT_ABI_SYMBOL_CODE) : NULL;
    assert_true(code != NULL || h->library.path != NULL);
    h->function = code ? (mdot_abi_function)((uintptr_t)code + (uintptr_t)code[0]) : NULL;
    h->scratch_bytes = aligned_bytes(cg_cpu_scratch_bytes(plan, images.image[0].target));
    h->worker_bytes = (size_t)cg_cpu_worker_bytes(plan, images.image[0].target);
    h->kernel_count = plan->kernel_count;
    h->step_end = calloc((size_t)plan->kernel_count + 1, sizeof *h->step_end);
    assert_non_null(h->step_end);
    for (int k = plan->kernel_count - 1; k >= 0; k--) {
        bool is_one = !pl_is_split(plan, &plan->kernels[k]) && k + 1 < plan->kernel_count &&
                      !pl_is_split(plan, &plan->kernels[k + 1]);
        h->step_end[k] = is_one ? h->step_end[k + 1] : k + 1;
    }
    cg_cpu_images_done(&images);
    ir_arena_destroy(arena);
}

enum { RED_ZONE = 256, POISON = 0xA5 }; /* detects a kernel that relies on zeros */

static unsigned char *create_scratch(size_t bytes)
{
    unsigned char *scratch = aligned_alloc(MDOT_ABI_ALIGNMENT, bytes + RED_ZONE);
    assert_non_null(scratch);
    memset(scratch, POISON, bytes + RED_ZONE);
    return scratch;
}

static void check_and_free(unsigned char *scratch, size_t bytes)
{
    for (size_t i = 0; i < RED_ZONE; i++) assert_int_equal(scratch[bytes + i], POISON);
    free(scratch);
}

/* ---- Calls of plans under the emulator --------------------------------------------------------------------------- */

static size_t bytes_of(const pl_buffer *buffer, int64_t length)
{
    int64_t count = 1;
    for (int d = 0; d < buffer->type.rank; d++) count *= ir_dim_at(buffer->type.dim[d], length);
    return (size_t)count * mdot_dtype_size_bytes(buffer->type.dtype);
}

static void call_remotely(const harness_plan *h, const void *const *inputs, void *const *outputs, int64_t length,
                          size_t scratch_bytes, const remote_step *steps, int64_t step_count)
{
    remote_memory memory[REMOTE_MOST_BUFFERS] = {0};
    remote_call call = call_of(&h->library, "");
    call.length = length;
    call.step_count = step_count;
    for (int b = 0; b < h->plan->buffer_count; b++) {
        const pl_buffer *buffer = &h->plan->buffers[b];
        if (buffer->kind == PL_INPUT && buffer->index >= call.input_count) call.input_count = buffer->index + 1;
        if (buffer->kind == PL_OUTPUT && buffer->index >= call.output_count) call.output_count = buffer->index + 1;
    }
    call.buffer_count = call.input_count + call.output_count + 2;
    assert_compare(call.buffer_count, <=, REMOTE_MOST_BUFFERS);
    for (int b = 0; b < h->plan->buffer_count; b++) {
        const pl_buffer *buffer = &h->plan->buffers[b];
        bool is_input = buffer->kind == PL_INPUT;
        if (!is_input && buffer->kind != PL_OUTPUT) continue;
        remote_memory *m = &memory[is_input ? buffer->index : call.input_count + buffer->index];
        m->about = (remote_buffer){.bytes = (int64_t)bytes_of(buffer, length), .is_returned = !is_input, .fill = -1};
        m->bytes = is_input ? (void *)(uintptr_t)inputs[buffer->index] : outputs[buffer->index];
    }
    remote_memory *last = &memory[call.buffer_count - 2];
    last[0] = (remote_memory){{.bytes = (int64_t)h->weight_bytes, .fill = -1}, h->weights};
    last[1] = (remote_memory){{.bytes = (int64_t)scratch_bytes, .fill = POISON}, NULL};
    remote_run(&call, memory, steps);
}

/* Runs the steps in order; each may belong to another worker. */
static void run_steps(const harness_plan *h, const void *const *inputs, void *const *outputs, int64_t length,
                      int workers, const remote_step *steps, int64_t step_count)
{
    size_t bytes = h->scratch_bytes + (size_t)(workers - 1) * h->worker_bytes;
    if (h->library.path) {
        call_remotely(h, inputs, outputs, length, bytes, steps, step_count);
        return;
    }
    unsigned char *scratch = create_scratch(bytes);
    for (const remote_step *step = steps; step < steps + step_count; step++) {
        mdot_abi_call call = {.inputs = inputs,
                              .outputs = outputs,
                              .weights = h->weights,
                              .scratch = scratch,
                              .length = length,
                              .kernel_begin = step->kernel_begin,
                              .kernel_end = step->kernel_end,
                              .share_begin = step->share_begin,
                              .share_end = step->share_end,
                              .worker = step->worker};
        h->function(&call);
    }
    check_and_free(scratch, bytes);
}

void harness_call_plan(const harness_plan *h, const void *const *inputs, void *const *outputs, int64_t length)
{
    const remote_step all = {.kernel_end = h->kernel_count, .share_end = MDOT_ABI_WHOLE_SLICE};
    run_steps(h, inputs, outputs, length, 1, &all, 1);
}

void harness_call_slices(const harness_plan *h, const void *const *inputs, void *const *outputs, int64_t length,
                         const int64_t *cuts, int cut_count)
{
    int workers = cut_count + 1;
    int64_t count = 0;
    remote_step *steps = malloc((size_t)(h->kernel_count * workers + 1) * sizeof *steps);
    assert_non_null(steps);
    for (int k = 0; k < h->kernel_count; k = h->step_end[k])
        for (int w = cut_count; w >= 0; w--)
            steps[count++] = (remote_step){.kernel_begin = k,
                                           .kernel_end = h->step_end[k],
                                           .share_begin = w > 0 ? cuts[w - 1] : 0,
                                           .share_end = w < cut_count ? cuts[w] : MDOT_ABI_WHOLE_SLICE,
                                           .worker = w};
    run_steps(h, inputs, outputs, length, workers, steps, count);
    free(steps);
}

void harness_unload_plan(harness_plan *h)
{
    close_library(&h->library);
    free(h->weights);
    free(h->step_end);
}

void harness_run_plan(pl_plan *plan, mdot_cpu_isa level, const void *const *inputs, void *const *outputs,
                      int64_t length)
{
    harness_plan loaded;
    harness_load_plan(&loaded, plan, level);
    harness_call_plan(&loaded, inputs, outputs, length);
    harness_unload_plan(&loaded);
}
