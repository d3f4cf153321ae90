/* test_cli_calibrate.c — `mdot calibrate` on published steps. Predictions of held-out rows become better or stay as
 * good, and `mdot predict --calibration` reports the calibration. Wrong tables are refused with the line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/support/assertions.h"
#include "tests/support/json.h"
#include "tests/support/json_schema.h"
#include "tests/support/predict_command.h"

#define STEPS(site) MDOT_SOURCE_DIR "/examples/jobs/steps_" site ".csv"
static const char steps[] = STEPS("gavel");

static void run_calibrate(predict_command *f, const char *table, const char *output)
{
    process_run((const char *const[]){MDOT_CLI, "calibrate", table, "-o", output, NULL}, &f->result);
}

static char *path_in(const predict_command *f, const char *name)
{
    char *path = NULL;
    assert_compare(asprintf(&path, "%s/%s", f->folder, name), >, 0);
    return path;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_compare(fputs(text, file), >=, 0);
    assert_int_equal(fclose(file), 0);
}

/* test_calibration.c checks the same for every half of all published steps. */
static void heldout_rows_are_predicted_from_the_other_half(void **state)
{
    predict_command *f = *state;
    char *output = path_in(f, "site.cal");
    double before, after;
    run_calibrate(f, steps, output);
    assert_int_equal(f->result.status, OK);
    const char *at = strstr(f->result.out, "cross-validated error: ");
    if (at == NULL) fail_msg("%s%s", f->result.out, f->result.err);
    assert_int_equal(sscanf(at, "cross-validated error: %lf %% before calibration, %lf %% after", &before, &after), 2);
    assert_compare(after, <, before);
    free(output);
}

static void predictions_name_their_calibration(void **state)
{
    predict_command *f = *state;
    char *output = path_in(f, "site.cal");
    run_calibrate(f, steps, output);
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "\n    others ");
    expect_contains(f->result.out, "of the steps ran on several GPUs");
    double before[3], after[3];
    static const char *const keys[] = {"step_ms", "lower_ms", "upper_ms"};
    RUN(f, resnet, "--gpu", "K80", "--batch", "32", "--precision", "fp32", "--json", "-q");
    for (int i = 0; i < 3; i++) assert_int_equal(json_numbers(f->result.out, keys[i], &before[i], 1), 1);
    RUN(f, resnet, "--gpu", "K80", "--batch", "32", "--precision", "fp32", "--json", "-q", "--calibration", output);
    assert_int_equal(f->result.status, OK);
    for (int i = 0; i < 3; i++) assert_int_equal(json_numbers(f->result.out, keys[i], &after[i], 1), 1);
    expect_contains(f->result.out, "\"calibrated_by\": 34");
    assert_compare(after[0], >, 1.3 * before[0]); /* 808.7 ms were measured */
    assert_compare(after[2] / after[1], <, before[2] / before[1]);
    RUN(f, resnet, "--gpu", "K80", "--batch", "32", "-c", output, "--explain", "-q");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "  calibrated  by 34 measured steps\n");
    expect_contains(f->result.out, "\ncorrection  x ");
    expect_contains(f->result.out, "this job on the GPU model");
    RUN(f, resnet, "--gpu", "K80,T4", "-c", output, "-q");
    expect_contains(f->result.out, "; calibrated by 34 measured steps\n");
    RUN(f, resnet, "--gpu", "K80", "-c", steps);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "line 1 of the calibration");
    free(output);
}

/* The page shows the step time by `mdot predict`, and the drawn parts add up to it. */
static void a_report_uses_the_calibration(void **state)
{
    predict_command *f = *state;
    char *output = path_in(f, "site.cal"), *page = path_in(f, "page.html"), row[64];
    static char text[1 << 19];
    double step_ms;
    run_calibrate(f, steps, output);
    assert_int_equal(f->result.status, OK);
    RUN(f, resnet, "--gpu", "K80", "--batch", "32", "--precision", "fp32", "--json", "-q", "--calibration", output);
    assert_int_equal(json_numbers(f->result.out, "step_ms", &step_ms, 1), 1);
    process_run((const char *const[]){MDOT_CLI, "report", resnet, "--gpu=K80", "-b32", "--precision=fp32", "-q", "-c",
                                      output, "-o", page, NULL},
                &f->result);
    if (f->result.status != OK) fail_msg("%s", f->result.err);
    FILE *file = fopen(page, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    snprintf(row, sizeof row, "<td>K80</td><td>%.3g</td>", step_ms);
    assert_non_null(strstr(text, row));
    assert_non_null(strstr(text, "Calibrated by 34 measured steps."));
    snprintf(row, sizeof row, "K80, batch 32: %.3g ms", step_ms); /* a point in the plot of time against batch */
    assert_non_null(strstr(text, row));
    snprintf(row, sizeof row, ">%.3g ms</text>", step_ms); /* the total of a bar */
    assert_non_null(strstr(text, row));
    process_run((const char *const[]){MDOT_CLI, "report", resnet, "-c", steps, "-o", page, NULL}, &f->result);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "line 1 of the calibration");
    free(output);
    free(page);
}

