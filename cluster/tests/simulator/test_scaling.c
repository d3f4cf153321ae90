/* test_scaling.c — step times by placement and gains of batch sizes: the formulas, the fit, the tables, and the figures
 * that Pollux' authors published, if ../shared has them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/csv.h"
#include "simulator/core/workload.h"
#include "simulator/input/input.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

#define STEPS MDOT_SHARED_DATA "/measured-2026/pollux_step_times.csv"
#define NOISE MDOT_SHARED_DATA "/measured-2026/pollux_gradient_noise.csv"

static void expect_near(double got, double want, double relative)
{
    if (!(fabs(got - want) <= relative * fabs(want))) fail_msg("%.12g, expected %.12g", got, want);
}

/* Root mean squared error in the logarithm of the step time. */
static double fit_error(const sc_step_table *table)
{
    double sum = 0;
    for (size_t i = 0; i < table->row_count; i++) {
        const sc_step_row *row = &table->rows[i];
        double step_s = sc_step_model_s(&table->model, row->placement.nodes, row->placement.gpus, row->samples, 1);
        sum += pow(log(step_s / row->step_s), 2);
    }
    return sqrt(sum / (double)table->row_count);
}

static sc_placement place(uint64_t pattern)
{
    sc_placement placement = {0};
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)pattern);
    for (const char *d = digits; *d != '\0'; d++) {
        placement.nodes++;
        placement.gpus += *d - '0';
        sc_placement_add(&placement, *d - '0');
    }
    return placement;
}

/* ---- Formulas ---------------------------------------------------------------------------------------------------- */

static void the_model_adds_or_overlaps_synchronisation(void **state)
{
    (void)state;
    sc_step_model m = {.1, .01, .2, .03, .5, .04, 1};
    expect_near(sc_step_model_s(&m, 1, 1, 10, 1), .2, 1e-12);
    expect_near(sc_step_model_s(&m, 1, 2, 10, 1), .2 + .2, 1e-12);
    expect_near(sc_step_model_s(&m, 1, 4, 10, 1), .2 + .26, 1e-12);
    expect_near(sc_step_model_s(&m, 2, 4, 10, 1), .2 + .58, 1e-12);
    expect_near(sc_step_model_s(&m, 2, 4, 10, 3), 3 * .2 + .58, 1e-12);
    m.overlap = 2;
    expect_near(sc_step_model_s(&m, 2, 4, 10, 1), sqrt(.2 * .2 + .58 * .58), 1e-12);
    m.overlap = 10; /* nearly the larger of the two */
    expect_near(sc_step_model_s(&m, 2, 4, 10, 1), .58, 1e-4);
}

static void a_batch_gains_less_than_its_scale(void **state)
{
    (void)state;
    sc_noise_row noise[] = {{16, 0, 3}, {16, 100, 3}, {64, 0, 3}, {64, 100, 15}};
    sc_scaling s = {.noise = noise, .noise_count = 4, .least_batch = 16, .most_batch = 64};
    expect_near(sc_scaling_gain(&s, 16, 50), 1, 1e-12);
    expect_near(sc_scaling_gain(&s, 0, 50), 1, 1e-12);
    expect_near(sc_scaling_gain(&s, 64, 0), 4 / (3. / 4 + 1), 1e-12);
    expect_near(sc_scaling_gain(&s, 64, 50), 10 / (9. / 4 + 1), 1e-12);   /* half way along training */
    expect_near(sc_scaling_gain(&s, 32, 100), 10 / (9. / 2 + 1), 1e-12);  /* half way between 16 and 64 */
    expect_near(sc_scaling_gain(&s, 64, 1e9), 16 / (15. / 4 + 1), 1e-12); /* the last value stays */
    for (double batch = 16; batch <= 64; batch *= 1.3) {
        double gain = sc_scaling_gain(&s, batch, 30);
        assert_true(gain >= 1);
        assert_true(gain <= batch / 16);
    }
}

