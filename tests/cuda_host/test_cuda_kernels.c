/* test_cuda_kernels.c — generated kernels in the emulator: encoders in every precision, at full and partial lengths,
 * on grids of several sizes, with several items at once, under random schedules. Every access is checked. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "tests/cuda_host/program_fixture.h"
#include "tests/support/encoder_model.h"

static const int64_t BUCKETS[] = {32, 64, 0};

static char *encoder_path(int layers)
{
    char name[64];
    snprintf(name, sizeof name, "mdot_cuda_%d_%d.onnx", (int)getpid(), layers);
    return write_model("/tmp", name, encoder_model(layers));
}

static program encoder(int layers, cg_compute kernel_precision, cuda_host_mode checks)
{
    char *path = encoder_path(layers);
    program p = program_from_file(path, BUCKETS, kernel_precision, checks);
    unlink(path);
    free(path);
    return p;
}

static void assert_encoder_right(cg_compute kernel_precision)
{
    static const int64_t lengths[][8] = {{1, 15, 16, 17, 31, 32, 0}, {33, 63, 64, 0}};
    program p = encoder(2, kernel_precision, CUDA_HOST_CHECKED);
    unsigned seed = 1;
    for (int bucket = 0; bucket < 2; bucket++)
        for (const int64_t *length = lengths[bucket]; *length; length++, seed++)
            assert_program_right(&p, &(program_run){.bucket = bucket,
                                                    .length = *length,
                                                    .blocks = 1 + seed % 3,
                                                    .seed = seed,
                                                    .inputs_in_memory = seed % 2});
    assert_program_right(&p, &(program_run){.length = 20, .blocks = 2, .items = 3, .seed = 5});
    program_done(&p);
}

static void encoders_match_in_fp32(void **state)
{
    (void)state;
    assert_encoder_right(CG_FP32);
}

static void encoders_match_in_bf16(void **state)
{
    (void)state;
    assert_encoder_right(CG_BF16);
}

static void encoders_match_in_fp16(void **state)
{
    (void)state;
    assert_encoder_right(CG_FP16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(encoders_match_in_fp32),
        cmocka_unit_test(encoders_match_in_bf16),
        cmocka_unit_test(encoders_match_in_fp16),
    };
    if (!cuda_host_available()) {
        print_message("skipped: no C++ compiler\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
