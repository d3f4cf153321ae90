/* test_struct_version.c — growing structs: arguments and results of older and newer programs, and refusals. */
#include "base/struct_version.h"
#include "mdot/mdotc.h"
#include "mdot/mdotjob.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* One struct as three versions define it. The library has the middle version. */
typedef struct old {
    size_t struct_size;
    int64_t a;
} old;
typedef struct now {
    size_t struct_size;
    int64_t a, b;
} now;
typedef struct later {
    size_t struct_size;
    int64_t a, b, c;
} later;
static const bs_struct_version type = BS_SIZED(now, a);

static void struct_of_this_version_is_copied(void **state)
{
    (void)state;
    const now theirs = {sizeof theirs, 1, 2};
    now mine;
    assert_int_equal(bs_read_struct(&type, &theirs, &mine, NULL), MDOT_OK);
    assert_memory_equal(&mine, &theirs, sizeof mine);
}

static void fields_that_an_older_program_lacks_are_zero(void **state)
{
    (void)state;
    const struct {
        old o;
        int64_t behind;
    } theirs = {{sizeof(old), 1}, 7};
    now mine = {9, 9, 9};
    assert_int_equal(bs_read_struct(&type, &theirs, &mine, NULL), MDOT_OK);
    assert_int_equal(mine.struct_size, sizeof mine);
    assert_int_equal(mine.a, 1);
    assert_int_equal(mine.b, 0);
}

static void later_fields_must_be_zero(void **state)
{
    (void)state;
    later theirs = {sizeof theirs, 1, 2, 0};
    now mine = {0};
    assert_int_equal(bs_read_struct(&type, &theirs, &mine, NULL), MDOT_OK);
    assert_int_equal(mine.b, 2);
    assert_int_equal(mine.struct_size, sizeof mine);
    for (size_t at = 0; at < sizeof theirs.c; at++) {
        now untouched = {9, 9, 9};
        mdot_error err = {0};
        theirs.c = (int64_t)1 << 8 * at;
        assert_int_equal(bs_read_struct(&type, &theirs, &untouched, &err), MDOT_INCOMPATIBLE);
        assert_non_null(strstr(err.message, "a now of 32 bytes sets fields that mdot " MDOT_VERSION_STRING));
        assert_int_equal(untouched.a, 9);
    }
}

static void invalid_size_is_refused_by_name(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        0, 1, sizeof(old) - 1, sizeof(now) + 1, sizeof(now) + 4, BS_STRUCT_MAX_BYTES + 8, SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        now theirs = {sizes[i], 1, 2}, mine = {9, 9, 9};
        mdot_error err = {0};
        assert_int_equal(bs_read_struct(&type, &theirs, &mine, &err), MDOT_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "the struct_size of a now is "));
        assert_int_equal(mine.a, 9);
        assert_int_equal(bs_fill_struct(&type, &mine, &theirs, &err), MDOT_INVALID_ARGUMENT);
        assert_int_equal(theirs.a, 1);
    }
    mdot_error err = {0};
    assert_int_equal(bs_check_struct(&type, NULL, &err), MDOT_INVALID_ARGUMENT);
    assert_string_equal(err.message, "a now is missing");
}

static void results_fill_the_callers_struct_size(void **state)
{
    (void)state;
    const now mine = {sizeof mine, 1, 2};
    struct {
        old o;
        int64_t behind;
    } older = {{sizeof(old), 9}, 7};
    later newer = {sizeof newer, 9, 9, 9};
    assert_int_equal(bs_fill_struct(&type, &mine, &older, NULL), MDOT_OK);
    assert_int_equal(older.o.struct_size, sizeof(old));
    assert_int_equal(older.o.a, 1);
    assert_int_equal(older.behind, 7);
    assert_int_equal(bs_fill_struct(&type, &mine, &newer, NULL), MDOT_OK);
    assert_int_equal(newer.struct_size, sizeof newer);
    assert_int_equal(newer.b, 2);
    assert_int_equal(newer.c, 0);
}

