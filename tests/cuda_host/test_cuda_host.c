/* test_cuda_host.c — the emulator itself: correct kernels pass under many schedules, and each kind of fault is
 * reported on its line. The kernels are in kernels/small.cu. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cuda_host/cuda_host_fixture.h"
#include "tests/support/assertions.h"

enum { BLOCKS = 3, THREADS = 64, SEEDS = 20 };

typedef void (*kernel_fn)(const float *in, float *out, unsigned *flag, float *row);

static char *source;
static cuda_host_module *module;
static cuda_host_report report;

typedef struct call {
    kernel_fn kernel;
    float *in, *out, *row;
    unsigned *flag;
} call;

static void body(void *user)
{
    const call *c = user;
    c->kernel(c->in, c->out, c->flag, c->row);
}

/* Runs a kernel in small.cu. Returns true with the output after a run without a fault. */
static bool run(const char *kernel, unsigned seed, float *out)
{
    float in[THREADS];
    unsigned zero = 0;
    for (int k = 0; k < THREADS; k++) in[k] = (float)k;
    cuda_host_memory *memory = cuda_host_memory_create();
    call c = {.in = cuda_host_constant(memory, "in", in, sizeof in),
              .out = cuda_host_buffer(memory, "out", NULL, BLOCKS * THREADS * sizeof(float), 4),
              .row = cuda_host_buffer(memory, "row", NULL, THREADS * sizeof(float), 4),
              .flag = cuda_host_buffer(memory, "flag", &zero, sizeof zero, 4)};
    *(void **)&c.kernel = cuda_host_symbol(module, kernel);
    if (!c.kernel) fail_msg("no kernel %s", kernel);
    cuda_host_published published[] = {{c.flag, c.row, THREADS * sizeof(float)}, {NULL, NULL, 0}};
    cuda_host_launch launch = {.module = module,
                               .grid = {BLOCKS},
                               .block = {THREADS},
                               .shared_bytes = THREADS * sizeof(float),
                               .seed = seed,
                               .cluster = strncmp(kernel, "cluster", 7) == 0 ? BLOCKS : 1,
                               .published = strncmp(kernel, "published", 9) == 0 ? published : NULL};
    bool passed = cuda_host_run(memory, &launch, body, &c, &report);
    if (passed) memcpy(out, c.out, BLOCKS * THREADS * sizeof(float));
    cuda_host_memory_destroy(memory);
    return passed;
}

static void assert_passes(const char *kernel, float (*wanted)(int thread))
{
    float out[BLOCKS * THREADS];
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        if (!run(kernel, seed, out)) fail_msg("%s, seed %u: %s", kernel, seed, report.message);
        for (int k = 0; k < BLOCKS * THREADS; k++) assert_compare(out[k], ==, wanted(k % THREADS));
    }
}

static void assert_faults(const char *kernel, const char *message)
{
    float out[BLOCKS * THREADS];
    char marker[64];
    snprintf(marker, sizeof marker, "// FAULT %s\n", kernel);
    int line = cuda_line_with(source, marker);
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        if (run(kernel, seed, out)) fail_msg("%s, seed %u: no fault", kernel, seed);
        if (!strstr(report.message, message)) fail_msg("%s, seed %u: %s", kernel, seed, report.message);
        if (line && report.line != line)
            fail_msg("%s, seed %u: %s; wanted line %d", kernel, seed, report.message, line);
    }
}

static float always_one(int thread)
{
    (void)thread;
    return 1;
}
static float reversed(int thread) { return (float)(63 - thread); }
static float neighbour(int thread) { return (float)(thread ^ 1); }
static float mean_of_sums(int thread)
{
    float sum = thread < 32 ? 31 * 16 : 31 * 16 + 32 * 32;
    return (sum + sum + sum) / 3;
}

static void correct_kernels_pass_under_every_schedule(void **state)
{
    (void)state;
    assert_passes("reverse", reversed);
    assert_passes("exchange_in_warp", neighbour);
    assert_passes("sum_by_shuffles", mean_of_sums);
    assert_passes("handed_over", reversed);
    assert_passes("handed_over_by_fences", reversed);
    assert_passes("shifted_by_grid_barriers", always_one);
    assert_passes("copied", reversed);
    assert_passes("cluster_exchange", reversed);
}