static void columns_match_the_options_of_predict(void **state)
{
    predict_command *f = *state;
    char *table = path_in(f, "steps.csv"), *output = path_in(f, "site.cal");
    char text[2048];
    snprintf(text, sizeof text,
             "# a comment\n\njob,gpu,batch,dim,precision,compile,gpus,parallel,ms\r\n"
             "\"%s\",A100,8,sequence=64,AMP,yes,8,\"dp=4,tp=2\",12.5\r\n%s , T4,8,sequence=64,,no,,,100\n",
             bert, bert);
    write_text(table, text);
    run_calibrate(f, table, output);
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "    A100-SXM-40GB ");
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"", "the table is empty"},
        {"job,gpu,batch,ms\n", "no measured step"},
        {"job,gpu,batch\n", ":1: there is no column ms"},
        {"job,gpu,batch,gib\nx.onnx,T4,8,0\n", ":2: gib is a size above 0, not \"0\""},
        {"job,gpu,batch,gib,ms\nx.onnx,T4,8,,\n", ":2: ms is a time above 0"},
        {"job,gpu,batch,ms,precison\n", ":1: there is no column \"precison\" (did you mean precision?)"},
        {"job,gpu,batch,ms,ms\n", ":1: column ms appears twice"},
        {"job,gpu,batch,ms\nx.onnx,T4,8\n", ":2: there are 3 fields, but 4 columns"},
        {"job,gpu,batch,ms\nx.onnx,T4,8,-1\n", ":2: ms is a time above 0, not \"-1\""},
        {"job,gpu,batch,ms\nx.onnx,T4,8,1\n", ":2: "},
        {"job,gpu,batch,ms\nx.onnx,T5,8,1\n", ":2: "},
        {"job,gpu,batch,ms\n\"x.onnx,T4,8,1\n", ":2: a quote is not closed"},
        {"job,gpu,batch,ms,compile\nx.onnx,T4,8,1,maybe\n", "neither yes nor no"},
        {"job,gpu,batch,ms,precision\nx.onnx,T4,8,1,fp17\n", "precision"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        write_text(table, wrong[i].text);
        run_calibrate(f, table, output);
        assert_int_equal(f->result.status, FAILED);
        expect_contains(f->result.err, wrong[i].message);
    }
    process_run((const char *const[]){MDOT_CLI, "calibrate", steps, NULL}, &f->result);
    assert_int_equal(f->result.status, USAGE);
    process_run((const char *const[]){MDOT_CLI, "calibrate", "-o", output, NULL}, &f->result);
    assert_int_equal(f->result.status, USAGE);
    free(table);
    free(output);
}

