/* test_service_jobs.c — POST /v1/jobs: digests, options of the query, limits of the reading child, and memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <malloc.h>

#include "base/file.h"
#include "service/read_job.h"
#include "tests/service/support/service_fixture.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

static const char bert[] = MDOT_JOBS "/bert_base.onnx", resnet[] = MDOT_JOBS "/resnet50.onnx";

static unsigned char *read_all(const char *path, size_t *size)
{
    unsigned char *bytes = NULL;
    assert_int_equal(bs_read_file(path, &bytes, size, NULL), MDOT_OK);
    return bytes;
}

/* The test vectors of FIPS 180-4, and lengths around the ends of blocks. */
static void sha256_is_the_standard_one(void **state)
{
    (void)state;
    static const struct {
        const char *text, *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    char digest[SV_SHA256_TEXT];
    for (size_t i = 0; i < 3; i++) {
        sv_sha256(cases[i].text, strlen(cases[i].text), digest);
        assert_string_equal(digest, cases[i].digest);
    }
    char *million = malloc(1000000);
    assert_non_null(million);
    memset(million, 'a', 1000000);
    sv_sha256(million, 1000000, digest);
    assert_string_equal(digest, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    free(million);
}

/* A model and its `.job` file are one job, whose digest is that of the file. */
static void a_model_and_its_job_file_are_one_job(void **state)
{
    service_fixture *f = *state;
    process_result result;
    char digest[SV_SHA256_TEXT], *path = process_in_folder(f->folder, "bert.job");
    size_t size;
    process_run((const char *const[]){MDOT_CLI, "extract", bert, "--dim=sequence=128", "-o", path, NULL}, &result);
    assert_int_equal(result.status, 0);
    unsigned char *bytes = read_all(path, &size);
    sv_sha256(bytes, size, digest);
    assert_string_equal(digest, f->bert);
    service_job_of(service_ask_bytes(f, "/v1/jobs", "", bytes, size, 200), digest);
    assert_string_equal(digest, f->bert);
    assert_true(json_is_valid(f->text));
    free(bytes);
    free(path);
}

static void the_query_selects_dimensions_and_modules(void **state)
{
    service_fixture *f = *state;
    size_t size;
    char digest[SV_SHA256_TEXT];
    unsigned char *bytes = read_all(bert, &size);
    service_job_of(service_ask_bytes(f, "/v1/jobs", "dim=sequence=512", bytes, size, 200), digest);
    assert_string_not_equal(digest, f->bert);
    double frozen = 0;
    service_ask_bytes(f, "/v1/jobs", "dim=sequence%3d128&frozen=%2a", bytes, size, 200);
    assert_int_equal(json_numbers(f->text, "frozen_parameters", &frozen, 1), 1);
    assert_true(frozen > 1e8);
    expect_contains(service_ask_bytes(f, "/v1/jobs", "", bytes, size, 422), "'sequence'");
    static const char *const faults[] = {"dim",           "dim=%",     "dim=%2",          "dim=%zz",
                                         "dim=a%00b=1",   "name=x",    "dim=x=",          "dim=%0a=1",
                                         "output=/tmp/x", "dim=%ff=1", "path=/etc/passwd"};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        service_ask_bytes(f, "/v1/jobs", faults[i], bytes, size, 422);
    free(bytes);
}

/* Whatever the bytes are, the service answers and lives. */
static void rubbish_is_refused(void **state)
{
    service_fixture *f = *state;
    size_t size;
    unsigned char *bytes = read_all(resnet, &size);
    uint64_t random = 99;
    int before = process_count_files(f->folder);
    service_ask_bytes(f, "/v1/jobs", "", "", 0, 400);
    service_ask_bytes(f, "/v1/jobs", "", "not a job", 9, 400);
    service_ask_bytes(f, "/v1/jobs", "", bytes, size / 2, 400);
    for (int i = 0; i < 10; i++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        unsigned char *copy = malloc(size);
        assert_non_null(copy);
        memcpy(copy, bytes, size);
        for (int k = 0; k < 20; k++) copy[(random >> k) % size] ^= (unsigned char)(1 + k);
        const sv_request request = {
            .method = "POST", .path = "/v1/jobs", .query = "", .body = copy, .body_bytes = size};
        sv_answer answer;
        sv_handle(&f->state, &request, &answer);
        assert_true(answer.status == 200 || answer.status == 400 || answer.status == 422 || answer.status == 413);
        sv_answer_free(&answer);
        free(copy);
    }
    assert_int_equal(process_count_files(f->folder), before); /* the children leave nothing */
    free(bytes);
}

/* The reader stops at its limits, and says which. A job of many operators needs more than a little memory or time. */
static void the_reader_has_limits(void **state)
{
    service_fixture *f = *state;
    size_t size, count = 0;
    unsigned char *bytes = read_all(resnet, &size), *read = NULL;
    sv_read_text *text = calloc(1, sizeof *text);
    int before = process_count_files(f->folder);
    mdot_error err = {0};
    sv_reader_limits limits = f->state.reader;
    limits.program = "/nonexistent/mdotd";
    assert_int_equal(sv_read_job(&limits, bytes, size, NULL, 0, &read, &count, text, &err), MDOT_IO);
    limits.program = "/bin/cat"; /* another program's failure is no job */
    assert_int_equal(sv_read_job(&limits, bytes, size, NULL, 0, &read, &count, text, &err), MDOT_MALFORMED);
    limits.program = MDOT_SLEEPER;
    limits.seconds = 1;
    assert_int_equal(sv_read_job(&limits, bytes, size, NULL, 0, &read, &count, text, &err), MDOT_OUT_OF_RANGE);
    expect_contains(err.message, "--job-seconds");
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    limits = f->state.reader;
    limits.memory_mib = 64;
    unsigned char *large = calloc(1, (size_t)128 << 20);
    assert_non_null(large);
    memcpy(large, bytes, size);
    assert_int_equal(sv_read_job(&limits, large, (size_t)128 << 20, NULL, 0, &read, &count, text, &err),
                     MDOT_OUT_OF_RANGE);
    expect_contains(err.message, "--job-memory");
    free(large);
#endif
    assert_int_equal(process_count_files(f->folder), before);
    free(text);
    free(bytes);
}

/* Jobs make room by bytes, the least recently used first; held jobs stay alive; accounted bytes cover the memory. */
static void jobs_make_room_by_bytes(void **state)
{
    service_fixture *f = *state;
    enum { JOBS = 24 };
    const char *files[JOBS];
    unsigned char *bytes[JOBS];
    size_t sizes[JOBS];
    sv_model *model = sv_state_model(&f->state);
    sv_jobs *jobs = NULL;
    const sv_job *held = NULL;
    sv_encoding *encoding = NULL;
    assert_int_equal(sv_jobs_create((size_t)1 << 40, &jobs, NULL), MDOT_OK);
    for (int i = 0; i < JOBS; i++) {
        process_result result;
        char length[48], name[32];
        snprintf(length, sizeof length, "--dim=sequence=%d", 16 * (i + 1));
        snprintf(name, sizeof name, "job%d.job", i);
        char *path = process_in_folder(f->folder, name);
        process_run((const char *const[]){MDOT_CLI, "extract", bert, length, "-o", path, NULL}, &result);
        assert_int_equal(result.status, 0);
        files[i] = path;
        bytes[i] = read_all(path, &sizes[i]);
    }
    size_t before = mallinfo2().uordblks;
    mdot_context *context = sv_predictor_borrow(model->predictor);
    for (int i = 0; i < JOBS; i++) {
        assert_int_equal(sv_jobs_add(jobs, bytes[i], sizes[i], &held, NULL), MDOT_OK);
        assert_int_equal(sv_jobs_encode(jobs, held, model, false, context, &encoding, NULL), MDOT_OK);
        sv_encoding_release(jobs, encoding);
        sv_jobs_release(jobs, held);
    }
    size_t used = mallinfo2().uordblks - before;
    sv_jobs_count all = sv_jobs_get_count(jobs);
    assert_int_equal(all.jobs, JOBS);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    assert_in_range(used, all.bytes / 20, all.bytes);
#else
    (void)used;
#endif
    sv_jobs_destroy(jobs);
    assert_int_equal(sv_jobs_create(all.bytes / JOBS * 4, &jobs, NULL), MDOT_OK);
    char first[SV_SHA256_TEXT];
    sv_sha256(bytes[0], sizes[0], first);
    const sv_job *again = NULL, *other = NULL;
    assert_int_equal(sv_jobs_add(jobs, bytes[0], sizes[0], &held, NULL), MDOT_OK);
    for (int i = 1; i < JOBS; i++) {
        assert_int_equal(sv_jobs_add(jobs, bytes[i], sizes[i], &other, NULL), MDOT_OK);
        sv_jobs_release(jobs, other);
        assert_true(sv_jobs_get_count(jobs).bytes <= all.bytes / JOBS * 4);
        if (i == 2) { /* used again, the first one outlives the second */
            assert_int_equal(sv_jobs_find(jobs, first, &again, NULL), MDOT_OK);
            sv_jobs_release(jobs, again);
        }
        if (i == 4) {
            char second[SV_SHA256_TEXT];
            sv_sha256(bytes[1], sizes[1], second);
            assert_int_equal(sv_jobs_find(jobs, second, &again, NULL), MDOT_NOT_FOUND);
        }
    }
    assert_int_equal(sv_jobs_find(jobs, first, &again, NULL), MDOT_NOT_FOUND);
    assert_string_equal(held->digest, first); /* evicted, and still held */
    assert_int_equal(sv_jobs_encode(jobs, held, model, false, context, &encoding, NULL), MDOT_OK);
    sv_encoding_release(jobs, encoding);
    sv_jobs_release(jobs, held);
    sv_jobs_destroy(jobs);
    assert_int_equal(sv_jobs_create(1000, &jobs, NULL), MDOT_OK);
    assert_int_equal(sv_jobs_add(jobs, bytes[0], sizes[0], &held, NULL), MDOT_OUT_OF_RANGE);
    sv_jobs_destroy(jobs);
    sv_predictor_return(model->predictor, context);
    sv_model_release(model);
    for (int i = 0; i < JOBS; i++) {
        free((char *)files[i]);
        free(bytes[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sha256_is_the_standard_one),
        cmocka_unit_test(a_model_and_its_job_file_are_one_job),
        cmocka_unit_test(the_query_selects_dimensions_and_modules),
        cmocka_unit_test(rubbish_is_refused),
        cmocka_unit_test(the_reader_has_limits),
        cmocka_unit_test(jobs_make_room_by_bytes),
    };
    return cmocka_run_group_tests_name("jobs", tests, service_set_up, service_tear_down);
}
