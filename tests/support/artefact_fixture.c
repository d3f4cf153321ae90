/* artefact_fixture.c — see artefact_fixture.h. */
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"

#include "codegen/artefact.h"
#include "codegen/cpu/cpu_target.h"
#include "tests/support/process.h"

#include "base/elf_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct text_builder {
    fixture_table *table;
    size_t used;
} text_builder;

static uint32_t text(text_builder *b, const char *string)
{
    size_t bytes = strlen(string) + 1, at = b->used;
    assert_compare(at + bytes, <=, sizeof b->table->text);
    memcpy(b->table->text + at, string, bytes);
    b->used += bytes;
    return (uint32_t)(offsetof(fixture_table, text) + at);
}

static mdot_abi_tensor tensor(text_builder *b, const char *name, mdot_dtype dtype, uint32_t rank, mdot_abi_dim first,
                              mdot_abi_dim second)
{
    return (mdot_abi_tensor){.name_at = text(b, name), .dtype = dtype, .rank = rank, .dim = {first, second}};
}

#define AT(field) (uint32_t) offsetof(fixture_table, field)

static void fill_predict(text_builder *b)
{
    const mdot_abi_dim length = {.scale = 1}, two = {.offset = 2}, four = {.offset = 4}, none = {0};
    fixture_table *t = b->table;
    t->predict_input[0] = tensor(b, "x", MDOT_DTYPE_F32, 2, length, two);
    t->predict_input[0].defaults_at = AT(predict_default);
    t->predict_input[0].default_count = 2;
    t->predict_input[1] = tensor(b, "keep", MDOT_DTYPE_BOOL, 1, length, none);
    t->predict_input[2] = tensor(b, "bias", MDOT_DTYPE_I64, 0, none, none);
    t->predict_output[0] = tensor(b, "y", MDOT_DTYPE_F32, 1, length, none);
    t->predict_output[1] = tensor(b, "about", MDOT_DTYPE_I64, 1, four, none);
    t->kernel[0] = (mdot_abi_kernel){text(b, "linear.y"), text(b, "linear"), 1, 0, 0};
    t->kernel[1] = (mdot_abi_kernel){text(b, "nest.about"), text(b, "nest"), 1, 0, 0};
    for (uint32_t i = 0; i < FIXTURE_BUCKETS; i++) {
        int64_t max_length = i == 0 ? 4 : FIXTURE_MAX_LENGTH;
        t->predict_bucket[i] =
            (mdot_abi_bucket){.max_length = max_length,
                              .flops = 4.0 * (double)max_length,
                              .kernels_at = AT(kernel),
                              .kernel_count = 2,
                              .number = i,
                              .kernel_flops_at = AT(kernel_flops) + i * (uint32_t)sizeof t->kernel_flops[0]};
        t->kernel_flops[i][0] = 4.0 * (double)max_length;
    }
    t->entry[0] = (mdot_abi_entry){.name_at = text(b, "predict"),
                                   .inputs_at = AT(predict_input),
                                   .input_count = 3,
                                   .outputs_at = AT(predict_output),
                                   .output_count = 2,
                                   .buckets_at = AT(predict_bucket),
                                   .bucket_count = FIXTURE_BUCKETS,
                                   .least_length = 1,
                                   .schema_hash = 11};
}

static void fill_double(text_builder *b)
{
    const mdot_abi_dim three = {.offset = 3}, none = {0};
    fixture_table *t = b->table;
    t->double_input[0] = tensor(b, "a", MDOT_DTYPE_I32, 1, three, none);
    t->double_output[0] = tensor(b, "b", MDOT_DTYPE_I32, 1, three, none);
    t->double_bucket[0] = (mdot_abi_bucket){.number = FIXTURE_BUCKETS, .flops = 3};
    t->entry[1] = (mdot_abi_entry){.name_at = text(b, "double"),
                                   .inputs_at = AT(double_input),
                                   .input_count = 1,
                                   .outputs_at = AT(double_output),
                                   .output_count = 1,
                                   .buckets_at = AT(double_bucket),
                                   .bucket_count = 1,
                                   .schema_hash = 12};
}