static void fragment_layout_follows_the_manual(void **state)
{
    (void)state;
    assert_passes("fragments", always_one);
}

static void conversions_round_and_pack(void **state)
{
    (void)state;
    assert_passes("packed", always_one);
}

static void the_host_reads_released_data(void **state)
{
    (void)state;
    assert_passes("published", always_one);
    assert_faults("published_early", "which the flag does not release, from block 0");
    assert_faults("published_in_part", "which nobody wrote");
}

static void unfinished_copies_are_reported(void **state)
{
    (void)state;
    assert_faults("copied_without_wait", "wasn't waited for");
    assert_faults("copied_latest_group_read", "wasn't waited for");
    assert_faults("copied_without_barrier", "");
    assert_faults("copied_misaligned", "misaligned cp.async");
}

static void missing_barriers_are_data_races(void **state)
{
    (void)state;
    assert_faults("reverse_without_barrier", "");
    assert_faults("reused_without_barrier", "data race");
    assert_faults("shuffle_is_no_barrier", "data race: reads");
    assert_faults("shifted_without_second_barrier", "data race");
    assert_faults("two_blocks_one_place", "data race");
    assert_faults("cluster_without_barrier", "");
    assert_faults("cluster_reused_without_barrier", "data race");
}

static void flags_order_only_by_release_and_acquire(void **state)
{
    (void)state;
    assert_faults("handed_over_relaxed", "data race: reads");
    assert_faults("handed_over_unacquired", "data race: reads");
    assert_faults("handed_over_without_second_fence", "data race: reads");
}

static void partial_barriers_are_reported(void **state)
{
    (void)state;
    assert_faults("divergent_barrier", "__syncthreads while");
    assert_faults("barrier_missed_by_some", "");
    assert_faults("cluster_missed_by_a_block", "cluster_barrier");
}

static void collectives_outside_their_mask_are_reported(void **state)
{
    (void)state;
    assert_faults("shuffle_outside_mask", "outside the mask");
    assert_faults("shuffle_mask_without_caller", "lacks the calling lane");
    assert_faults("shuffle_by_half_warp", "");
    assert_faults("exit_during_collective", "");
}

static void out_of_bounds_accesses_are_reported(void **state)
{
    (void)state;
    assert_faults("read_beyond", "byte 256 of in, which has 256");
    assert_faults("write_constant", "which is constant");
    assert_faults("shared_beyond", "shared memory, which has 256");
    assert_faults("array_beyond", "bounds");
    assert_faults("misaligned", "misaligned");
    assert_faults("cluster_beyond", "block");
}

static void reads_of_unwritten_memory_are_reported(void **state)
{
    (void)state;
    assert_faults("unwritten", "which nothing wrote");
}

static void endless_waits_are_reported_as_deadlocks(void **state)
{
    (void)state;
    assert_faults("flag_never_set", "deadlock");
}

static int setup(void **state)
{
    (void)state;
    source = cuda_source("kernels/small.cu");
    module = cuda_compile(source, CUDA_HOST_CHECKED);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    cuda_host_unload(module);
    free(source);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(correct_kernels_pass_under_every_schedule),
        cmocka_unit_test(fragment_layout_follows_the_manual),
        cmocka_unit_test(conversions_round_and_pack),
        cmocka_unit_test(the_host_reads_released_data),
        cmocka_unit_test(unfinished_copies_are_reported),
        cmocka_unit_test(missing_barriers_are_data_races),
        cmocka_unit_test(flags_order_only_by_release_and_acquire),
        cmocka_unit_test(partial_barriers_are_reported),
        cmocka_unit_test(collectives_outside_their_mask_are_reported),
        cmocka_unit_test(out_of_bounds_accesses_are_reported),
        cmocka_unit_test(reads_of_unwritten_memory_are_reported),
        cmocka_unit_test(endless_waits_are_reported_as_deadlocks),
    };
    if (!cuda_host_available()) {
        print_message("skipped: no C++ compiler\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, setup, teardown);
}
