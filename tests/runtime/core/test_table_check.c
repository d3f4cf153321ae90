/* test_table_check.c — runtime/core/table_check.c: inconsistent tables with a valid checksum. */
#include "runtime/core/table_reader.h"
#include "tests/support/artefact_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static mdot_status open_changed(fixture *f, mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    fixture_seal(f);
    char *path = fixture_save(&fixture_shared, f->bytes, f->size_bytes);
    mdot_status status = mdot_predictor_open(path, NULL, &predictor, err);
    if (status != MDOT_OK) assert_null(predictor);
    mdot_predictor_close(predictor);
    unlink(path);
    free(path);
    return status;
}

static void assert_message(const mdot_error *err, const char *words)
{
    if (strstr(err->message, words) == NULL) fail_msg("\"%s\" does not say \"%s\"", err->message, words);
}

typedef struct corruption {
    const char *what;
    size_t at, size;
    uint64_t value;
} corruption;

#define CORRUPTION(field, value)                                                                                       \
    {                                                                                                                  \
#field " = " #value, offsetof(fixture_table, field), sizeof(((fixture_table *)0)->field), (uint64_t)(value)    \
    }

static const corruption corruptions[] = {
    CORRUPTION(head.magic[0], 'm'),
    CORRUPTION(head.table_bytes, 64),
    CORRUPTION(head.table_bytes, 1 << 30),
    CORRUPTION(head.weights_bytes, 1 << 30),
    CORRUPTION(head.name_at, sizeof(fixture_table)),
    CORRUPTION(head.name_at, UINT32_MAX),
    CORRUPTION(head.compiler_at, UINT32_MAX),
    CORRUPTION(head.images_at, UINT32_MAX - 7),
    CORRUPTION(head.images_at, 4), /* misaligned */
    CORRUPTION(head.image_count, 0),
    CORRUPTION(head.image_count, MDOT_ABI_MAX_IMAGES + 1),
    CORRUPTION(head.image_count, UINT32_MAX),
    CORRUPTION(head.image_count, 3),  /* the third image is all zeros */
    CORRUPTION(head.bucket_count, 2), /* fewer than the table contains */
    CORRUPTION(head.bucket_count, 4),
    CORRUPTION(cpu_image[0].kind, 0),
    CORRUPTION(cpu_image[0].kind, MDOT_IMAGE_CUDA), /* all CPU images are gone */
    CORRUPTION(cpu_image[1].kind, MDOT_IMAGE_CUDA), /* the cubin is absent */
    CORRUPTION(cpu_image[0].number, 0),
    CORRUPTION(cpu_image[1].number, 1), /* duplicate number */
    CORRUPTION(cpu_image[0].target_at, UINT32_MAX),
    CORRUPTION(cpu_image[0].compute_at, UINT32_MAX),
    CORRUPTION(cpu_image[0].kernels_at, UINT32_MAX - 7),
    CORRUPTION(cpu_image[0].kernels_at, 12),
    CORRUPTION(cpu_image[0].kernel_count, 2),
    CORRUPTION(cpu_image[0].kernel_count, UINT32_MAX),
    CORRUPTION(cpu_image[0].weights_offset, 1),
    CORRUPTION(cpu_image[0].weights_offset, 64), /* fewer bytes than the weights follow this offset */
    CORRUPTION(cpu_image[0].weights_offset, UINT64_MAX - 63),
    CORRUPTION(cpu_image[0].weights_bytes, 65),
    CORRUPTION(cpu_image[0].weights_bytes, UINT64_MAX),
    CORRUPTION(function[0][0].code, FIXTURE_CODES),
    CORRUPTION(function[1][2].code, UINT32_MAX),
    CORRUPTION(function[0][0].scratch_bytes, UINT64_MAX),
    CORRUPTION(function[0][0].worker_bytes, 32),
    CORRUPTION(function[0][0].worker_bytes, 1 << 20), /* more than the scratch memory of the first worker */
    CORRUPTION(function[0][0].worker_bytes, UINT64_MAX - 63),
    CORRUPTION(head.entries_at, offsetof(fixture_table, entry) + 4),
    CORRUPTION(head.entries_at, UINT32_MAX - 7),
    CORRUPTION(head.entry_count, 0),
    CORRUPTION(head.entry_count, UINT32_MAX),
    CORRUPTION(head.code_count, 5),
    CORRUPTION(head.code_count, UINT32_MAX),
    CORRUPTION(entry[0].name_at, UINT32_MAX),
    CORRUPTION(entry[0].inputs_at, UINT32_MAX - 7),
    CORRUPTION(entry[0].inputs_at, 12),
    CORRUPTION(entry[0].input_count, UINT32_MAX),
    CORRUPTION(entry[0].input_count, 0), /* without inputs, the length is undefined */
    CORRUPTION(entry[0].outputs_at, UINT32_MAX - 7),
    CORRUPTION(entry[0].output_count, UINT32_MAX),
    CORRUPTION(entry[0].buckets_at, UINT32_MAX - 7),
    CORRUPTION(entry[0].bucket_count, 0),
    CORRUPTION(entry[0].bucket_count, UINT32_MAX),
    CORRUPTION(entry[0].least_length, 0),
    CORRUPTION(entry[1].least_length, 1),
    CORRUPTION(entry[0].least_length, 1000),
    CORRUPTION(predict_input[0].name_at, UINT32_MAX),
    CORRUPTION(predict_input[0].dtype, 0),
    CORRUPTION(predict_input[0].dtype, MDOT_DTYPE_STRING),
    CORRUPTION(predict_input[0].dtype, 99),
    CORRUPTION(predict_input[0].rank, MDOT_MAX_RANK + 1),
    CORRUPTION(predict_input[0].rank, UINT32_MAX),
    CORRUPTION(predict_input[0].dim[0].scale, INT64_MAX),
    CORRUPTION(predict_input[0].dim[0].scale, -1),
    CORRUPTION(predict_input[0].dim[0].offset, INT64_MAX),
    CORRUPTION(predict_input[0].dim[0].offset, INT64_MIN),
    CORRUPTION(predict_input[0].dim[1].offset, INT64_MAX),
    CORRUPTION(predict_input[0].default_count, 3), /* more than the input has columns */
    CORRUPTION(predict_input[0].default_count, UINT32_MAX),
    CORRUPTION(predict_input[0].defaults_at, offsetof(fixture_table, predict_default) + 4),
    CORRUPTION(predict_input[0].defaults_at, UINT32_MAX - 7),
    CORRUPTION(predict_input[0].columns_at, UINT32_MAX - 7),
    CORRUPTION(predict_input[0].assumed_torch, 99),
    CORRUPTION(predict_input[0].assumed_torch, 10000),
    CORRUPTION(predict_input[0].columns_at, sizeof(fixture_table)),
    CORRUPTION(predict_input[0].columns_at, offsetof(fixture_table, text) + 1), /* one name for two columns */
    CORRUPTION(predict_input[1].default_count, 1), /* the number of columns is the length */
    CORRUPTION(predict_input[2].default_count, 1), /* the input is a scalar */
    CORRUPTION(double_input[0].default_count, 1),  /* the input has integers */
    CORRUPTION(predict_output[1].dim[0].offset, -4),
    CORRUPTION(double_input[0].dim[0].scale, 1),
    CORRUPTION(predict_bucket[0].max_length, 0),
    CORRUPTION(predict_bucket[0].max_length, -4),
    CORRUPTION(predict_bucket[0].max_length, FIXTURE_MAX_LENGTH),
    CORRUPTION(predict_bucket[1].max_length, INT64_MAX),
    CORRUPTION(predict_bucket[0].number, FIXTURE_IMAGE_KERNELS),
    CORRUPTION(predict_bucket[0].number, UINT32_MAX),
    CORRUPTION(predict_bucket[0].kernels_at, UINT32_MAX - 7),
    CORRUPTION(predict_bucket[0].kernel_count, UINT32_MAX),
    CORRUPTION(predict_bucket[0].kernel_flops_at, UINT32_MAX - 7),
    CORRUPTION(predict_bucket[0].kernel_flops_at, offsetof(fixture_table, kernel_flops) + 4),
    CORRUPTION(predict_bucket[1].kernel_flops_at,
               sizeof(fixture_table) - 8), /* only one of two values is in the table */
    CORRUPTION(kernel[1].name_at, UINT32_MAX),
    CORRUPTION(kernel[1].kind_at, sizeof(fixture_table)),
    CORRUPTION(double_bucket[0].max_length, 3),
    CORRUPTION(predict_bucket[0].most_items, 5),
    CORRUPTION(predict_bucket[1].most_items, UINT32_MAX),
    CORRUPTION(double_bucket[0].most_items, 1),
};

