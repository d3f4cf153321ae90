/* test_job_faults.c — runtime/job: each allocation in each call that makes, reads, writes or changes jobs fails once
 * (tests/fault/inject.c). The call then returns OUT_OF_MEMORY with a message, releases all memory, and makes neither a
 * job nor a file.
 *
 * The jobs have a special analyzer, so its failures are tested, too. */
#include "runtime/job/job_file.h"
#include "runtime/job/job_model.h"
#include "tests/fault/inject.h"
#include "tests/support/assertions.h"
#include "tests/support/job_file_fixture.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#ifdef MDOT_SANITIZED
int main(void)
{
    print_message("skipped: a sanitizer has a malloc of its own\n");
    return 77;
}
#else

enum { MAX_FILE_BYTES = 4096, LONG_NAME = 600 };

static rt_analysis *analyze(const mdot_job *job)
{
    double *parameters = malloc(sizeof *parameters);
    if (parameters != NULL) *parameters = job->info.parameters;
    return (rt_analysis *)parameters;
}

static void forget(rt_analysis *analysis) { free(analysis); }

static double activation_bytes(const rt_analysis *analysis, mdot_precision precision, mdot_attention attention,
                               mdot_recompute recompute)
{
    (void)precision, (void)attention, (void)recompute;
    return *(const double *)analysis;
}

static const rt_job_analyzer analyzer = {analyze, forget, activation_bytes};
static const rt_components components = {.analyzer = &analyzer};

static char *folder, path[300], long_name[LONG_NAME + 1];
static mdot_job_operator operators[JOB_FILE_OPERATORS];
static mdot_job_description description;
static mdot_job *plain, *with_program;
static unsigned char bytes[MAX_FILE_BYTES];
static size_t size;

static const mdot_peak_moment moments[MDOT_PEAK_MOMENTS_MAX] = {{.per_sample = 4096, .per_step = 1 << 20},
                                                                {.per_sample = 1}};
static const mdot_recorded_memory records[] = {
    {.precision = MDOT_PRECISION_FP32, .moment_count = MDOT_PEAK_MOMENTS_MAX, .moments = moments},
    {.precision = MDOT_PRECISION_AMP, .moment_count = MDOT_PEAK_MOMENTS_MAX, .moments = moments},
    {.precision = MDOT_PRECISION_BF16, .moment_count = MDOT_PEAK_MOMENTS_MAX, .moments = moments}};
static const mdot_job_program program = {.struct_size = sizeof program,
                                         .precision = MDOT_PRECISION_PYTORCH,
                                         .trained_bytes = 6912,
                                         .recorded_count = 3,
                                         .recorded = records};
static const char *const head = "encoder.layer";
static const mdot_job_freezing freezing = {.struct_size = sizeof freezing, .frozen = &head, .frozen_count = 1};

static int set_up(void **state)
{
    (void)state;
    folder = process_make_folder();
    snprintf(path, sizeof path, "%s/net.job", folder);
    memset(long_name, 'n', LONG_NAME);
    description = job_file_describe(operators);
    operators[2].type = long_name;
    operators[0].module = long_name;
    operators[1].parameters = 5184;
    if (rt_job_create(&components, &description, &plain, NULL) != MDOT_OK) return -1;
    if (rt_job_with_program(&components, plain, &program, &with_program, NULL) != MDOT_OK) return -1;
    if (mdot_job_save(with_program, path, NULL) != MDOT_OK) return -1;
    FILE *file = fopen(path, "rb");
    if (file == NULL) return -1;
    size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    return size > 2 * LONG_NAME && size < sizeof bytes ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    mdot_job_destroy(plain);
    mdot_job_destroy(with_program);
    process_remove_folder(folder);
    return 0;
}

typedef mdot_status (*scenario)(mdot_job **out_job, mdot_error *err);

static mdot_status save(mdot_job **out_job, mdot_error *err)
{
    (void)out_job;
    return mdot_job_save(with_program, path, err);
}

/* If only the check for a device folder lacks memory, saving goes on. */
static void expect_whole_file(void)
{
    unsigned char got[MAX_FILE_BYTES];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(got, 1, sizeof got, file), size);
    fclose(file);
    assert_memory_equal(got, bytes, size);
}

/* Runs the scenario with each allocation failing once. There must be at least `least`. */
static void fail_each(scenario s, long least)
{
    const int files = process_count_files(folder);
    mdot_job *job = NULL;
    mdot_error err = {0};
    const long before = inject_get_held().memory;
    inject_arm("memory", 0);
    mdot_status status = s(&job, &err);
    const long calls = inject_disarm();
    mdot_job_destroy(job);
    if (status != MDOT_OK) fail_msg("%s", err.message);
    assert_int_equal(inject_get_held().memory, before);
    assert_compare(calls, >=, least);
    for (long at = 1; at <= calls; at++) {
        job = NULL;
        err = (mdot_error){0};
        inject_arm("memory", at);
        status = s(&job, at % 2 == 0 ? NULL : &err);
        inject_disarm();
        if (status == MDOT_OK && s == save)
            expect_whole_file();
        else if (status != MDOT_OUT_OF_MEMORY)
            fail_msg("allocation %ld: status %d", at, (int)status);
        if (status != MDOT_OK && at % 2 != 0 && (err.status != status || strstr(err.message, "memory") == NULL))
            fail_msg("allocation %ld: the message is \"%s\"", at, err.message);
        assert_null(job);
        if (inject_get_held().memory != before) fail_msg("allocation %ld: memory is kept", at);
        assert_int_equal(process_count_files(folder), files);
    }
}