/* Makes the rows of a model for placements of up to four GPUs on up to four nodes. */
static sc_step_table make_table(const sc_step_model *model)
{
    static const uint64_t patterns[] = {1, 2, 3, 4, 11, 12, 22, 13, 112, 222, 444, 1111, 1234, 4444};
    sc_step_table t = {.model = *model};
    t.rows = calloc(6 * sizeof patterns / sizeof *patterns, sizeof *t.rows);
    assert_non_null(t.rows);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        sc_placement placement = place(patterns[i]);
        for (double samples = 8; samples <= 256; samples *= 2) {
            double step_s = sc_step_model_s(model, placement.nodes, placement.gpus, samples, 1);
            double grad_s = model->grad_s + model->grad_per_sample_s * samples;
            t.rows[t.row_count++] = (sc_step_row){placement, samples, step_s, fmax(0, step_s - grad_s)};
        }
    }
    sc_step_table_sort(&t);
    return t;
}

static void a_fit_finds_the_model_behind_the_steps(void **state)
{
    (void)state;
    static const sc_step_model models[] = {{.01, .001, .02, .003, .1, .004, 1.5},
                                           {.2, .05, .15, .06, 1.4, .015, 2.1},
                                           {.05, .0005, .001, .0002, .01, .0004, 4}};
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        sc_step_table t = make_table(&models[i]);
        assert_int_equal(t.widest_node, 4);
        t.model = (sc_step_model){0};
        assert_int_equal(sc_fit_steps(&t, NULL), MDOT_OK);
        assert_true(fit_error(&t) < 1e-3);
        for (int gpus = 2; gpus <= 16; gpus *= 2)
            expect_near(sc_step_model_s(&t.model, 2, gpus, 48, 1), sc_step_model_s(&models[i], 2, gpus, 48, 1), .005);
        free(t.rows);
    }
}

/* The linker redirects calls of calloc to this function. Call number `failing_calloc` from now on fails. */
static size_t failing_calloc;
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return failing_calloc > 0 && --failing_calloc == 0 ? NULL : __real_calloc(count, size);
}

/* A fit fails if memory runs out, because a model after too few rounds would look like a fitted one. */
static void a_fit_without_memory_is_refused(void **state)
{
    (void)state;
    sc_step_table t = make_table(&(sc_step_model){.01, .001, .02, .003, .1, .004, 1.5});
    mdot_error err = {0};
    size_t position = 1;
    for (;; position++) {
        t.model = (sc_step_model){0};
        failing_calloc = position;
        mdot_status status = sc_fit_steps(&t, &err);
        if (failing_calloc > 0) break; /* fewer calls than that */
        assert_int_equal(status, MDOT_OUT_OF_MEMORY);
        assert_non_null(strstr(err.message, "memory ran out"));
        expect_number(t.model.overlap, 0);
    }
    failing_calloc = 0;
    assert_true(position > 1);
    assert_true(fit_error(&t) < 1e-3);
    free(t.rows);
}

