/* table.c — builds the table of an artefact (mdot_abi.h): what the runtime and `mdot inspect` know about it.
 *
 * One growing block, offsets instead of pointers. Records are filled on the side and copied to their reserved place,
 * because adding a name may move the block.
 */
#include "codegen/artefact.h"
#include "ir/ops.h"
#include "mdot/mdot.h"

#include <stdio.h>
#include <string.h>

typedef struct builder {
    cg_pool *table;
    const cg_cpu_images *cpu;
    uint32_t bucket_count;
} builder;

/* Offset 0 is the empty string, and the table's own start is never a string. */
static uint32_t add_string(builder *b, const char *text)
{
    if (text == NULL || text[0] == '\0') return 0;
    return (uint32_t)cg_pool_share(b->table, text, strlen(text) + 1, 1);
}

static uint32_t add_array(builder *b, int count, size_t element_bytes)
{
    return (uint32_t)cg_pool_reserve(b->table, (size_t)count * element_bytes, sizeof(uint64_t));
}

static void put(builder *b, uint32_t array_at, int index, const void *record, size_t element_bytes)
{
    if (!b->table->failed) memcpy(b->table->bytes + array_at + (size_t)index * element_bytes, record, element_bytes);
}

/* Rows of the smallest table that the input picks from; 0: it picks from none. */
static uint32_t count_indices(const ir_graph *graph, const ir_value *input)
{
    int64_t least = 0;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (node->op != &ir_ops[IR_OP_Gather] || node->inputs[1] != input) continue;
        const ir_type *table = &node->inputs[0]->type;
        int64_t axis = ir_node_int(node, "axis", 0);
        if (axis < 0) axis += table->rank;
        if (axis < 0 || axis >= table->rank || !ir_dim_is_number(table->dim[axis])) continue;
        int64_t rows = table->dim[axis].offset;
        if (rows > 0 && rows <= UINT32_MAX && (least == 0 || rows < least)) least = rows;
    }
    return (uint32_t)least;
}

/* The hash is of what users of the entry see, wherever the name lies in the table. */
static uint64_t hash_tensor(mdot_abi_tensor tensor, const char *name, uint64_t seed)
{
    tensor.name_at = tensor.index_count = 0;
    return mdot_abi_checksum(name, strlen(name) + 1, mdot_abi_checksum(&tensor, sizeof tensor, seed));
}

static uint32_t add_tensors(builder *b, const ir_graph *graph, ir_value *const *values, int count, uint64_t *hash)
{
    uint32_t at = add_array(b, count, sizeof(mdot_abi_tensor));
    *hash = mdot_abi_checksum(&count, sizeof count, *hash);
    for (int i = 0; i < count; i++) {
        const ir_type *type = &values[i]->type;
        mdot_abi_tensor tensor = {.name_at = add_string(b, values[i]->name),
                                  .dtype = type->dtype,
                                  .rank = (uint32_t)type->rank,
                                  .index_count = count_indices(graph, values[i])};
        for (int d = 0; d < type->rank; d++) tensor.dim[d] = (mdot_abi_dim){type->dim[d].scale, type->dim[d].offset};
        put(b, at, i, &tensor, sizeof tensor);
        *hash = hash_tensor(tensor, values[i]->name, *hash);
    }
    return at;
}

static uint32_t add_kernels(builder *b, const pl_plan *plan)
{
    uint32_t at = add_array(b, plan->kernel_count, sizeof(mdot_abi_kernel));
    for (int i = 0; i < plan->kernel_count; i++) {
        const pl_kernel *kernel = &plan->kernels[i];
        mdot_abi_kernel record = {.name_at = add_string(b, kernel->name),
                                  .kind_at = add_string(b, pl_kind_name(kernel->kind)),
                                  .flops = kernel->flops,
                                  .is_split = cg_kernel_is_split(plan, kernel)};
        put(b, at, i, &record, sizeof record);
    }
    return at;
}

