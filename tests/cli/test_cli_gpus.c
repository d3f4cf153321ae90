/* test_cli_gpus.c — `mdot gpus`, and GPUs given by spec values. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "mdot/mdot.h"
#include "tests/support/assertions.h"
#include "tests/support/json.h"
#include "tests/support/predict_command.h"

static double step_of_spec(predict_command *f, const char *spec)
{
    double step = 0;
    RUN(f, resnet, "--gpu-spec", spec, "-b", "64", "--precision", "amp", "--json", "-q");
    if (f->result.status != OK) fail_msg("%s: %s", spec, f->result.err);
    assert_int_equal(json_numbers(f->result.out, "step_ms", &step, 1), 1);
    return step;
}

enum { MAX_GPUS = 256 };

/* A GPU with the spec values of another predicts the same times. Twice the memory rate is faster. A file with the
 * same values gives the same result. */
static void a_gpu_may_be_described_by_spec_values(void **state)
{
    predict_command *f = *state;
    double of_a100 = 0;
    RUN(f, resnet, "--gpu", "A100", "-b", "64", "--precision", "amp", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "step_ms", &of_a100, 1), 1);
    assert_compare(step_of_spec(f, "like=A100"), ==, of_a100);
    assert_compare(step_of_spec(f, "LIKE=a100"), ==, of_a100);
    assert_compare(step_of_spec(f, "tflops=312,memory=40,bandwidth=1555,sms=108,mhz=1410"), ==, of_a100);
    double wide = step_of_spec(f, "name=Wide,like=A100,bandwidth=3110");
    assert_compare(step_of_spec(f, "name = Wide, like=A100 , bandwidth= 3110"), ==, wide);
    assert_compare(wide, <, 0.9 * of_a100);
    expect_contains(f->result.out, "\"gpu\": \"Wide\"");
    assert_compare(step_of_spec(f, "like=A100,watts=40"), >, 1.2 * of_a100);
    char path[300];
    snprintf(path, sizeof path, "%s/wide.txt", f->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("# a card of ours\nname=Wide\n  like = A100  # as sold\n\nmemory_gbps\t=3110\n", file);
    assert_int_equal(fclose(file), 0);
    assert_compare(step_of_spec(f, path), ==, wide);
}

static void invalid_gpu_specs_are_refused(void **state)
{
    predict_command *f = *state;
    static const char *const specs[][2] = {{"name=X", "requires tflops"},
                                           {"name=X,tflop=3", "did you mean tflops?"},
                                           {"tflops=-3", "a positive number"},
                                           {"tflops=3x", "a positive number"},
                                           {"like=A101", "did you mean A100"},
                                           {"tflops=3,memory", "KEY=VALUE"},
                                           {"tflops=", "tflops has no value"},
                                           {"nam=", "did you mean name?"},
                                           {"tflops=3,sm=4", "mean sms?"},
                                           {"tflops=3,vram=48", "mean memory?"},
                                           {"like=A100,tdp=300", "mean watts?"},
                                           {"tflops=3,bw=900", "bandwidth?"},
                                           {"tflops=3,TFLOPS=4", "TFLOPS is given twice"},
                                           {"like=T4,like=L4", "like is"},
                                           {"fp16_tflops=3,tflops=4", "tflops is given twice"},
                                           {"=3", "KEY=VALUE"},
                                           {"A100", "KEY=VALUE"},
                                           {"/nonexistent/card", "cannot read"}};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        RUN(f, resnet, "--gpu-spec", specs[i][0]);
        assert_int_equal(f->result.status, USAGE);
        expect_contains(f->result.err, specs[i][1]);
    }
}

/* A pipe that has no writer would block the reader forever. */
static void pipes_are_refused_as_input_files(void **state)
{
    predict_command *f = *state;
    static const char *const options[] = {"--gpu-spec", "--price", "--calibration", "--model"};
    char pipe[300];
    snprintf(pipe, sizeof pipe, "%s/pipe", f->folder);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        RUN(f, resnet, "--gpu", "A100", options[i], pipe);
        assert_true(f->result.status == USAGE || f->result.status == FAILED);
        expect_contains(f->result.err, "pipe: not a regular file");
    }
    RUN(f, pipe, "--gpu", "A100");
    expect_contains(f->result.err, "pipe: not a regular file");
    assert_int_equal(unlink(pipe), 0);
}

/* A sparse file. Reading it to the end would take seconds. */
static void an_oversized_file_is_refused_unread(void **state)
{
    predict_command *f = *state;
    static const char *const options[] = {"--gpu-spec", "--price", "--calibration"};
    char path[300];
    snprintf(path, sizeof path, "%s/sparse", f->folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), (off_t)1 << 40), 0);
    fclose(file);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        RUN(f, resnet, "--gpu", "A100", options[i], path);
        assert_true(f->result.status == USAGE || f->result.status == FAILED);
        expect_contains(f->result.err, path);
        expect_contains(f->result.err, "bytes");
    }
    assert_int_equal(unlink(path), 0);
}

static void gpus_are_listed(void **state)
{
    predict_command *f = *state;
    process_run((const char *const[]){MDOT_CLI, "gpus", NULL}, &f->result);
    assert_int_equal(f->result.status, OK);
    size_t count = 0;
    for (const char *const *name = mdot_gpu_names(); *name != NULL; name++, count++)
        expect_contains(f->result.out, *name);
    assert_int_equal(count_lines(f->result.out), 2 + count);
    for (const char *line = f->result.out; *line != '\0'; line += strcspn(line, "\n") + 1)
        assert_compare(strcspn(line, "\n"), <=, 80);
    expect_contains(f->result.out, "trained on\n");
    process_run((const char *const[]){MDOT_CLI, "gpus", "--json", NULL}, &f->result);
    assert_true(json_is_valid(f->result.out));
    double values[MAX_GPUS];
#define COLUMN(field, ...)                                                                                             \
    assert_int_equal(json_numbers(f->result.out, #field, values, MAX_GPUS), count);                                    \
    for (size_t i = 0; i < count; i++) {                                                                               \
        mdot_gpu gpu = MDOT_INIT(mdot_gpu);                                                                            \
        mdot_gpu_find(mdot_gpu_names()[i], &gpu, NULL);                                                                \
        if (values[i] != gpu.field) fail_msg("%s: " #field " is %g instead of %g", gpu.name, values[i], gpu.field);    \
    }
#include "runtime/job/gpus.def"
}

/* The second name is refused after the first. Equally near names are suggested from half precision on. */
static void each_column_has_two_names(void **state)
{
    predict_command *f = *state;
    static const char *const columns[][2] = {
#define COLUMN(field, key, ...) {#field, key},
#include "runtime/job/gpus.def"
    };
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        char setting[96];
        snprintf(setting, sizeof setting, "like=A100,%s=3,%s=3", columns[i][0], columns[i][1]);
        RUN(f, resnet, "--gpu-spec", setting);
        assert_int_equal(f->result.status, USAGE);
        snprintf(setting, sizeof setting, "%s is given twice", columns[i][1]);
        expect_contains(f->result.err, setting);
    }
    RUN(f, resnet, "--gpu-spec", "like=A100,fp64_tflops=3");
    expect_contains(f->result.err, "did you mean fp16_tflops?");
    RUN(f, resnet, "--gpu-spec", "like=A100,f32=3");
    expect_contains(f->result.err, "did you mean tf32?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_gpu_may_be_described_by_spec_values, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(invalid_gpu_specs_are_refused, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(pipes_are_refused_as_input_files, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(an_oversized_file_is_refused_unread, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(gpus_are_listed, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(each_column_has_two_names, predict_command_set_up, predict_command_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
