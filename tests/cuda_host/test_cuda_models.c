/* test_cuda_models.c — predictors as CUDA programs in the emulator, with their barriers and in every precision: both
 * entries of the shipped predictor, and the reference predictors if ../shared exists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "tests/cuda_host/program_fixture.h"
#include "tests/support/shard.h"

static const int64_t BUCKETS[] = {32, 64, 128, 256, 512, 1024, 0};
#define MAGNITUDE 0.1 /* magnitude of the answers to random inputs by the predictors, whose weights are random */

typedef struct model {
    const char *path;
    int grid_barriers;
} model;

static const model models[] = {
    {MDOT_SHARED_ONNX "/predictor/reference_a/model.onnx", 5}, /* four attentions, the pool */
    {MDOT_SHARED_ONNX "/predictor/reference_b/model.onnx", 5},
};

static void assert_right(const model *m, cg_compute kernel_precision)
{
    static const program_run runs[] = {
        {.bucket = 0, .length = 32, .blocks = 2, .seed = 1, .magnitude = MAGNITUDE},
        {.bucket = 1, .length = 49, .blocks = 3, .seed = 2, .magnitude = MAGNITUDE},
        {.bucket = 2, .length = 128, .blocks = 8, .seed = 3, .magnitude = MAGNITUDE},
        {.bucket = 2, .length = 65, .blocks = 2, .items = 2, .seed = 4, .magnitude = MAGNITUDE},
        {.bucket = 3, .length = 100, .blocks = 3, .seed = 5, .magnitude = MAGNITUDE},
        {.bucket = 4, .length = 33, .blocks = 2, .seed = 6, .magnitude = MAGNITUDE},
        {.bucket = 5, .length = 80, .blocks = 64, .seed = 7, .magnitude = MAGNITUDE}, /* more blocks than tiles */
    };
    program p = program_from_file(m->path, BUCKETS, kernel_precision, CUDA_HOST_UNCHECKED);
    for (int k = 0; k < p.code.kernel_count; k++) {
        assert_int_equal(p.code.kernels[k].grid_barriers, m->grid_barriers);
        assert_int_equal(p.code.kernels[k].tile_rows, 16);
    }
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) assert_program_right(&p, &runs[k]);
    program_done(&p);
}

static void assert_models_right(cg_compute kernel_precision)
{
    for (size_t k = 0; k < sizeof models / sizeof *models; k++)
        if (access(models[k].path, R_OK) == 0) assert_right(&models[k], kernel_precision);
}

static void shipped_entries_match(void **state)
{
    (void)state;
    static const int64_t buckets[] = {32, 64, 0};
    static const char *const pieces[] = {MDOT_SOURCE_DIR "/weights/encode.onnx",
                                         MDOT_SOURCE_DIR "/weights/evaluate.onnx"};
    static const program_run runs[] = {
        {.bucket = 0, .length = 32, .blocks = 2, .seed = 1, .magnitude = 1},
        {.bucket = 1, .length = 40, .blocks = 3, .items = 2, .seed = 2, .magnitude = 1},
    };
    for (int i = 0; i < 2; i++) {
        program p = program_from_file(pieces[i], buckets, CG_FP32, CUDA_HOST_CHECKED);
        for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) assert_program_right(&p, &runs[k]);
        program_done(&p);
    }
}

static void predictors_match_in_fp32(void **state)
{
    (void)state;
    assert_models_right(CG_FP32);
}

static void predictors_match_in_bf16(void **state)
{
    (void)state;
    assert_models_right(CG_BF16);
}

static void predictors_match_in_fp16(void **state)
{
    (void)state;
    assert_models_right(CG_FP16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shipped_entries_match),
        cmocka_unit_test(predictors_match_in_fp32),
        cmocka_unit_test(predictors_match_in_bf16),
        cmocka_unit_test(predictors_match_in_fp16),
    };
    if (!cuda_host_available()) {
        print_message("skipped: no C++ compiler\n");
        return 77;
    }
    for (size_t k = 0; k < sizeof models / sizeof *models; k++)
        if (access(models[k].path, R_OK) != 0) print_message("left out: %s is not there\n", models[k].path);
    return shard_run_group_tests(tests, NULL, NULL);
}
