/* test_cli_explain.c — `mdot predict --explain`: tables that add up to the prediction and fit a terminal. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/assertions.h"
#include "tests/support/json.h"
#include "tests/support/predict_command.h"

enum { MAX_OPERATORS = 512, COLUMNS = 80, NAME_COLUMNS = 27 };

static double sum_of(const char *json, const char *key)
{
    double values[MAX_OPERATORS], sum = 0;
    size_t count = json_numbers(json, key, values, MAX_OPERATORS);
    assert_compare(count, >, 0);
    assert_compare(count, <, MAX_OPERATORS);
    for (size_t i = 0; i < count; i++) sum += values[i];
    return sum;
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * fabs(want))) fail_msg("%.9g, not %.9g", got, want);
}

/* The phase keys occur in the explanation and in each operator, so each phase counts twice. */
static void operators_in_json_add_up_to_the_prediction(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet, "--gpu", "A100", "--batch", "32", "--precision", "amp", "--explain", "--json", "-q");
    assert_int_equal(f->result.status, OK);
    const char *json = f->result.out;
    assert_true(json_is_valid(json));
    double operators = (sum_of(json, "forward_ms") + sum_of(json, "data_gradient_ms") +
                        sum_of(json, "weight_gradient_ms") + sum_of(json, "optimizer_ms")) /
                       2;
    double waiting =
        sum_of(json, "host_ms") + sum_of(json, "communication_ms") + sum_of(json, "idle_ms") + sum_of(json, "data_ms");
    assert_near(operators + waiting, sum_of(json, "step_ms"));
    static const char *const sizes[] = {"weight_bytes", "gradient_bytes", "optimizer_bytes", "activation_bytes"};
    double bytes = 0;
    for (size_t i = 0; i < 4; i++) bytes += sum_of(json, sizes[i]) / 2;
    assert_near(bytes, sum_of(json, "peak_memory_bytes"));
    expect_contains(json, "\"by_roofline\": false, \"analytic_estimate\": false");
    expect_contains(json, "\"module\": ");
}

/* Returns the sum of column `which` in the lines after `title`. */
static double sum_column(const char *text, const char *title, int which)
{
    const char *at = strstr(text, title);
    assert_non_null(at);
    double sum = 0;
    for (at = strchr(at, '\n') + 1; strncmp(at, "    ", 4) == 0; at = strchr(at, '\n') + 1) {
        double n[7] = {0};
        char line[256], *numbers = line + 4 + NAME_COLUMNS;
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        if (strncmp(at + 4, "waiting", 7) == 0) {
            assert_int_equal(sscanf(numbers, "%lf", &n[4]), 1);
        } else {
            int read = sscanf(numbers, "%lf %lf %lf %lf %lf %lf %lf", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6]);
            assert_int_equal(read, 7);
        }
        sum += n[which];
    }
    return sum;
}

static void each_table_adds_up_and_fits_a_terminal(void **state)
{
    predict_command *f = *state;
    enum { PERCENT_OF_TIME = 4, PERCENT_OF_MEMORY = 6 };
    RUN(f, bert, "--dim", "sequence=128", "--gpu", "A100", "--batch", "32", "--precision", "amp", "--checkpoint",
        "--explain", "-q");
    assert_int_equal(f->result.status, OK);
    static const char *const titles[] = {"by block, ms", "by operator, ms", "by module, ms"};
    for (size_t i = 0; i < 3; i++) {
        double time = sum_column(f->result.out, titles[i], PERCENT_OF_TIME);
        double memory = sum_column(f->result.out, titles[i], PERCENT_OF_MEMORY);
        if (fabs(time - 100) > 1 || fabs(memory - 100) > 1) fail_msg("%s: %g %%, %g %%", titles[i], time, memory);
    }
    expect_contains(f->result.out, "1: bert.encoder.layer.0");
    expect_contains(f->result.out, "\n    Linear   ");
    expect_contains(f->result.out, "output.dense Linear");
    expect_contains(f->result.out, "time by phase, estimated analytically where the predictor lacks an input\n");
    for (const char *line = strstr(f->result.out, "time by phase"); *line != '\0';) {
        size_t length = strcspn(line, "\n");
        if (length > COLUMNS) fail_msg("%zu columns: %.*s", length, (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static void a_table_of_several_predictions_is_not_explained(void **state)
{
    predict_command *f = *state;
    RUN(f, resnet, "--gpu", "A100,T4", "--explain");
    assert_int_equal(f->result.status, USAGE);
    expect_contains(f->result.err, "--explain requires a single prediction, or --json");
    RUN(f, resnet, "--gpu", "A100", "--sweep", "batch=1,2", "--explain");
    assert_int_equal(f->result.status, USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(operators_in_json_add_up_to_the_prediction, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(each_table_adds_up_and_fits_a_terminal, predict_command_set_up,
                                        predict_command_tear_down),
        cmocka_unit_test_setup_teardown(a_table_of_several_predictions_is_not_explained, predict_command_set_up,
                                        predict_command_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