/* One measured step, without a file. */
static void one_measured_step_corrects_a_prediction(void **state)
{
    predict_command *f = *state;
    double before, after, other, bytes, more;
    RUN(f, resnet, "--gpu", "A100", "--batch", "64", "--precision", "amp", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "step_ms", &before, 1), 1);
    assert_int_equal(json_numbers(f->result.out, "peak_memory_bytes", &bytes, 1), 1);
    char measured[160];
    snprintf(measured, sizeof measured, "gpu=A100,batch=64,precision=amp,ms=%.9g,gib=%.9g", 1.5 * before,
             1.2 * bytes / (1 << 30));
    RUN(f, resnet, "--gpu", "A100", "--batch", "64", "--precision", "amp", "--json", "-q", "--measured", measured);
    if (f->result.status != OK) fail_msg("%s", f->result.err);
    assert_int_equal(json_numbers(f->result.out, "step_ms", &after, 1), 1);
    assert_int_equal(json_numbers(f->result.out, "peak_memory_bytes", &more, 1), 1);
    assert_compare(after, >, 1.3 * before);
    assert_compare(after, <, 1.51 * before);
    assert_compare(more, >, 1.1 * bytes);
    assert_compare(more, <, 1.21 * bytes);
    expect_contains(f->result.out, "\"calibrated_by\": 1");
    RUN(f, resnet, "--gpu", "A100", "--batch", "128", "--precision", "amp", "--explain", "-q", "--measured", measured);
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "  calibrated  by 1 measured step\n");
    expect_contains(f->result.out, "by 1 row of this GPU model, 1 of this job");
    expect_contains(f->result.out, "this job in this configuration");
    RUN(f, resnet, "--gpu", "A100", "--batch", "128", "--precision", "amp", "--explain", "--json", "-q", "--measured",
        measured);
    expect_contains(f->result.out, "\"correction\": {\"factor\": ");
    /* the command line gives omitted keys; a list continues the value */
    snprintf(measured, sizeof measured, "ms=%.9g", 1.5 * before);
    RUN(f, resnet, "--gpu", "A100", "--batch", "64", "--precision", "amp", "--json", "-q", "--measured", measured);
    assert_int_equal(json_numbers(f->result.out, "step_ms", &other, 1), 1);
    assert_within(other / after, 1, 1e-6);
    RUN(f, resnet, "--gpu", "A100", "--batch", "64", "--json", "-q", "--measured", measured, "--measured",
        "gpu=T4,batch=8,parallel=dp=2,tp=1,compile,torch=2.1,layout=nhwc,ms=90");
    assert_int_equal(f->result.status, OK);
    expect_contains(f->result.out, "\"calibrated_by\": 2");
}

/* The effect factors under `title` multiply to `factor`, and each effect states how well it is known. */
static void expect_effects(const char *text, const char *title, double factor)
{
    const char *line = strstr(text, title);
    if (line == NULL) fail_msg("no %s in %s", title, text);
    double product = 1, most_known = 0, one, known;
    size_t effects = 0;
    while ((line = strchr(line, '\n')) != NULL && strncmp(++line, "    ", 4) == 0) {
        const char *numbers = line + 4 + strcspn(line + 4, "0123456789");
        assert_int_equal(sscanf(numbers, "%lf %lf %%", &one, &known), 2);
        assert_compare(one, >, 0);
        assert_compare(known, >=, 0);
        assert_compare(known, <=, 100);
        product *= one;
        most_known = fmax(most_known, known);
        effects++;
    }
    if (!(effects >= 4 && most_known > 0)) fail_msg("%zu effects in %s", effects, text);
    if (!(fabs(product / factor - 1) < 0.001 * (double)effects)) fail_msg("%g, not %g: %s", product, factor, text);
}

static void explain_shows_each_effect_on_time_and_memory(void **state)
{
    predict_command *f = *state;
    double bytes, factor, interval;
    RUN(f, resnet, "--gpu", "A100", "--batch", "64", "--json", "-q");
    assert_int_equal(json_numbers(f->result.out, "peak_memory_bytes", &bytes, 1), 1);
    char measured[80];
    snprintf(measured, sizeof measured, "batch=64,ms=90,gib=%.9g", 1.3 * bytes / (1 << 30));
    RUN(f, resnet, "--gpu", "A100", "--batch", "128", "--explain", "-q", "--measured", measured);
    const char *at = strstr(f->result.out, "correction  x ");
    if (at == NULL) fail_msg("%s%s", f->result.out, f->result.err);
    assert_int_equal(sscanf(at, "correction  x %lf", &factor), 1);
    expect_effects(f->result.out, "effect on time", factor);
    at = strstr(f->result.out, "  memory x ");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "  memory x %lf, interval x %lf", &factor, &interval), 2);
    assert_compare(factor, >, 1.05);
    assert_compare(factor, <, 1.3);
    assert_compare(interval, <, 1);
    expect_effects(f->result.out, "effect on memory", factor);
    /* memory alone leaves the time as it is */
    snprintf(measured, sizeof measured, "batch=64,gib=%.9g", 1.3 * bytes / (1 << 30));
    RUN(f, resnet, "--gpu", "A100", "--batch", "128", "--explain", "-q", "--measured", measured);
    expect_contains(f->result.out, "correction  x 1.000, interval x 1.00");
    expect_effects(f->result.out, "effect on memory", factor);
    assert_null(strstr(f->result.out, "effect on time"));
}