static void inconsistent_table_is_malformed(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof corruptions / sizeof corruptions[0]; i++) {
        fixture f = fixture_copy(&fixture_shared);
        memcpy((char *)fixture_table_of(&f) + corruptions[i].at, &corruptions[i].value, corruptions[i].size);
        mdot_error err;
        mdot_status status = open_changed(&f, &err);
        if (status != MDOT_MALFORMED) fail_msg("%s: %s", corruptions[i].what, mdot_status_name(status));
        free(f.bytes);
    }
}

/* Opens a table with a bucket for two items together. `change` modifies one field in the bucket or in the inputs. */
static mdot_status open_joint(void (*change)(fixture_table *table), mdot_error *err)
{
    fixture f = fixture_copy(&fixture_shared);
    fixture_table *table = fixture_table_of(&f);
    table->predict_bucket[0].most_items = 2;
    if (change != NULL) change(table);
    mdot_status status = open_changed(&f, err);
    free(f.bytes);
    return status;
}

static void negative_offset(fixture_table *table) { table->predict_bucket[0].unit_offset = -1; }
static void offset_of_a_tensor(fixture_table *table) { table->predict_input[0].dim[0].offset = 1; }
static void offset_of_a_kernel(fixture_table *table) { table->kernel[1].unit_offset = 1; }
static void offset_below_the_length(fixture_table *table) { table->kernel[0].unit_offset = -2; }
static void falling_extent(fixture_table *table)
{
    table->predict_output[0].dim[0] = (mdot_abi_dim){.scale = -1, .offset = FIXTURE_MAX_LENGTH};
}
static void rounded_extent(fixture_table *table)
{
    table->predict_output[0].dim[0] = (mdot_abi_dim){.times = 1, .step = 1, .start = 1, .divisor = 2};
}

