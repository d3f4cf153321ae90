/* test_job_file_1.c — runtime/job/job_file_1.c: `.job` files of version 1, as mdot 0.1 wrote them. */
#include "mdot/mdotjob.h"
#include "tests/support/job_file_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* The job of this test as mdot 0.1 wrote it, without the fields that version 1 lacks. */
static const unsigned char version_1[] = {
    0x4d, 0x44, 0x4f, 0x54, 0x4a, 0x4f, 0x42, 0x00, 0x01, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x76,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0xc6, 0x7c, 0x8f, 0x3d, 0x8d, 0x57, 0xd9, 0x71, 0x08, 0x03,
    0x04, 0x04, 0x43, 0x6f, 0x6e, 0x76, 0x04, 0x52, 0x65, 0x6c, 0x75, 0x11, 0x63, 0x6f, 0x6d, 0x2e, 0x65,
    0x78, 0x61, 0x6d, 0x70, 0x6c, 0x65, 0x3a, 0x46, 0x61, 0x6e, 0x63, 0x79, 0x03, 0x41, 0x64, 0x64, 0x01,
    0xc0, 0x0d, 0x82, 0x04, 0x06, 0x03, 0x87, 0x80, 0x08, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10,
    0x80, 0xe0, 0x24, 0x80, 0x80, 0xc4, 0x01, 0x80, 0x36, 0x00, 0x03, 0x00, 0x00, 0x00, 0x01, 0x01, 0x04,
    0x00, 0x00, 0x00, 0x01, 0x02, 0x07, 0x00, 0x80, 0x80, 0x80, 0x08, 0x04, 0x00, 0x02, 0x02, 0x01};

/* The operator traits follow from the names of the types. */
static void files_of_version_1_are_read(void **state)
{
    (void)state;
    mdot_job_operator operators[4];
    mdot_job_description d = job_file_describe(operators);
    for (int i = 0; i < 4; i++) {
        operators[i].traits = (mdot_operator_traits){0};
        operators[i].block = 0;
        operators[i].module = NULL;
        if (operators[i].known) mdot_operator_traits_find(operators[i].type, &operators[i].traits);
        /* version 1 had a single value for saved tensors */
        operators[i].traits.saved_written = operators[i].traits.saved_recomputed = operators[i].traits.saved_fused;
    }
    mdot_job *job = job_file_create(&d), *old = NULL;
    mdot_error err = {0};
    if (job_file_parse(version_1, sizeof version_1, &old, &err) != MDOT_OK) fail_msg("%s", err.message);
    job_file_expect_same(job, old);
    mdot_job_destroy(old);
    mdot_job_destroy(job);
    for (size_t size = JOB_FILE_HEADER_BYTES; size < sizeof version_1; size++) {
        unsigned char bytes[sizeof version_1];
        memcpy(bytes, version_1, size);
        job_file_sign(bytes, size);
        job_file_expect_fault(bytes, size, MDOT_MALFORMED);
    }
}

/* For each type, the traits in a version 1 file equal those in the current table. */
static void types_of_version_1_are_those_of_the_table(void **state)
{
    (void)state;
    static const struct {
        const char *name, *autocast;
    } rows[] = {
#define TYPE_1(name, autocast, ...) {name, #autocast},
#include "runtime/job/job_types_1.def"
#undef TYPE_1
    };
    static const char *const classes[] = {"WIDEST", "HALF", "FULL", "DATA"};
    for (uint32_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        mdot_operator_traits traits;
        assert_int_equal(mdot_operator_traits_find(rows[i].name, &traits), MDOT_OK);
        if (traits.number != i + 1) fail_msg("%s had number %u", rows[i].name, (unsigned)i + 1);
        assert_string_equal(rows[i].autocast, classes[traits.autocast]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_of_version_1_are_read),
        cmocka_unit_test(types_of_version_1_are_those_of_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
