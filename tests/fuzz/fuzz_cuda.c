/* fuzz_cuda.c — generated CUDA kernels against the evaluator. The bytes choose a valid model (random_model.h), whose
 * program runs in the emulator (tests/cuda_host) with every access checked. Models unsupported by CUDA are skipped. An
 * input takes one or two seconds, mostly in the C++ compiler, so short inputs are more useful than many.
 *
 *     scripts/fuzz.sh 600 cuda */
#include "codegen/codegen.h"
#include "tests/cuda_host/program_fixture.h"
#include "tests/fuzz/model_file.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t buckets[] = {20, 0};
    static const program_run runs[] = {
        {.length = 20, .blocks = 2, .seed = 1, .magnitude = 1, .tolerance = 1e-4},
        {.length = 3, .blocks = 1, .items = 2, .seed = 2, .magnitude = 1, .tolerance = 1e-4},
    };
    static cuda_host_report report;
    char message[512];
    if (!cuda_host_available()) exit(0);
    const char *path = model_file(data, size);
    mdot_error err = {0};
    program p;
    if (!program_try_file(path, buckets, CG_FP32, CUDA_HOST_CHECKED, &p, &err)) return 0;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        if (program_try(&p, &runs[i], &report, message, sizeof message)) continue;
        fprintf(stderr, "length %lld: %s\n", (long long)runs[i].length, message);
        abort();
    }
    program_done(&p);
    return 0;
}
