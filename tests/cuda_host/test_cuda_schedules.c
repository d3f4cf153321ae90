/* test_cuda_schedules.c — schedules that distribute work to other tiles and blocks than the default schedule. The code
 * generated for them is correct as well, so no step relies on a hard-coded size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "codegen/cuda/cuda_program.h"
#include "codegen/cuda/cuda_stages.h"
#include "tests/cuda_host/program_fixture.h"
#include "tests/support/shard.h"

static const int64_t BUCKET[] = {64, 0};

static cu_schedule schedule_of(int tile_units, int threads)
{
    cu_schedule schedule = cu_blocks;
    schedule.tile_units = tile_units;
    schedule.threads = threads;
    return schedule;
}

static void assert_right(const char *graph, const cu_schedule *schedule, cg_compute kernel_precision)
{
    static const int64_t lengths[] = {1, 37, 64};
    program p = program_from_variant(graph, &(program_variant){.schedule = schedule}, BUCKET, kernel_precision,
                                     CUDA_HOST_CHECKED);
    assert_int_equal(p.code.kernels[0].tile_rows, schedule->tile_units);
    assert_int_equal(p.code.kernels[0].threads, schedule->threads);
    assert_int_equal(p.code.kernels[0].blocks_per_tile, schedule->blocks_per_tile);
    for (unsigned k = 0; k < 3; k++)
        assert_program_right(
            &p,
            &(program_run){.length = lengths[k], .blocks = 1 + k, .items = 1 + k % 2, .seed = k + 1, .magnitude = 1});
    if (schedule->blocks_per_tile > 1) assert_program_fits(&p, 90);
    program_done(&p);
}

static void assert_schedule_right(const char *graph, int tile_units, int threads, cg_compute kernel_precision)
{
    cu_schedule schedule = schedule_of(tile_units, threads);
    assert_right(graph, &schedule, kernel_precision);
}

/* Steps of every kind: tiled and free rows, few rows, attention, norms, a two-step reduction, points. */
static const char ENCODER[] =
    "x = input f32[1,L,40]\nm = input f32[1,1,1,L]\nw = weights f32[40,96]\nb = weights f32[96]\n"
    "e = constant f32[] [0.125]\nd = Mul(x, e)\nh = mdot.Linear(d, w, b)\nsizes = constant i64[3] [32, 32, 32]\n"
    "q, k, v = Split(h, sizes) {axis=-1}\n"
    "a = Attention(q, k, v, m) {q_num_heads=2, kv_num_heads=2}\n"
    "w2 = weights f32[32,32]\nc = mdot.Linear(a, w2)\ns = Add(c, q)\ng = weights f32[32]\n"
    "n = LayerNormalization(s, g) {axis=-1}\naxes = constant i64[1] [1]\n"
    "r = ReduceSum(n, axes) {keepdims=0}\nw3 = weights f32[32,5]\nb3 = weights f32[5]\n"
    "y = mdot.Linear(r, w3, b3)\nreturn y, n\n";
static const char ROWS[] = "x = input f32[2,L,96]\nsizes = constant i64[3] [32, 32, 32]\n"
                           "q, k, v = Split(x, sizes) {axis=-1}\n"
                           "a = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\n"
                           "w = weights f32[32,24]\nb = weights f32[24]\ny = mdot.Linear(a, w, b)\nreturn y\n";
static const char UNITS[] = "x = input f32[1,L,7,24]\nw = weights f32[24,32]\nh = mdot.Linear(x, w)\ns = Sigmoid(h)\n"
                            "w2 = weights f32[32,8]\ny = mdot.Linear(s, w2)\naxes = constant i64[1] [1]\n"
                            "p = ReduceMax(y, axes) {keepdims=0}\nreturn y, p\n";

static void small_tiles_and_blocks_match(void **state)
{
    (void)state;
    assert_schedule_right(ENCODER, 8, 64, CG_BF16);
    assert_schedule_right(ROWS, 8, 64, CG_BF16);
    assert_schedule_right(UNITS, 8, 64, CG_FP32);
    assert_schedule_right(UNITS, 1, 32, CG_BF16);
}

static void large_blocks_match(void **state)
{
    (void)state;
    assert_schedule_right(ENCODER, 16, 512, CG_FP16);
    assert_schedule_right(UNITS, 16, 512, CG_BF16);
}

static void warp_counts_need_not_be_powers_of_two(void **state)
{
    (void)state;
    assert_schedule_right(ENCODER, 16, 96, CG_BF16);
    assert_schedule_right(ENCODER, 5, 96, CG_FP32);
}

static void large_tiles_match(void **state)
{
    (void)state;
    assert_schedule_right(ENCODER, 48, 128, CG_FP32);
    assert_schedule_right(ROWS, 32, 128, CG_BF16);
    for (int units = 24; units <= 64; units *= 2) assert_schedule_right(ENCODER, units, 128 * (units / 24), CG_BF16);
    assert_schedule_right(UNITS, 32, 256, CG_BF16);
}

static void clusters_match(void **state)
{
    (void)state;
    static const char *const graphs[] = {ENCODER, ROWS, UNITS};
    cu_schedule schedule = cu_clusters;
    for (int g = 0; g < 3; g++)
        for (schedule.blocks_per_tile = 2; schedule.blocks_per_tile <= 8; schedule.blocks_per_tile *= 2) {
            schedule.tile_units = 8 * schedule.blocks_per_tile; /* 16 to 64 */
            assert_right(graphs[g], &schedule, CG_BF16);
        }
}

/* All clusters run at once on an H100, and blocks divide as much as that allows. */
static void clusters_are_fitted_to_the_length(void **state)
{
    (void)state;
    for (int64_t length = 0; length <= 5000; length++) {
        cu_schedule s = cu_fit_schedule(&cu_clusters, length), blocks = cu_fit_schedule(&cu_blocks, length);
        int64_t tiles = (length + s.tile_units - 1) / s.tile_units;
        assert_true(s.blocks_per_tile == 1 || tiles * s.blocks_per_tile <= 128);
        assert_true(s.blocks_per_tile > 1 || s.tile_units == 16);
        assert_int_equal(blocks.tile_units * blocks.blocks_per_tile, 16);
        if (length == 256) assert_int_equal(s.tile_units * 100 + s.blocks_per_tile, 1608);
        if (length == 1024) assert_int_equal(s.tile_units * 100 + s.blocks_per_tile, 3204);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_tiles_and_blocks_match),
        cmocka_unit_test(large_blocks_match),
        cmocka_unit_test(warp_counts_need_not_be_powers_of_two),
        cmocka_unit_test(large_tiles_match),
        cmocka_unit_test(clusters_match),
        cmocka_unit_test(clusters_are_fitted_to_the_length),
    };
    if (!cuda_host_available()) {
        print_message("skipped: no C++ compiler\n");
        return 77;
    }
    return shard_run_group_tests(tests, NULL, NULL);
}
