/* test_cli_json.c — the output of `mdot predict --json` follows docs/predict.schema.json for all options, and the
 * schema refuses other texts. docs/reference/formats/json.md names every member. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/assertions.h"
#include "tests/support/json_schema.h"
#include "tests/support/predict_command.h"

/* The caller frees it. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    rewind(file);
    char *text = calloc(1, (size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)size, file), size);
    fclose(file);
    return text;
}

static void output_matches_the_schema(void **state)
{
    predict_command *f = *state;
    char *schema = read_text(MDOT_SOURCE_DIR "/docs/predict.schema.json"), *calibration = NULL;
    assert_compare(asprintf(&calibration, "--calibration=%s/site.cal", f->folder), >, 0);
    process_run((const char *const[]){MDOT_CLI, "calibrate", MDOT_SOURCE_DIR "/examples/jobs/steps_gavel.csv", "-o",
                                      calibration + strlen("--calibration="), NULL},
                &f->result);
    assert_int_equal(f->result.status, OK);
    const char *const lines[][12] = {
        {"--gpu=A100"},
        {"--gpu=A100,T4", "--sweep=batch=1..64", "--sort=time", "--price=2/h"},
        {"--gpu=A100", "--steps=10", "--price=2/h", "--precision=amp", "--layout=nhwc", "--optimizer=adamw"},
        {"--gpu=A100", "--gpus=8", "--nodes=2", "--link=50", "--network=12.5", "--parallel=dp=8,zero=1"},
        {"--gpu=K80", calibration, "--explain", "--batch=8"},
        {"--gpu-spec=name=X,tflops=400,memory=48,bandwidth=900", "--compile", "--checkpoint=selective"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        const char *argv[16] = {MDOT_CLI, "predict", resnet, "--json", "-q"};
        for (size_t k = 0; k < 11 && lines[i][k] != NULL; k++) argv[5 + k] = lines[i][k];
        process_run(argv, &f->result);
        if (f->result.status != OK) fail_msg("%s", f->result.err);
        json_assert_schema(schema, f->result.out);
    }
    RUN(f, bert, "--gpu=A100", "--sweep=sequence=64,128", "--json", "-q");
    json_assert_schema(schema, f->result.out);
    free(schema);
    free(calibration);
}

/* A valid example with one fault. */
static void the_schema_rejects_invalid_output(void **state)
{
    predict_command *f = *state;
    char *schema = read_text(MDOT_SOURCE_DIR "/docs/predict.schema.json");
    static const char *const changes[][2] = {{"\"mdot-predict/1\"", "\"mdot-predict/9\""},
                                             {"\"step_ms\": ", "\"step_ms\": -"},
                                             {"\"fits\": true", "\"fits\": 1"},
                                             {"\"batch\": ", "\"bath\": "},
                                             {"\"nchw\"", "\"chwn\""},
                                             {"\"gpus\": 1", "\"gpus\": 1.5"},
                                             {"\"link\": \"default\"", "\"link\": \"rope\""},
                                             {"\"torch\": \"2.9\"", "\"torch\": \"newest\""}};
    RUN(f, resnet, "--gpu=A100", "--json", "-q");
    assert_true(json_fits_schema(schema, f->result.out));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        const char *at = strstr(f->result.out, changes[i][0]);
        char *wrong = NULL;
        assert_non_null(at);
        assert_compare(asprintf(&wrong, "%.*s%s%s", (int)(at - f->result.out), f->result.out, changes[i][1],
                                at + strlen(changes[i][0])),
                       >, 0);
        if (json_fits_schema(schema, wrong)) fail_msg("%s is not refused", changes[i][1]);
        free(wrong);
    }
    free(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(output_matches_the_schema, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(the_schema_rejects_invalid_output, predict_command_set_up,
                                        predict_command_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
