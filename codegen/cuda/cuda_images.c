/* cuda_images.c — see cuda_images.h. Architectures are compiled in parallel, because NVRTC takes a second for each.
 * Threads take jobs from a list, each with its own arena. */
#include "codegen/cuda/cuda_images.h"
#include "base/processors.h"
#include "codegen/backend.h"
#include "codegen/byte_pool.h"
#include "codegen/codegen.h"
#include "codegen/cuda/nvrtc.h"

#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/cuda_target.h"

#include "codegen/cuda/cuda_program.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { MAX_THREADS = 16, REGISTERS_OF_A_BLOCK = 65536 }; /* limit of every architecture since 2014 */

enum { NAME_BYTES = 32 };
static const char *print_target(const cg_target *target, char text[NAME_BYTES])
{
    static const char *const suffixes[] = {[CU_PLAIN] = "", [CU_ACCELERATED] = "a", [CU_CLUSTERED] = "a+clusters"};
    snprintf(text, NAME_BYTES, "sm_%u%s", target->number, suffixes[target->variant]);
    return text;
}

static void warn(const cg_options *options, const char *before, const char *reason)
{
    mdot_error line; /* one line without control characters, as errors are */
    mdot_fail(&line, MDOT_UNSUPPORTED, "%s: %s", before, reason);
    if (options->warning != NULL) options->warning(options->user, line.message);
}

static bool dumps(const cg_options *options, const char *what)
{
    return options->dump != NULL && options->dump_text != NULL && strcmp(options->dump, what) == 0;
}

/* Images with one precision and schedule share a program and kernels. */
static bool has_clusters(const cg_target *target) { return target->variant == CU_CLUSTERED; }

static mdot_status generate(const cg_entry *entries, int entry_count, const cg_options *options,
                            const cg_target *target, ir_arena *arena, cu_images *images, mdot_error *err)
{
    cu_program *program = &images->program[has_clusters(target)][target->kernel_precision];
    if (program->source != NULL) return MDOT_OK;
    const cu_schedule *schedule = has_clusters(target) ? &cu_clusters : &cu_blocks;
    mdot_status status = cu_generate(entries, entry_count, target->kernel_precision, schedule, arena, program, err);
    if (status != MDOT_OK || !dumps(options, "cuda")) return status;
    options->dump_text(options->user, program->prelude);
    options->dump_text(options->user, program->source);
    return MDOT_OK;
}

/* Generates a program per requested precision. A dump without a target uses the default precision. */
static mdot_status generate_all(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                                cu_images *images, mdot_error *err)
{
    int count;
    const cg_target *targets = cg_targets_of(options, MDOT_IMAGE_CUDA, &count);
    const cg_target plain = {.kernel_precision = cu_backend.computes[0]};
    if (count == 0) return generate(entries, entry_count, options, &plain, arena, images, err);
    for (int i = 0; i < count; i++) BS_TRY(generate(entries, entry_count, options, &targets[i], arena, images, err));
    return MDOT_OK;
}

typedef struct job {
    const cu_program *program;
    cg_target target;
    ir_arena *arena;
    cu_cubin cubin;
    mdot_status status;
    mdot_error error;
} job;

typedef struct queue {
    const cu_nvrtc *nvrtc;
    job *jobs;
    int count;
    atomic_int next;
} queue;

static void *work(void *argument)
{
    queue *q = argument;
    for (int i; (i = atomic_fetch_add(&q->next, 1)) < q->count;) {
        job *j = &q->jobs[i];
        const char *parts[] = {j->program->prelude, j->program->source};
        j->status = cu_nvrtc_compile(q->nvrtc, parts, 2, (int)j->target.number, j->target.variant != 0, j->arena,
                                     &j->cubin, &j->error);
    }
    return NULL;
}

/* This thread works, too, so the call succeeds even if no other thread starts. */
static void compile_in_parallel(queue *q)
{
    long processors = bs_processors();
    int needed = q->count - 1;
    if (needed > processors - 1) needed = (int)processors - 1;
    if (needed > MAX_THREADS) needed = MAX_THREADS;
    pthread_t threads[MAX_THREADS];
    int started = 0;
    while (started < needed && pthread_create(&threads[started], NULL, work, q) == 0) started++;
    work(q);
    for (int i = 0; i < started; i++) pthread_join(threads[i], NULL);
}

