/* test_published.c — MDOT as published, the second shipped artefact. It reads a job operator by operator, and warns
 * about configurations beyond the labels of its single GPU model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "mdot/mdotjob.h"
#include "tests/support/assertions.h"
#include "tests/support/process.h"

typedef struct fixture {
    mdot_predictor *predictor;
    mdot_context *context;
    mdot_job *job;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    mdot_error err = {0};
    mdot_status status = mdot_predictor_open(MDOT_PUBLISHED_PREDICTOR, NULL, &f->predictor, &err);
    if (status == MDOT_OK) status = mdot_context_create(f->predictor, &f->context, &err);
    mdot_job_options options = MDOT_INIT(mdot_job_options);
    if (status == MDOT_OK)
        status = mdot_job_read(MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx", &options, &f->job, &err);
    if (status != MDOT_OK) print_error("%s\n", err.message);
    *state = f;
    return status == MDOT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    mdot_job_destroy(f->job);
    mdot_context_destroy(f->context);
    mdot_predictor_close(f->predictor);
    free(f);
    return 0;
}

/* The label configuration; tests modify it. */
static mdot_configuration labelled(void)
{
    mdot_configuration c = MDOT_INIT(mdot_configuration);
    c.gpu = "RTX-3090";
    c.batch = 512;
    c.gpu_count = 1;
    c.precision = MDOT_PRECISION_AMP;
    return c;
}

static mdot_prediction predict(const fixture *f, const mdot_job *job, const mdot_configuration *configuration)
{
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    mdot_error err = {0};
    if (mdot_predict(f->context, job, configuration, &p, &err) != MDOT_OK) fail_msg("%s", err.message);
    return p;
}

static void prediction_matches_the_labels_of_the_gpu(void **state)
{
    mdot_configuration c = labelled();
    mdot_prediction p = predict(*state, ((fixture *)*state)->job, &c);
    assert_int_equal(p.warnings, 0);
    assert_compare(p.lower_ms, <, p.step_ms);
    assert_compare(p.step_ms, <, p.upper_ms);
    /* timm's table for torch 1.12 has 619 ms */
    {
        assert_compare(p.step_ms, >, 619 / 1.2);
        assert_compare(p.step_ms, <, 619 * 1.2);
    }
}

static void default_software_is_that_of_the_labels(void **state)
{
    mdot_configuration newest = labelled(), same = labelled(), older = labelled();
    same.torch = 112;
    older.torch = 110;
    const mdot_job *job = ((fixture *)*state)->job;
    assert_compare(predict(*state, job, &newest).step_ms, ==, predict(*state, job, &same).step_ms);
    assert_compare(predict(*state, job, &newest).step_ms, !=, predict(*state, job, &older).step_ms);
}

static void inputs_outside_of_the_training_range_give_warnings(void **state)
{
    mdot_configuration other_gpu = labelled(), batch = labelled(), software = labelled();
    other_gpu.gpu = "A100-SXM-80GB";
    batch.batch = 1024;
    software.torch = 204;
    const mdot_job *job = ((fixture *)*state)->job;
    assert_compare(predict(*state, job, &other_gpu).warnings & MDOT_WARN_GPU_NOT_MEASURED, !=, 0);
    assert_compare(predict(*state, job, &batch).warnings & MDOT_WARN_BATCH_ABOVE_DATA, !=, 0);
    assert_compare(predict(*state, job, &software).warnings & MDOT_WARN_SOFTWARE_NOT_MEASURED, !=, 0);
}

static void several_gpus_are_estimated_analytically(void **state)
{
    mdot_configuration one = labelled(), eight = labelled();
    eight.gpu_count = 8;
    const mdot_job *job = ((fixture *)*state)->job;
    mdot_prediction alone = predict(*state, job, &one), together = predict(*state, job, &eight);
    assert_int_equal(together.warnings & MDOT_WARN_OPTIMIZER_OR_GPUS_NOT_MEASURED, 0);
    assert_compare(together.step_ms, >, alone.step_ms); /* the gradients' all-reduce uses PCIe */
}

static void jobs_beyond_the_largest_bucket_are_shortened(void **state)
{
    const fixture *f = *state;
    mdot_job_options options = MDOT_INIT(mdot_job_options);
    mdot_dim_binding sequence = {"sequence", 128, NULL};
    options.dims = &sequence;
    options.dim_count = 1;
    mdot_job *bert = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_read(MDOT_SOURCE_DIR "/examples/jobs/bert_base.onnx", &options, &bert, &err), MDOT_OK);
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    assert_int_equal(mdot_job_get_info(bert, &info), MDOT_OK);
    mdot_configuration c = labelled();
    bool is_shortened = (predict(f, bert, &c).warnings & MDOT_WARN_SHORTENED) != 0;
    assert_int_equal(is_shortened, info.operator_count > 256);
    mdot_job_destroy(bert);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prediction_matches_the_labels_of_the_gpu),
        cmocka_unit_test(default_software_is_that_of_the_labels),
        cmocka_unit_test(inputs_outside_of_the_training_range_give_warnings),
        cmocka_unit_test(several_gpus_are_estimated_analytically),
        cmocka_unit_test(jobs_beyond_the_largest_bucket_are_shortened),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
