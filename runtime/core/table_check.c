/* table_check.c — checks an artefact's table (mdot_abi.h), so that all later code can read it in place unchecked.
 *
 * After the check the following holds:
 *   - every array is inside the table and aligned, every string ends inside it;
 *   - names are unique among entries, among an entry's inputs and among its outputs;
 *   - at every length from 1 to the largest bucket's, dimensions are at least 0 and tensor sizes fit their type;
 *   - tensors of items that run together take at most the memory that runtime/core/ragged_batch.c allocates;
 *   - buckets ascend, and in an entry with a length some input's shape determines it;
 *   - every image has a function or kernel for each bucket, and its weights are in the section of its kind; images are
 *     ordered, unique by target and precision, and the first is for CPUs;
 *   - code of a CPU image is inside an executable segment, and a CUDA image's cubin is in its section.
 */
#include "runtime/core/loader.h"
#include "runtime/core/table_reader.h"

#include <string.h>

#define MALFORMED(err, ...) mdot_fail(err, MDOT_MALFORMED, "artefact table: " __VA_ARGS__)

static bool array_fits(const mdot_abi_table *table, uint32_t offset, uint32_t count, size_t element_bytes)
{
    return offset % sizeof(uint64_t) == 0 && offset <= table->table_bytes &&
           (uint64_t)count * element_bytes <= table->table_bytes - offset;
}

static bool string_fits(const mdot_abi_table *table, uint32_t offset)
{
    return offset == 0 || (offset < table->table_bytes &&
                           memchr((const char *)table + offset, '\0', table->table_bytes - offset) != NULL);
}

/* Computes a dimension. Returns false if it overflows or is negative. */
static bool dim_at(const mdot_abi_dim *dim, int64_t length, int64_t *out)
{
    int64_t value, steps = 0;
    if (__builtin_mul_overflow(dim->scale, length, &value) || __builtin_add_overflow(value, dim->offset, &value))
        return false;
    if (dim->times != 0)
        if (__builtin_mul_overflow(dim->step, length, &steps) || __builtin_add_overflow(steps, dim->start, &steps) ||
            __builtin_mul_overflow(steps / dim->divisor, dim->times, &steps) ||
            __builtin_add_overflow(value, steps, &value))
            return false;
    if (value < 0) return false;
    *out = value;
    return true;
}

/* Most lengths that are tried for the extremes of a dimension that rises and falls. */
enum { MAX_SEARCHED = 1 << 12 };

static bool is_floor(const mdot_abi_dim *dim)
{
    if (dim->times == 0) return dim->step == 0 && dim->start == 0 && dim->divisor == 0;
    return dim->times > 0 && dim->step > 0 && dim->step < dim->divisor && dim->start >= 0 &&
           dim->start < dim->divisor && dim->divisor <= MDOT_ABI_MAX_DIVISOR;
}

/* The greatest value of a dimension. From one length to the next, it changes by `scale` or by `scale + times`. If these
 * have one sign, the extremes are at the ends. Otherwise they are among the first and the last `divisor` lengths.
 * False: it overflows or is negative at some length, or the search would take long. */
static bool greatest_dim(const mdot_abi_dim *dim, int64_t least_length, int64_t max_length, int64_t *out)
{
    bool is_monotone = dim->times == 0 || dim->scale >= 0 || dim->scale + dim->times <= 0;
    int64_t period = is_monotone ? 1 : dim->divisor, greatest = 0;
    if (period > MAX_SEARCHED) return false;
    for (int64_t n = least_length; n <= max_length; n++) {
        int64_t value;
        if (n - least_length >= period && n < max_length - period + 1) n = max_length - period + 1;
        if (!dim_at(dim, n, &value)) return false;
        greatest = value > greatest ? value : greatest;
        if (n == max_length) break;
    }
    *out = greatest;
    return true;
}

int64_t rt_dim_most(const mdot_abi_dim *dim, int64_t least_length, int64_t max_length)
{
    int64_t greatest = 0;
    greatest_dim(dim, least_length, max_length, &greatest);
    return greatest;
}