static uint32_t add_buckets(builder *b, const cg_entry *entry)
{
    uint32_t at = add_array(b, entry->plan_count, sizeof(mdot_abi_bucket));
    for (int i = 0; i < entry->plan_count; i++) {
        const pl_plan *plan = entry->plans[i];
        mdot_abi_bucket record = {.max_length = plan->max_length,
                                  .flops = plan->flops,
                                  .kernels_at = add_kernels(b, plan),
                                  .kernel_count = (uint32_t)plan->kernel_count,
                                  .number = b->bucket_count++};
        put(b, at, i, &record, sizeof record);
    }
    return at;
}

static mdot_abi_entry add_entry(builder *b, const cg_entry *entry)
{
    const ir_graph *graph = entry->graph;
    uint64_t hash = 0;
    mdot_abi_entry record = {.name_at = add_string(b, entry->name),
                             .input_count = (uint32_t)graph->input_count,
                             .output_count = (uint32_t)graph->output_count,
                             .bucket_count = (uint32_t)entry->plan_count,
                             .has_length = entry->plans[0]->max_length > 0};
    record.inputs_at = add_tensors(b, graph, graph->inputs, graph->input_count, &hash);
    record.outputs_at = add_tensors(b, graph, graph->outputs, graph->output_count, &hash);
    record.buckets_at = add_buckets(b, entry);
    record.schema_hash = hash;
    return record;
}

/* ---- Images ------------------------------------------------------------------------------------------------------ */

/* Element n is what bucket n runs in CPU image `number`. */
static uint32_t add_cpu_functions(builder *b, const cg_entry *entries, int entry_count, int number)
{
    const cg_cpu_image *image = &b->cpu->image[number];
    uint32_t at = add_array(b, (int)b->bucket_count, sizeof(mdot_abi_cpu_function));
    for (int e = 0, bucket = 0; e < entry_count; e++)
        for (int i = 0; i < entries[e].plan_count; i++, bucket++) {
            mdot_abi_cpu_function record = {
                .code = (uint32_t)cg_cpu_code_number(b->cpu, bucket, number),
                .scratch_bytes = (uint64_t)cg_cpu_scratch_bytes(entries[e].plans[i], image->target),
                .worker_bytes = (uint64_t)cg_cpu_worker_bytes(entries[e].plans[i], image->target)};
            put(b, at, bucket, &record, sizeof record);
        }
    return at;
}

static void add_cpu_images(builder *b, const cg_entry *entries, int entry_count, uint32_t images_at)
{
    for (int i = 0; i < b->cpu->count; i++) {
        const cg_cpu_image *image = &b->cpu->image[i];
        mdot_abi_image record = {.kind = MDOT_IMAGE_CPU,
                                 .number = image->target->level,
                                 .target_at = add_string(b, image->target->name),
                                 .compute_at = add_string(b, image->target->compute),
                                 .kernels_at = add_cpu_functions(b, entries, entry_count, i),
                                 .kernel_count = b->bucket_count,
                                 .code_bytes = image->code_bytes,
                                 .weights_offset = image->placement->first,
                                 .weights_bytes = image->placement->end - image->placement->first};
        put(b, images_at, i, &record, sizeof record);
    }
}

static uint32_t add_cuda_kernels(builder *b, const cu_program *program)
{
    uint32_t at = add_array(b, program->kernel_count, sizeof(mdot_abi_cuda_kernel));
    for (int i = 0; i < program->kernel_count; i++) {
        const cu_kernel *kernel = &program->kernels[i];
        mdot_abi_cuda_kernel record = {.name_at = add_string(b, kernel->name),
                                       .threads = (uint32_t)kernel->threads,
                                       .tile_rows = (uint32_t)kernel->tile_rows,
                                       .grid_barriers = (uint32_t)kernel->grid_barriers,
                                       .dynamic_shared_bytes = (uint32_t)kernel->dynamic_shared_bytes,
                                       .inline_input_bytes = (uint32_t)kernel->inline_input_bytes,
                                       .scratch_bytes = kernel->scratch_bytes};
        put(b, at, i, &record, sizeof record);
    }
    return at;
}

