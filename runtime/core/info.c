/* info.c — the accessors in mdot_run.h for an open artefact, from its checked table. */
#include "base/struct_version.h"
#include "runtime/core/objects.h"
#include "runtime/core/run.h"

#include <string.h>

static const bs_struct_version predictor_info_type = BS_SIZED(mdot_predictor_info, device_reason);
static const bs_struct_version entry_info_type = BS_SIZED(mdot_entry_info, schema_hash);
static const bs_struct_version tensor_info_type = BS_SIZED(mdot_tensor_info, dim);
static const bs_struct_version bucket_info_type = BS_SIZED(mdot_bucket_info, kernel_count);
static const bs_struct_version kernel_info_type = BS_SIZED(mdot_kernel_info, flops);
static const bs_struct_version image_info_type = BS_SIZED(mdot_image_info, weights_bytes);
static const bs_struct_version image_kernel_info_type = BS_SIZED(mdot_image_kernel_info, code_bytes);

static bool is_live(const mdot_predictor *predictor, const char *function)
{
    return predictor != NULL && rt_handle_is_live(predictor, RT_PREDICTOR, function);
}

/* PyTorch's version in the first configuration that states one; 0 if there is none. */
static uint32_t assumed_torch(const mdot_abi_table *table)
{
    for (size_t e = 0; e < table->entry_count; e++) {
        const mdot_abi_tensor *inputs = rt_inputs(table, rt_entry(table, e));
        for (size_t i = 0; i < rt_entry(table, e)->input_count; i++)
            if (inputs[i].assumed_torch > 0) return inputs[i].assumed_torch;
    }
    return 0;
}

mdot_status mdot_predictor_get_info(const mdot_predictor *predictor, mdot_predictor_info *out_info)
{
    if (!is_live(predictor, __func__)) return MDOT_INVALID_ARGUMENT;
    const mdot_abi_table *table = predictor->table;
    const rt_device *device = predictor->device;
    const mdot_predictor_info info = {
        .name = rt_string(table, table->name_at),
        .compiler = rt_string(table, table->compiler_at),
        .kernel_precision = rt_string(table, predictor->image->compute_at),
        .cpu_isa = rt_string(table, predictor->image->target_at),
        .entry_count = table->entry_count,
        .image_count = table->image_count,
        .weights_bytes = (size_t)table->weights_bytes,
        .file_bytes = (size_t)table->file_bytes,
        .device = device != NULL ? device->id : "cpu",
        .device_name = device != NULL ? device->name : "",
        .device_kernel_precision =
            device != NULL ? device->kernel_precision : rt_string(table, predictor->image->compute_at),
        .device_reason = predictor->device_reason,
        .cpu_reason = predictor->cpu_reason,
        .assumed_torch = assumed_torch(table),
    };
    return bs_fill_struct(&predictor_info_type, &info, out_info, NULL);
}

mdot_status mdot_predictor_find_entry(const mdot_predictor *predictor, const char *name, size_t *out_entry)
{
    if (!is_live(predictor, __func__) || name == NULL || out_entry == NULL) return MDOT_INVALID_ARGUMENT;
    const mdot_abi_table *table = predictor->table;
    for (size_t i = 0; i < table->entry_count; i++) {
        if (strcmp(rt_string(table, rt_entry(table, i)->name_at), name) != 0) continue;
        *out_entry = i;
        return MDOT_OK;
    }
    return MDOT_NOT_FOUND;
}

mdot_status mdot_predictor_get_entry(const mdot_predictor *predictor, size_t entry, mdot_entry_info *out_info)
{
    if (!is_live(predictor, __func__)) return MDOT_INVALID_ARGUMENT;
    const mdot_abi_table *table = predictor->table;
    if (entry >= table->entry_count) return MDOT_OUT_OF_RANGE;
    const mdot_abi_entry *e = rt_entry(table, entry);
    const mdot_entry_info info = {
        .name = rt_string(table, e->name_at),
        .input_count = e->input_count,
        .output_count = e->output_count,
        .bucket_count = e->bucket_count,
        .has_length = e->least_length != 0,
        .schema_hash = e->schema_hash,
        .min_length = e->least_length,
        .items_together = rt_ragged_batch_rows(table, e),
    };
    return bs_fill_struct(&entry_info_type, &info, out_info, NULL);
}

static mdot_status get_tensor(const mdot_predictor *predictor, size_t entry, bool is_output, size_t index,
                              mdot_tensor_info *out_info)
{
    const mdot_abi_table *table = predictor->table;
    if (entry >= table->entry_count) return MDOT_OUT_OF_RANGE;
    const mdot_abi_entry *e = rt_entry(table, entry);
    if (index >= (is_output ? e->output_count : e->input_count)) return MDOT_OUT_OF_RANGE;
    const mdot_abi_tensor *tensor = &(is_output ? rt_outputs(table, e) : rt_inputs(table, e))[index];
    mdot_tensor_info info = {
        .name = rt_string(table, tensor->name_at),
        .dtype = (mdot_dtype)tensor->dtype,
        .rank = (int)tensor->rank,
        .columns = rt_string(table, tensor->columns_at),
    };
    for (uint32_t i = 0; i < tensor->rank; i++) {
        const mdot_abi_dim *dim = &tensor->dim[i];
        info.dim[i] = (mdot_dim){dim->scale, dim->offset};
        info.floor[i] = (mdot_dim_floor){dim->times, dim->step, dim->start, dim->divisor};
    }
    return bs_fill_struct(&tensor_info_type, &info, out_info, NULL);
}

mdot_status mdot_predictor_get_input(const mdot_predictor *predictor, size_t entry, size_t input,
                                     mdot_tensor_info *out_info)
{
    if (!is_live(predictor, __func__)) return MDOT_INVALID_ARGUMENT;
    return get_tensor(predictor, entry, false, input, out_info);
}