static void items_beyond_their_bounds_are_malformed(void **state)
{
    (void)state;
    void (*const changes[])(fixture_table *) = {negative_offset,         offset_of_a_tensor, offset_of_a_kernel,
                                                offset_below_the_length, falling_extent,     rounded_extent};
    mdot_error err;
    if (fixture_machine_runs(MDOT_CPU_X86_64_V3)) assert_int_equal(open_joint(NULL, &err), MDOT_OK);
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        if (open_joint(changes[i], &err) != MDOT_MALFORMED) fail_msg("change %zu", i);
}

/* Opens a table with this extent for an output, or for an input. */
static mdot_status open_with_dim(mdot_abi_dim dim, bool is_input)
{
    fixture f = fixture_copy(&fixture_shared);
    fixture_table *table = fixture_table_of(&f);
    mdot_error err;
    if (is_input)
        table->predict_input[0].dim[0] = dim;
    else
        table->predict_output[0].dim[0] = dim;
    mdot_status status = open_changed(&f, &err);
    free(f.bytes);
    return status;
}

static void extents_have_a_valid_quotient(void **state)
{
    (void)state;
    static const mdot_abi_dim wrong[] = {
        {.times = 1},
        {.divisor = 2},
        {.start = 1},
        {.times = -1, .step = 1, .divisor = 2},
        {.times = 1, .step = 2, .divisor = 2},
        {.times = 1, .step = -1, .divisor = 2},
        {.times = 1, .step = 1, .start = 2, .divisor = 2},
        {.times = 1, .step = 1, .start = -1, .divisor = 2},
        {.times = 1, .step = 1, .divisor = MDOT_ABI_MAX_DIVISOR + 1},
        {.scale = -1, .offset = 1, .times = 3, .step = 1, .divisor = 3},        /* negative between the ends */
        {.scale = -1, .offset = 64, .times = 2, .step = 4095, .divisor = 4097}, /* the search would take long */
    };
    const mdot_abi_dim half = {.times = 1, .step = 1, .start = 1, .divisor = 2};
    const mdot_abi_dim rest = {.scale = -1, .offset = 1, .times = 2, .step = 1, .start = 1, .divisor = 2};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (open_with_dim(wrong[i], false) != MDOT_MALFORMED) fail_msg("dimension %zu", i);
    assert_int_equal(open_with_dim(half, true), MDOT_MALFORMED); /* inputs determine the length */
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) return;
    assert_int_equal(open_with_dim(half, false), MDOT_OK);
    assert_int_equal(open_with_dim(rest, false), MDOT_OK); /* 1 for even lengths, 2 for odd ones */
}

