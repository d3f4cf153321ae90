/* test_training_cost.c — the hours of a training add up, and each of its options changes the part that it names. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "mdot/mdot.h"
#include "tests/support/assertions.h"

/* 1e6 samples in steps of 100 samples and 360 ms: an hour of training on 8 GPUs. */
static mdot_plan_layout layout_of_an_hour(void)
{
    mdot_plan_layout layout = MDOT_INIT(mdot_plan_layout);
    layout.configuration.gpu_count = 8;
    layout.samples = 100;
    layout.prediction.step_ms = 360;
    layout.prediction.lower_ms = 300;
    layout.prediction.upper_ms = 450;
    layout.prediction.average_watts = 500;
    layout.prediction.parameters = 1e9;
    return layout;
}

static mdot_training_run plain_run(void)
{
    mdot_training_run run = MDOT_INIT(mdot_training_run);
    run.samples = 1e6;
    return run;
}

static mdot_training_cost cost_of(const mdot_training_run *run)
{
    mdot_plan_layout layout = layout_of_an_hour();
    mdot_training_cost cost = MDOT_INIT(mdot_training_cost);
    mdot_error err = {0};
    if (mdot_training_cost_of(run, &layout, &cost, &err) != MDOT_OK) fail_msg("%s", err.message);
    double parts =
        cost.step_hours + cost.evaluation_hours + cost.checkpoint_hours + cost.failure_hours + cost.startup_hours;
    assert_within(parts, cost.hours, 1e-12 * cost.hours);
    assert_compare(cost.lower_hours, <=, cost.hours);
    assert_compare(cost.upper_hours, >=, cost.hours);
    assert_within(cost.gpu_hours, 8 * cost.hours, 1e-9 * cost.hours);
    return cost;
}

static void steps_take_their_time(void **state)
{
    (void)state;
    mdot_training_run run = plain_run();
    run.price = 2;
    run.grid_grams_per_kwh = 350;
    mdot_training_cost cost = cost_of(&run);
    assert_compare(cost.steps, ==, 10000);
    assert_within(cost.hours, 1, 1e-12);
    assert_within(cost.cost, 16, 1e-9);
    assert_within(cost.kwh, 4, 1e-9);
    assert_within(cost.co2_kg, 1.4, 1e-9);
    assert_compare(cost.in_time, ==, 1);
    run.samples = 100.5; /* a begun step counts */
    assert_compare(cost_of(&run).steps, ==, 2);
}

static void evaluations_cost_a_forward_pass(void **state)
{
    (void)state;
    mdot_training_run run = plain_run();
    run.evaluation_steps = 1000;
    run.evaluation_samples =
        3e5; /* ten evaluations of 3e5 samples: 3e6 forward passes, as long as 1e6 steps' samples */
    assert_within(cost_of(&run).evaluation_hours, 1, 1e-9);
}

/* The interval of Young and Daly has the lowest cost among all intervals. */
static void checkpoints_are_as_frequent_as_pays(void **state)
{
    (void)state;
    mdot_training_run run = plain_run();
    run.storage_gbps = 1;
    assert_compare(cost_of(&run).checkpoint_hours, ==, 0); /* without failures, none pays */
    run.gpu_failure_hours = 100;
    mdot_training_cost best = cost_of(&run);
    assert_compare(best.checkpoint_minutes, >, 0);
    for (double factor = 0.5; factor < 2.1; factor += 0.25) {
        if (factor == 1) continue;
        run.checkpoint_minutes = best.checkpoint_minutes * factor;
        assert_compare(cost_of(&run).hours, >, best.hours);
    }
}

static void failures_and_starts_add_time(void **state)
{
    (void)state;
    mdot_training_run run = plain_run();
    run.startup_minutes = 6;
    assert_within(cost_of(&run).hours, 1.1, 1e-9);
    run.storage_gbps = 10;
    double last = 0;
    for (double hours = 10000; hours > 50; hours /= 3) {
        run.gpu_failure_hours = hours;
        run.restart_minutes = 5;
        mdot_training_cost cost = cost_of(&run);
        assert_compare(cost.failure_hours, >, last);
        last = cost.failure_hours;
    }
    mdot_training_run interrupted = plain_run();
    interrupted.storage_gbps = 10;
    interrupted.interruptions_per_hour = 0.5;
    assert_compare(cost_of(&interrupted).failure_hours, >, 0);
}