/* If the product of the largest dimensions fits, so does the product at every length. */
static mdot_status check_shape(const mdot_abi_tensor *tensor, const char *name, int64_t least_length,
                               int64_t max_length, mdot_error *err)
{
    int64_t bytes = (int64_t)mdot_dtype_size_bytes((mdot_dtype)tensor->dtype);
    if (bytes == 0) return MALFORMED(err, "%s has an unknown element type (%u)", name, tensor->dtype);
    if (tensor->rank > MDOT_MAX_RANK) return MALFORMED(err, "%s has rank %u", name, tensor->rank);
    for (uint32_t i = 0; i < tensor->rank; i++) {
        int64_t greatest;
        if (max_length == 0 && rt_has_length(&tensor->dim[i]))
            return MALFORMED(err, "%s depends on a length that its entry lacks", name);
        if (!is_floor(&tensor->dim[i]))
            return MALFORMED(err, "dimension %u of %s has an invalid rounded quotient", i, name);
        if (!greatest_dim(&tensor->dim[i], least_length, max_length, &greatest))
            return MALFORMED(err, "dimension %u of %s is negative", i, name);
        if (__builtin_mul_overflow(bytes, greatest > 0 ? greatest : 1, &bytes))
            return MALFORMED(err, "%s is too large", name);
    }
    return MDOT_OK;
}

static mdot_status check_columns(const mdot_abi_table *table, const mdot_abi_tensor *tensor, const char *name,
                                 mdot_error *err)
{
    if (tensor->assumed_torch > 9999 || (tensor->assumed_torch > 0 && tensor->assumed_torch < 100))
        return MALFORMED(err, "%s assumes version %u of PyTorch, which is outside 100 to 9999", name,
                         tensor->assumed_torch);
    if (!string_fits(table, tensor->columns_at))
        return MALFORMED(err, "the names of the columns of %s are outside", name);
    const char *names = rt_string(table, tensor->columns_at);
    if (tensor->default_count == 0 && *names == '\0') return MDOT_OK;
    uint64_t columns = tensor->dtype == MDOT_DTYPE_F32 ? (uint64_t)rt_column_count(tensor) : 0, named = *names != '\0';
    if (tensor->default_count > columns)
        return MALFORMED(err, "%s has defaults for %u columns, more than its columns", name, tensor->default_count);
    if (!array_fits(table, tensor->defaults_at, tensor->default_count, sizeof(float)))
        return MALFORMED(err, "the defaults of %s are outside", name);
    for (const char *c = names; *c != '\0'; c++) named += *c == ',';
    if (named > 0 && named != columns)
        return MALFORMED(err, "%s has names for %llu columns", name, (unsigned long long)named);
    return MDOT_OK;
}

static mdot_status check_tensors(const mdot_abi_table *table, uint32_t offset, uint32_t count, int64_t least_length,
                                 int64_t max_length, mdot_error *err)
{
    if (!array_fits(table, offset, count, sizeof(mdot_abi_tensor)))
        return MALFORMED(err, "%u inputs or outputs at byte %u are outside", count, offset);
    const mdot_abi_tensor *tensors = (const mdot_abi_tensor *)((const char *)table + offset);
    for (uint32_t i = 0; i < count; i++) {
        if (!string_fits(table, tensors[i].name_at)) return MALFORMED(err, "an input's or output's name is outside");
        const char *name = rt_string(table, tensors[i].name_at);
        BS_TRY(check_shape(&tensors[i], name, least_length, max_length, err));
        BS_TRY(check_columns(table, &tensors[i], name, err));
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(name, rt_string(table, tensors[k].name_at)) == 0)
                return MALFORMED(err, "two inputs or outputs are named %s", name);
    }
    return MDOT_OK;
}

/* The length is computed from the extents of inputs, so none of them may be rounded. */
static mdot_status check_inputs(const mdot_abi_table *table, const mdot_abi_entry *entry, mdot_error *err)
{
    const mdot_abi_tensor *inputs = rt_inputs(table, entry);
    for (uint32_t i = 0; i < entry->input_count; i++)
        for (uint32_t d = 0; d < inputs[i].rank; d++)
            if (inputs[i].dim[d].times != 0)
                return MALFORMED(err, "dimension %u of the input %s is rounded", d,
                                 rt_string(table, inputs[i].name_at));
    return MDOT_OK;
}