static void the_greatest_extent_is_found_between_the_ends(void **state)
{
    (void)state;
    const mdot_abi_dim dims[] = {{.scale = 2, .offset = 1},
                                 {.scale = -1, .offset = 40},
                                 {.times = 3, .step = 2, .start = 1, .divisor = 3},
                                 {.scale = -1, .offset = 1, .times = 2, .step = 1, .start = 1, .divisor = 2},
                                 {.scale = -2, .offset = 70, .times = 3, .step = 5, .start = 6, .divisor = 7}};
    for (size_t i = 0; i < sizeof dims / sizeof dims[0]; i++)
        for (int64_t first = 1; first < 9; first++) {
            int64_t most = 0;
            for (int64_t n = first; n <= 24; n++) most = rt_dim_at(&dims[i], n) > most ? rt_dim_at(&dims[i], n) : most;
            assert_int_equal(rt_dim_most(&dims[i], first, 24), most);
        }
}

static void duplicate_names_are_malformed(void **state)
{
    (void)state;
    fixture f = fixture_copy(&fixture_shared);
    fixture_table_of(&f)->predict_input[1].name_at = fixture_table_of(&f)->predict_input[0].name_at;
    mdot_error err;
    assert_int_equal(open_changed(&f, &err), MDOT_MALFORMED);
    assert_message(&err, "named x");
    free(f.bytes);
    f = fixture_copy(&fixture_shared);
    fixture_table_of(&f)->entry[1].name_at = fixture_table_of(&f)->entry[0].name_at;
    assert_int_equal(open_changed(&f, &err), MDOT_MALFORMED);
    assert_message(&err, "two entries");
    free(f.bytes);
}

static void unterminated_string_is_malformed(void **state)
{
    (void)state;
    fixture f = fixture_copy(&fixture_shared);
    fixture_table *table = fixture_table_of(&f);
    memset(table->text + sizeof table->text - 8, 'x', 8);
    table->kernel[0].name_at = sizeof *table - 4;
    mdot_error err;
    assert_int_equal(open_changed(&f, &err), MDOT_MALFORMED);
    free(f.bytes);
}

static void code_outside_the_executable_segment_is_malformed(void **state)
{
    (void)state;
    const int64_t elsewhere[] = {0, INT64_MAX, INT64_MIN, -(INT64_C(1) << 40), INT64_C(1) << 40};
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++) {
        fixture f = fixture_copy(&fixture_shared);
        size_t at, size;
        assert_true(fixture_find_section(f.bytes, f.size_bytes, MDOT_ABI_SECTION_CODE, &at, &size));
        memcpy(f.bytes + at + 2 * sizeof(int64_t), &elsewhere[i], sizeof(int64_t));
        mdot_error err;
        assert_int_equal(open_changed(&f, &err), MDOT_MALFORMED);
        assert_message(&err, "entry function 2");
        free(f.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inconsistent_table_is_malformed),
        cmocka_unit_test(items_beyond_their_bounds_are_malformed),
        cmocka_unit_test(extents_have_a_valid_quotient),
        cmocka_unit_test(the_greatest_extent_is_found_between_the_ends),
        cmocka_unit_test(duplicate_names_are_malformed),
        cmocka_unit_test(unterminated_string_is_malformed),
        cmocka_unit_test(code_outside_the_executable_segment_is_malformed),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
