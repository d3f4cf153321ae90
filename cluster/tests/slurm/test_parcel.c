/* test_parcel.c — the transport of a job: base64, pieces, limits, and forged content. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "slurm/request.h"
#include "tests/slurm/support/strict_calls.h"
#include "tests/support/process.h"

enum { VARIABLES = SL_PIECE_COUNT + 2 };

/* The environment variables that carry `bytes`. */
typedef struct environment {
    char *variables[VARIABLES];
    size_t count;
} environment;

static environment pack(const unsigned char *bytes, size_t count)
{
    environment e = {.variables = {strdup("SPANK_MDOT_SETTINGS=batch=8")}, .count = 1};
    char name[SL_PIECE_NAME_BYTES], *text;
    for (size_t i = 0; sl_parcel_piece(bytes, count, i, name, &text); i++) {
        assert_non_null(text);
        assert_true(strlen(text) < 128 * 1024 - 64); /* Linux's MAX_ARG_STRLEN, including the name */
        assert_true(asprintf(&e.variables[e.count++], "SPANK_%s=%s", name, text) > 0);
        free(text);
    }
    return e;
}

static void free_environment(environment *e)
{
    for (size_t i = 0; i < e->count; i++) free(e->variables[i]);
}

static mdot_status open_all(const environment *e, size_t maximum, sl_parcel *out, mdot_error *err)
{
    return sl_parcel_open((const char *const *)e->variables, e->count, maximum, out, err);
}

static void jobs_of_any_size_round_trip(void **state)
{
    (void)state;
    static const size_t sizes[] = {
        1, 2, 3, 4, 1000, SL_PIECE_BYTES - 1, SL_PIECE_BYTES, SL_PIECE_BYTES + 1, SL_MAX_JOB_BYTES};
    unsigned char *bytes = malloc(SL_MAX_JOB_BYTES);
    assert_non_null(bytes);
    for (size_t i = 0; i < SL_MAX_JOB_BYTES; i++) bytes[i] = (unsigned char)(i * 2654435761u >> 13);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        environment e = pack(bytes, sizes[i]);
        sl_parcel parcel;
        mdot_error err = {0};
        assert_int_equal(open_all(&e, sizes[i], &parcel, &err), MDOT_OK);
        assert_string_equal(parcel.settings, "batch=8");
        assert_null(parcel.problem);
        assert_int_equal(parcel.job_bytes, sizes[i]);
        assert_memory_equal(parcel.job, bytes, sizes[i]);
        sl_parcel_close(&parcel);
        assert_int_equal(open_all(&e, sizes[i] - 1, &parcel, &err), MDOT_OUT_OF_RANGE);
        free_environment(&e);
    }
    free(bytes);
}

static void base64_follows_rfc_4648(void **state)
{
    (void)state;
    /* the test vectors of section 10 */
    static const char *const vectors[][2] = {{"f", "Zg=="},        {"fo", "Zm8="},        {"foo", "Zm9v"},
                                             {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};
    char text[16];
    unsigned char bytes[16];
    for (size_t i = 0; i < 6; i++) {
        size_t length = strlen(vectors[i][0]), count;
        sl_base64_write((const unsigned char *)vectors[i][0], length, text);
        assert_string_equal(text, vectors[i][1]);
        assert_int_equal(sl_base64_text_bytes(length), strlen(text) + 1);
        assert_true(sl_base64_read(text, strlen(text), bytes, &count));
        assert_int_equal(count, length);
        assert_memory_equal(bytes, vectors[i][0], length);
    }
    static const char *const wrong[] = {
        "Zg=", "Zg", "Zg==Zg==", "Z===", "====", "Zh==", "Zm9=", "Zm 9", "Zm\n9", "Zm-_"};
    size_t count;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(sl_base64_read(wrong[i], strlen(wrong[i]), bytes, &count));
}

static mdot_status open_texts(const char *const *texts, size_t count, sl_parcel *out, mdot_error *err)
{
    return sl_parcel_open(texts, count, 1000, out, err);
}

static void malformed_texts_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *texts[3];
        mdot_status status;
        const char *reason;
    } cases[] = {{{"MDOT_JOB_1=", "A=b", NULL}, MDOT_MALFORMED, "empty"},
                 {{"MDOT_JOB_1=QUJ", "A=b", NULL}, MDOT_MALFORMED, "not valid base64"},
                 {{"MDOT_JOB_1=QUJD", "MDOT_JOB_2=QUJD", NULL}, MDOT_MALFORMED, "piece 1 of the job is truncated"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_parcel parcel = {.job_bytes = 7};
        mdot_error err = {0};
        assert_int_equal(open_texts(cases[i].texts, 3, &parcel, &err), cases[i].status);
        expect_contains(err.message, cases[i].reason);
        assert_int_equal(parcel.job_bytes, 7);
    }
}

static void memory_that_runs_out_is_reported(void **state)
{
    (void)state;
    const char *const texts[] = {"MDOT_JOB_1=QUJD"};
    sl_parcel parcel = {.job_bytes = 7};
    mdot_error err = {0};
    fail_allocation_after(0);
    mdot_status status = open_texts(texts, 1, &parcel, &err);
    assert_int_equal(has_failed_allocation(), 1);
    assert_int_equal(status, MDOT_OUT_OF_MEMORY);
    assert_int_equal(parcel.job_bytes, 7);
    assert_int_equal(open_texts(texts, 1, &parcel, &err), MDOT_OK);
    assert_int_equal(parcel.job_bytes, 3);
    sl_parcel_close(&parcel);
}

static void an_oversized_text_is_refused(void **state)
{
    (void)state;
    size_t length = 32 << 20;
    char *text = malloc(length + 1);
    assert_non_null(text);
    memset(text, 'A', length);
    memcpy(text, "MDOT_JOB_1=", 11);
    text[length] = '\0';
    const char *texts[] = {text};
    sl_parcel parcel;
    assert_int_equal(sl_parcel_open(texts, 1, SL_MAX_JOB_BYTES, &parcel, NULL), MDOT_OUT_OF_RANGE);
    free(text);
}

static void parcels_are_found_among_other_variables(void **state)
{
    (void)state;
    const char *const none[] = {"PATH=/bin", NULL, "", "MDOTS=1", "SPANK_PATH=MDOT_JOB_1=QUJD"};
    const char *const some[] = {"PATH=/bin", NULL, "SPANK_MDOT_PROBLEM=no file"};
    assert_false(sl_parcel_is_in(none, 5));
    assert_false(sl_parcel_is_in(NULL, 0));
    assert_true(sl_parcel_is_in(some, 3));
    sl_parcel parcel;
    assert_int_equal(open_texts(none, 5, &parcel, NULL), MDOT_OK);
    assert_null(parcel.job);
    assert_null(parcel.settings);
    assert_null(parcel.problem);
    assert_int_equal(open_texts(some, 3, &parcel, NULL), MDOT_OK);
    assert_string_equal(parcel.problem, "no file");
    assert_true(sl_parcel_owns("SPANK_MDOT_X=1"));
    assert_true(sl_parcel_owns("MDOT_JOB_1=A"));
    assert_false(sl_parcel_owns("SPANK_PATH=1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_of_any_size_round_trip),  cmocka_unit_test(base64_follows_rfc_4648),
        cmocka_unit_test(malformed_texts_are_refused),  cmocka_unit_test(memory_that_runs_out_is_reported),
        cmocka_unit_test(an_oversized_text_is_refused), cmocka_unit_test(parcels_are_found_among_other_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