static void elements_have_the_callers_stride(void **state)
{
    (void)state;
    later theirs[3] = {{sizeof(later), 1, 2, 0}, {sizeof(later), 3, 4, 0}, {sizeof(later), 5, 6, 7}};
    now mine;
    assert_int_equal(bs_read_element(&type, theirs, 1, &mine, NULL), MDOT_OK);
    assert_int_equal(mine.a, 3);
    assert_int_equal(bs_read_element(&type, theirs, 2, &mine, NULL), MDOT_INCOMPATIBLE);
    theirs[2] = (later){sizeof(now), 5, 6, 0};
    mdot_error err = {0};
    assert_int_equal(bs_read_element(&type, theirs, 2, &mine, &err), MDOT_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the struct_size of now 2 of an array is 24, but that of the first one is 32");
}

/* Later fields begin at the end of these structs. If a struct had padding there, an older program would leave
 * undefined bytes in it. */
#define ENDS_WITH(type, last)                                                                                          \
    _Static_assert(sizeof(type) == offsetof(type, last) + sizeof(((type *)NULL)->last),                                \
                   #type " has padding behind " #last ": fill it with a field that is reserved, or order fields anew")
ENDS_WITH(mdot_open_options, kernel_precision);
ENDS_WITH(mdot_predictor_info, reserved);
ENDS_WITH(mdot_entry_info, items_together);
ENDS_WITH(mdot_tensor_info, floor);
ENDS_WITH(mdot_bucket_info, kernel_count);
ENDS_WITH(mdot_kernel_info, step);
ENDS_WITH(mdot_image_info, weights_bytes);
ENDS_WITH(mdot_image_kernel_info, code_bytes);
ENDS_WITH(mdot_job_operator, batch_settings);
ENDS_WITH(mdot_job_description, reserved);
ENDS_WITH(mdot_job_freezing, trained_count);
ENDS_WITH(mdot_job_info, length_name);
ENDS_WITH(mdot_gpu, fp8_tflops);
ENDS_WITH(mdot_configuration, pipeline_blocks);
ENDS_WITH(mdot_prediction, loader_ms);
ENDS_WITH(mdot_calibration_info, job_count);
ENDS_WITH(mdot_calibration_gpu, half_interval);
ENDS_WITH(mdot_calibration_factors, carried_factor);
ENDS_WITH(mdot_measurement, place);
ENDS_WITH(mdot_explanation_info, data_ms);
ENDS_WITH(mdot_operator_time, activation_bytes);
ENDS_WITH(mdot_job_adapters, target_count);
ENDS_WITH(mdot_job_options, adapters);
ENDS_WITH(mdotc_entry, model_path);
ENDS_WITH(mdotc_options, min_length);
ENDS_WITH(mdotc_verify_row, bound);
ENDS_WITH(mdotc_verify_options, job_count);
ENDS_WITH(mdotc_check_options, absolute_tolerance);
ENDS_WITH(mdotc_check_report, detail);

static void libraries_report_the_version_of_their_headers(void **state)
{
    (void)state;
    assert_string_equal(MDOT_VERSION_STRING, MDOT_PROJECT_VERSION);
    char numbers[32];
    snprintf(numbers, sizeof numbers, "%d.%d.%d", MDOT_VERSION_MAJOR, MDOT_VERSION_MINOR, MDOT_VERSION_PATCH);
    assert_string_equal(numbers, MDOT_VERSION_STRING);
    assert_int_equal(MDOT_VERSION_NUMBER,
                     1000000 * MDOT_VERSION_MAJOR + 1000 * MDOT_VERSION_MINOR + MDOT_VERSION_PATCH);
    assert_string_equal(mdot_version(), MDOT_VERSION_STRING);
    assert_string_equal(mdotjob_version(), MDOT_VERSION_STRING);
    assert_string_equal(mdotc_version(), MDOT_VERSION_STRING);
    assert_int_equal(mdot_version_number(), MDOT_VERSION_NUMBER);
    assert_int_equal(mdotjob_version_number(), MDOT_VERSION_NUMBER);
    assert_int_equal(mdotc_version_number(), MDOT_VERSION_NUMBER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(struct_of_this_version_is_copied),
        cmocka_unit_test(fields_that_an_older_program_lacks_are_zero),
        cmocka_unit_test(later_fields_must_be_zero),
        cmocka_unit_test(invalid_size_is_refused_by_name),
        cmocka_unit_test(results_fill_the_callers_struct_size),
        cmocka_unit_test(elements_have_the_callers_stride),
        cmocka_unit_test(libraries_report_the_version_of_their_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
