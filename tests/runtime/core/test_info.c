/* test_info.c — accessors for an opened artefact. */
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void accessors_return_table_contents(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    mdot_predictor *p = fixture_predictor(&fixture_shared);
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(p, &info);
    assert_string_equal(info.name, "fixture");
    assert_string_equal(info.compiler, "by hand");
    assert_string_equal(info.kernel_precision, "fp32");
    assert_int_equal(info.image_count, FIXTURE_LEVELS);
    assert_int_equal(info.entry_count, 2);
    assert_int_equal(info.weights_bytes, 64);
    assert_int_equal(info.file_bytes, fixture_shared.size_bytes);
    mdot_image_info image = MDOT_INIT(mdot_image_info);
    assert_int_equal(mdot_predictor_get_image(p, 1, &image), MDOT_OK);
    assert_string_equal(image.kind, "cpu");
    assert_string_equal(image.target, "x86-64-v4");
    assert_string_equal(image.kernel_precision, "fp32");
    assert_int_equal(image.image_bytes, 100);
    assert_int_equal(image.weights_bytes, 64);
    mdot_image_kernel_info needs = MDOT_INIT(mdot_image_kernel_info);
    assert_int_equal(mdot_predictor_get_image_kernel(p, 1, 0, 1, &needs), MDOT_OK);
    assert_string_equal(needs.name, "");
    assert_int_equal(needs.scratch_bytes, FIXTURE_MAX_LENGTH * FIXTURE_SCRATCH_BYTES_A_STEP);
    size_t entry = 9;
    assert_int_equal(mdot_predictor_find_entry(p, "evaluate", &entry), MDOT_NOT_FOUND);
    assert_int_equal(entry, 9);
    assert_int_equal(mdot_predictor_find_entry(p, "double", &entry), MDOT_OK);
    assert_int_equal(entry, 1);
    mdot_entry_info e = MDOT_INIT(mdot_entry_info);
    assert_int_equal(mdot_predictor_get_entry(p, 0, &e), MDOT_OK);
    assert_string_equal(e.name, "predict");
    assert_int_equal(e.input_count, 3);
    assert_int_equal(e.output_count, 2);
    assert_int_equal(e.bucket_count, 2);
    assert_true(e.has_length);
    assert_int_equal(e.schema_hash, 11);
    mdot_tensor_info t = MDOT_INIT(mdot_tensor_info);
    assert_int_equal(mdot_predictor_get_input(p, 0, 0, &t), MDOT_OK);
    assert_string_equal(t.name, "x");
    assert_int_equal(t.dtype, MDOT_DTYPE_F32);
    assert_int_equal(t.rank, 2);
    assert_int_equal(t.dim[0].scale, 1);
    assert_int_equal(t.dim[1].offset, 2);
    assert_int_equal(mdot_predictor_get_output(p, 0, 1, &t), MDOT_OK);
    assert_string_equal(t.name, "about");
    mdot_bucket_info b = MDOT_INIT(mdot_bucket_info);
    assert_int_equal(mdot_predictor_get_bucket(p, 0, 1, &b), MDOT_OK);
    assert_int_equal(b.max_length, FIXTURE_MAX_LENGTH);
    assert_int_equal(b.scratch_bytes, FIXTURE_MAX_LENGTH * FIXTURE_SCRATCH_BYTES_A_STEP);
    assert_int_equal(b.kernel_count, 2);
    mdot_kernel_info k = MDOT_INIT(mdot_kernel_info);
    assert_int_equal(mdot_predictor_get_kernel(p, 0, 1, 1, &k), MDOT_OK);
    assert_string_equal(k.name, "nest.about");
    assert_string_equal(k.kind, "nest");
    assert_compare(k.flops, ==, 0);
    for (size_t i = 0; i < FIXTURE_BUCKETS; i++) {
        assert_int_equal(mdot_predictor_get_kernel(p, 0, i, 0, &k), MDOT_OK);
        assert_compare(k.flops, ==, i == 0 ? 4 * 4 : 4 * FIXTURE_MAX_LENGTH);
    }
    mdot_predictor_close(p);
}

static void accessors_refuse_indices_beyond_the_counts(void **state)
{
    (void)state;
    fixture_skip_unless_v3();
    mdot_predictor *p = fixture_predictor(&fixture_shared);
    mdot_image_info image = MDOT_INIT(mdot_image_info);
    mdot_entry_info e = MDOT_INIT(mdot_entry_info);
    mdot_tensor_info t = MDOT_INIT(mdot_tensor_info);
    mdot_bucket_info b = MDOT_INIT(mdot_bucket_info);
    mdot_kernel_info k = MDOT_INIT(mdot_kernel_info);
    assert_int_equal(mdot_predictor_get_image(p, FIXTURE_LEVELS, &image), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_entry(p, 2, &e), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_input(p, 0, 3, &t), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_input(p, 2, 0, &t), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_output(p, 0, 2, &t), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_output(p, 2, 0, &t), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_bucket(p, 1, 1, &b), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_bucket(p, SIZE_MAX, 0, &b), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_kernel(p, 0, 0, 2, &k), MDOT_OUT_OF_RANGE);
    assert_int_equal(mdot_predictor_get_kernel(p, 0, 2, 0, &k), MDOT_OUT_OF_RANGE);
    mdot_predictor_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accessors_return_table_contents),
        cmocka_unit_test(accessors_refuse_indices_beyond_the_counts),
    };
    return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
