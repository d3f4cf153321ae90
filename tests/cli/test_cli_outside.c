/* test_cli_outside.c — messages about predictions outside of the predictor's training. If the predictor gives
 * reasons, they are in one line, and in JSON by name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/encoder_model.h"
#include "tests/support/json.h"
#include "tests/support/predict_command.h"
#include "tests/support/predict_fixture.h"

typedef struct predictors {
    char all[512], one[512]; /* paths of two predictors: with each reason, and with the fact alone */
} predictors;

static void compile(const char *folder, const char *name, int64_t reasons, char path[512])
{
    char file[64];
    process_result result;
    snprintf(file, sizeof file, "%s.onnx", name);
    snprintf(path, 512, "%s/%s.mdot", folder, name);
    char *model = write_model(folder, file, onnx_finish(predict_outside_model(reasons, 0)));
    process_run((const char *const[]){MDOT_CLI, "compile", model, "-o", path, "--target", "cpu:x86-64-v3", "-q", NULL},
                &result);
    assert_int_equal(result.status, OK);
    free(model);
}

/* The options of an NHWC step in fp32 with AdamW. Batch, GPUs, precision, layout and optimizer are inputs of the
 * predictor. */
#define OPTIONS "--layout=nhwc", "--optimizer=adamw", "--precision=fp32"

static void reasons_are_printed_in_one_line(void **state)
{
    predict_command *f = *state;
    predictors p;
    compile(f->folder, "all", 8, p.all);
    RUN(f, resnet, "--gpu=A100", "-b32", OPTIONS, "--model", p.all);
    assert_int_equal(f->result.status, OK);
    static const char line[] =
        "mdot predict: warning: batch-below-data: the batch is smaller than any in the training data; "
        "batch-above-data: "
        "the batch is larger than any in the training data; operators-beyond-data: the job has operators larger than "
        "any "
        "in the training data; software-not-measured: the training data lack steps with this version of PyTorch; "
        "optimizer-or-gpus-not-measured: the training data lack steps with this optimizer, or steps on several GPUs\n";
    expect_contains(f->result.err, line);
    assert_null(strstr(f->result.err, "outside-training"));
    expect_contains(f->result.err, "warning: implausible: the step looks too ");
    RUN(f, resnet, "--gpu=A100,T4", "-b32", OPTIONS, "--model", p.all, "--wide");
    expect_contains(f->result.err, "warning: batch-below-data (2 of 2 predictions): the batch is smaller");
    expect_contains(f->result.out, "implausible, batch-below-data, batch-above-data, operators-beyond-data");
    assert_null(strstr(f->result.out, "outside-training"));
    RUN(f, resnet, "--gpu=A100", "-b32", OPTIONS, "--model", p.all, "-q", "--json");
    assert_true(json_is_valid(f->result.out));
    expect_contains(f->result.out, "\"outside-training\"");
    expect_contains(f->result.out, "\"batch-below-data\", \"batch-above-data\", \"operators-beyond-data\", "
                                   "\"software-not-measured\", \"optimizer-or-gpus-not-measured\"]");
}

/* One value reports the fact without a reason. A version that the predictor does not read is an additional reason. */
static void a_single_flag_is_reported_without_reasons(void **state)
{
    predict_command *f = *state;
    predictors p;
    compile(f->folder, "one", 1, p.one);
    RUN(f, resnet, "--gpu=A100", "-b32", OPTIONS, "--model", p.one, "--torch=1.9");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.err, "warning: outside-training: batch, GPU, precision, software, FLOPs or bytes are"
                                   " outside");
    expect_contains(f->result.err, "warning: software-not-measured: the training data lack steps with this version");
}

#define VERIFY(f, ...) process_run((const char *const[]){MDOT_CLI, "verify", __VA_ARGS__, NULL}, &(f)->result)

static void verify_reads_jobs_of_predictions(void **state)
{
    predict_command *f = *state;
    char artefact[512];
    compile(f->folder, "of_jobs", 1, artefact);
    char model[512];
    snprintf(model, sizeof model, "%s/of_jobs.onnx", f->folder);
    VERIFY(f, artefact, model, "--job", resnet, "--gpu", "T4", "--gpu", "H100", "-b8");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "pass");
    VERIFY(f, artefact, model, "--job", resnet, "--gpu", "T44");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "T44");
    VERIFY(f, artefact, model, "--gpu", "T4");
    assert_int_equal(f->result.status, USAGE);
    VERIFY(f, artefact, model, "--job", resnet, "--inputs", f->folder);
    assert_int_equal(f->result.status, USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reasons_are_printed_in_one_line, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_single_flag_is_reported_without_reasons, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(verify_reads_jobs_of_predictions, predict_command_set_up,
                                        predict_command_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
