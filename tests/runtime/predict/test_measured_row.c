/* test_measured_row.c — measured step rows: the table columns, quoting, and tables for `mdot calibrate`. */
#include "base/file.h"
#include "mdot/mdot.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/support/process.h"

enum { TEXT_BYTES = 1 << 16 };

static const char resnet[] = MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx";
static char *folder, *table;
static double memory_bytes;
static mdot_error err;

static int set_up(void **state)
{
    (void)state;
    folder = process_make_folder();
    memory_bytes = 0;
    table = process_in_folder(folder, "measured.csv");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    process_remove_folder(folder);
    free(table);
    return 0;
}

static mdot_configuration configuration(void)
{
    return (mdot_configuration){.struct_size = sizeof(mdot_configuration), .batch = 32, .gpu = "A100"};
}

static mdot_status append(const mdot_configuration *c, const char *job, double ms, const char *note)
{
    const mdot_measured_row row = {sizeof row, job, c, ms, memory_bytes, note};
    return mdot_measured_append(table, &row, &err);
}

static char *read_table(void)
{
    static char text[TEXT_BYTES];
    FILE *file = fopen(table, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static void write_table(const char *text)
{
    FILE *file = fopen(table, "w");
    assert_non_null(file);
    assert_compare(fputs(text, file), >=, 0);
    fclose(file);
}

static int count_lines(const char *text)
{
    int count = 0;
    for (; *text != '\0'; text++) count += *text == '\n';
    return count;
}

static void header_is_written_once(void **state)
{
    (void)state;
    mdot_configuration c = configuration();
    for (int i = 0; i < 3; i++) assert_int_equal(append(&c, "a.job", 10 + i, NULL), MDOT_OK);
    const char *text = read_table();
    assert_int_equal(strncmp(text, "job,gpu,batch,ms,gib,precision,", strlen("job,gpu,batch,ms,gib,precision,")), 0);
    assert_int_equal(count_lines(text), 4);
    expect_contains(text, "\na.job,A100-SXM-40GB,32,12,,fp32,nchw,sgd,");
    assert_ptr_equal(strstr(strstr(text, "job,gpu") + 1, "job,gpu"), NULL);
}

/* Every configuration option reaches the command, and back. */
static void calibrate_reads_rows_with_every_kind_of_option(void **state)
{
    (void)state;
    static process_result result;
    char *calibration = process_in_folder(folder, "site.cal");
    mdot_configuration c = configuration();
    assert_int_equal(append(&c, resnet, 80.5, "torch=2.15.0; \"quoted\", and\na line end"), MDOT_OK);
    c.precision = MDOT_PRECISION_AMP_BF16;
    c.layout = MDOT_LAYOUT_NHWC;
    c.optimizer = MDOT_OPTIMIZER_ADAMW_FUSED;
    c.compiled = 1;
    c.recompute = MDOT_RECOMPUTE_SELECTIVE;
    c.accumulate = 4;
    c.torch = 204;
    c.ema = 1;
    c.gpu_count = 16;
    c.node_count = 2;
    c.data_parallel = 16;
    c.zero_stage = 2;
    c.link = MDOT_LINK_PCIE;
    c.network_gbps = 12.5;
    memory_bytes = 1.25 * 1024 * 1024 * 1024;
    assert_int_equal(append(&c, resnet, 400.25, NULL), MDOT_OK);
    c.link = MDOT_LINK_DEFAULT;
    c.link_gbps = 40;
    assert_int_equal(append(&c, resnet, 390, NULL), MDOT_OK);
    const char *text = read_table();
    assert_int_equal(count_lines(text), 4);
    expect_contains(text, ",400.25,1.25,amp-bf16,nhwc,adamw-fused,,yes,selective,4,2.4,");
    expect_contains(text, ",16,\"dp=16,zero=2\",,,,,2,12.5,pcie,");
    expect_contains(text, ",12.5,40,");
    expect_contains(text, "\"torch=2.15.0; \"\"quoted\"\", and a line end\"\n");
    process_run((const char *const[]){MDOT_CLI, "calibrate", table, "-o", calibration, "-m", MDOT_SHIPPED_PREDICTOR,
                                      "-q", NULL},
                &result);
    if (result.status != 0) fail_msg("%s", result.err);
    expect_contains(result.out, "A100");
    free(calibration);
}

static void table_keeps_its_own_columns(void **state)
{
    (void)state;
    mdot_configuration c = configuration();
    static const char own[] = "# measured by hand\n\nms, \"batch\" ,gpu,job,precision,layout,optimizer,frozen\n"
                              "9,8,T4,b.job,amp,,,"; /* the last line is unterminated */
    write_table(own);
    assert_int_equal(append(&c, "sub, folder/a.job", 12.5, "lost"), MDOT_OK);
    expect_contains(read_table(),
                    "\n9,8,T4,b.job,amp,,,\n12.5,32,A100-SXM-40GB,\"sub, folder/a.job\",fp32,nchw,sgd,\n");
    c.accumulate = 2;
    char before[TEXT_BYTES];
    strcpy(before, read_table());
    assert_int_equal(append(&c, "a.job", 12.5, NULL), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "no column accumulate");
    assert_string_equal(read_table(), before);
}

static void table_without_a_header_is_refused(void **state)
{
    (void)state;
    mdot_configuration c = configuration();
    write_table("# a comment\n\n");
    assert_int_equal(append(&c, "a.job", 12.5, NULL), MDOT_MALFORMED);
    expect_contains(err.message, "measured.csv: the table has no header");
}

/* The header is read from the table's beginning, which may cut any line behind it, and may end in the header. */
static void header_ends_within_the_beginning(void **state)
{
    (void)state;
    enum { HEAD = BS_APPEND_HEAD_BYTES - 1 };
    static const char header[] = "ms,batch,gpu,job,precision,layout,optimizer\n", row[] = "9,8,T4,\"b.job\",amp,,\n";
    static char text[3 * HEAD];
    mdot_configuration c = configuration();
    for (int end = HEAD - 60; end < HEAD + 60; end++) { /* of the header */
        size_t comment = (size_t)end - strlen(header);
        memset(text, '#', comment);
        text[comment - 1] = '\n';
        strcpy(text + comment, header);
        for (int i = 0; i < 20; i++) strcat(text, row);
        write_table(text);
        mdot_status status = append(&c, "a.job", 12.5, NULL);
        if (status != (end <= HEAD ? MDOT_OK : MDOT_MALFORMED)) fail_msg("%d: %s", end, err.message);
    }
}

static void rows_that_calibrate_could_not_read_are_refused(void **state)
{
    (void)state;
    mdot_configuration c = configuration();
    c.gpu = "B17";
    assert_int_equal(append(&c, "a.job", 1, NULL), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "B17");
    mdot_gpu unnamed = MDOT_INIT(mdot_gpu);
    assert_int_equal(mdot_gpu_find("T4", &unnamed, &err), MDOT_OK);
    unnamed.name = NULL;
    c.gpu = NULL;
    c.gpu_spec = &unnamed;
    assert_int_equal(append(&c, "a.job", 1, NULL), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "name of its GPU");
    c = configuration();
    c.batch = 0;
    assert_int_equal(append(&c, "a.job", 1, NULL), MDOT_INVALID_ARGUMENT);
    c = configuration();
    assert_int_equal(append(&c, "a.job", 0, NULL), MDOT_INVALID_ARGUMENT);
    memory_bytes = -1;
    assert_int_equal(append(&c, "a.job", 1, NULL), MDOT_INVALID_ARGUMENT);
    expect_contains(err.message, "memory_bytes");
    memory_bytes = 0;
    assert_int_equal(append(&c, "a\n.job", 1, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(append(&c, "", 1, NULL), MDOT_INVALID_ARGUMENT);
    assert_int_equal(access(table, F_OK), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(header_is_written_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(calibrate_reads_rows_with_every_kind_of_option, set_up, tear_down),
        cmocka_unit_test_setup_teardown(table_keeps_its_own_columns, set_up, tear_down),
        cmocka_unit_test_setup_teardown(table_without_a_header_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(header_ends_within_the_beginning, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_that_calibrate_could_not_read_are_refused, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