/* BERT at several lengths is several jobs. All but the last have rows on T4 and A100 with equal residuals, and the last
 * one has a row on A100. Then --explain names the GPU model that corrects it on T4. */
static void explain_names_the_gpu_that_a_residual_is_carried_from(void **state)
{
    predict_command *f = *state;
    enum { LENGTHS = 9 };
    static const int lengths[LENGTHS] = {32, 48, 64, 96, 128, 192, 256, 320, 384};
    static const char *const gpus[] = {"T4", "A100"};
    static const char sweep[] = "--sweep=sequence=32,48,64,96,128,192,256,320,384";
    double ms[2][LENGTHS], values[2];
    char table[4096] = "job,dim,gpu,batch,precision,ms\n";
    for (int g = 0; g < 2; g++) {
        RUN(f, bert, sweep, "--gpu", gpus[g], "--batch", "8", "--precision", "fp32", "--json", "-q");
        assert_int_equal(json_numbers(f->result.out, "step_ms", ms[g], LENGTHS), LENGTHS);
    }
    for (int i = 0; i < 2 * LENGTHS; i++) {
        size_t used = strlen(table);
        int g = i % 2, k = i / 2;
        if (g == 0 && k == LENGTHS - 1) continue;
        snprintf(table + used, sizeof table - used, "%s,sequence=%d,%s,8,fp32,%.9g\n", bert, lengths[k], gpus[g],
                 ms[g][k] * (k % 2 == 0 ? 1.5 : 0.7));
    }
    char *steps_path = path_in(f, "common.csv"), *output = path_in(f, "common.cal");
    write_text(steps_path, table);
    run_calibrate(f, steps_path, output);
    if (f->result.status != OK) fail_msg("%s", f->result.err);
    const char *const asked[] = {"--dim=sequence=384", "--dim=sequence=512"};
    for (int k = 0; k < 2; k++) {
        RUN(f, bert, asked[k], "--gpu=T4", "--batch=8", "--precision=fp32", "-c", output, "--explain", "-q");
        const char *at = strstr(f->result.out, "\n  This job has rows on A100-SXM-40GB, which give x ");
        assert_compare(at != NULL, ==, k == 0);
        if (at == NULL) continue;
        assert_int_equal(sscanf(strstr(at, " x "), " x %lf of its factor", &values[0]), 1);
        assert_int_equal(sscanf(strstr(at, "residuals is "), "residuals is %lf.", &values[1]), 1);
        if (!(values[0] > 1.02 && values[1] > 0.2 && values[1] < 1)) fail_msg("%s", at);
    }
    RUN(f, bert, asked[0], "--gpu=T4", "--batch=8", "--precision=fp32", "-c", output, "--explain", "-q", "--json");
    unsigned char *schema = NULL;
    size_t size_bytes = 0;
    assert_int_equal(bs_read_file(MDOT_SOURCE_DIR "/docs/predict.schema.json", &schema, &size_bytes, NULL), MDOT_OK);
    json_assert_schema((const char *)schema, f->result.out);
    free(schema);
    expect_contains(f->result.out, "\"carried\": {\"gpu\": \"A100-SXM-40GB\", \"correlation\": 0.");
    free(output);
    free(steps_path);
}

static void hostile_steps_are_refused(void **state)
{
    predict_command *f = *state;
    static const struct {
        const char *text, *message;
    } wrong[] = {
        {"", "lacks a value"},
        {",", "lacks a value"},
        {"ms", "\"ms\" lacks a value: write KEY=VALUE"},
        {"ms=0", "ms is a time above 0, not \"0\""},
        {"ms=-3", "ms is a time above 0, not \"-3\""},
        {"ms=nan", "ms is a time above 0, not \"nan\""},
        {"ms=1e999", "ms is a time above 0, not \"1e999\""},
        {"gib=x", "gib is a size above 0, not \"x\""},
        {"batch=8", "a row needs ms, gib or both"},
        {"ms=3,ms=4", "key ms appears twice"},
        {"mss=3", "there is no key \"mss\""},
        {"job=x.onnx,ms=3", "job does not belong to a step of the predicted job"},
        {"gpu=T5,ms=3", "unknown GPU \"T5\""},
        {"batch=0,ms=3", "mdot predict: --batch takes"},
        {"precision=fp17,ms=3", "mdot predict: --precision: unknown value"},
        {"compile=maybe,ms=3", "neither yes nor no"},
        {"torch=2.1,torch=2.2,ms=3", "key torch appears twice"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        RUN(f, resnet, "--gpu", "A100", "--batch", "64", "-q", "--measured", wrong[i].text);
        assert_int_equal(f->result.status, FAILED);
        expect_contains(f->result.err, wrong[i].message);
    }
    RUN(f, resnet, "--gpu", "A100,T4", "--batch", "64", "-q", "--measured", "ms=3");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "a row needs a gpu and a batch");
    RUN(f, resnet, "--gpu", "A100", "-c", "x.cal", "--measured", "ms=3");
    assert_int_equal(f->result.status, USAGE);
}