mdot_status mdot_predictor_get_output(const mdot_predictor *predictor, size_t entry, size_t output,
                                      mdot_tensor_info *out_info)
{
    if (!is_live(predictor, __func__)) return MDOT_INVALID_ARGUMENT;
    return get_tensor(predictor, entry, true, output, out_info);
}

/* Returns NULL if an index is out of range. */
static const mdot_abi_bucket *find_bucket(const mdot_abi_table *table, size_t entry, size_t bucket)
{
    if (entry >= table->entry_count || bucket >= rt_entry(table, entry)->bucket_count) return NULL;
    return &rt_buckets(table, rt_entry(table, entry))[bucket];
}

mdot_status mdot_predictor_get_bucket(const mdot_predictor *predictor, size_t entry, size_t bucket,
                                      mdot_bucket_info *out_info)
{
    if (!is_live(predictor, __func__)) return MDOT_INVALID_ARGUMENT;
    const mdot_abi_bucket *b = find_bucket(predictor->table, entry, bucket);
    if (b == NULL) return MDOT_OUT_OF_RANGE;
    const mdot_bucket_info info = {
        .max_length = b->max_length,
        .scratch_bytes = (size_t)predictor->functions[b->number].scratch_bytes,
        .flops = b->flops,
        .kernel_count = b->kernel_count,
    };
    return bs_fill_struct(&bucket_info_type, &info, out_info, NULL);
}

mdot_status mdot_predictor_get_kernel(const mdot_predictor *predictor, size_t entry, size_t bucket, size_t kernel,
                                      mdot_kernel_info *out_info)
{
    if (!is_live(predictor, __func__)) return MDOT_INVALID_ARGUMENT;
    const mdot_abi_bucket *b = find_bucket(predictor->table, entry, bucket);
    if (b == NULL || kernel >= b->kernel_count) return MDOT_OUT_OF_RANGE;
    const mdot_abi_kernel *kernels = rt_kernels(predictor->table, b), *k = &kernels[kernel];
    size_t step = 0;
    for (uint32_t end = rt_step_end(kernels, b->kernel_count, 0); end <= kernel; step++)
        end = rt_step_end(kernels, b->kernel_count, end);
    const mdot_kernel_info info = {
        .name = rt_string(predictor->table, k->name_at),
        .kind = rt_string(predictor->table, k->kind_at),
        .flops = rt_kernel_flops(predictor->table, b)[kernel],
        .step = step,
    };
    return bs_fill_struct(&kernel_info_type, &info, out_info, NULL);
}

mdot_status mdot_predictor_get_image(const mdot_predictor *predictor, size_t image, mdot_image_info *out_info)
{
    if (!is_live(predictor, __func__)) return MDOT_INVALID_ARGUMENT;
    const mdot_abi_table *table = predictor->table;
    if (image >= table->image_count) return MDOT_OUT_OF_RANGE;
    const mdot_abi_image *i = rt_image(table, image);
    const mdot_image_info info = {
        .kind = i->kind == MDOT_IMAGE_CPU ? "cpu" : "cuda",
        .target = rt_string(table, i->target_at),
        .kernel_precision = rt_string(table, i->compute_at),
        .image_bytes = (size_t)i->code_bytes,
        .weights_bytes = (size_t)i->weights_bytes,
    };
    return bs_fill_struct(&image_info_type, &info, out_info, NULL);
}

static mdot_image_kernel_info describe_cuda_kernel(const mdot_abi_table *table, const mdot_abi_image *image,
                                                   uint32_t number)
{
    const mdot_abi_cuda_kernel *kernel = &rt_cuda_kernels(table, image)[number];
    const mdot_abi_cuda_resources *resources = &rt_cuda_resources(table, image)[number];
    return (mdot_image_kernel_info){
        .name = rt_string(table, kernel->name_at),
        .threads = kernel->threads,
        .grid_barriers = kernel->grid_barriers,
        .registers = resources->registers,
        .tensor_instructions = resources->tensor_instructions,
        .barriers = resources->barriers,
        .shared_bytes = (size_t)resources->static_shared_bytes + kernel->dynamic_shared_bytes,
        .local_bytes = resources->local_bytes,
        .spill_bytes = resources->spill_bytes,
        .inline_input_bytes = kernel->inline_input_bytes,
        .scratch_bytes = (size_t)kernel->scratch_bytes,
        .code_bytes = resources->code_bytes,
    };
}

static mdot_image_kernel_info describe_cpu_function(const mdot_abi_table *table, const mdot_abi_image *image,
                                                    uint32_t number)
{
    size_t scratch_bytes = (size_t)rt_cpu_functions(table, image)[number].scratch_bytes;
    return (mdot_image_kernel_info){.name = "", .threads = 1, .scratch_bytes = scratch_bytes};
}

mdot_status mdot_predictor_get_image_kernel(const mdot_predictor *predictor, size_t image, size_t entry, size_t bucket,
                                            mdot_image_kernel_info *out_info)
{
    if (!is_live(predictor, __func__)) return MDOT_INVALID_ARGUMENT;
    const mdot_abi_table *table = predictor->table;
    const mdot_abi_bucket *b = find_bucket(table, entry, bucket);
    if (b == NULL || image >= table->image_count) return MDOT_OUT_OF_RANGE;
    const mdot_abi_image *i = rt_image(table, image);
    const mdot_image_kernel_info info = i->kind == MDOT_IMAGE_CUDA ? describe_cuda_kernel(table, i, b->number)
                                                                   : describe_cpu_function(table, i, b->number);
    return bs_fill_struct(&image_kernel_info_type, &info, out_info, NULL);
}