static mdot_status check_bucket(const mdot_abi_table *table, const mdot_abi_bucket *bucket, mdot_error *err)
{
    if (bucket->number >= table->bucket_count)
        return MALFORMED(err, "a bucket's number %u is beyond %u", bucket->number, table->bucket_count);
    if (!array_fits(table, bucket->kernels_at, bucket->kernel_count, sizeof(mdot_abi_kernel)))
        return MALFORMED(err, "%u kernels at byte %u are outside", bucket->kernel_count, bucket->kernels_at);
    if (!array_fits(table, bucket->kernel_flops_at, bucket->kernel_count, sizeof(double)))
        return MALFORMED(err, "the operations of %u kernels at byte %u are outside", bucket->kernel_count,
                         bucket->kernel_flops_at);
    const mdot_abi_kernel *kernels = rt_kernels(table, bucket);
    for (uint32_t i = 0; i < bucket->kernel_count; i++)
        if (!string_fits(table, kernels[i].name_at) || !string_fits(table, kernels[i].kind_at))
            return MALFORMED(err, "a kernel's name is outside");
    return MDOT_OK;
}

/* An entry with a length has ascending buckets from 1 on. Any other entry has one bucket of length 0. */
static mdot_status check_buckets(const mdot_abi_table *table, const mdot_abi_entry *entry, mdot_error *err)
{
    if (entry->bucket_count == 0 || !array_fits(table, entry->buckets_at, entry->bucket_count, sizeof(mdot_abi_bucket)))
        return MALFORMED(err, "%u buckets at byte %u are outside", entry->bucket_count, entry->buckets_at);
    const mdot_abi_bucket *buckets = rt_buckets(table, entry);
    if (!entry->least_length && (entry->bucket_count != 1 || buckets[0].max_length != 0))
        return MALFORMED(err, "an entry without a length has several buckets");
    if (entry->least_length > buckets[0].max_length)
        return MALFORMED(err, "the least length, %u, exceeds the first bucket", entry->least_length);
    for (uint32_t i = 0; i < entry->bucket_count; i++) {
        if (entry->least_length && buckets[i].max_length <= (i > 0 ? buckets[i - 1].max_length : 0))
            return MALFORMED(err, "bucket lengths must ascend");
        BS_TRY(check_bucket(table, &buckets[i], err));
    }
    return MDOT_OK;
}

/* Far above the tensors in any real call, and low enough to exclude overflow in the sizes of many items. */
#define MAX_TENSOR_BYTES (UINT64_C(1) << 40)

/* Extents grow with the length by at most the bucket's limits. A fixed-size tensor exists once for each item. */
static mdot_status check_together(const mdot_abi_table *table, const mdot_abi_bucket *bucket, uint32_t offset,
                                  uint32_t count, mdot_error *err)
{
    const mdot_abi_tensor *tensors = (const mdot_abi_tensor *)((const char *)table + offset);
    for (uint32_t i = 0; i < count; i++) {
        const char *name = rt_string(table, tensors[i].name_at);
        for (uint32_t d = 0; d < tensors[i].rank; d++) {
            const mdot_abi_dim *dim = &tensors[i].dim[d];
            if (!rt_has_length(dim)) continue;
            if (dim->times != 0 || dim->scale < 0 ||
                (dim->offset > 0 && (dim->offset - 1) / dim->scale >= bucket->unit_offset))
                return MALFORMED(err, "a bucket of %lld computes items together, but the shape of %s excludes that",
                                 (long long)bucket->max_length, name);
        }
        if (rt_tensor_bytes(&tensors[i], bucket->max_length) > MAX_TENSOR_BYTES / bucket->most_items)
            return MALFORMED(err, "%s of %u items is too large", name, bucket->most_items);
    }
    return MDOT_OK;
}

static mdot_status check_items(const mdot_abi_table *table, const mdot_abi_entry *entry, const mdot_abi_bucket *bucket,
                               mdot_error *err)
{
    if (bucket->most_items == 0) return MDOT_OK;
    if (bucket->most_items > bucket->max_length || bucket->unit_offset < 0 || bucket->unit_offset > bucket->max_length)
        return MALFORMED(err, "a bucket of %lld has an invalid limit of %u items", (long long)bucket->max_length,
                         bucket->most_items);
    const mdot_abi_kernel *kernels = rt_kernels(table, bucket);
    for (uint32_t i = 0; i < bucket->kernel_count; i++)
        if (kernels[i].unit_offset > bucket->unit_offset || kernels[i].unit_offset < -(int64_t)entry->least_length)
            return MALFORMED(err, "kernel %s has an invalid unit offset: length%+lld",
                             rt_string(table, kernels[i].name_at), (long long)kernels[i].unit_offset);
    mdot_status status = check_together(table, bucket, entry->inputs_at, entry->input_count, err);
    return status == MDOT_OK ? check_together(table, bucket, entry->outputs_at, entry->output_count, err) : status;
}