/* A step below the bound of the GPU's peak rates is refused with the bound, in an option and in a table. */
static void impossible_steps_are_refused_with_the_bound(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet, "--gpu", "A100", "--batch", "64", "-q", "--measured", "ms=.05");
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err,
                    "the measured step of 0.05 ms is impossible: at the GPU's peak rates it takes at least ");
    double bound = strtod(strstr(f->result.err, "at least ") + strlen("at least "), NULL);
    assert_compare(bound, >, 1);
    assert_compare(bound, <, 30);
    char measured[32];
    snprintf(measured, sizeof measured, "ms=%g", 1.01 * bound);
    RUN(f, resnet, "--gpu", "A100", "--batch", "64", "-q", "--measured", measured);
    assert_int_equal(f->result.status, OK);
    char *table = path_in(f, "table.csv"), *output = path_in(f, "x.cal");
    for (int wrong = 0; wrong < 4; wrong++) { /* the line is named, whichever it is */
        char place[48];
        FILE *file = fopen(table, "w");
        fputs("# a comment\njob,gpu,batch,ms\n", file);
        for (int i = 0; i < 4; i++) fprintf(file, "%s,A100,64,%s\n", resnet, i == wrong ? ".05" : "100");
        fclose(file);
        run_calibrate(f, table, output);
        assert_int_equal(f->result.status, FAILED);
        snprintf(place, sizeof place, "table.csv:%d: the measured", wrong + 3);
        expect_contains(f->result.err, place);
        assert_null(strstr(f->result.err, "row "));
    }
    free(table);
    free(output);
}

static double ms_of(predict_command *f, const char *option, const char *step)
{
    double ms;
    RUN(f, resnet, "--gpu", "A100", "--batch", "64", "-q", "--json", "--measured", step, option);
    if (f->result.status != OK) fail_msg("%s %s: %s", option, step, f->result.err);
    assert_int_equal(json_numbers(f->result.out, "step_ms", &ms, 1), 1);
    return ms;
}

/* A step's empty key is the option's default, whatever the command line states; "no" is that of a flag. */
static void an_empty_key_of_a_step_is_the_default(void **state)
{
    static const char *const rows[][3] = {{"--compile", "compile=no", "compile=yes"},
                                          {"--torch=1.12", "torch=", "torch=1.12"},
                                          {"--accumulate=4", "accumulate=", "accumulate=4"},
                                          {"--parallel=dp=8", "parallel=", "parallel=dp=8"},
                                          {"--stages=8,8", "parallel=", "parallel=pp=2,blocks=16"},
                                          {"--gpus=8", "gpus=", "gpus=8"},
                                          {"--precision=amp", "precision=", "precision=amp"},
                                          {"--power-limit=200", "power-limit=", "power-limit=200"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char empty[64], stated[64], left[] = "ms=120";
        snprintf(empty, sizeof empty, "%s,ms=120", rows[i][1]);
        snprintf(stated, sizeof stated, "%s,ms=120", rows[i][2]);
        double by_default = ms_of(*state, rows[i][0], empty), by_command = ms_of(*state, rows[i][0], left);
        assert_compare(by_default, !=, by_command);
        if (i != 4) assert_within(ms_of(*state, rows[i][0], stated), by_command, 1e-9 * by_command);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(heldout_rows_are_predicted_from_the_other_half, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(predictions_name_their_calibration, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_report_uses_the_calibration, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(one_measured_step_corrects_a_prediction, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(explain_names_the_gpu_that_a_residual_is_carried_from, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(explain_shows_each_effect_on_time_and_memory, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(hostile_steps_are_refused, predict_command_set_up, predict_command_tear_down),
        cmocka_unit_test_setup_teardown(columns_match_the_options_of_predict, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(an_empty_key_of_a_step_is_the_default, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(impossible_steps_are_refused_with_the_bound, predict_command_set_up,
                                        predict_command_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