static void a_deadline_is_met_as_often_as_the_interval_says(void **state)
{
    (void)state;
    mdot_training_run run = plain_run();
    run.price = 1;
    run.deadline_hours = 1;
    assert_within(cost_of(&run).in_time, 0.5, 1e-9);
    run.deadline_hours = 1.25; /* the upper end of the step, 450 ms */
    run.budget = 10;
    mdot_training_cost cost = cost_of(&run);
    assert_within(cost.in_time, 0.95, 1e-6);
    assert_within(cost.in_budget, 0.95, 1e-6);
    double last = 0;
    for (run.deadline_hours = 0.5; run.deadline_hours < 3; run.deadline_hours *= 1.1) {
        assert_compare(cost_of(&run).in_time, >=, last);
        last = cost_of(&run).in_time;
    }
    assert_compare(last, >, 0.999);
}

static void wrong_trainings_are_refused_by_name(void **state)
{
    (void)state;
    mdot_plan_layout layout = layout_of_an_hour();
    mdot_training_cost cost = MDOT_INIT(mdot_training_cost);
    for (size_t offset = offsetof(mdot_training_run, samples); offset < sizeof(mdot_training_run);
         offset += sizeof(double)) {
        static const double wrong[] = {-1, INFINITY, NAN, 1e300};
        for (size_t i = 0; i < 4; i++) {
            mdot_training_run run = plain_run();
            memcpy((char *)&run + offset, &wrong[i], sizeof(double));
            assert_int_equal(mdot_training_cost_of(&run, &layout, &cost, NULL), MDOT_INVALID_ARGUMENT);
        }
    }
    mdot_training_run run = plain_run();
    run.gpu_failure_hours = 1e-3; /* no checkpoint: each failure undoes half the training */
    mdot_error err = {0};
    assert_int_equal(mdot_training_cost_of(&run, &layout, &cost, &err), MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(err.message, "storage_gbps"));
}

static double unit(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005 + 1442695040888963407;
    return (double)(*seed >> 33) / (1u << 31);
}

static mdot_training_cost cost_of_phases(const mdot_training_run *run, const mdot_training_phase *phases, size_t count)
{
    mdot_training_cost cost = MDOT_INIT(mdot_training_cost);
    mdot_error err = {0};
    if (mdot_training_cost_of_phases(run, phases, count, &cost, &err) != MDOT_OK) fail_msg("%s", err.message);
    return cost;
}

/* Over random trainings: a training equals its parts, in any order, where its epochs are cut; and steps, hours and cost
 * are the sums over phases. */
static void phases_add_up(void **state)
{
    (void)state;
    uint64_t seed = 50;
    for (int round = 0; round < 300; round++) {
        mdot_training_run run = plain_run();
        mdot_plan_layout layouts[4];
        mdot_training_phase phases[4], parts[8];
        run.samples = 1 + floor(unit(&seed) * 1e5);
        run.price = 2;
        run.grid_grams_per_kwh = 300;
        if (round % 2 == 0) run.storage_gbps = 1, run.gpu_failure_hours = 1e4, run.restart_minutes = 3;
        double steps = 0, hours = 0, lower = 0, upper = 0, gpu_hours = 0, kwh = 0;
        for (size_t i = 0; i < 4; i++) {
            layouts[i] = layout_of_an_hour();
            layouts[i].configuration.gpu_count = 1 + (uint32_t)(8 * unit(&seed));
            layouts[i].samples = 1 + floor(unit(&seed) * 1000);
            layouts[i].prediction.step_ms = 310 + 100 * unit(&seed);
            double epochs = 1 + floor(unit(&seed) * 20), first = floor(epochs * unit(&seed));
            phases[i] = (mdot_training_phase){&layouts[i], epochs};
            parts[2 * i] = (mdot_training_phase){&layouts[i], first > 0 ? first : epochs / 2};
            parts[2 * i + 1] = (mdot_training_phase){&layouts[i], epochs - parts[2 * i].epochs};
            if (first == 0) { /* half an epoch ends with a smaller step */
                parts[2 * i].epochs = epochs;
                parts[2 * i + 1].epochs = 1;
                phases[i].epochs = epochs + 1;
            }
            mdot_training_cost alone = cost_of_phases(&run, &phases[i], 1);
            assert_compare(alone.steps, ==, phases[i].epochs * ceil(run.samples / layouts[i].samples));
            steps += alone.steps;
            hours += alone.hours;
            lower += alone.lower_hours;
            upper += alone.upper_hours;
            gpu_hours += alone.gpu_hours;
            kwh += alone.kwh;
        }
        mdot_training_cost whole = cost_of_phases(&run, phases, 4), cut = cost_of_phases(&run, parts, 8);
        const double expected[] = {steps, hours, lower, upper, gpu_hours, 2 * gpu_hours, kwh, .3 * kwh};
        const double got[][2] = {{whole.steps, cut.steps},
                                 {whole.hours, cut.hours},
                                 {whole.lower_hours, cut.lower_hours},
                                 {whole.upper_hours, cut.upper_hours},
                                 {whole.gpu_hours, cut.gpu_hours},
                                 {whole.cost, cut.cost},
                                 {whole.kwh, cut.kwh},
                                 {whole.co2_kg, cut.co2_kg}};
        for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
            for (size_t j = 0; j < 2; j++) assert_within(got[i][j], expected[i], 1e-9 * expected[i]);
    }
}