/* Code numbers are ordered by bucket and, within a bucket, by image. */
static void fill_cpu_images(text_builder *b)
{
    static const struct {
        uint32_t level;
        const char *name;
    } target[FIXTURE_LEVELS] = {{MDOT_CPU_X86_64_V3, "x86-64-v3"}, {MDOT_CPU_X86_64_V4, "x86-64-v4"}};
    fixture_table *t = b->table;
    for (uint32_t i = 0; i < FIXTURE_LEVELS; i++) {
        for (uint32_t k = 0; k < FIXTURE_IMAGE_KERNELS; k++) {
            uint64_t max_length = k < FIXTURE_BUCKETS ? (uint64_t)t->predict_bucket[k].max_length : 0;
            t->function[i][k] = (mdot_abi_cpu_function){.code = k * FIXTURE_LEVELS + i,
                                                        .scratch_bytes = max_length * FIXTURE_SCRATCH_BYTES_A_STEP};
        }
        t->cpu_image[i] = (mdot_abi_image){.kind = MDOT_IMAGE_CPU,
                                           .number = target[i].level,
                                           .target_at = text(b, target[i].name),
                                           .compute_at = text(b, "fp32"),
                                           .kernels_at = AT(function) + i * (uint32_t)sizeof t->function[0],
                                           .kernel_count = FIXTURE_IMAGE_KERNELS,
                                           .code_bytes = 100,
                                           .weights_bytes = 64};
    }
    t->head.images_at = AT(cpu_image);
    t->head.image_count = FIXTURE_LEVELS;
}

static void fill_images(text_builder *b)
{
    static const struct {
        uint32_t sm, is_accelerated;
        const char *name;
    } architecture[FIXTURE_IMAGES] = {{80, 0, "sm_80"}, {90, 0, "sm_90"}, {90, 1, "sm_90a"}};
    static const char *const names[FIXTURE_IMAGE_KERNELS] = {"predict_4", "predict_16", "double_0"};
    fixture_table *t = b->table;
    for (uint32_t i = 0; i < FIXTURE_IMAGE_KERNELS; i++) {
        t->image_kernel[i] = (mdot_abi_cuda_kernel){.name_at = text(b, names[i]),
                                                    .threads = 256,
                                                    .tile_rows = i < FIXTURE_BUCKETS ? 16 : 0,
                                                    .blocks_per_tile = 1,
                                                    .grid_barriers = i,
                                                    .dynamic_shared_bytes = 1000 * i,
                                                    .inline_input_bytes = i == 1 ? 0 : 256,
                                                    .scratch_bytes = 1024 * i};
        t->image_resources[i] = (mdot_abi_cuda_resources){.registers = 40 + i,
                                                          .static_shared_bytes = 16,
                                                          .local_bytes = 8 * i,
                                                          .spill_bytes = 4 * i,
                                                          .tensor_instructions = 100 * i,
                                                          .barriers = 1,
                                                          .code_bytes = 128};
    }
    uint32_t bf16 = text(b, "bf16");
    for (uint32_t i = 0; i < FIXTURE_IMAGES; i++)
        t->image[i] = (mdot_abi_image){.kind = MDOT_IMAGE_CUDA,
                                       .number = architecture[i].sm,
                                       .variant = architecture[i].is_accelerated,
                                       .target_at = text(b, architecture[i].name),
                                       .compute_at = bf16,
                                       .code_offset = (uint64_t)FIXTURE_IMAGE_BYTES * i,
                                       .code_bytes = FIXTURE_IMAGE_BYTES,
                                       .weights_bytes = FIXTURE_IMAGE_BYTES,
                                       .kernels_at = AT(image_kernel),
                                       .kernel_count = FIXTURE_IMAGE_KERNELS,
                                       .resources_at = AT(image_resources)};
    t->head.image_count += FIXTURE_IMAGES;
}

static void fill_table(fixture_table *t, bool with_images)
{
    memset(t, 0, sizeof *t);
    text_builder b = {t, 0};
    t->head = (mdot_abi_table){.magic = MDOT_ABI_MAGIC,
                               .abi_version = MDOT_ABI_VERSION,
                               .table_bytes = sizeof *t,
                               .weights_bytes = 64,
                               .name_at = text(&b, "fixture"),
                               .compiler_at = text(&b, "by hand"),
                               .entries_at = AT(entry),
                               .entry_count = 2,
                               .bucket_count = FIXTURE_IMAGE_KERNELS,
                               .code_count = FIXTURE_CODES};
    fill_predict(&b);
    fill_double(&b);
    fill_cpu_images(&b);
    if (with_images) fill_images(&b);
}

static void *read_whole(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    rewind(file);
    void *bytes = malloc((size_t)size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, (size_t)size, file), size);
    fclose(file);
    *out_size = (size_t)size;
    return bytes;
}

