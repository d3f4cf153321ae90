/* fuzz_artefact.c — libFuzzer on the checks in mdot_predictor_open before loading. Any bytes are refused with a
 * message, or describe an artefact whose accessors all stay inside the table. The size and the checksum are corrected
 * first, because otherwise every input would fail there. The artefact is not loaded, so the input's code never runs.
 *
 *     scripts/fuzz.sh 600 artefact */
#include "runtime/core/loader.h"
#include "runtime/core/objects.h"
#include "runtime/core/table_reader.h"
#include "runtime/predict/predictor_schema.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PAGE_BYTES = 4096 };

static void seal(unsigned char *file, size_t size)
{
    bs_elf elf;
    bs_elf_section table;
    if (bs_elf_open(file, size, "an artefact", BS_ELF_ANY_MACHINE, &elf, NULL) != MDOT_OK ||
        !bs_elf_section_named(&elf, MDOT_ABI_SECTION_TABLE, &table) || table.bytes == NULL ||
        table.size_bytes < sizeof(mdot_abi_table))
        return;
    size_t at = (size_t)table.offset;
    uint64_t file_bytes = size;
    memcpy(file + at + offsetof(mdot_abi_table, file_bytes), &file_bytes, sizeof file_bytes);
    uint64_t checksum = mdot_abi_file_checksum(file, size, at);
    memcpy(file + at + offsetof(mdot_abi_table, checksum), &checksum, sizeof checksum);
}

static size_t visit_tensors(const mdot_predictor *predictor, size_t entry, const mdot_entry_info *info)
{
    size_t sum = 0;
    mdot_tensor_info tensor = MDOT_INIT(mdot_tensor_info);
    for (size_t i = 0; i < info->input_count; i++) {
        if (mdot_predictor_get_input(predictor, entry, i, &tensor) != MDOT_OK) abort();
        sum += strlen(tensor.name) + (size_t)tensor.rank;
    }
    for (size_t i = 0; i < info->output_count; i++) {
        if (mdot_predictor_get_output(predictor, entry, i, &tensor) != MDOT_OK) abort();
        sum += strlen(tensor.name) + (size_t)tensor.rank;
    }
    return sum;
}

static size_t visit_buckets(const mdot_predictor *predictor, size_t entry, const mdot_entry_info *info)
{
    size_t sum = 0;
    for (size_t b = 0; b < info->bucket_count; b++) {
        mdot_bucket_info bucket = MDOT_INIT(mdot_bucket_info);
        mdot_kernel_info kernel = MDOT_INIT(mdot_kernel_info);
        if (mdot_predictor_get_bucket(predictor, entry, b, &bucket) != MDOT_OK) abort();
        for (size_t k = 0; k < bucket.kernel_count; k++) {
            if (mdot_predictor_get_kernel(predictor, entry, b, k, &kernel) != MDOT_OK) abort();
            sum += strlen(kernel.name) + strlen(kernel.kind);
        }
    }
    return sum;
}

static size_t visit_bytes(const rt_elf *elf, const rt_section *section, uint64_t offset, uint64_t size_bytes)
{
    size_t sum = 0;
    for (uint64_t i = 0; i < size_bytes; i++) sum += elf->file.bytes[section->offset + offset + i];
    return sum;
}

static size_t visit_images(const mdot_predictor *predictor, const rt_elf *elf)
{
    size_t sum = 0;
    mdot_image_info image = MDOT_INIT(mdot_image_info);
    for (size_t i = 0; mdot_predictor_get_image(predictor, i, &image) == MDOT_OK; i++) {
        const mdot_abi_image *record = rt_image(predictor->table, i);
        bool is_cuda = record->kind == MDOT_IMAGE_CUDA;
        sum += strlen(image.target) + strlen(image.kernel_precision);
        if (is_cuda) sum += visit_bytes(elf, &elf->cubins, record->code_offset, record->code_bytes);
        sum += visit_bytes(elf, is_cuda ? &elf->cuda_weights : &elf->weights, record->weights_offset,
                           record->weights_bytes);
        mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
        for (size_t e = 0; mdot_predictor_get_entry(predictor, e, &entry) == MDOT_OK; e++) {
            for (size_t b = 0; b < entry.bucket_count; b++) {
                mdot_image_kernel_info kernel = MDOT_INIT(mdot_image_kernel_info);
                if (mdot_predictor_get_image_kernel(predictor, i, e, b, &kernel) != MDOT_OK) abort();
                sum += strlen(kernel.name) + kernel.registers;
            }
        }
    }
    return sum;
}

/* Visits the defaults that predictions write once, if the entry predicts. */
static size_t visit_defaults(const mdot_abi_table *table)
{
    size_t sum = 0;
    rt_job_schema schema;
    mdot_error err = {0};
    if (rt_job_schema_read(table, RT_JOB_PREDICT, &schema, &err) != MDOT_OK) {
        if (err.message[0] == '\0') abort();
        return 0;
    }
    for (int i = 0; i < RT_JOB_INPUT_COUNT; i++) {
        for (size_t k = schema.known[i]; k < schema.columns[i]; k++) sum += schema.defaults[i][k - schema.known[i]] > 0;
    }
    return sum;
}

static size_t visit(const mdot_predictor *predictor, const rt_elf *elf)
{
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    size_t sum = strlen(info.name) + strlen(info.compiler) + strlen(info.kernel_precision);
    for (size_t e = 0; e < info.entry_count; e++) {
        mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
        if (mdot_predictor_get_entry(predictor, e, &entry) != MDOT_OK) abort();
        sum += strlen(entry.name) + visit_tensors(predictor, e, &entry) + visit_buckets(predictor, e, &entry);
    }
    return sum + visit_images(predictor, elf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A heap block of the file's exact size, so the sanitizer detects the first byte beyond it. It is aligned like a
     * mapping. */
    void *file = NULL;
    if (size == 0 || posix_memalign(&file, PAGE_BYTES, size) != 0) return 0;
    memcpy(file, data, size);
    seal(file, size);
    rt_elf elf;
    mdot_error err = {0};
    mdot_status status = rt_elf_read(file, size, &elf, &err);
    if (status == MDOT_OK) status = rt_table_check(&elf, &err);
    if (status == MDOT_OK) {
        const mdot_abi_table *table = (const mdot_abi_table *)((unsigned char *)file + elf.table.offset);
        const mdot_abi_image *first = rt_image(table, 0);
        mdot_predictor predictor = {
            .table = table, .image = first, .functions = rt_cpu_functions(table, first), .device_reason = ""};
        static volatile size_t sink;
        sink = visit(&predictor, &elf) + visit_defaults(table);
        (void)sink;
    } else if (err.message[0] == '\0') {
        abort();
    }
    free(file);
    return 0;
}