static void step_times_are_interpolated_and_extended(void **state)
{
    (void)state;
    static const sc_step_model model = {.01, .001, .02, .003, .1, .004, 1.5};
    sc_scaling s = {.tables = {make_table(&model)}, .least_batch = 8, .most_batch = 4096};
    sc_placement placement = place(21), far = {.nodes = 4, .gpus = 32}, one = place(1);
    s.source[1] = SC_MAX_TYPES;
    /* 21 was measured as 12: nodes have no first one. */
    expect_near(sc_scaling_step_s(&s, 0, &placement, 3 * 64), sc_step_model_s(&model, 2, 3, 64, 1), 1e-9);
    expect_near(sc_scaling_step_s(&s, 0, &placement, 3 * 100), sc_step_model_s(&model, 2, 3, 100, 1), .02);
    expect_near(sc_scaling_step_s(&s, 0, &far, 32 * 64), sc_step_model_s(&model, 4, 32, 64, 1), 1e-9);
    expect_near(sc_scaling_step_s(&s, 0, &one, 4), sc_step_model_s(&model, 1, 1, 4, 1), 1e-9);
    /* A GPU holds 256 samples, so that 512 take two passes. */
    expect_near(sc_scaling_step_s(&s, 0, &placement, 3 * 512), sc_step_model_s(&model, 2, 3, 256, 2), 1e-9);
    expect_near(sc_scaling_model_s(&s, 0, 2, 3, 3 * 512), sc_step_model_s(&model, 2, 3, 256, 2), 1e-9);
    expect_number(sc_scaling_step_s(&s, 1, &placement, 64), 0);
    expect_number(sc_scaling_speed(&s, 1, &placement, 64, 0), 0);
    /* A type with steps of one GPU, three times as fast. */
    sc_step_row fast[] = {{place(1), 8, .018 / 3, 0}, {place(1), 256, .266 / 3, 0}};
    s.tables[1] = (sc_step_table){.rows = fast, .row_count = 2};
    sc_step_table_sort(&s.tables[1]);
    assert_int_equal(sc_fit_steps(&s.tables[1], NULL), MDOT_OK);
    s.source[1] = 0;
    expect_near(sc_scaling_step_s(&s, 1, &placement, 3 * 256), sc_step_model_s(&model, 2, 3, 256, 1) / 3, 1e-9);
    expect_near(sc_scaling_model_s(&s, 1, 2, 3, 3 * 8), sc_step_model_s(&model, 2, 3, 8, 1) / 3, 1e-9);
    free(s.tables[0].rows);
}

