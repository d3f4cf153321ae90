/* test_string_pool.c — runtime/job/string_pool.c: a job stores each name once, and the job's memory grows in proportion
 * to the file. */
#include "runtime/job/job_model.h"
#include "tests/support/assertions.h"
#include "tests/support/job_file_fixture.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static size_t requested_bytes;

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    requested_bytes += bytes;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    requested_bytes += count * bytes;
    return __real_calloc(count, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    requested_bytes += bytes;
    return __real_realloc(old, bytes);
}

enum { OPERATORS = 20000, SHORT = 8, LONG = 100000 };

static char *make_name(size_t length, char letter)
{
    char *name = calloc(length + 1, 1);
    assert_non_null(name);
    memset(name, letter, length);
    return name;
}

/* All operators have the same `type` and `module`. Every second operator has them at another address. */
static mdot_job *make_job(const char *type, const char *module)
{
    char *types[] = {strdup(type), strdup(type)}, *modules[] = {strdup(module), strdup(module)};
    mdot_job_operator *operators = calloc(OPERATORS, sizeof *operators);
    assert_true(types[0]);
    assert_true(types[1]);
    assert_true(modules[0]);
    assert_true(modules[1]);
    assert_true(operators);
    for (size_t i = 0; i < OPERATORS; i++) {
        operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .parameters = 3};
        operators[i].type = types[i % 2];
        operators[i].module = modules[i % 2];
        operators[i].per_sample[MDOT_PHASE_FORWARD].flops = (double)(i + 1);
    }
    const mdot_job_description d = {
        .struct_size = sizeof d, .operators = operators, .operator_count = OPERATORS, .batch = 1};
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_create(&d, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (int i = 0; i < 2; i++) {
        free(types[i]);
        free(modules[i]);
    }
    free(operators);
    return job;
}

/* The bytes allocated to make, save, load and freeze such a job, and the file size. */
typedef struct requests {
    size_t make, save, load, freeze, file;
} requests;

static requests measure_requests(size_t length)
{
    char *type = make_name(length, 'T'), *module = make_name(length, 'm'), *folder = process_make_folder(), path[300];
    snprintf(path, sizeof path, "%s/names.job", folder);
    requests a;
    struct stat info;
    requested_bytes = 0;
    mdot_job *job = make_job(type, module), *loaded = NULL, *frozen = NULL;
    a.make = requested_bytes;
    requested_bytes = 0;
    assert_int_equal(mdot_job_save(job, path, NULL), MDOT_OK);
    a.save = requested_bytes;
    requested_bytes = 0;
    assert_int_equal(mdot_job_load(path, &loaded, NULL), MDOT_OK);
    a.load = requested_bytes;
    requested_bytes = 0;
    const char *pattern = "m*";
    const mdot_job_freezing f = {.struct_size = sizeof f, .frozen = &pattern, .frozen_count = 1};
    mdot_error err = {0};
    assert_int_equal(mdot_job_freeze(loaded, &f, &frozen, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "freeze every parameter"));
    a.freeze = requested_bytes;
    assert_int_equal(stat(path, &info), 0);
    a.file = (size_t)info.st_size;
    for (size_t i = 0; i < OPERATORS; i += OPERATORS / 4) {
        assert_string_equal(loaded->operators[i].type, type);
        assert_string_equal(loaded->operators[i].module, module);
    }
    mdot_job_destroy(job);
    mdot_job_destroy(loaded);
    process_remove_folder(folder);
    free(type);
    free(module);
    return a;
}

static void a_repeated_name_is_stored_once(void **state)
{
    (void)state;
    requests without = measure_requests(SHORT), with = measure_requests(LONG);
    enum { NAMES = 2 * LONG, COPIES = 16 };
    assert_in_range(with.file - without.file, NAMES - 64, NAMES + 64);
    assert_compare(with.make - without.make, <=, COPIES * NAMES);
    assert_compare(with.save - without.save, <=, COPIES * NAMES);
    assert_compare(with.load - without.load, <=, COPIES * NAMES);
    assert_compare(with.freeze - without.freeze, <=, COPIES * NAMES);
}

/* The memory per operator stated in mdot_job.h. */
static void an_operator_takes_the_documented_memory(void **state)
{
    (void)state;
    enum { KILOBYTE = 1024 };
    requests a = measure_requests(SHORT);
    assert_compare(a.load - a.file * (1 + sizeof(uint32_t)), <=, (size_t)2 * KILOBYTE * OPERATORS);
    assert_compare(a.load, >=, OPERATORS * sizeof(mdot_job_operator));
}

/* Short types and modules with few different letters. Many are equal but stand at different addresses, and some modules
 * are absent. */
static void equal_names_share_a_string_and_others_differ(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static char given[COUNT][2][4];
    static mdot_job_operator operators[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        snprintf(given[i][0], sizeof given[i][0], "%c%.*s", 'a' + i * 7 % 5, (int)(i % 3), "xyz");
        snprintf(given[i][1], sizeof given[i][1], "%.*s%c", (int)(i % 2), "b", 'a' + i * 11 % 13);
        operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .type = given[i][0]};
        operators[i].module = i % 7 == 0 ? NULL : i % 7 == 1 ? given[i][0] : i % 7 == 2 ? "" : given[i][1];
    }
    const mdot_job_description d = {
        .struct_size = sizeof d, .operators = operators, .operator_count = COUNT, .batch = 1};
    mdot_job *job = NULL;
    assert_int_equal(mdot_job_create(&d, &job, NULL), MDOT_OK);
    for (size_t i = 0; i < COUNT; i++) {
        assert_string_equal(job->operators[i].type, operators[i].type);
        if (operators[i].module == NULL) assert_null(job->operators[i].module);
        if (operators[i].module != NULL) assert_string_equal(job->operators[i].module, operators[i].module);
    }
    for (size_t i = 0; i < COUNT; i += 17) {
        for (size_t k = 0; k < COUNT; k++) {
            const char *x = job->operators[i].type, *y = job->operators[k].type, *z = job->operators[k].module;
            int letters = strcmp(x, y);
            assert_compare(letters < 0, ==, x < y);
            assert_compare(letters > 0, ==, x > y);
            if (z != NULL) assert_compare(strcmp(x, z) == 0, ==, x == z);
        }
    }
    mdot_job_destroy(job);
}

/* The test would not end if the analysis read all type letters for each operator. */
static void a_long_type_is_read_once_for_all_operators(void **state)
{
    (void)state;
    enum { LETTERS = 1 << 22, COUNT = 100000 };
    char *type = malloc(LETTERS + 1);
    mdot_job_operator *operators = calloc(COUNT, sizeof *operators);
    assert_non_null(type);
    assert_non_null(operators);
    memset(type, 'T', LETTERS);
    type[LETTERS] = '\0';
    for (size_t i = 0; i < COUNT; i++)
        operators[i] = (mdot_job_operator){.struct_size = sizeof *operators, .type = type, .parameters = 1};
    const mdot_job_description d = {
        .struct_size = sizeof d, .operators = operators, .operator_count = COUNT, .batch = 1};
    mdot_job *job = NULL;
    assert_int_equal(mdot_job_create(&d, &job, NULL), MDOT_OK);
    assert_int_equal(strlen(job->operators[COUNT - 1].type), LETTERS);
    mdot_job_destroy(job);
    free(operators);
    free(type);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeated_name_is_stored_once),
        cmocka_unit_test(an_operator_takes_the_documented_memory),
        cmocka_unit_test(equal_names_share_a_string_and_others_differ),
        cmocka_unit_test(a_long_type_is_read_once_for_all_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
