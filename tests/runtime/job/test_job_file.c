/* test_job_file.c — runtime/job/job.c and job_file.c: jobs in memory and in `.job` files, whole and damaged. */
#include "mdot/mdot.h"
#include "mdot/mdot_abi.h"
#include "tests/support/process.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* ---- A job of a fork and a join --------------------------------------------------------------------------------- */

static const uint32_t first[] = {0}, both[] = {1, 2};

static mdot_job_description describe(mdot_job_operator operators[4])
{
    memset(operators, 0, 4 * sizeof *operators);
    operators[0] = (mdot_job_operator){
        .struct_size = sizeof(mdot_job_operator), .type = "Conv", .known = true, .parameters = 1728};
    operators[0].setting[MDOT_SETTING_KERNEL_H] = 3;
    operators[0].setting[MDOT_SETTING_PADDING_W] = -2;
    operators[0].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){9007199254740992.0, 602112, 3211264};
    operators[0].per_step[MDOT_PHASE_WEIGHT_GRADIENT].bytes_written = 6912;
    operators[1] = (mdot_job_operator){
        .struct_size = sizeof(mdot_job_operator), .type = "Relu", .known = true, .inputs = first, .input_count = 1};
    operators[2] = (mdot_job_operator){
        .struct_size = sizeof(mdot_job_operator), .type = "com.example:Fancy", .inputs = first, .input_count = 1};
    operators[3] = (mdot_job_operator){
        .struct_size = sizeof(mdot_job_operator), .type = "Add", .known = true, .inputs = both, .input_count = 2};
    operators[3].setting[MDOT_SETTING_INPUTS] = 2;
    return (mdot_job_description){.struct_size = sizeof(mdot_job_description),
                                  .operators = operators,
                                  .operator_count = 4,
                                  .batch = 8,
                                  .has_optimizer = true,
                                  .optimizer = MDOT_OPTIMIZER_ADAMW};
}