static bool determines_length(const mdot_abi_table *table, const mdot_abi_entry *entry)
{
    const mdot_abi_tensor *inputs = rt_inputs(table, entry);
    for (uint32_t i = 0; i < entry->input_count; i++)
        for (uint32_t k = 0; k < inputs[i].rank; k++)
            if (rt_has_length(&inputs[i].dim[k])) return true;
    return false;
}

static mdot_status check_entry(const mdot_abi_table *table, const mdot_abi_entry *entry, mdot_error *err)
{
    if (!string_fits(table, entry->name_at)) return MALFORMED(err, "an entry's name is outside");
    BS_TRY(check_buckets(table, entry, err));
    int64_t max_length = rt_buckets(table, entry)[entry->bucket_count - 1].max_length;
    BS_TRY(check_tensors(table, entry->inputs_at, entry->input_count, entry->least_length, max_length, err));
    BS_TRY(check_inputs(table, entry, err));
    BS_TRY(check_tensors(table, entry->outputs_at, entry->output_count, entry->least_length, max_length, err));
    for (uint32_t b = 0; b < entry->bucket_count; b++)
        BS_TRY(check_items(table, entry, &rt_buckets(table, entry)[b], err));
    if (entry->least_length && !determines_length(table, entry))
        return MALFORMED(err, "entry %s has a length, but all of its inputs are constant in size",
                         rt_string(table, entry->name_at));
    return MDOT_OK;
}

static mdot_status check_entries(const mdot_abi_table *table, mdot_error *err)
{
    if (table->entry_count == 0 || !array_fits(table, table->entries_at, table->entry_count, sizeof(mdot_abi_entry)))
        return MALFORMED(err, "%u entries at byte %u are outside", table->entry_count, table->entries_at);
    for (uint32_t i = 0; i < table->entry_count; i++) {
        BS_TRY(check_entry(table, rt_entry(table, i), err));
        for (uint32_t k = 0; k < i; k++)
            if (strcmp(rt_string(table, rt_entry(table, i)->name_at), rt_string(table, rt_entry(table, k)->name_at)) ==
                0)
                return MALFORMED(err, "two entries are named %s", rt_string(table, rt_entry(table, i)->name_at));
    }
    return MDOT_OK;
}

static mdot_status check_code(const rt_elf *elf, const mdot_abi_table *table, mdot_error *err)
{
    if (table->code_count > elf->code.size_bytes / sizeof(int64_t))
        return MALFORMED(err, "%u entry functions are more than section " MDOT_ABI_SECTION_CODE " holds",
                         table->code_count);
    const int64_t *code = (const int64_t *)(elf->file.bytes + elf->code.offset);
    for (uint32_t i = 0; i < table->code_count; i++)
        if (!rt_elf_is_code(elf, elf->code.address + (uint64_t)code[i]))
            return MALFORMED(err, "entry function %u is outside the code", i);
    return MDOT_OK;
}

/* A kernel's largest parameter (CUDA 12.1, compute capability 7.0 and later), and the maximum number of threads in a
 * block. */
enum { MAX_PARAMETER_BYTES = 32764, MAX_BLOCK_THREADS = 1024, MAX_CLUSTER_BLOCKS = 8 };
/* Far above any GPU's memory, and low enough to exclude overflow in the sizes of a launch's many items. */
#define MAX_ITEM_BYTES (UINT64_C(1) << 40)

static bool part_fits(const rt_section *section, uint64_t offset, uint64_t size_bytes)
{
    return offset % MDOT_ABI_CUDA_ALIGNMENT == 0 && offset <= section->size_bytes &&
           size_bytes <= section->size_bytes - offset;
}

static mdot_status check_cuda_kernel(const mdot_abi_table *table, const mdot_abi_cuda_kernel *kernel, bool has_length,
                                     mdot_error *err)
{
    if (kernel->name_at == 0 || !string_fits(table, kernel->name_at))
        return MALFORMED(err, "a CUDA kernel's name is outside");
    if (kernel->threads == 0 || kernel->threads > MAX_BLOCK_THREADS || (kernel->tile_rows > 0) != has_length ||
        kernel->blocks_per_tile == 0 || kernel->blocks_per_tile > MAX_CLUSTER_BLOCKS)
        return MALFORMED(err, "CUDA kernel %s has invalid blocks of %u threads, tiles of %u or clusters of %u",
                         rt_string(table, kernel->name_at), kernel->threads, kernel->tile_rows,
                         kernel->blocks_per_tile);
    if (kernel->inline_input_bytes > MAX_PARAMETER_BYTES - sizeof(mdot_abi_cuda_call))
        return MALFORMED(err, "CUDA kernel %s has too large a parameter", rt_string(table, kernel->name_at));
    if (kernel->scratch_bytes > MAX_ITEM_BYTES)
        return MALFORMED(err, "the scratch of CUDA kernel %s is too large", rt_string(table, kernel->name_at));
    return MDOT_OK;
}

