/* test_runtime_images.c — CUDA images in an artefact, on a machine without a GPU: refused tables, and the accessors'
 * results. */
#include "runtime/core/loader.h"
#include "runtime/core/objects.h"
#include "tests/support/artefact_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static fixture shared;

static int setup(void **state)
{
    (void)state;
    unsetenv("MDOT_CPU_ISA");
    fixture_open_with_images(&shared);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fixture_close(&shared);
    return 0;
}

static void accessors_return_image_requirements(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    mdot_predictor *p = fixture_predictor(&shared);
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(p, &info);
    assert_int_equal(info.image_count, FIXTURE_LEVELS + FIXTURE_IMAGES);
    static const char *const targets[FIXTURE_IMAGES] = {"sm_80", "sm_90", "sm_90a"};
    for (size_t i = 0; i < FIXTURE_IMAGES; i++) {
        mdot_image_info image = MDOT_INIT(mdot_image_info);
        assert_int_equal(mdot_predictor_get_image(p, FIXTURE_LEVELS + i, &image), MDOT_OK);
        assert_string_equal(image.kind, "cuda");
        assert_string_equal(image.target, targets[i]);
        assert_string_equal(image.kernel_precision, "bf16");
        assert_int_equal(image.image_bytes, FIXTURE_IMAGE_BYTES);
        assert_int_equal(image.weights_bytes, FIXTURE_IMAGE_BYTES);
    }
    mdot_image_kernel_info kernel = MDOT_INIT(mdot_image_kernel_info);
    assert_int_equal(mdot_predictor_get_image_kernel(p, FIXTURE_LEVELS + 2, 0, 1, &kernel), MDOT_OK);
    assert_string_equal(kernel.name, "predict_16");
    assert_int_equal(kernel.threads, 256);
    assert_int_equal(kernel.grid_barriers, 1);
    assert_int_equal(kernel.registers, 41);
    assert_int_equal(kernel.tensor_instructions, 100);
    assert_int_equal(kernel.barriers, 1);
    assert_int_equal(kernel.shared_bytes, 1016);
    assert_int_equal(kernel.local_bytes, 8);
    assert_int_equal(kernel.spill_bytes, 4);
    assert_int_equal(kernel.inline_input_bytes, 0);
    assert_int_equal(kernel.scratch_bytes, 1024);
    assert_int_equal(kernel.code_bytes, 128);
    assert_int_equal(mdot_predictor_get_image_kernel(p, FIXTURE_LEVELS, 1, 0, &kernel), MDOT_OK);
    assert_string_equal(kernel.name, "double_0");
    mdot_predictor_close(p);
}

static void indices_beyond_the_images_are_out_of_range(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    mdot_predictor *p = fixture_predictor(&shared);
    mdot_image_info image = {.image_bytes = 7};
    mdot_image_kernel_info kernel = {.threads = 7};
    assert_int_equal(mdot_predictor_get_image(p, FIXTURE_LEVELS + FIXTURE_IMAGES, &image), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_image_kernel(p, FIXTURE_LEVELS + FIXTURE_IMAGES, 0, 0, &kernel),
                     MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_image_kernel(p, 0, 2, 0, &kernel), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_image_kernel(p, 0, 0, FIXTURE_BUCKETS, &kernel), MDOT_OUT_OF_RANGE);
    assert_int_equal(image.image_bytes, 7);
    assert_int_equal(kernel.threads, 7);
    mdot_predictor_close(p);
}

/* A device that inspects the images when it is opened, and then refuses to open. */
static int images_looked_at;

static mdot_status look_at_images(const rt_device_request *request, rt_device **out_device, mdot_error *err)
{
    (void)out_device;
    const rt_artefact *artefact = request->artefact;
    for (size_t i = 0; i < FIXTURE_IMAGES; i++) {
        const mdot_abi_image *image = rt_image(artefact->table, FIXTURE_LEVELS + i);
        for (size_t k = 0; k < FIXTURE_IMAGE_BYTES; k++) {
            assert_int_equal(artefact->cubins[image->code_offset + k], k % 256);
            assert_int_equal(artefact->cuda_weights[image->weights_offset + k], k % 256);
        }
        images_looked_at++;
    }
    return mdot_fail(err, MDOT_DEVICE, "no device");
}

