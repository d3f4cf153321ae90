/* test_examples.c — the programs in examples/ print the expected answers, and report wrong arguments. run_entry.c is
 * tested in tests/cli/test_cli.c, and predict.py in predict.sh. */
#include "tests/support/assertions.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { OK = 0, FAILED = 1, USAGE = 2 };

static const char job[] = MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx";
static process_result result;

#define RUN(...) process_run((const char *const[]){__VA_ARGS__, NULL}, &result)

/* Reads the time behind `title`, "… TITLE: 12.3 ms". */
static double step_ms(const char *title)
{
    double ms = 0;
    const char *line = strstr(result.out, title);
    if (line == NULL || sscanf(line + strlen(title), ": %lf ms", &ms) != 1)
        fail_msg("no \"%s\" in %s", title, result.out);
    return ms;
}

static void quickstart_predicts_and_sweeps(void **state)
{
    (void)state;
    RUN(MDOT_QUICKSTART, job, "A100", MDOT_SHIPPED_PREDICTOR);
    assert_int_equal(result.status, OK);
    assert_compare(step_ms("batch 32"), >, 1);
    expect_contains(result.out, "batch 128: ");
    RUN(MDOT_QUICKSTART, job, "B17", MDOT_SHIPPED_PREDICTOR);
    assert_int_equal(result.status, FAILED);
    expect_contains(result.err, "B17");
}

static void encoded_job_gives_the_answers_of_quickstart(void **state)
{
    (void)state;
    RUN(MDOT_QUICKSTART, job, "A100", MDOT_SHIPPED_PREDICTOR);
    double expected = step_ms("batch 32");
    RUN(MDOT_ENCODE_AND_EVALUATE, job, MDOT_SHIPPED_PREDICTOR, "T4", "A100");
    assert_int_equal(result.status, OK);
    assert_float_equal(step_ms("A100, batch 32"), expected, 0.051); /* printed with one digit */
    assert_compare(step_ms("T4, batch 16"), >, step_ms("A100, batch 16"));
    expect_contains(result.out, "best: A100, batch 128");
    RUN(MDOT_ENCODE_AND_EVALUATE, job, MDOT_SHIPPED_PREDICTOR);
    assert_int_equal(result.status, USAGE);
    RUN(MDOT_ENCODE_AND_EVALUATE, job, MDOT_SHIPPED_PREDICTOR, "B17");
    assert_int_equal(result.status, FAILED);
    expect_contains(result.err, "B17");
}

/* Measured steps that take twice the prediction move the next prediction up, and equal ones leave it where it is. */
static void calibration_moves_predictions_towards_the_measurements(void **state)
{
    (void)state;
    RUN(MDOT_CALIBRATE, job, "A100", MDOT_SHIPPED_PREDICTOR, "16=1000", "32=1000");
    assert_int_equal(result.status, OK);
    double at_64 = step_ms("predicted, batch 64");
    char once[3][32], twice[3][32];
    for (int i = 0; i < 3; i++) {
        char batch[8], next[16];
        snprintf(batch, sizeof batch, "%d", 16 << i);
        snprintf(next, sizeof next, "%d=100", 8 << i);
        RUN(MDOT_CALIBRATE, job, "A100", MDOT_SHIPPED_PREDICTOR, next);
        char title[32];
        snprintf(title, sizeof title, "predicted, batch %s", batch);
        double ms = step_ms(title);
        snprintf(once[i], sizeof once[i], "%s=%.1f", batch, ms);
        snprintf(twice[i], sizeof twice[i], "%s=%.1f", batch, 2 * ms);
    }
    RUN(MDOT_CALIBRATE, job, "A100", MDOT_SHIPPED_PREDICTOR, once[0], once[1], once[2]);
    double before = step_ms("predicted, batch 128"), after = step_ms("calibrated, batch 128");
    assert_compare(before, >, at_64);
    assert_float_equal(after, before, 0.02 * before);
    RUN(MDOT_CALIBRATE, job, "A100", MDOT_SHIPPED_PREDICTOR, twice[0], twice[1], twice[2]);
    assert_float_equal(step_ms("predicted, batch 128"), before, 0.01);
    after = step_ms("calibrated, batch 128");
    assert_compare(after, >, 1.2 * before);
    assert_compare(after, <, 2.2 * before);
    RUN(MDOT_CALIBRATE, job, "A100", MDOT_SHIPPED_PREDICTOR, "16");
    assert_int_equal(result.status, FAILED);
    expect_contains(result.err, "BATCH=MILLISECONDS");
}

/* A shell feeds the program's stdin, because process_run leaves it empty. */
static void recorded_steps_become_a_row_that_calibrate_reads(void **state)
{
    (void)state;
    static const char feed[] = "i=0; while [ $i -lt 60 ]; do echo 41.5; i=$((i + 1)); done | \"$@\"";
    char *folder = process_make_folder(), *table = process_in_folder(folder, "measured.csv"),
         *calibration = process_in_folder(folder, "site.cal");
    RUN("/bin/sh", "-c", feed, "sh", MDOT_RECORD_STEPS, table, job, "A100", "32");
    assert_int_equal(result.status, OK);
    assert_string_equal(result.out, "41.500 ms per step, from 50 steps\n");
    RUN(MDOT_CLI, "calibrate", table, "-o", calibration, "-m", MDOT_SHIPPED_PREDICTOR, "--quiet");
    assert_int_equal(result.status, OK);
    RUN(MDOT_RECORD_STEPS, table, job, "A100", "32");
    assert_int_equal(result.status, FAILED);
    expect_contains(result.err, "0 steps were recorded");
    RUN(MDOT_RECORD_STEPS);
    assert_int_equal(result.status, USAGE);
    process_remove_folder(folder);
    free(table);
    free(calibration);
}

/* The examples in the manual's C reference run to the end, each on the previous ones' files. */
static void examples_of_the_reference_succeed(void **state)
{
    (void)state;
    static const char onnx_test[] = "/usr/share/libonnx-testdata/data/node/test_abs";
    char *folder = process_make_folder(), *saved = process_in_folder(folder, "example.job"),
         *artefact = process_in_folder(folder, "example.mdot");
    RUN(MDOT_REFERENCE "_jobs", job, folder);
    assert_int_equal(result.status, OK);
    expect_contains(result.out, "51200000 bytes of weights");
    RUN(MDOT_REFERENCE "_artefacts", saved, MDOT_SHIPPED_PREDICTOR);
    assert_int_equal(result.status, OK);
    expect_contains(result.out, "length 20 runs in the bucket of 32");
    RUN(MDOT_REFERENCE "_predictions", saved, MDOT_SHIPPED_PREDICTOR, folder);
    assert_int_equal(result.status, OK);
    expect_contains(result.out, "1 rows, times on T4 are multiplied by");
    RUN(MDOT_REFERENCE "_compiler", MDOT_SOURCE_DIR "/weights/encode.onnx", artefact,
        access(onnx_test, F_OK) == 0 ? onnx_test : NULL);
    assert_int_equal(result.status, OK);
    expect_contains(result.out, "verified");
    free(saved);
    free(artefact);
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quickstart_predicts_and_sweeps),
        cmocka_unit_test(encoded_job_gives_the_answers_of_quickstart),
        cmocka_unit_test(calibration_moves_predictions_towards_the_measurements),
        cmocka_unit_test(recorded_steps_become_a_row_that_calibrate_reads),
        cmocka_unit_test(examples_of_the_reference_succeed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