static mdot_job *make_job(void)
{
    mdot_job_operator operators[4];
    mdot_job_description description = describe(operators);
    mdot_job *job = NULL;
    mdot_error err = {0};
    if (mdot_job_create(&description, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

static void expect_same(const mdot_job *a, const mdot_job *b)
{
    mdot_job_info x = MDOT_INIT(mdot_job_info), y = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(a, &x);
    mdot_job_get_info(b, &y);
    assert_int_equal(x.operator_count, y.operator_count);
    assert_int_equal(x.unknown_count, y.unknown_count);
    assert_int_equal(x.batch, y.batch);
    assert_int_equal(x.has_optimizer, y.has_optimizer);
    assert_int_equal(x.optimizer, y.optimizer);
    assert_true(x.parameters == y.parameters);
    for (size_t i = 0; i < x.operator_count; i++) {
        mdot_job_operator p = MDOT_INIT(mdot_job_operator), q = MDOT_INIT(mdot_job_operator);
        assert_int_equal(mdot_job_get_operator(a, i, &p), MDOT_OK);
        assert_int_equal(mdot_job_get_operator(b, i, &q), MDOT_OK);
        assert_string_equal(p.type, q.type);
        assert_int_equal(p.known, q.known);
        assert_memory_equal(p.setting, q.setting, sizeof p.setting);
        assert_memory_equal(p.per_sample, q.per_sample, sizeof p.per_sample);
        assert_memory_equal(p.per_step, q.per_step, sizeof p.per_step);
        assert_int_equal(p.input_count, q.input_count);
        assert_memory_equal(p.inputs, q.inputs, p.input_count * sizeof *p.inputs);
        assert_int_equal(p.depth, q.depth);
        assert_int_equal(p.height, q.height);
        assert_int_equal(p.out_degree, q.out_degree);
    }
}

/* ---- In memory -------------------------------------------------------------------------------------------------- */

static void positions_follow_from_dependencies(void **state)
{
    (void)state;
    mdot_job *job = make_job();
    static const uint32_t depth[] = {0, 1, 1, 2}, height[] = {2, 1, 1, 0}, readers[] = {2, 1, 1, 0};
    for (size_t i = 0; i < 4; i++) {
        mdot_job_operator op = MDOT_INIT(mdot_job_operator);
        assert_int_equal(mdot_job_get_operator(job, i, &op), MDOT_OK);
        assert_int_equal(op.depth, depth[i]);
        assert_int_equal(op.height, height[i]);
        assert_int_equal(op.out_degree, readers[i]);
    }
    mdot_job_operator beyond = MDOT_INIT(mdot_job_operator);
    assert_int_equal(mdot_job_get_operator(job, 4, &beyond), MDOT_OUT_OF_RANGE);
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(job, &info);
    assert_int_equal(info.unknown_count, 1);
    assert_true(info.parameters == 1728);
    mdot_job_destroy(job);
    mdot_job_destroy(NULL);
}

static void expect_invalid(const mdot_job_description *description, const char *part)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_create(description, &job, &err), MDOT_INVALID_ARGUMENT);
    assert_null(job);
    if (!strstr(err.message, part)) fail_msg("\"%s\" is not in: %s", part, err.message);
}

static void descriptions_that_are_no_jobs_are_refused(void **state)
{
    (void)state;
    static const uint32_t itself[] = {3}, falling[] = {2, 1}, twice[] = {1, 1};
    mdot_job_operator operators[4];
    mdot_job_description d = describe(operators);
    d.operator_count = 0;
    expect_invalid(&d, "no operators");
    d = describe(operators);
    operators[3].inputs = itself;
    operators[3].input_count = 1;
    expect_invalid(&d, "do not ascend");
    operators[3].inputs = falling;
    operators[3].input_count = 2;
    expect_invalid(&d, "do not ascend");
    operators[3].inputs = twice;
    expect_invalid(&d, "do not ascend");
    d = describe(operators);
    operators[1].per_step[MDOT_PHASE_FORWARD].flops = NAN;
    expect_invalid(&d, "operator 1 of the job (Relu)");
    operators[1].per_step[MDOT_PHASE_FORWARD].flops = -1;
    expect_invalid(&d, "no count");
    operators[1].per_step[MDOT_PHASE_FORWARD].flops = INFINITY;
    expect_invalid(&d, "no count");
    d = describe(operators);
    operators[2].type = "";
    expect_invalid(&d, "has no type");
    d = describe(operators);
    d.batch = -1;
    expect_invalid(&d, "batch");
}

static void optimizers_cost_what_their_update_rule_reads_and_writes(void **state)
{
    (void)state;
    mdot_load sgd = mdot_optimizer_load(MDOT_OPTIMIZER_SGD, 10), adam = mdot_optimizer_load(MDOT_OPTIMIZER_ADAM, 10);
    assert_true(sgd.bytes_read == 120 && sgd.bytes_written == 80);
    assert_true(adam.bytes_read == 160 && adam.bytes_written == 120);
    assert_true(mdot_optimizer_load(MDOT_OPTIMIZER_ADAMW, 10).flops > adam.flops && adam.flops > sgd.flops);
    assert_true(mdot_optimizer_load((mdot_optimizer)77, 10).flops == 0);
}

static void settings_have_names(void **state)
{
    (void)state;
    assert_string_equal(mdot_setting_name(MDOT_SETTING_KERNEL_D), "kernel_d");
    assert_string_equal(mdot_setting_name(MDOT_SETTING_INPUTS), "inputs");
    assert_string_equal(mdot_setting_name(MDOT_SETTING_COUNT), "?");
    assert_string_equal(mdot_setting_name((mdot_setting)-1), "?");
}

/* ---- Files ------------------------------------------------------------------------------------------------------ */

enum { HEADER_BYTES = 32, CHECKSUM_AT = 24, MAX_FILE_BYTES = 4096 };

typedef struct file {
    char *folder, *path;
    unsigned char bytes[MAX_FILE_BYTES];
    size_t size;
} file;

static int set_up(void **state)
{
    file *f = calloc(1, sizeof *f);
    if (!f) return -1;
    f->folder = process_make_folder();
    if (asprintf(&f->path, "%s/net.job", f->folder) < 0) return -1;
    mdot_job *job = make_job();
    mdot_error err = {0};
    if (mdot_job_save(job, f->path, &err) != MDOT_OK) fail_msg("%s", err.message);
    mdot_job_destroy(job);
    FILE *stream = fopen(f->path, "rb");
    assert_non_null(stream);
    f->size = fread(f->bytes, 1, sizeof f->bytes, stream);
    fclose(stream);
    assert_true(f->size > HEADER_BYTES && f->size < MAX_FILE_BYTES);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    file *f = *state;
    process_remove_folder(f->folder);
    free(f->path);
    free(f);
    return 0;
}

/* In a block of just that size, so that a read beyond it is seen. */
static mdot_status parse(const unsigned char *bytes, size_t size, mdot_job **out_job, mdot_error *err)
{
    unsigned char *exact = malloc(size ? size : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, size);
    mdot_status status = mdot_job_parse(exact, size, out_job, err);
    free(exact);
    return status;
}

static void expect_parse_fault(const unsigned char *bytes, size_t size, mdot_status expected)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    mdot_status status = parse(bytes, size, &job, &err);
    assert_null(job);
    assert_int_equal(status, expected);
    assert_int_equal(err.status, expected);
    assert_true(err.message[0] != '\0');
}

static void a_saved_job_loads_as_it_was(void **state)
{
    file *f = *state;
    mdot_job *job = make_job(), *loaded = NULL;
    mdot_error err = {0};
    if (mdot_job_load(f->path, &loaded, &err) != MDOT_OK) fail_msg("%s", err.message);
    expect_same(job, loaded);
    assert_int_equal(mdot_job_save(loaded, f->path, &err), MDOT_OK); /* over itself */
    mdot_job_destroy(loaded);
    assert_int_equal(mdot_job_load(f->path, &loaded, &err), MDOT_OK);
    expect_same(job, loaded);
    mdot_job_destroy(loaded);
    mdot_job_destroy(job);
}