static void placements_of_many_nodes_have_no_pattern(void **state)
{
    (void)state;
    sc_placement placement = {0};
    for (int i = 0; i < 12; i++) sc_placement_add(&placement, 4);
    uint64_t unknown = placement.pattern;
    sc_placement_add(&placement, 1);
    expect_number(unknown, placement.pattern);
    assert_true(unknown >= 10000000000);
    placement = (sc_placement){0};
    sc_placement_add(&placement, 16);
    sc_placement_add(&placement, 2);
    expect_number(placement.pattern, unknown);
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

static const char good_steps[] = "# source\napplication,placement,nodes,gpus,batch_per_gpu,step_ms,sync_ms,type\n"
                                 "A,1,1,1,16,100,1,slow\nA,2,1,2,16,120,20,slow\nA,,2,4,16,150,50,slow\n"
                                 "A,1,1,1,16,50,1,fast\nB,1,1,1,16,1,1,slow\nA,1,1,1,16,1,1,other\n";
static const char good_noise[] = "application,batch,progress,grad_sqr,grad_var\nA,32,0,1,8\nA,16,0,2,8\nA,16,10,2,-1\n";

static mdot_status read_tables(const char *steps, const char *noise, double batch, sc_workload *out, mdot_error *err)
{
    static const double jobs[][3] = {{0, 1, 100}};
    char *folder = process_make_folder();
    char *steps_path = workload_write_file(folder, "steps.csv", steps);
    char *noise_path = workload_write_file(folder, "noise.csv", noise);
    sc_cluster c = {0};
    *out = workload_make(jobs, 1);
    assert_int_equal(sc_workload_add_kind(out, "A", &out->jobs[0].kind, NULL), MDOT_OK);
    out->jobs[0].batch = batch;
    assert_int_equal(sc_cluster_add_node(&c, "a", "slow", 4, NULL), MDOT_OK);
    assert_int_equal(sc_cluster_add_node(&c, "b", "fast", 4, NULL), MDOT_OK);
    mdot_status status = sc_read_step_times(steps_path, noise_path, &c, out, err);
    sc_cluster_free(&c);
    free(steps_path);
    free(noise_path);
    process_remove_folder(folder);
    return status;
}

static void tables_of_types_are_read(void **state)
{
    (void)state;
    sc_workload w;
    mdot_error err = {0};
    if (read_tables(good_steps, good_noise, 0, &w, &err) != MDOT_OK) fail_msg("%s", err.message);
    const sc_scaling *s = w.kinds[0].scaling;
    sc_placement one = place(1), four = place(22);
    expect_number(s->least_batch, 16);
    expect_number(s->most_batch, 32);
    expect_near(sc_scaling_step_s(s, 0, &one, 16), .1, 1e-9);
    expect_near(sc_scaling_step_s(s, 0, &four, 64), .15, 1e-9);
    expect_near(sc_scaling_step_s(s, 1, &four, 64), .075, 1e-9); /* by the ratio of one GPU */
    expect_near(sc_scaling_gain(s, 32, 0), 9 / (8. / 2 + 1), 1e-12);
    expect_near(sc_workload_duration_s(&w, &w.jobs[0], 2), 5, 1e-9); /* 100 steps on the fast type */
    sc_workload_free(&w);
}

static void malformed_tables_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *steps, *noise, *message;
        double batch;
    } bad[] = {
        {"application,nodes,gpus,batch_per_gpu,step_ms\n", good_noise, "sync_ms", 0},
        {"application,placement,nodes,gpus,batch_per_gpu,step_ms,sync_ms\nA,1a,1,1,8,1,1\n", good_noise, "digits", 0},
        {"application,placement,nodes,gpus,batch_per_gpu,step_ms,sync_ms\nA,12,2,4,8,1,1\n", good_noise,
         "has 3 GPUs on 2 nodes", 0},
        {"application,nodes,gpus,batch_per_gpu,step_ms,sync_ms\nA,2,1,8,1,1\n", good_noise, "gpus", 0},
        {"application,nodes,gpus,batch_per_gpu,step_ms,sync_ms\nC,1,1,8,1,1\n", good_noise, "application of the trace",
         0},
        {good_steps, "application,batch,progress,grad_sqr\n", "grad_var", 0},
        {good_steps, "application,batch,progress,grad_sqr,grad_var\nA,16,0,-1,1\n", "grad_sqr", 0},
        {good_steps, "application,batch,progress,grad_sqr,grad_var\nB,16,0,1,1\n", "no row of A", 0},
        {good_steps, good_noise, "batch 64", 64},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sc_workload w;
        mdot_error err = {0};
        assert_int_not_equal(read_tables(bad[i].steps, bad[i].noise, bad[i].batch, &w, &err), MDOT_OK);
        expect_contains(err.message, bad[i].message);
        sc_workload_free(&w);
    }
}

/* ---- Published figures ------------------------------------------------------------------------------------------- */

static const char *const applications[] = {"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"};

enum { APPLICATIONS = 6 };

static sc_workload read_published(void)
{
    static const double jobs[][3] = {{0, 1, 1}};
    sc_workload w = workload_make(jobs, 1);
    sc_cluster c;
    mdot_error err = {0};
    uint32_t kind;
    assert_int_equal(sc_cluster_make_pool(16, &c, NULL), MDOT_OK);
    for (size_t i = 0; i < APPLICATIONS; i++)
        assert_int_equal(sc_workload_add_kind(&w, applications[i], &kind, NULL), MDOT_OK);
    if (sc_read_step_times(STEPS, NOISE, &c, &w, &err) != MDOT_OK) fail_msg("%s", err.message);
    sc_cluster_free(&c);
    return w;
}

static bool is_absent(void)
{
    if (access(STEPS, R_OK) == 0) return false;
    print_message("skipped: %s is absent\n", STEPS);
    return true;
}

/* Every published step time of a placement is reproduced within 5 %, and the fit is as close as the best one that
 * SciPy's L-BFGS-B found from three starts (root mean squared logarithmic error). */