static uint32_t add_resources(builder *b, const cu_program *program, const cu_cubin *cubin)
{
    uint32_t at = add_array(b, program->kernel_count, sizeof(mdot_abi_cuda_resources));
    for (int i = 0; i < program->kernel_count; i++) {
        const cu_cubin_kernel *kernel = cu_cubin_find(cubin, program->kernels[i].name);
        mdot_abi_cuda_resources record = {.registers = kernel->registers,
                                          .static_shared_bytes = kernel->shared_bytes,
                                          .local_bytes = kernel->local_bytes,
                                          .spill_bytes = kernel->spill_bytes,
                                          .tensor_instructions = kernel->tensor_instructions,
                                          .barriers = kernel->barriers,
                                          .code_bytes = kernel->code_bytes};
        put(b, at, i, &record, sizeof record);
    }
    return at;
}

/* Images of one arithmetic are one program's, and share its kernels. */
static void add_cuda_images(builder *b, const cu_images *images, uint32_t images_at)
{
    uint32_t kernels_at[CU_MODES] = {0};
    for (int i = 0; i < images->count; i++) {
        const cu_image *image = &images->image[i];
        const cu_program *program = &images->program[image->mode];
        if (kernels_at[image->mode] == 0) kernels_at[image->mode] = add_cuda_kernels(b, program);
        char target[16];
        snprintf(target, sizeof target, "sm_%d%s", image->target.sm, image->target.is_accelerated ? "a" : "");
        mdot_abi_image record = {.kind = MDOT_IMAGE_CUDA,
                                 .number = (uint32_t)image->target.sm,
                                 .variant = image->target.is_accelerated,
                                 .target_at = add_string(b, target),
                                 .compute_at = add_string(b, cu_mode_name(image->mode)),
                                 .kernels_at = kernels_at[image->mode],
                                 .kernel_count = (uint32_t)program->kernel_count,
                                 .resources_at = add_resources(b, program, &image->cubin),
                                 .code_offset = image->image_offset,
                                 .code_bytes = image->cubin.size_bytes,
                                 .weights_offset = image->weights_offset,
                                 .weights_bytes = image->weights_bytes};
        put(b, images_at, b->cpu->count + i, &record, sizeof record);
    }
}

mdot_status cg_build_table(const cg_entry *entries, int entry_count, const cg_options *options,
                           const cg_cpu_images *cpu, const cu_images *cuda, cg_pool *table, mdot_error *err)
{
    builder b = {.table = table, .cpu = cpu};
    char compiler[96];
    int length = snprintf(compiler, sizeof compiler, "mdot %s, LLVM %s", mdot_version(), cg_llvm_version());
    if (cuda->count > 0 && length > 0 && (size_t)length < sizeof compiler)
        snprintf(compiler + length, sizeof compiler - (size_t)length, ", NVRTC %d.%d", cuda->nvrtc_major,
                 cuda->nvrtc_minor);
    cg_pool_reserve(table, sizeof(mdot_abi_table), sizeof(uint64_t));
    mdot_abi_table head = {.magic = MDOT_ABI_MAGIC,
                           .abi_version = MDOT_ABI_VERSION,
                           .weights_bytes = cpu->weights.size_bytes,
                           .name_at = add_string(&b, options->predictor_name),
                           .compiler_at = add_string(&b, compiler),
                           .entry_count = (uint32_t)entry_count,
                           .image_count = (uint32_t)(cpu->count + cuda->count)};
    head.entries_at = add_array(&b, entry_count, sizeof(mdot_abi_entry));
    for (int i = 0; i < entry_count; i++) {
        mdot_abi_entry record = add_entry(&b, &entries[i]);
        put(&b, head.entries_at, i, &record, sizeof record);
    }
    head.bucket_count = b.bucket_count;
    head.code_count = b.bucket_count * (uint32_t)cpu->count;
    head.images_at = add_array(&b, (int)head.image_count, sizeof(mdot_abi_image));
    add_cpu_images(&b, entries, entry_count, head.images_at);
    add_cuda_images(&b, cuda, head.images_at);
    head.table_bytes = (uint32_t)table->size_bytes;
    if (table->failed) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for the artefact's table");
    if (table->size_bytes > UINT32_MAX)
        return mdot_fail(err, MDOT_UNSUPPORTED, "the artefact's table would be larger than 4 GB");
    put(&b, 0, 0, &head, sizeof head);
    return MDOT_OK;
}