static mdot_status create(mdot_job **out_job, mdot_error *err)
{
    return rt_job_create(&components, &description, out_job, err);
}

static mdot_status parse(mdot_job **out_job, mdot_error *err)
{
    return rt_job_parse(&components, bytes, size, out_job, err);
}

static mdot_status load(mdot_job **out_job, mdot_error *err) { return rt_job_load(&components, path, out_job, err); }

static mdot_status add_program(mdot_job **out_job, mdot_error *err)
{
    return rt_job_with_program(&components, plain, &program, out_job, err);
}

static mdot_status freeze_plain(mdot_job **out_job, mdot_error *err)
{
    return rt_job_freeze(&components, plain, &freezing, out_job, err);
}

static mdot_status freeze_with_program(mdot_job **out_job, mdot_error *err)
{
    return rt_job_freeze(&components, with_program, &freezing, out_job, err);
}

static mdot_status freeze_operators(mdot_job **out_job, mdot_error *err)
{
    (void)out_job;
    mdot_job_operator copy[JOB_FILE_OPERATORS];
    memcpy(copy, operators, sizeof copy);
    mdot_status status = mdot_operators_freeze(&freezing, copy, JOB_FILE_OPERATORS, err);
    assert_int_equal(memcmp(copy, operators, sizeof copy) != 0, status == MDOT_OK);
    return status;
}

static void jobs_are_made_or_memory_is_released(void **state)
{
    (void)state;
    fail_each(create, 10);
    fail_each(add_program, 10);
}

static void files_are_written_and_read_or_memory_is_released(void **state)
{
    (void)state;
    fail_each(save, 12);
    fail_each(parse, 16);
    fail_each(load, 17);
}

static void jobs_are_frozen_or_memory_is_released(void **state)
{
    (void)state;
    fail_each(freeze_plain, 10);
    fail_each(freeze_with_program, 11);
    fail_each(freeze_operators, 3);
}

static mdot_status compare_blocks(mdot_job **out_job, mdot_error *err)
{
    (void)out_job;
    mdot_job_operator copy[JOB_FILE_OPERATORS];
    memcpy(copy, operators, sizeof copy);
    if (rt_compare_blocks(copy, JOB_FILE_OPERATORS, 2)) return MDOT_OK;
    return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory");
}

static mdot_status pool_strings(mdot_job **out_job, mdot_error *err)
{
    (void)out_job;
    mdot_job_operator copy[JOB_FILE_OPERATORS];
    memcpy(copy, operators, sizeof copy);
    rt_string_pool pool = {0};
    bool is_made = rt_pool_strings(copy, JOB_FILE_OPERATORS, &pool);
    free(pool.chars);
    return is_made ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory");
}

/* More strings than the pool's first table has room for. */
static mdot_status pool_many_strings(mdot_job **out_job, mdot_error *err)
{
    (void)out_job;
    enum { COUNT = 80 };
    static mdot_job_operator many[COUNT];
    static char names[COUNT][4];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        many[i] = (mdot_job_operator){.struct_size = sizeof *many, .type = names[i]};
    }
    rt_string_pool pool = {0};
    bool is_made = rt_pool_strings(many, COUNT, &pool);
    free(pool.chars);
    return is_made ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory");
}

static mdot_status copy_program(mdot_job **out_job, mdot_error *err)
{
    (void)out_job;
    rt_program *copy = rt_program_copy(with_program->program);
    bool is_made = copy != NULL;
    free(copy);
    return is_made ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory");
}

static mdot_status put_program(mdot_job **out_job, mdot_error *err)
{
    (void)out_job;
    rt_writer w = {0};
    rt_put_program(&w, with_program->program);
    free(w.bytes);
    return w.failed ? mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory") : MDOT_OK;
}

static void parts_report_that_memory_ran_out(void **state)
{
    (void)state;
    fail_each(compare_blocks, 4);
    fail_each(pool_strings, 4);
    fail_each(pool_many_strings, 8);
    fail_each(copy_program, 1);
    fail_each(put_program, 2);
}

/* If memory runs out for a text copy, the reader remains valid, because the file itself is sound. */
static void a_text_without_memory_does_not_fail_its_reader(void **state)
{
    (void)state;
    static const unsigned char text[] = {2, 'a', 'b'};
    rt_reader r = {.at = text, .end = text + sizeof text};
    inject_arm("memory", 1);
    char *copy = rt_get_text(&r);
    inject_disarm();
    assert_null(copy);
    assert_false(r.failed);
}

/* A writer without memory keeps the written bytes. */
static void a_writer_without_memory_fails_for_good(void **state)
{
    (void)state;
    static const char more[1 << 16]; /* more than a writer's first block */
    rt_writer w = {0};
    rt_put_text(&w, "kept");
    const size_t kept = w.size;
    inject_arm("memory", 1);
    rt_put_bytes(&w, more, sizeof more);
    inject_disarm();
    assert_true(w.failed);
    assert_int_equal(w.size, kept);
    assert_memory_equal(w.bytes, "\4kept", kept);
    rt_put(&w, 7);
    assert_true(w.failed);
    free(w.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(jobs_are_made_or_memory_is_released),
        cmocka_unit_test(files_are_written_and_read_or_memory_is_released),
        cmocka_unit_test(jobs_are_frozen_or_memory_is_released),
        cmocka_unit_test(parts_report_that_memory_ran_out),
        cmocka_unit_test(a_text_without_memory_does_not_fail_its_reader),
        cmocka_unit_test(a_writer_without_memory_fails_for_good),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
#endif
