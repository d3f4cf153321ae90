/* test_sweep.c — throughputs from libmdot. They are the truth if the workload has none, and otherwise a belief. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mdot/mdotjob.h"
#include "simulator/estimate/estimators.h"
#include "simulator/input/input.h"
#include "tests/simulator/support/numbers.h"
#include "tests/simulator/support/workloads.h"
#include "tests/support/process.h"

static const char resnet[] = MDOT_JOBS "/resnet50.onnx";

typedef struct fixture {
    char *folder;
    sc_cluster cluster;
    sc_workload workload;
    uint32_t kind;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    f->folder = process_make_folder();
    assert_int_equal(sc_cluster_add_node(&f->cluster, "a", "A100", 2, NULL), MDOT_OK);
    assert_int_equal(sc_cluster_add_node(&f->cluster, "b", "T4", 1, NULL), MDOT_OK);
    assert_int_equal(sc_workload_add_kind(&f->workload, "resnet", &f->kind, NULL), MDOT_OK);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    process_remove_folder(f->folder);
    sc_cluster_free(&f->cluster);
    sc_workload_free(&f->workload);
    free(f);
    return 0;
}

static mdot_status sweep(fixture *f, const char *row, mdot_error *err)
{
    char text[1024];
    snprintf(text, sizeof text, "job_type,job,batch,precision,layout,optimizer\n%s", row);
    char *path = workload_write_file(f->folder, "sweep.csv", text);
    mdot_status status = sc_sweep_throughputs(path, MDOT_SHIPPED_PREDICTOR, NULL, &f->cluster, &f->workload, err);
    free(path);
    return status;
}

static mdot_prediction predict_with(mdot_configuration c)
{
    mdot_predictor *predictor;
    mdot_context *context;
    mdot_job *job;
    mdot_prediction answer = MDOT_INIT(mdot_prediction);
    c.struct_size = sizeof c;
    c.precision = MDOT_PRECISION_AMP;
    assert_int_equal(mdot_predictor_open(MDOT_SHIPPED_PREDICTOR, NULL, &predictor, NULL), MDOT_OK);
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    assert_int_equal(mdot_job_read(resnet, NULL, &job, NULL), MDOT_OK);
    assert_int_equal(mdot_predict(context, job, &c, &answer, NULL), MDOT_OK);
    mdot_job_destroy(job);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return answer;
}

static mdot_prediction predict(const char *gpu, int gpus, int64_t batch)
{
    return predict_with((mdot_configuration){.batch = batch, .gpu = gpu, .gpu_count = gpus});
}

static double step_ms(int gpus, uint32_t nodes, double network_gbps)
{
    mdot_configuration c = {
        .batch = 64, .gpu = "A100", .gpu_count = gpus, .node_count = nodes, .network_gbps = network_gbps};
    return predict_with(c).step_ms;
}

static void expect_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-6 * want)) fail_msg("%.12g, expected %.12g", got, want);
}

static void every_type_and_width_is_predicted(void **state)
{
    fixture *f = *state;
    char row[512];
    mdot_error err = {0};
    snprintf(row, sizeof row, "resnet,%s,64,amp,nchw,sgd\nunknown,nowhere.job,64,amp,nchw,sgd\n", resnet);
    if (sweep(f, row, &err) != MDOT_OK) fail_msg("%s", err.message);
    const sc_kind *k = &f->workload.kinds[f->kind];
    expect_near(k->speed[0][0], 64e3 / predict("A100", 1, 64).step_ms);
    expect_near(k->speed[0][1], 128e3 / predict("A100", 2, 64).step_ms);
    expect_near(k->speed[1][0], 64e3 / predict("T4", 1, 64).step_ms);
    expect_number(k->speed[0][2], 0);
    expect_number(k->speed[1][1], 0); /* wider than the type's GPU count */
    /* On a T4 the batch of 512 exceeds the memory. */
    assert_false(predict("T4", 1, 512).fits);
}