static void a_cut_file_is_refused_at_every_byte(void **state)
{
    file *f = *state;
    for (size_t size = 0; size < f->size; size++) expect_parse_fault(f->bytes, size, MDOT_MALFORMED);
    expect_parse_fault(f->bytes, f->size + 1, MDOT_MALFORMED);
}

static void every_flipped_bit_is_found(void **state)
{
    file *f = *state;
    for (size_t bit = 0; bit < 8 * f->size; bit++) {
        f->bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        size_t at = bit / 8;
        mdot_status expected = at < 8                ? MDOT_MALFORMED    /* magic */
                               : at < 12             ? MDOT_INCOMPATIBLE /* version */
                               : at >= 16 && at < 24 ? MDOT_MALFORMED    /* size */
                                                     : MDOT_CORRUPT;
        expect_parse_fault(f->bytes, f->size, expected);
        f->bytes[at] ^= (unsigned char)(1u << bit % 8);
    }
}

static void sign(unsigned char *bytes, size_t size)
{
    uint64_t file_bytes = size;
    memcpy(bytes + 16, &file_bytes, sizeof file_bytes);
    uint64_t sum = mdot_abi_checksum(bytes, CHECKSUM_AT, 0);
    sum = mdot_abi_checksum(bytes + HEADER_BYTES, size - HEADER_BYTES, sum);
    memcpy(bytes + CHECKSUM_AT, &sum, sizeof sum);
}

/* Damage that a checksum does not find, because it was computed afterwards. */
static void broken_content_is_refused_or_a_job(void **state)
{
    file *f = *state;
    int refused = 0;
    for (size_t at = 12; at < f->size; at++) {
        if (at == 16) at = HEADER_BYTES;
        unsigned char whole = f->bytes[at];
        for (int value = 0; value < 256; value++) {
            mdot_job *job = NULL;
            mdot_error err = {0};
            f->bytes[at] = (unsigned char)value;
            sign(f->bytes, f->size);
            mdot_status status = parse(f->bytes, f->size, &job, &err);
            assert_true(status == MDOT_OK || status == MDOT_MALFORMED);
            assert_int_equal(status == MDOT_OK, job != NULL);
            refused += status != MDOT_OK;
            mdot_job_destroy(job);
        }
        f->bytes[at] = whole;
    }
    assert_true(refused > 1000);
    for (size_t size = HEADER_BYTES; size < f->size; size++) { /* cut, and signed again */
        unsigned char bytes[MAX_FILE_BYTES];
        memcpy(bytes, f->bytes, size);
        sign(bytes, size);
        expect_parse_fault(bytes, size, MDOT_MALFORMED);
    }
}

static void files_that_cannot_be_read_or_written_are_named(void **state)
{
    file *f = *state;
    mdot_job *job = make_job(), *none = NULL;
    mdot_error err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/absent.job", f->folder);
    assert_int_equal(mdot_job_load(path, &none, &err), MDOT_NOT_FOUND);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(mdot_job_load(f->folder, &none, &err), MDOT_IO);
    snprintf(path, sizeof path, "%s/absent/net.job", f->folder);
    assert_int_equal(mdot_job_save(job, path, &err), MDOT_NOT_FOUND);
    assert_non_null(strstr(err.message, path));
    assert_null(none);
    mdot_job_destroy(job);
}

/* Neither waits for another end, nor puts a file where the pipe was. */
static void a_pipe_is_no_job(void **state)
{
    file *f = *state;
    mdot_job *job = NULL, *made = make_job();
    mdot_error err = {0};
    struct stat info;
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(mkfifo(f->path, 0600), 0);
    alarm(20);
    assert_int_equal(mdot_job_load(f->path, &job, &err), MDOT_IO);
    expect_contains(err.message, "not a regular file");
    assert_int_equal(mdot_job_save(made, f->path, &err), MDOT_INVALID_ARGUMENT);
    alarm(0);
    expect_contains(err.message, "not a regular file");
    assert_int_equal(lstat(f->path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(process_count_files(f->folder), 1);
    mdot_job_destroy(made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_follow_from_dependencies),
        cmocka_unit_test(descriptions_that_are_no_jobs_are_refused),
        cmocka_unit_test(optimizers_cost_what_their_update_rule_reads_and_writes),
        cmocka_unit_test(settings_have_names),
        cmocka_unit_test_setup_teardown(a_saved_job_loads_as_it_was, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cut_file_is_refused_at_every_byte, set_up, tear_down),
        cmocka_unit_test_setup_teardown(every_flipped_bit_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_content_is_refused_or_a_job, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_cannot_be_read_or_written_are_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pipe_is_no_job, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