static void image_bytes_are_mapped_until_the_device_has_loaded_them(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    static const rt_device_ops looks = {.name = "looks", .open = look_at_images};
    static const rt_device_ops *const devices[] = {&looks, NULL};
    static const rt_extension *const extensions[] = {NULL};
    static const rt_components components = {.devices = devices, .extensions = extensions};
    char *path = fixture_save(&shared, shared.bytes, shared.size_bytes);
    mdot_predictor *p = NULL;
    images_looked_at = 0;
    assert_int_equal(rt_predictor_open(&components, path, NULL, &p, NULL), MDOT_OK);
    assert_int_equal(images_looked_at, FIXTURE_IMAGES);
    assert_null(p->library->artefact.cubins);
    assert_null(p->library->artefact.cuda_weights);
    mdot_predictor_close(p);
    unlink(path);
    free(path);
}

static void artefact_without_images_has_neither_section(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    fixture f;
    fixture_open(&f);
    size_t at, size;
    assert_false(fixture_find_section(f.bytes, f.size_bytes, MDOT_ABI_SECTION_CUBINS, &at, &size));
    assert_false(fixture_find_section(f.bytes, f.size_bytes, MDOT_ABI_SECTION_CUDA_WEIGHTS, &at, &size));
    mdot_predictor *p = fixture_predictor(&f);
    assert_null(p->library->artefact.cubins);
    assert_null(p->library->artefact.cuda_weights);
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(p, &info);
    assert_int_equal(info.image_count, FIXTURE_LEVELS);
    mdot_predictor_close(p);
    fixture_close(&f);
}

/* Opens the fixture with one changed table field: the 4 or 8 bytes at `at` become `value`. */
static mdot_status open_with(size_t at, uint64_t value, size_t field_bytes, mdot_error *err)
{
    unsigned char before[sizeof value];
    unsigned char *field = shared.bytes + shared.table_at + at;
    memcpy(before, field, field_bytes);
    memcpy(field, &value, field_bytes);
    fixture_seal(&shared);
    char *path = fixture_save(&shared, shared.bytes, shared.size_bytes);
    mdot_predictor *predictor = NULL;
    mdot_status status = mdot_predictor_open(path, NULL, &predictor, err);
    mdot_predictor_close(predictor);
    unlink(path);
    free(path);
    memcpy(field, before, field_bytes);
    fixture_seal(&shared);
    return status;
}

#define CORRUPTION(field, value)                                                                                       \
    {                                                                                                                  \
#field, offsetof(fixture_table, field), sizeof(((fixture_table *)NULL)->field), value                          \
    }