static void configurations_that_do_not_fit_get_no_speed(void **state)
{
    fixture *f = *state;
    char row[512];
    snprintf(row, sizeof row, "resnet,%s,512,amp,nchw,sgd\n", resnet);
    assert_int_equal(sweep(f, row, NULL), MDOT_OK);
    expect_number(f->workload.kinds[f->kind].estimated_speed[1][0], 0);
    assert_true(f->workload.kinds[f->kind].estimated_speed[0][0] > 0);
    snprintf(row, sizeof row, "resnet,%s,65536,amp,nchw,sgd\n",
             resnet); /* it fits on no GPU, therefore it is placed in spite of the memory */
    assert_int_equal(sweep(f, row, NULL), MDOT_OK);
    assert_true(f->workload.kinds[f->kind].estimated_speed[1][0] > 0);
    assert_true(f->workload.kinds[f->kind].estimated_speed[0][0] > 0);
}

static void spread_over_nodes_is_predicted(void **state)
{
    fixture *f = *state;
    char rows[512];
    mdot_error err = {0};
    sc_kind *k = &f->workload.kinds[f->kind];
    /* 8 A100 in nodes of 2. */
    for (char name[] = "c"; name[0] < 'f'; name[0]++)
        assert_int_equal(sc_cluster_add_node(&f->cluster, name, "A100", 2, NULL), MDOT_OK);
    k->speed[0][0] = 1; /* measured, but without a measurement over nodes */
    k->spread[0][2] = 7;
    snprintf(rows, sizeof rows,
             "job_type,job,batch,precision,layout,optimizer,network_gbps\nresnet,%s,64,amp,nchw,sgd,1\n", resnet);
    char *path = workload_write_file(f->folder, "n.csv", rows);
    if (sc_sweep_throughputs(path, MDOT_SHIPPED_PREDICTOR, NULL, &f->cluster, &f->workload, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    expect_near(k->estimated_spread[0][1], step_ms(2, 2, 1) / step_ms(2, 1, 1));
    expect_near(k->estimated_spread[0][2], step_ms(4, 2, 1) / step_ms(4, 1, 1));
    expect_near(k->estimated_spread[0][3], step_ms(8, 4, 1) / step_ms(8, 1, 1));
    expect_number(k->estimated_spread[0][0], 1);
    assert_true(k->estimated_spread[0][1] > 1.05);
    expect_number(k->spread[0][1], k->estimated_spread[0][1]);
    expect_number(k->spread[0][2], 7);
    free(path);
    snprintf(rows, sizeof rows,
             "job_type,job,batch,precision,layout,optimizer,link\nresnet,%s,64,amp,nchw,sgd,ethernet\n", resnet);
    path = workload_write_file(f->folder, "n.csv", rows);
    assert_int_equal(sc_sweep_throughputs(path, MDOT_SHIPPED_PREDICTOR, NULL, &f->cluster, &f->workload, &err),
                     MDOT_MALFORMED);
    expect_contains(err.message, "n.csv:2: link is \"ethernet\"");
    free(path);
}

static void predictions_are_kept_beside_measurements(void **state)
{
    fixture *f = *state;
    char row[512];
    sc_kind *k = &f->workload.kinds[f->kind];
    k->speed[0][0] = 3;
    k->speed[1][0] = 5;
    snprintf(row, sizeof row, "resnet,%s,64,amp,nchw,sgd\n", resnet);
    assert_int_equal(sweep(f, row, NULL), MDOT_OK);
    k = &f->workload.kinds[f->kind];
    expect_number(k->speed[0][0], 3 * 64); /* measured in steps, and from now on in samples */
    expect_number(k->speed[1][0], 5 * 64);
    expect_number(k->speed[0][1], 0);
    sc_job job = {.id = strdup("j"), .gpus = 1, .work = 100, .kind = f->kind};
    assert_int_equal(sc_workload_add(&f->workload, job, NULL), MDOT_OK);
    sc_estimate e = {.workload = &f->workload, .factors = (double[]){2}, .durations_s = (double[]){20}};
    expect_near(sc_estimate_speed(&e, 0, 1, 1), 1e3 / predict("T4", 1, 64).step_ms / 2);
    expect_number(sc_workload_speed(&f->workload, &f->workload.jobs[0], 1, 1), 5);
}

static void faults_name_the_line(void **state)
{
    fixture *f = *state;
    char row[512];
    mdot_error err = {0};
    assert_int_equal(sweep(f, "resnet,nowhere.job,64,amp,nchw,sgd\n", &err), MDOT_MALFORMED);
    expect_contains(err.message, "sweep.csv:2: ");
    snprintf(row, sizeof row, "resnet,%s,64,amp,nchw,lamb\n", resnet);
    assert_int_equal(sweep(f, row, &err), MDOT_MALFORMED);
    expect_contains(err.message, "sweep.csv:2: optimizer is \"lamb\"");
    assert_int_equal(sc_cluster_add_node(&f->cluster, "c", "Abacus", 1, NULL), MDOT_OK);
    snprintf(row, sizeof row, "resnet,%s,64,amp,nchw,sgd\n", resnet);
    assert_int_equal(sweep(f, row, &err), MDOT_MALFORMED);
    expect_contains(err.message, "Abacus");
}

static void policies_use_predicted_speeds(void **state)
{
    fixture *f = *state;
    char rows[512];
    process_result result;
    char *trace = workload_write_file(f->folder, "t.csv",
                                      "job_id,submit_s,gpus,job_type,steps\na,0,1,resnet,9000\nb,0,1,resnet,9000\n");
    char *cluster = workload_write_file(f->folder, "c.csv", "node,type,gpus\na,A100,2\nb,T4,1\n");
    snprintf(rows, sizeof rows, "job_type,job,batch,precision,layout,optimizer\nresnet,%s,64,amp,nchw,sgd\n", resnet);
    char *table = workload_write_file(f->folder, "s.csv", rows);
    const char *const line[] = {MDOT_SIMULATE, trace,    "--cluster",   cluster,
                                "--sweep",     table,    "--predictor", MDOT_SHIPPED_PREDICTOR,
                                "--policy",    "themis", NULL};
    const char *const half[] = {MDOT_SIMULATE, trace,      "--cluster", cluster, "--sweep",
                                table,         "--policy", "themis",    NULL};
    process_run(line, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    expect_contains(result.out, "themis");
    process_run(half, &result);
    assert_int_equal(result.status, 2);
    expect_contains(result.err, "--sweep and --predictor require each other");
    free(trace);
    free(cluster);
    free(table);
}

/* A pair's speed is each kind's alone over the predicted slowdown; measured pairs replace it. */
static void pairs_get_predicted_speeds(void **state)
{
    fixture *f = *state;
    char rows[512];
    uint32_t idle;
    mdot_error err = {0};
    assert_int_equal(sc_workload_add_kind(&f->workload, "unknown", &idle, NULL), MDOT_OK);
    snprintf(rows, sizeof rows, "job_type,job,batch,precision,layout,optimizer\nresnet,%s,64,amp,nchw,sgd\n", resnet);
    char *path = workload_write_file(f->folder, "p.csv", rows);
    if (sc_sweep_throughputs(path, MDOT_SHIPPED_PREDICTOR, MDOT_INTERFERENCE, &f->cluster, &f->workload, &err) !=
        MDOT_OK)
        fail_msg("%s", err.message);
    const sc_kind *k = &f->workload.kinds[f->kind];
    double alone = k->speed[0][0] / 64, together = sc_workload_pair_speed(&f->workload, f->kind, f->kind, 0, 1);
    assert_true(together > .2 * alone && together < alone);
    expect_near(sc_workload_pair_speed(&f->workload, f->kind, f->kind, 0, 2) / (k->speed[0][1] / 128),
                together / alone);
    expect_number(sc_workload_pair_speed(&f->workload, f->kind, idle, 0, 1), 0);
    free(path);
    path =
        workload_write_file(f->folder, "measured.csv",
                            "gpu,job_a,job_b,gpus,together_a_steps_s,together_b_steps_s\nA100,resnet,resnet,1,9,9\n");
    assert_int_equal(sc_read_pairs(path, &f->cluster, &f->workload, &err), MDOT_OK);
    expect_number(sc_workload_pair_speed(&f->workload, f->kind, f->kind, 0, 1), 9);
    assert_true(sc_workload_pair_speed(&f->workload, f->kind, f->kind, 1, 1) > 0);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_type_and_width_is_predicted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(configurations_that_do_not_fit_get_no_speed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(spread_over_nodes_is_predicted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(predictions_are_kept_beside_measurements, set_up, tear_down),
        cmocka_unit_test_setup_teardown(pairs_get_predicted_speeds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(faults_name_the_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(policies_use_predicted_speeds, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
