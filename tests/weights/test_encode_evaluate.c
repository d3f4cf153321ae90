/* test_encode_evaluate.c — the shipped predictor has two entries. The answers equal those of the single-entry
 * original. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mdot/mdotc.h"
#include "mdot/mdotjob.h"
#include "tests/support/assertions.h"
#include "tests/support/process.h"

static const mdot_dim_binding sequences[] = {{"sequence", 128, NULL}};
static const struct {
    const char *path;
    size_t dim_count;
} networks[] = {{MDOT_SOURCE_DIR "/examples/jobs/resnet50.onnx", 0},
                {MDOT_SOURCE_DIR "/examples/jobs/bert_base.onnx", 1}};
enum { NETWORKS = sizeof networks / sizeof networks[0], PIECES = 2 };

static mdot_predictor *predictors[PIECES];
static mdot_context *contexts[PIECES];

/* The single-entry model is compiled for the network lengths. */
static mdot_status open_both(const char *folder, mdot_error *err)
{
    static const int64_t buckets[] = {64};
    char path[512];
    snprintf(path, sizeof path, "%s/whole.mdot", folder);
    const mdotc_entry entry = {sizeof entry, "predict", MDOT_SOURCE_DIR "/weights/predictor.onnx"};
    const mdotc_options options = {.struct_size = sizeof options, .buckets = buckets, .bucket_count = 1};
    mdot_status status = mdotc_compile(&entry, 1, path, &options, err);
    const char *const paths[PIECES] = {path, MDOT_SHIPPED_PREDICTOR};
    for (int i = 0; status == MDOT_OK && i < PIECES; i++) {
        status = mdot_predictor_open(paths[i], NULL, &predictors[i], err);
        if (status == MDOT_OK) status = mdot_context_create(predictors[i], &contexts[i], err);
    }
    return status;
}

static int setup(void **state)
{
    (void)state;
    char *folder = process_make_folder();
    mdot_error err = {0};
    mdot_status status = open_both(folder, &err);
    process_remove_folder(folder);
    if (status != MDOT_OK) print_error("%s\n", err.message);
    return status == MDOT_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < PIECES; i++) {
        mdot_context_destroy(contexts[i]);
        mdot_predictor_close(predictors[i]);
    }
    return 0;
}

/* The tolerance covers f32 sums in another order, over logarithms of milliseconds. */
static bool is_close(double got, double want) { return fabs(got - want) <= 2e-5 * fabs(want); }

static void expect_equal(const mdot_prediction *got, const mdot_prediction *want, const char *network,
                         const mdot_configuration *c)
{
    bool equal = is_close(got->step_ms, want->step_ms) && is_close(got->lower_ms, want->lower_ms) &&
                 is_close(got->upper_ms, want->upper_ms) && got->warnings == want->warnings &&
                 got->peak_memory_bytes == want->peak_memory_bytes;
    if (!equal)
        fail_msg("%s on %s, batch %lld, precision %d, layout %d, optimizer %d, %d GPUs: %g, %g, %g ms (%x), not "
                 "%g, %g, %g (%x)",
                 network, c->gpu, (long long)c->batch, (int)c->precision, (int)c->layout, (int)c->optimizer,
                 c->gpu_count, got->lower_ms, got->step_ms, got->upper_ms, got->warnings, want->lower_ms, want->step_ms,
                 want->upper_ms, want->warnings);
}

/* Every GPU with every precision and layout. Optimizers, batches and GPU counts vary in turn. */
enum { MOST = 2048 };

static size_t make_configurations(mdot_configuration *out)
{
    static const int64_t batches[] = {1, 3, 16, 64, 512};
    size_t count = 0;
    for (const char *const *gpu = mdot_gpu_names(); *gpu != NULL; gpu++)
        for (int i = 0; i < 6 * 2; i++) {
            assert_compare(count, <, MOST);
            out[count] = (mdot_configuration){.struct_size = sizeof *out,
                                              .gpu = *gpu,
                                              .batch = batches[count % 5],
                                              .gpu_count = 1 << count % 4,
                                              .precision = (mdot_precision)(i % 6),
                                              .layout = (mdot_layout)(i / 6),
                                              .optimizer = (mdot_optimizer)(count % 3)};
            count++;
        }
    return count;
}

static void encode_and_evaluate_match_predict(void **state)
{
    (void)state;
    mdot_configuration *c = calloc(MOST, sizeof *c);
    mdot_prediction *p[PIECES] = {calloc(MOST, sizeof **p), calloc(MOST, sizeof **p)};
    assert_non_null(c);
    assert_non_null(p[0]);
    assert_non_null(p[1]);
    size_t count = make_configurations(c);
    assert_compare(count, >, 500);
    for (int n = 0; n < NETWORKS; n++) {
        mdot_job_options options = {
            .struct_size = sizeof options, .dims = sequences, .dim_count = networks[n].dim_count};
        mdot_job *job = NULL;
        mdot_error err = {0};
        if (mdot_job_read(networks[n].path, &options, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
        for (int i = 0; i < PIECES; i++) {
            p[i][0] = MDOT_INIT(mdot_prediction);
            if (mdot_sweep(contexts[i], job, c, count, p[i], &err) != MDOT_OK) fail_msg("%s", err.message);
        }
        for (size_t i = 0; i < count; i++) expect_equal(&p[1][i], &p[0][i], networks[n].path, &c[i]);
        mdot_job_destroy(job);
    }
    free(c);
    for (int i = 0; i < PIECES; i++) free(p[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(encode_and_evaluate_match_predict)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
