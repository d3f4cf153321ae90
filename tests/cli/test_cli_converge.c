/* test_cli_converge.c — `mdot converge` from the user's view: answers, JSON, and tables that it refuses. */
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
#include "tests/support/process.h"

static process_result result;

static void ask(const char *table, const char *target, const char *json)
{
    char *folder = process_make_folder(), *path = process_in_folder(folder, "losses.csv");
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(table, file);
    fclose(file);
    process_run((const char *const[]){MDOT_CLI, "converge", path, "--target", target, json, NULL}, &result);
    free(path);
    process_remove_folder(folder);
}

static const char *curve(void)
{
    static char text[16384];
    size_t used = (size_t)sprintf(text, "step,loss\n");
    for (int step = 10; step <= 2000; step += 10)
        used += (size_t)sprintf(text + used, "%d,%.6f\n", step, 1.5 + 20 / sqrt(step));
    return text;
}

static void a_target_has_steps_and_an_interval(void **state)
{
    (void)state;
    double steps;
    ask(curve(), "1.8", "--json");
    assert_int_equal(result.status, 0);
    assert_true(json_is_valid(result.out));
    assert_int_equal(json_numbers(result.out, "steps", &steps, 1), 1);
    assert_true(fabs(steps / (400 / .09) - 1) < .1);
    ask(curve(), "1.8", NULL);
    expect_contains(result.out, "from 200 points to step 2000");
    expect_contains(result.out, "90 % interval");
}

static void targets_out_of_reach_and_reached_ones_say_so(void **state)
{
    (void)state;
    ask(curve(), "1.2", NULL);
    assert_int_equal(result.status, 0);
    expect_contains(result.out, "never, by this fit");
    ask(curve(), "1.2", "--json");
    expect_contains(result.out, "\"steps\": null");
    ask(curve(), "3", NULL);
    expect_contains(result.out, "the curve has reached it");
}

static void other_tables_are_refused_with_the_reason(void **state)
{
    (void)state;
    static const char *const tables[][2] = {
        {"x,y\n1,2\n", "no column step"},
        {"step loss\n1 2\n", "no column step; name its column with --step. The first, up to a \",\", is \"step loss\""},
        {"step;loss\n1;2,5\n", ":2: loss is not a number: \"2,5\""},
        {"step,loss\n10,3\n20,2\n10,1\n", ":4: step 10 behind 20; delete rows that a resumed run repeats"},
        {"iter,loss\n1,3\n1,3\n", "name a column that counts through all epochs with --step"},
        {"{\n  \"log_history\": [\n", ":1: JSON in place of a table"},
        {"step,loss\n1,nan\n", "the training has diverged"},
        {"step,loss\n1,x\n", ":2: loss is not a number"},
        {"step,loss\n1,2\n2,-1\n", ":3: a negative loss; add a constant to losses and --target"},
        {"step,a_loss,b_loss\n1,2,3\n", "a_loss and b_loss may be the loss; choose one with --loss"},
        {"step,loss\n1,2\n2,1\n", "2 points, but a fit needs at least 10"},
        {"step,loss\n1,2\n", "1 point, but a fit"},
        {"step,loss\n", "0 points"}};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        ask(tables[i][0], "1", NULL);
        assert_int_equal(result.status, 1);
        expect_contains(result.err, "losses.csv");
        expect_contains(result.err, tables[i][1]);
    }
    process_run((const char *const[]){MDOT_CLI, "converge", "losses.csv", NULL}, &result);
    assert_int_equal(result.status, 2);
}

/* Exports of other programs have the same answer: names, more columns, rows of other metrics, steps without a loss. */
static void exports_of_other_programs_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *header, *row, *other; /* the row has step and loss */
    } exports[] = {
        {"Wall time,Step,Value", "1.7e9,%d,%.6f", "1.7e9,%d,NaN"},
        {"\"Step\",\"a - train/loss\",\"a - train/loss__MIN\",\"a - train/loss__MAX\"", "\"%d\",\"%.6f\",1,2", "%d,,,"},
        {"epoch,global_step,train_loss,lr", "0.1,%d,%.6f,1e-3", "0.1,%d,inf,1e-3"},
        {"lr,trainer/global_step,Loss", ",%d,%.6f", ".1,%d,"},
        {"epoch,loss", "%d,%.6f", "%d,"},
        {"epoch,step,train_loss_epoch,train_loss_step", "0,%d,,%.6f", "0,%d,1,"},
        {"\xef\xbb\xbf\"epoch\";\"iteration\";\"loss\"", "1;\"%d\";\"%.6f\"", "1;%d;nan"},
        {"Iter\ttrain_loss\tval_loss_mean", "%d\t%.6f\t", "%d\t\t1"},
        {"_steps,loss", "%d,%.6f", "%d,"},
    };
    double plain, steps;
    ask(curve(), "1.8", "--json");
    assert_int_equal(json_numbers(result.out, "steps", &plain, 1), 1);
    for (size_t i = 0; i < sizeof exports / sizeof *exports; i++) {
        char text[32768];
        size_t used = (size_t)sprintf(text, "%s\n", exports[i].header);
        for (int step = 10; step <= 2000; step += 10) {
            if (step % 50 == 0) used += (size_t)sprintf(text + used, exports[i].other, step - 1);
            if (step % 50 == 0) text[used++] = '\n';
            used += (size_t)sprintf(text + used, exports[i].row, step, 1.5 + 20 / sqrt(step));
            text[used++] = '\n', text[used] = '\0';
        }
        ask(text, "1.8", "--json");
        assert_int_equal(json_numbers(result.out, "steps", &steps, 1), 1);
        if (steps != plain) fail_msg("%s: %g steps, not %g", exports[i].header, steps, plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_target_has_steps_and_an_interval),
        cmocka_unit_test(targets_out_of_reach_and_reached_ones_say_so),
        cmocka_unit_test(other_tables_are_refused_with_the_reason),
        cmocka_unit_test(exports_of_other_programs_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