static mdot_status check_cuda_kernels(const mdot_abi_table *table, const mdot_abi_image *image, mdot_error *err)
{
    if (!array_fits(table, image->kernels_at, image->kernel_count, sizeof(mdot_abi_cuda_kernel)) ||
        !array_fits(table, image->resources_at, image->kernel_count, sizeof(mdot_abi_cuda_resources)))
        return MALFORMED(err, "the %u kernels of image %s are outside", image->kernel_count,
                         rt_string(table, image->target_at));
    for (uint32_t e = 0; e < table->entry_count; e++) {
        const mdot_abi_entry *entry = rt_entry(table, e);
        if (entry->input_count > MDOT_ABI_CUDA_MAX_TENSORS || entry->output_count > MDOT_ABI_CUDA_MAX_TENSORS)
            return MALFORMED(err, "entry %s has too many tensors for its CUDA images",
                             rt_string(table, entry->name_at));
        for (uint32_t b = 0; b < entry->bucket_count; b++) {
            uint32_t number = rt_buckets(table, entry)[b].number;
            BS_TRY(check_cuda_kernel(table, &rt_cuda_kernels(table, image)[number], entry->least_length != 0, err));
        }
    }
    return MDOT_OK;
}

static mdot_status check_cuda_image(const rt_elf *elf, const mdot_abi_table *table, const mdot_abi_image *image,
                                    mdot_error *err)
{
    const char *target = rt_string(table, image->target_at);
    if (image->number < 10 || image->variant > 2)
        return MALFORMED(err, "a CUDA image has an invalid architecture (sm_%u)", image->number);
    if (image->code_bytes == 0 || !part_fits(&elf->cubins, image->code_offset, image->code_bytes))
        return MALFORMED(err, "image %s is outside section " MDOT_ABI_SECTION_CUBINS, target);
    if (!part_fits(&elf->cuda_weights, image->weights_offset, image->weights_bytes))
        return MALFORMED(err, "the weights of image %s are outside section " MDOT_ABI_SECTION_CUDA_WEIGHTS, target);
    return check_cuda_kernels(table, image, err);
}

static mdot_status check_cpu_image(const mdot_abi_table *table, const mdot_abi_image *image, mdot_error *err)
{
    const char *target = rt_string(table, image->target_at);
    if (image->number == MDOT_CPU_NONE) return MALFORMED(err, "a CPU image has an invalid ISA level");
    if (image->weights_offset % MDOT_ABI_ALIGNMENT != 0 || image->weights_offset > table->weights_bytes ||
        image->weights_bytes > table->weights_bytes - image->weights_offset)
        return MALFORMED(err, "the weights of image %s are outside section " MDOT_ABI_SECTION_WEIGHTS, target);
    if (!array_fits(table, image->kernels_at, image->kernel_count, sizeof(mdot_abi_cpu_function)))
        return MALFORMED(err, "the %u functions of image %s are outside", image->kernel_count, target);
    const mdot_abi_cpu_function *functions = rt_cpu_functions(table, image);
    for (uint32_t i = 0; i < image->kernel_count; i++) {
        if (functions[i].code >= table->code_count)
            return MALFORMED(err, "code index %u of image %s is beyond %u", functions[i].code, target,
                             table->code_count);
        if (functions[i].scratch_bytes > SIZE_MAX - MDOT_ABI_ALIGNMENT ||
            functions[i].worker_bytes > functions[i].scratch_bytes ||
            functions[i].worker_bytes % MDOT_ABI_ALIGNMENT != 0)
            return MALFORMED(err, "the scratch size of image %s is invalid", target);
    }
    return MDOT_OK;
}

static bool is_same_target(const mdot_abi_image *a, const mdot_abi_image *b)
{
    return a->kind == b->kind && a->number == b->number && a->variant == b->variant;
}

static bool ascends(const mdot_abi_image *a, const mdot_abi_image *b)
{
    if (a->kind != b->kind) return a->kind < b->kind;
    return a->number < b->number || (a->number == b->number && a->variant <= b->variant);
}