static void destroy_arena(void *arena) { ir_arena_destroy(arena); }

static mdot_status compile_all(const cg_target *targets, int count, cu_images *images, ir_arena *arena, job **out_jobs,
                               mdot_error *err)
{
    cu_nvrtc nvrtc;
    BS_TRY(cu_nvrtc_load(&nvrtc, err));
    images->nvrtc_major = nvrtc.major;
    images->nvrtc_minor = nvrtc.minor;
    queue q = {.nvrtc = &nvrtc, .count = count};
    q.jobs = IR_NEW_ARRAY(arena, job, q.count);
    if (q.jobs == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (int i = 0; i < q.count; i++) {
        job *j = &q.jobs[i];
        j->target = targets[i];
        j->program = &images->program[has_clusters(&j->target)][j->target.kernel_precision];
        j->arena = ir_arena_create(0);
        if (j->arena == NULL || !ir_arena_defer(arena, destroy_arena, j->arena)) {
            ir_arena_destroy(j->arena);
            return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        }
    }
    compile_in_parallel(&q);
    for (int i = 0; i < q.count; i++) {
        if (q.jobs[i].status == MDOT_OK) continue;
        if (err != NULL) *err = q.jobs[i].error;
        return q.jobs[i].status;
    }
    *out_jobs = q.jobs;
    return MDOT_OK;
}

/* Checks compiled kernels against the generator's launch parameters. */
static mdot_status check_launch(const job *j, const char *architecture, mdot_error *err)
{
    for (int i = 0; i < j->program->kernel_count; i++) {
        const cu_kernel *kernel = &j->program->kernels[i];
        const cu_cubin_kernel *compiled = cu_cubin_find(&j->cubin, kernel->name);
        if (compiled == NULL)
            return mdot_fail(err, MDOT_TOOLCHAIN, "the cubin for %s lacks kernel %s", architecture, kernel->name);
        size_t parameter_bytes = sizeof(mdot_abi_cuda_call) + kernel->inline_input_bytes;
        if (compiled->parameter_bytes != parameter_bytes)
            return mdot_fail(err, MDOT_TOOLCHAIN, "kernel %s for %s takes %u bytes of parameters instead of %zu",
                             kernel->name, architecture, compiled->parameter_bytes, parameter_bytes);
        if (compiled->max_threads != 0 && compiled->max_threads < (uint32_t)kernel->threads)
            return mdot_fail(err, MDOT_TOOLCHAIN, "kernel %s for %s takes blocks of at most %u threads instead of %d",
                             kernel->name, architecture, compiled->max_threads, kernel->threads);
    }
    return MDOT_OK;
}

/* Returns NULL if a device with the architecture has the resources for every kernel in the program, otherwise the
 * missing one. */
static const char *find_missing_resource(const job *j, ir_arena *arena)
{
    size_t shared_limit = cu_shared_limit_bytes(j->target.number);
    for (int i = 0; i < j->program->kernel_count; i++) {
        const cu_kernel *kernel = &j->program->kernels[i];
        const cu_cubin_kernel *compiled = cu_cubin_find(&j->cubin, kernel->name);
        size_t shared = compiled->shared_bytes + kernel->dynamic_shared_bytes;
        if (shared > shared_limit)
            return ir_arena_printf(arena, "kernel %s takes %zu bytes of shared memory, a block there has %zu",
                                   kernel->name, shared, shared_limit);
        if ((uint64_t)compiled->registers * (uint64_t)kernel->threads > REGISTERS_OF_A_BLOCK)
            return ir_arena_printf(arena, "kernel %s takes %u registers in each of %d threads, a block has %d",
                                   kernel->name, compiled->registers, kernel->threads, REGISTERS_OF_A_BLOCK);
    }
    return NULL;
}

static void add_image(cu_images *images, const job *j)
{
    const cg_pool *weights = &j->program->weights;
    cu_image image = {.target = j->target, .cubin = j->cubin, .weights_bytes = weights->size_bytes};
    image.image_offset = cg_pool_intern(&images->cubins, j->cubin.bytes, j->cubin.size_bytes, MDOT_ABI_CUDA_ALIGNMENT);
    if (weights->size_bytes > 0)
        image.weights_offset =
            cg_pool_intern(&images->weights, weights->bytes, weights->size_bytes, MDOT_ABI_CUDA_ALIGNMENT);
    images->image[images->count++] = image;
}

static mdot_status collect(const cg_options *options, const job *jobs, int count, ir_arena *arena, cu_images *images,
                           mdot_error *err)
{
    images->image = IR_NEW_ARRAY(arena, cu_image, count);
    if (images->image == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (int i = 0; i < count; i++) {
        const job *j = &jobs[i];
        char text[NAME_BYTES];
        const char *name = print_target(&j->target, text);
        if (dumps(options, "ptxas")) {
            options->dump_text(options->user, name);
            options->dump_text(options->user, ":\n");
            options->dump_text(options->user, j->cubin.log);
        }
        BS_TRY(check_launch(j, name, err));
        const char *missing = find_missing_resource(j, arena);
        if (missing == NULL)
            add_image(images, j);
        else
            warn(options, ir_arena_printf(arena, "no code for %s", name), missing);
    }
    if (images->cubins.failed || images->weights.failed) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    return MDOT_OK;
}

/* Makes images for the options' CUDA targets. If a plan is not encoder-shaped, it makes none and warns with the
 * reason. If a kernel exceeds a device's resources, that image is omitted with a warning. Returns TOOLCHAIN if NVRTC
 * is missing or refuses the source. */
static mdot_status make_all(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                            cu_images *out_images, mdot_error *err)
{
    *out_images = (cu_images){0};
    int count;
    const cg_target *targets = cg_targets_of(options, MDOT_IMAGE_CUDA, &count);
    if (count == 0 && !dumps(options, "cuda")) return MDOT_OK;
    if (options->progress != NULL) options->progress(options->user, "generating CUDA code", 0, 1);
    mdot_error reason = {0};
    mdot_status status = generate_all(entries, entry_count, options, arena, out_images, &reason);
    if (status == MDOT_UNSUPPORTED) {
        warn(options, "no CUDA code: the predictor runs only on CPUs", reason.message);
        return MDOT_OK;
    }
    if (status != MDOT_OK && err != NULL) *err = reason;
    if (status != MDOT_OK || count == 0) return status;
    if (options->progress != NULL) options->progress(options->user, "compiling CUDA code", 0, 1);
    job *jobs = NULL;
    BS_TRY(compile_all(targets, count, out_images, arena, &jobs, err));
    return collect(options, jobs, count, arena, out_images, err);
}

static void end_images(void *made)
{
    cu_images *images = made;
    if (images == NULL) return;
    for (int i = 0; i < CG_COMPUTES; i++)
        for (int k = 0; k < 2; k++)
            if (images->program[k][i].source != NULL) cu_program_done(&images->program[k][i]);
    cg_pool_done(&images->cubins);
    cg_pool_done(&images->weights);
    *images = (cu_images){0};
}

mdot_status cu_export_images(cu_images *images, ir_arena *arena, cg_image_set *out_set, mdot_error *err)
{
    cg_image_set compiled = {.images = images, .image_count = images->count};
    if (images->count > 0) {
        compiled.toolchain = ir_arena_printf(arena, "NVRTC %d.%d", images->nvrtc_major, images->nvrtc_minor);
        if (compiled.toolchain == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
        compiled.section[compiled.section_count++] =
            (cg_data_section){MDOT_ABI_SECTION_CUBINS, MDOT_ABI_SYMBOL_CUBINS, images->cubins.bytes,
                              images->cubins.size_bytes, CG_PAGE_BYTES};
    }
    if (images->weights.size_bytes > 0)
        compiled.section[compiled.section_count++] =
            (cg_data_section){MDOT_ABI_SECTION_CUDA_WEIGHTS, MDOT_ABI_SYMBOL_CUDA_WEIGHTS, images->weights.bytes,
                              images->weights.size_bytes, CG_PAGE_BYTES};
    *out_set = compiled;
    return MDOT_OK;
}

static mdot_status make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                               cg_image_set *out_set, mdot_error *err)
{
    cu_images *images = IR_NEW(arena, cu_images);
    if (images == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = make_all(entries, entry_count, options, arena, images, err);
    if (status == MDOT_OK) status = cu_export_images(images, arena, out_set, err);
    out_set->images = images;
    return status;
}

static uint32_t add_kernels(cg_table *table, const cu_program *program)
{
    uint32_t index = cg_table_array(table, program->kernel_count, sizeof(mdot_abi_cuda_kernel));
    for (int i = 0; i < program->kernel_count; i++) {
        const cu_kernel *kernel = &program->kernels[i];
        mdot_abi_cuda_kernel record = {.name_at = cg_table_string(table, kernel->name),
                                       .threads = (uint32_t)kernel->threads,
                                       .tile_rows = (uint32_t)kernel->tile_rows,
                                       .grid_barriers = (uint32_t)kernel->grid_barriers,
                                       .dynamic_shared_bytes = (uint32_t)kernel->dynamic_shared_bytes,
                                       .inline_input_bytes = (uint32_t)kernel->inline_input_bytes,
                                       .scratch_bytes = kernel->scratch_bytes,
                                       .blocks_per_tile = (uint32_t)kernel->blocks_per_tile};
        cg_table_put(table, index, i, &record, sizeof record);
    }
    return index;
}

static uint32_t add_resources(cg_table *table, const cu_program *program, const cu_cubin *cubin)
{
    uint32_t index = cg_table_array(table, program->kernel_count, sizeof(mdot_abi_cuda_resources));
    for (int i = 0; i < program->kernel_count; i++) {
        const cu_cubin_kernel *kernel = cu_cubin_find(cubin, program->kernels[i].name);
        mdot_abi_cuda_resources record = {.registers = kernel->registers,
                                          .static_shared_bytes = kernel->shared_bytes,
                                          .local_bytes = kernel->local_bytes,
                                          .spill_bytes = kernel->spill_bytes,
                                          .tensor_instructions = kernel->tensor_instructions,
                                          .barriers = kernel->barriers,
                                          .code_bytes = kernel->code_bytes};
        cg_table_put(table, index, i, &record, sizeof record);
    }
    return index;
}

static void describe(const void *compiled, const cg_entry *entries, int entry_count, cg_table *table, uint32_t index,
                     mdot_abi_table *head)
{
    const cu_images *images = compiled;
    uint32_t kernels_of[2][CG_COMPUTES] = {0};
    for (int i = 0; i < images->count; i++) {
        const cu_image *image = &images->image[i];
        cg_compute kernel_precision = image->target.kernel_precision;
        const cu_program *program = &images->program[has_clusters(&image->target)][kernel_precision];
        uint32_t *kernels_at = &kernels_of[has_clusters(&image->target)][kernel_precision];
        if (*kernels_at == 0) *kernels_at = add_kernels(table, program);
        char target[NAME_BYTES];
        mdot_abi_image record = {.kind = MDOT_IMAGE_CUDA,
                                 .number = image->target.number,
                                 .variant = image->target.variant,
                                 .target_at = cg_table_string(table, print_target(&image->target, target)),
                                 .compute_at = cg_table_string(table, cg_compute_name(kernel_precision)),
                                 .kernels_at = *kernels_at,
                                 .kernel_count = (uint32_t)program->kernel_count,
                                 .resources_at = add_resources(table, program, &image->cubin),
                                 .code_offset = image->image_offset,
                                 .code_bytes = image->cubin.size_bytes,
                                 .weights_offset = image->weights_offset,
                                 .weights_bytes = image->weights_bytes};
        cg_table_put(table, index, i, &record, sizeof record);
    }
}

static const cg_dump cuda_dumps[] = {{.name = "cuda"}, {.name = "ptxas", .needs_target = true}, {.name = NULL}};

const cg_backend cu_backend = {
    .name = "cuda",
    .example = "sm_90a",
    .kind = MDOT_IMAGE_CUDA,
    .dumps = cuda_dumps,
    .computes = {CG_BF16, CG_FP32},
    .compute_count = 2,
    .parse = cu_parse,
    .list = cu_list,
    .make_images = make_images,
    .describe = describe,
    .done = end_images,
};
