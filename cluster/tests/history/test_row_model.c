/* test_row_model.c — a compiled artefact answers rows as its formula does, and any other artefact is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/history/support/linear.h"
#include "tests/simulator/support/numbers.h"
#include "tests/support/process.h"

static linear random_network(void)
{
    linear n = {.row = {"rows", "scores", 1 + (int)linear_random(0, 15.99), 1 + (int)linear_random(0, 15.99)}};
    for (int i = 0; i < LINEAR_MOST; i++) {
        for (int j = 0; j < LINEAR_MOST; j++) n.factors[i][j] = (float)linear_random(-1, 1);
        n.sums[i] = (float)linear_random(.5, 2);
    }
    return n;
}

static double formula(const linear *n, const float *numbers, int answer)
{
    double sum = n->sums[answer];
    for (int i = 0; i < n->row.numbers; i++) sum += (double)numbers[i] * n->factors[i][answer];
    return sum;
}

/* The logarithm of an answer at or below 0 is not finite: then the call fails and names the output. */
static void answers_are_those_of_the_formula_or_an_error(void **state)
{
    (void)state;
    char *folder = process_make_folder(), path[256];
    snprintf(path, sizeof path, "%s/n.mdot", folder);
    for (int round = 0; round < 12; round++) {
        linear n = random_network();
        if (round % 2 == 1) n.last = "Log";
        linear_compile(&n, path);
        hs_row_model *model = NULL;
        mdot_error err = {0};
        if (hs_row_model_open(path, &n.row, &model, &err) != MDOT_OK) fail_msg("%s", err.message);
        int failures = 0;
        for (int i = 0; i < 300; i++) {
            float numbers[LINEAR_MOST], answers[LINEAR_MOST + 1] = {[LINEAR_MOST] = 7};
            bool has_margin = true, is_finite = true;
            for (int j = 0; j < n.row.numbers; j++) numbers[j] = (float)linear_random(-2, 2);
            for (int j = 0; j < n.row.answers; j++) {
                double linear_answer = formula(&n, numbers, j);
                has_margin = has_margin && (n.last == NULL || fabs(linear_answer) > .01);
                is_finite = is_finite && (n.last == NULL || linear_answer > 0);
            }
            if (!has_margin) continue;
            mdot_status status = hs_row_model_ask(model, numbers, answers, &err);
            assert_int_equal(status, is_finite ? MDOT_OK : MDOT_MALFORMED);
            failures += !is_finite;
            if (!is_finite) assert_non_null(strstr(err.message, "scores number"));
            for (int j = 0; is_finite && j < n.row.answers; j++) {
                double sum = formula(&n, numbers, j), wanted = n.last != NULL ? log(sum) : sum;
                expect_within(answers[j], wanted, 1e-3);
            }
            assert_true(answers[LINEAR_MOST] == 7);
        }
        assert_true((failures > 0) == (n.last != NULL));
        hs_row_model_close(model);
    }
    process_remove_folder(folder);
}

/* Names, counts and the finite answer to zeros are checked when the artefact is opened. */
static void other_artefacts_are_refused_when_they_are_opened(void **state)
{
    (void)state;
    char *folder = process_make_folder(), path[256];
    snprintf(path, sizeof path, "%s/n.mdot", folder);
    linear n = random_network();
    n.row.numbers = n.row.answers = 5;
    linear_compile(&n, path);
    const hs_row others[] = {{"row", "scores", 5, 5},  {"rows", "score", 5, 5},  {"rows", "scores", 4, 5},
                             {"rows", "scores", 6, 5}, {"rows", "scores", 5, 4}, {"rows", "scores", 5, 6}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        hs_row_model *model = NULL;
        mdot_error err = {0};
        assert_true(hs_row_model_open(path, &others[i], &model, &err) != MDOT_OK);
        assert_null(model);
        char expected[64];
        snprintf(expected, sizeof expected, "it must map %s to %s", others[i].input, others[i].output);
        assert_non_null(strstr(err.message, path));
        assert_non_null(strstr(err.message, expected));
    }
    hs_row_model *model = NULL;
    mdot_error err = {0};
    assert_int_equal(hs_row_model_open("no-such.mdot", &n.row, &model, &err), MDOT_NOT_FOUND);
    for (int j = 0; j < 5; j++) { /* each answer alone is the one that is not finite */
        linear broken = n;
        broken.last = "Log";
        for (int k = 0; k < 5; k++) broken.sums[k] = k == j ? -1 : 1;
        linear_compile(&broken, path);
        assert_int_equal(hs_row_model_open(path, &n.row, &model, &err), MDOT_MALFORMED);
        assert_non_null(strstr(err.message, "scores number"));
    }
    assert_null(model);
    hs_row_model_close(NULL);
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_the_formula_or_an_error),
        cmocka_unit_test(other_artefacts_are_refused_when_they_are_opened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