/* The image must follow the image before it and be unique in target and precision. */
static mdot_status check_order(const mdot_abi_table *table, uint32_t number, mdot_error *err)
{
    const mdot_abi_image *image = rt_image(table, number);
    const char *kernel_precision = rt_string(table, image->compute_at);
    if (number > 0 && !ascends(rt_image(table, number - 1), image)) return MALFORMED(err, "images must ascend");
    for (uint32_t i = number; i-- > 0 && is_same_target(rt_image(table, i), image);)
        if (strcmp(rt_string(table, rt_image(table, i)->compute_at), kernel_precision) == 0)
            return MALFORMED(err, "there are two images for %s in %s", rt_string(table, image->target_at),
                             kernel_precision);
    return MDOT_OK;
}

static mdot_status check_image(const rt_elf *elf, const mdot_abi_table *table, const mdot_abi_image *image,
                               mdot_error *err)
{
    if (!string_fits(table, image->target_at) || !string_fits(table, image->compute_at))
        return MALFORMED(err, "an image's target is outside");
    if (image->kind != MDOT_IMAGE_CPU && image->kind != MDOT_IMAGE_CUDA)
        return MALFORMED(err, "image %s has an unknown kind (%u)", rt_string(table, image->target_at), image->kind);
    if (image->kernel_count != table->bucket_count)
        return MALFORMED(err, "image %s has %u kernels for %u buckets", rt_string(table, image->target_at),
                         image->kernel_count, table->bucket_count);
    return image->kind == MDOT_IMAGE_CPU ? check_cpu_image(table, image, err)
                                         : check_cuda_image(elf, table, image, err);
}

static mdot_status check_images(const rt_elf *elf, const mdot_abi_table *table, mdot_error *err)
{
    if (table->image_count > MDOT_ABI_MAX_IMAGES ||
        !array_fits(table, table->images_at, table->image_count, sizeof(mdot_abi_image)))
        return MALFORMED(err, "%u images at byte %u are outside", table->image_count, table->images_at);
    if (table->image_count == 0 || rt_image(table, 0)->kind != MDOT_IMAGE_CPU)
        return MALFORMED(err, "the artefact lacks an image for CPUs");
    for (uint32_t i = 0; i < table->image_count; i++) {
        BS_TRY(check_image(elf, table, rt_image(table, i), err));
        BS_TRY(check_order(table, i, err));
    }
    return MDOT_OK;
}

/* Identity and integrity, which must hold before any offset is read. */
static mdot_status check_identity(const rt_elf *elf, const mdot_abi_table *table, mdot_error *err)
{
    if (elf->table.size_bytes < sizeof *table) return MALFORMED(err, "the section is too small");
    if (memcmp(table->magic, MDOT_ABI_MAGIC, sizeof table->magic) != 0) return MALFORMED(err, "wrong magic bytes");
    if (table->abi_version != MDOT_ABI_VERSION)
        return mdot_fail(err, MDOT_INCOMPATIBLE,
                         "the artefact has ABI version %u, this library reads version %d: compile it again",
                         table->abi_version, MDOT_ABI_VERSION);
    if (table->file_bytes != elf->file.size_bytes)
        return MALFORMED(err, "the file has %llu bytes instead of %llu: truncated?",
                         (unsigned long long)elf->file.size_bytes, (unsigned long long)table->file_bytes);
    if (mdot_abi_file_checksum(elf->file.bytes, (size_t)elf->file.size_bytes, (size_t)elf->table.offset) !=
        table->checksum)
        return mdot_fail(err, MDOT_CORRUPT, "the artefact's checksum differs: the file is damaged");
    return MDOT_OK;
}

mdot_status rt_table_check(const rt_elf *elf, mdot_error *err)
{
    const mdot_abi_table *table = (const mdot_abi_table *)(elf->file.bytes + elf->table.offset);
    BS_TRY(check_identity(elf, table, err));
    if (table->table_bytes < sizeof *table || table->table_bytes > elf->table.size_bytes)
        return MALFORMED(err, "%u bytes exceed section " MDOT_ABI_SECTION_TABLE, table->table_bytes);
    if (table->weights_bytes > elf->weights.size_bytes)
        return MALFORMED(err, "the weights exceed section " MDOT_ABI_SECTION_WEIGHTS);
    if (!string_fits(table, table->name_at) || !string_fits(table, table->compiler_at))
        return MALFORMED(err, "a name is outside");
    BS_TRY(check_entries(table, err));
    BS_TRY(check_code(elf, table, err));
    return check_images(elf, table, err);
}
