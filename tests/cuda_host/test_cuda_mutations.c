/* test_cuda_mutations.c — a kernel with every kind of synchronisation (kernels/stages.cu) computes the expected values,
 * and the test detects every deletion. test_cuda_deletions.c runs the same test on generated kernels. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cuda_host/cuda_host_fixture.h"

enum { SIZE = 96, TILE = 32, BLOCKS = (SIZE / TILE) * (SIZE / TILE), THREADS = 64, SEEDS = 3 };

typedef void (*stages_fn)(const uint16_t *a, const uint16_t *b, uint16_t *middle, uint16_t *c, unsigned *counter,
                          float *largest);

typedef struct stages {
    const cuda_host_module *module;
    stages_fn kernel;
    const uint16_t *a, *b;
    uint16_t *middle, *c;
    unsigned *counter;
    float *largest;
} stages;

static void body(void *user)
{
    const stages *s = user;
    s->kernel(s->a, s->b, s->middle, s->c, s->counter, s->largest);
}

static float from_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint16_t to_bf16(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static void multiply(const uint16_t *a, const uint16_t *b, uint16_t *c)
{
    for (int row = 0; row < SIZE; row++) {
        for (int column = 0; column < SIZE; column++) {
            float sum = 0;
            for (int k = 0; k < SIZE; k++) sum += from_bf16(a[row * SIZE + k]) * from_bf16(b[k * SIZE + column]);
            c[row * SIZE + column] = to_bf16(sum);
        }
    }
}

static bool run(void *user, cuda_host_launch *launch, cuda_host_report *report)
{
    const cuda_host_module *module = user;
    uint16_t a[SIZE * SIZE], b[SIZE * SIZE], middle[SIZE * SIZE], c[SIZE * SIZE];
    unsigned zero = 0;
    for (int k = 0; k < SIZE * SIZE; k++) { /* small integers, so most sums are exact */
        a[k] = to_bf16((float)(k * 37 % 11 - 5));
        b[k] = to_bf16((float)(k * 53 % 3 - 1));
    }
    multiply(a, b, middle);
    multiply(middle, b, c);
    cuda_host_memory *memory = cuda_host_memory_create();
    stages s = {.a = cuda_host_constant(memory, "a", a, sizeof a),
                .b = cuda_host_constant(memory, "b", b, sizeof b),
                .middle = cuda_host_buffer(memory, "middle", NULL, sizeof middle, 2),
                .c = cuda_host_buffer(memory, "c", NULL, sizeof c, 2),
                .counter = cuda_host_buffer(memory, "counter", &zero, sizeof zero, 4),
                .largest = cuda_host_buffer(memory, "largest", NULL, sizeof(float), 4)};
    *(void **)&s.kernel = cuda_host_symbol(module, "stages");
    launch->module = module;
    launch->grid[0] = BLOCKS;
    launch->block[0] = THREADS;
    bool right = cuda_host_run(memory, launch, body, &s, report);
    float largest = 0;
    for (int k = 0; k < SIZE * SIZE && right; k++) {
        right = fabsf(from_bf16(s.c[k]) - from_bf16(c[k])) <= 0.01f * fabsf(from_bf16(c[k]));
        largest = fmaxf(largest, fabsf(from_bf16(s.c[k])));
    }
    right = right && *s.largest == largest;
    cuda_host_memory_destroy(memory);
    return right;
}

static void stages_compute_matmuls_under_every_schedule(void **state)
{
    static cuda_host_report report;
    for (unsigned seed = 0; seed < 10; seed++) {
        cuda_host_launch launch = {.seed = seed};
        if (!run(*state, &launch, &report)) fail_msg("seed %u: %s", seed, report.faulted ? report.message : "wrong");
    }
}

static void every_deletion_is_detected(void **state)
{
    static const cuda_argument arguments[] = {
        {"// redundant", "put there to see that the test tells such a barrier"},
        {NULL, NULL},
    };
    char *source = cuda_source("kernels/stages.cu");
    assert_int_equal(assert_deletions_show(source, run, *state, SEEDS, arguments), 10);
    free(source);
}

static void unchecked_code_computes_the_same(void **state)
{
    (void)state;
    static cuda_host_report report;
    char *source = cuda_source("kernels/stages.cu");
    cuda_host_module *module = cuda_compile(source, CUDA_HOST_UNCHECKED);
    for (unsigned seed = 0; seed < 10; seed++) {
        cuda_host_launch launch = {.seed = seed};
        if (!run(module, &launch, &report)) fail_msg("seed %u: %s", seed, report.faulted ? report.message : "wrong");
    }
    cuda_host_unload(module);
    free(source);
}

static int setup(void **state)
{
    char *source = cuda_source("kernels/stages.cu");
    *state = cuda_compile(source, CUDA_HOST_CHECKED);
    free(source);
    return 0;
}

static int teardown(void **state)
{
    cuda_host_unload(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_compute_matmuls_under_every_schedule),
        cmocka_unit_test(every_deletion_is_detected),
        cmocka_unit_test(unchecked_code_computes_the_same),
    };
    if (!cuda_host_available()) {
        print_message("skipped: no C++ compiler\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}