static void inconsistent_image_is_malformed(void **state)
{
    (void)state;
    static const struct {
        const char *field;
        size_t at, field_bytes;
        uint64_t value;
    } corruptions[] = {
        CORRUPTION(image[0].kind, 0),
        CORRUPTION(image[0].kind, MDOT_IMAGE_CPU), /* and the weights are absent */
        CORRUPTION(image[0].kind, MDOT_IMAGE_CUDA + 1),
        CORRUPTION(image[0].number, 0),
        CORRUPTION(image[0].number, 91), /* higher than the next image's */
        CORRUPTION(image[1].variant, 1), /* equal to the next image */
        CORRUPTION(image[2].variant, 3),
        CORRUPTION(image[0].target_at, UINT32_MAX),
        CORRUPTION(image[0].compute_at, UINT32_MAX),
        CORRUPTION(image[0].code_offset, 64), /* misaligned */
        CORRUPTION(image[2].code_offset, UINT64_MAX - 255),
        CORRUPTION(image[2].code_offset, FIXTURE_IMAGES * FIXTURE_IMAGE_BYTES),
        CORRUPTION(image[2].code_bytes, FIXTURE_IMAGE_BYTES + 1),
        CORRUPTION(image[2].code_bytes, UINT64_MAX),
        CORRUPTION(image[1].code_bytes, 0),
        CORRUPTION(image[0].weights_offset, 256),
        CORRUPTION(image[0].weights_offset, 1),
        CORRUPTION(image[0].weights_bytes, UINT64_MAX),
        CORRUPTION(image[0].kernels_at, UINT32_MAX - 7),
        CORRUPTION(image[0].kernels_at, offsetof(fixture_table, image_kernel) + 4),
        CORRUPTION(image[0].kernel_count, 0),
        CORRUPTION(image[0].kernel_count, FIXTURE_IMAGE_KERNELS + 1),
        CORRUPTION(image[0].kernel_count, UINT32_MAX),
        CORRUPTION(image[0].resources_at, UINT32_MAX - 7),
        CORRUPTION(image_kernel[0].name_at, 0),
        CORRUPTION(image_kernel[0].name_at, UINT32_MAX),
        CORRUPTION(image_kernel[1].threads, 0),
        CORRUPTION(image_kernel[1].threads, 1025),
        CORRUPTION(image_kernel[0].tile_rows, 0),
        CORRUPTION(image_kernel[2].tile_rows, 16),
        CORRUPTION(image_kernel[0].blocks_per_tile, 0),
        CORRUPTION(image_kernel[1].blocks_per_tile, 9),
        CORRUPTION(image_kernel[2].inline_input_bytes, 32764 - sizeof(mdot_abi_cuda_call) + 1),
        CORRUPTION(image_kernel[2].scratch_bytes, UINT64_MAX),
    };
    for (size_t i = 0; i < sizeof corruptions / sizeof corruptions[0]; i++) {
        mdot_error err = {0};
        mdot_status status = open_with(corruptions[i].at, corruptions[i].value, corruptions[i].field_bytes, &err);
        if (status != MDOT_MALFORMED)
            fail_msg("%s = %#llx: %s %s", corruptions[i].field, (unsigned long long)corruptions[i].value,
                     mdot_status_name(status), err.message);
    }
}

static void images_without_their_sections_are_malformed(void **state)
{
    (void)state;
    fixture f;
    fixture_open(&f);
    fixture_table *table = fixture_table_of(&f), *with_images = fixture_table_of(&shared);
    const uint32_t file_bytes_end = offsetof(mdot_abi_table, checksum);
    memcpy((char *)table + file_bytes_end, (char *)with_images + file_bytes_end, sizeof *table - file_bytes_end);
    fixture_seal(&f);
    char *path = fixture_save(&f, f.bytes, f.size_bytes);
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_predictor_open(path, NULL, &predictor, &err), MDOT_MALFORMED);
    assert_non_null(strstr(err.message, MDOT_ABI_SECTION_CUBINS));
    assert_null(predictor);
    free(path);
    fixture_close(&f);
}

static void damaged_image_does_not_match_the_checksum(void **state)
{
    (void)state;
    size_t at, size;
    assert_true(fixture_find_section(shared.bytes, shared.size_bytes, MDOT_ABI_SECTION_CUDA_WEIGHTS, &at, &size));
    shared.bytes[at + size / 2] ^= 1;
    char *path = fixture_save(&shared, shared.bytes, shared.size_bytes);
    shared.bytes[at + size / 2] ^= 1;
    mdot_predictor *predictor = NULL;
    assert_int_equal(mdot_predictor_open(path, NULL, &predictor, NULL), MDOT_CORRUPT);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accessors_return_image_requirements),
        cmocka_unit_test(indices_beyond_the_images_are_out_of_range),
        cmocka_unit_test(image_bytes_are_mapped_until_the_device_has_loaded_them),
        cmocka_unit_test(artefact_without_images_has_neither_section),
        cmocka_unit_test(inconsistent_image_is_malformed),
        cmocka_unit_test(images_without_their_sections_are_malformed),
        cmocka_unit_test(damaged_image_does_not_match_the_checksum),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