static void make(fixture *f, bool with_images)
{
    *f = (fixture){.folder = process_make_folder()};
    assert_non_null(f->folder);
    char path[512];
    snprintf(path, sizeof path, "%s/base.mdot", f->folder);
    fixture_table table;
    fill_table(&table, with_images);
    const float weights[16] = {2, 3};
    unsigned char counting[FIXTURE_IMAGES * FIXTURE_IMAGE_BYTES];
    for (size_t i = 0; i < sizeof counting; i++) counting[i] = (unsigned char)(i % FIXTURE_IMAGE_BYTES);
    const cg_data_section sections[] = {
        {MDOT_ABI_SECTION_TABLE, MDOT_ABI_SYMBOL_TABLE, &table, sizeof table, MDOT_ABI_ALIGNMENT},
        {MDOT_ABI_SECTION_WEIGHTS, MDOT_ABI_SYMBOL_WEIGHTS, weights, sizeof weights, CG_PAGE_BYTES},
        {MDOT_ABI_SECTION_CUBINS, MDOT_ABI_SYMBOL_CUBINS, counting, sizeof counting, CG_PAGE_BYTES},
        {MDOT_ABI_SECTION_CUDA_WEIGHTS, MDOT_ABI_SYMBOL_CUDA_WEIGHTS, counting, FIXTURE_IMAGE_BYTES, CG_PAGE_BYTES},
    };
    cg_parts parts = {.machine = &cg_machine_x86_64, .sections = sections, .section_count = with_images ? 4 : 2};
    void *code = read_whole(MDOT_FIXTURE_CODE, &parts.code_bytes);
    parts.code = code;
    ir_arena *arena = ir_arena_create(0);
    mdot_error err = {0};
    mdot_status status = cg_link_artefact(&parts, path, arena, &err);
    if (status != MDOT_OK) fail_msg("%s", err.message);
    ir_arena_destroy(arena);
    free(code);
    f->bytes = read_whole(path, &f->size_bytes);
    size_t size;
    assert_true(fixture_find_section(f->bytes, f->size_bytes, MDOT_ABI_SECTION_TABLE, &f->table_at, &size));
}

void fixture_open(fixture *f) { make(f, false); }

void fixture_open_with_images(fixture *f) { make(f, true); }

fixture fixture_copy(const fixture *f)
{
    fixture copy = *f;
    copy.bytes = malloc(f->size_bytes);
    assert_non_null(copy.bytes);
    memcpy(copy.bytes, f->bytes, f->size_bytes);
    return copy;
}

void fixture_close(fixture *f)
{
    process_remove_folder(f->folder);
    free(f->bytes);
    *f = (fixture){0};
}

fixture fixture_shared;

int fixture_setup(void **state)
{
    (void)state;
    unsetenv("MDOT_CPU_ISA");
    unsetenv("MDOT_DEVICE");
    fixture_open(&fixture_shared);
    return 0;
}

int fixture_teardown(void **state)
{
    (void)state;
    fixture_close(&fixture_shared);
    return 0;
}

bool fixture_find_section(const void *file, size_t file_bytes, const char *name, size_t *out_at, size_t *out_size_bytes)
{
    bs_elf elf;
    bs_elf_section section;
    if (bs_elf_open(file, file_bytes, "an artefact", BS_ELF_ANY_MACHINE, &elf, NULL) != MDOT_OK ||
        !bs_elf_section_named(&elf, name, &section) || section.bytes == NULL)
        return false;
    *out_at = (size_t)section.offset;
    *out_size_bytes = (size_t)section.size_bytes;
    return true;
}

fixture_table *fixture_table_of(fixture *f) { return (fixture_table *)(f->bytes + f->table_at); }

void fixture_seal(fixture *f)
{
    fixture_table *table = fixture_table_of(f);
    table->head.file_bytes = f->size_bytes;
    table->head.checksum = mdot_abi_file_checksum(f->bytes, f->size_bytes, f->table_at);
}

char *fixture_save(const fixture *f, const void *bytes, size_t size_bytes)
{
    static int number;
    char path[512];
    snprintf(path, sizeof path, "%s/saved-%d.mdot", f->folder, number++);
    FILE *file = fopen(path, "wbx");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size_bytes, file), size_bytes);
    assert_int_equal(fclose(file), 0);
    return strdup(path);
}

bool fixture_machine_runs(mdot_cpu_isa level)
{
    __builtin_cpu_init();
    bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
    bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    bool bf16 = v4 && __builtin_cpu_supports("avx512bf16");
    return level == MDOT_CPU_X86_64_V3 ? v3 : level == MDOT_CPU_X86_64_V4 ? v4 : bf16;
}

void fixture_skip_unless_v3(void)
{
    if (fixture_machine_runs(MDOT_CPU_X86_64_V3)) return;
    print_message("this machine does not run x86-64-v3\n");
    skip();
}

mdot_predictor *fixture_predictor(const fixture *f)
{
    char *path = fixture_save(f, f->bytes, f->size_bytes);
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    if (mdot_predictor_open(path, NULL, &predictor, &err) != MDOT_OK) fail_msg("%s", err.message);
    unlink(path); /* the file may be deleted while it is open */
    free(path);
    return predictor;
}