/* Evaluations follow the whole training's steps; a start belongs to each change of GPUs; a failure without checkpoints
 * undoes half of all phases. */
static void phases_are_one_training(void **state)
{
    (void)state;
    mdot_training_run run = plain_run();
    mdot_plan_layout layout = layout_of_an_hour(), single = layout;
    single.configuration.gpu_count = 1;
    const mdot_training_phase tenth[10] = {{&layout, .1}, {&layout, .1}, {&layout, .1}, {&layout, .1}, {&layout, .1},
                                           {&layout, .1}, {&layout, .1}, {&layout, .1}, {&layout, .1}, {&layout, .1}};
    run.evaluation_steps = 3000; /* of 10,000: three evaluations, and none within a tenth */
    run.evaluation_samples = 3e5;
    run.startup_minutes = 6;
    run.gpu_failure_hours = 100;
    mdot_training_cost whole = cost_of(&run), cut = cost_of_phases(&run, tenth, 10);
    assert_within(cut.evaluation_hours, whole.evaluation_hours, 1e-12);
    assert_within(cut.startup_hours, .1, 1e-12);
    assert_within(cut.failure_hours, whole.failure_hours, 1e-9);
    assert_within(cut.hours, whole.hours, 1e-9);
    const mdot_training_phase elastic[] = {{&single, 1}, {&single, 1}, {&layout, 1}, {&single, 1}};
    assert_within(cost_of_phases(&run, elastic, 4).startup_hours, .3, 1e-12);
}

static void phases_without_epochs_are_refused(void **state)
{
    (void)state;
    mdot_plan_layout layout = layout_of_an_hour();
    mdot_training_run run = plain_run();
    mdot_training_cost cost = MDOT_INIT(mdot_training_cost);
    static const double wrong[] = {0, -1, INFINITY, NAN};
    for (size_t i = 0; i < 4; i++) {
        const mdot_training_phase phases[] = {{&layout, 1}, {&layout, wrong[i]}};
        mdot_error err = {0};
        assert_int_equal(mdot_training_cost_of_phases(&run, phases, 2, &cost, &err), MDOT_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "phase 2"));
        assert_compare(cost.hours, ==, 0);
    }
    for (double samples = 1; samples <= 1e15; samples *= 1e5) { /* answers are finite, or a message says why */
        mdot_error err = {0};
        run.samples = samples;
        const mdot_training_phase phases[] = {{&layout, 1e13}};
        if (mdot_training_cost_of_phases(&run, phases, 1, &cost, &err) == MDOT_OK)
            assert_true(isfinite(cost.upper_hours) && cost.steps <= 1e15);
        else
            assert_non_null(strstr(err.message, "reduce samples or epochs"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_take_their_time),
        cmocka_unit_test(evaluations_cost_a_forward_pass),
        cmocka_unit_test(checkpoints_are_as_frequent_as_pays),
        cmocka_unit_test(failures_and_starts_add_time),
        cmocka_unit_test(a_deadline_is_met_as_often_as_the_interval_says),
        cmocka_unit_test(wrong_trainings_are_refused_by_name),
        cmocka_unit_test(phases_add_up),
        cmocka_unit_test(phases_are_one_training),
        cmocka_unit_test(phases_without_epochs_are_refused),
    };
    return cmocka_run_group_tests_name("training cost", tests, NULL, NULL);
}