static void published_step_times_are_reproduced(void **state)
{
    (void)state;
    static const double scipy[] = {.1068, .0973, .0917, .1023, .1308, .1227};
    if (is_absent()) skip();
    sc_workload w = read_published();
    bs_csv csv;
    bool is_row = true;
    size_t rows = 0, off = 0;
    double worst = 0;
    assert_int_equal(bs_csv_open(STEPS, UINT64_MAX, NULL, &csv, NULL), MDOT_OK);
    while (bs_csv_next(&csv, &is_row, NULL) == MDOT_OK && is_row) {
        size_t kind = 0;
        while (strcmp(applications[kind], csv.field[0]) != 0) kind++;
        if (strcmp(csv.field[1], "placements") != 0) continue;
        sc_placement placement = place(strtoull(csv.field[2], NULL, 10));
        double samples = strtod(csv.field[5], NULL), step_s = strtod(csv.field[6], NULL) / 1e3;
        double got_s = sc_scaling_step_s(w.kinds[kind].scaling, 0, &placement, samples * placement.gpus);
        double error = fabs(got_s / step_s - 1);
        worst = fmax(worst, error);
        off += error > .05;
        rows++;
    }
    bs_csv_close(&csv);
    print_message("%zu step times, %zu off by more than 5 %%, worst %.2f %%\n", rows, off, 100 * worst);
    assert_true(rows > 5000);
    assert_int_equal(off, 0);
    for (size_t i = 0; i < APPLICATIONS; i++) {
        double error = fit_error(&w.kinds[i].scaling->tables[0]);
        print_message("%-12s fit %.4f, SciPy %.4f\n", applications[i], error, scipy[i]);
        assert_true(error < 1.01 * scipy[i]);
    }
    sc_workload_free(&w);
}

/* The authors logged progress and iterations; the ratio between two rows is the gain that they computed. */
static void published_efficiency_is_reproduced(void **state)
{
    (void)state;
    if (is_absent()) skip();
    sc_workload w = read_published();
    bs_csv csv;
    bool is_row = true;
    double last_progress = 0, last_iteration = 0, last_batch = 0;
    size_t rows = 0, close = 0;
    char final[32] = "";
    assert_int_equal(bs_csv_open(NOISE, UINT64_MAX, NULL, &csv, NULL), MDOT_OK);
    while (bs_csv_next(&csv, &is_row, NULL) == MDOT_OK && is_row) {
        size_t kind = 0;
        while (strcmp(applications[kind], csv.field[0]) != 0) kind++;
        double batch = strtod(csv.field[1], NULL), progress = strtod(csv.field[2], NULL);
        double iteration = strtod(csv.field[3], NULL);
        if (batch == last_batch && strcmp(final, csv.field[0]) == 0) {
            double published = (progress - last_progress) / (iteration - last_iteration);
            double got = sc_scaling_gain(w.kinds[kind].scaling, batch, progress);
            rows++;
            close += fabs(got / published - 1) < .05;
        }
        snprintf(final, sizeof final, "%s", csv.field[0]);
        last_progress = progress;
        last_iteration = iteration;
        last_batch = batch;
    }
    bs_csv_close(&csv);
    sc_workload_free(&w);
    print_message("%zu of %zu gains within 5 %%\n", close, rows);
    assert_true(rows > 2000);
    assert_true(close >= .97 * rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_adds_or_overlaps_synchronisation),
        cmocka_unit_test(a_batch_gains_less_than_its_scale),
        cmocka_unit_test(a_fit_finds_the_model_behind_the_steps),
        cmocka_unit_test(a_fit_without_memory_is_refused),
        cmocka_unit_test(step_times_are_interpolated_and_extended),
        cmocka_unit_test(placements_of_many_nodes_have_no_pattern),
        cmocka_unit_test(tables_of_types_are_read),
        cmocka_unit_test(malformed_tables_are_refused),
        cmocka_unit_test(published_step_times_are_reproduced),
        cmocka_unit_test(published_efficiency_is_reproduced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
