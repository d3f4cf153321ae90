/* test_cuda_deletions.c — every synchronisation in generated kernels is needed: deleting it causes a fault or a wrong
 * result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "codegen/cuda/cuda_stages.h"
#include "tests/cuda_host/program_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/encoder_model.h"

enum { SEEDS = 2 };

static bool run(void *user, cuda_host_launch *launch, cuda_host_report *report)
{
    char message[512];
    /* Five tiles over two blocks: a block runs several tiles, and the last tile is partial. */
    program_run how = {.length = 70, .blocks = 2, .seed = launch->seed, .magnitude = 1};
    how.skip = launch->skip;
    how.skip_line = launch->skip_line;
    bool right = program_try(user, &how, report, message, sizeof message);
    if (!right && !launch->skip) print_message("%s\n", message);
    return right;
}

static void assert_all_needed(program *p, int least)
{
    static const cuda_argument none[] = {{NULL, NULL}};
    int deleted = assert_deletions_show(p->code.source, run, p, SEEDS, none);
    assert_compare(deleted, >=, least);
    program_done(p);
}

static const int64_t BUCKET[] = {80, 0};

/* With a block per tile, and with a cluster of two that has more rows. */
static void assert_graph_needs(const char *graph, int least)
{
    cu_schedule schedule = cu_clusters;
    for (schedule.blocks_per_tile = 1; schedule.blocks_per_tile <= 2; schedule.blocks_per_tile++) {
        schedule.tile_units = 16 * schedule.blocks_per_tile;
        program p =
            program_from_variant(graph, &(program_variant){.schedule = &schedule}, BUCKET, CG_BF16, CUDA_HOST_CHECKED);
        assert_all_needed(&p, least);
    }
}

static void every_synchronisation_of_an_encoder_is_needed(void **state)
{
    (void)state;
    static const cg_compute computes[] = {CG_FP32, CG_BF16, CG_FP16};
    for (int m = 0; m < 3; m++) {
        char *path = write_model("/tmp", "mdot_cuda_deletions.onnx", encoder_model(1));
        program p = program_from_file(path, BUCKET, computes[m], CUDA_HOST_CHECKED);
        unlink(path);
        free(path);
        assert_all_needed(&p, 10);
    }
}

static void every_synchronisation_of_tensor_attention_is_needed(void **state)
{
    (void)state;
    assert_graph_needs("x = input f32[1,L,32]\nw = weights f32[32,96]\np = mdot.Linear(x, w)\n"
                       "sizes = constant i64[3] [32, 32, 32]\nq, k, v = Split(p, sizes) {axis=-1}\n"
                       "a = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\n"
                       "wo = weights f32[32,32]\no = mdot.Linear(a, wo)\ny = Add(o, x)\nreturn y\n",
                       6);
}

static void every_synchronisation_of_chunked_rows_is_needed(void **state)
{
    (void)state;
    assert_graph_needs("x = input f32[1,L,7,24]\nw = weights f32[24,32]\nh = mdot.Linear(x, w)\n"
                       "s = Sigmoid(h)\nw2 = weights f32[32,8]\ny = mdot.Linear(s, w2)\nreturn y\n",
                       4);
}

static void every_synchronisation_of_staged_copies_is_needed(void **state)
{
    (void)state;
    assert_graph_needs("x = input f32[2,L,48]\nsizes = constant i64[3] [16, 16, 16]\n"
                       "q, k, v = Split(x, sizes) {axis=-1}\n"
                       "a = Attention(q, k, v) {q_num_heads=1, kv_num_heads=1}\n"
                       "w = weights f32[16,24]\ny = mdot.Linear(a, w)\nreturn y\n",
                       5);
}

static void every_synchronisation_of_a_pooled_head_is_needed(void **state)
{
    (void)state;
    assert_graph_needs("x = input f32[1,L,32]\naxes = constant i64[1] [1]\ns = ReduceSum(x, axes) {keepdims=0}\n"
                       "w = weights f32[32,48]\nb = weights f32[48]\nh = mdot.Linear(s, w, b)\n"
                       "g = Gelu(h)\nw2 = weights f32[48,40]\no = mdot.Linear(g, w2)\nreturn o\n",
                       5);
}

static void every_synchronisation_of_neighbour_reads_is_needed(void **state)
{
    (void)state;
    assert_graph_needs("x = input f32[1,L,16]\nw = weights f32[16,16]\nh = mdot.Linear(x, w)\n"
                       "zero = constant i64[1] [0]\none = constant i64[1] [1]\n"
                       "last = constant i64[1] [-1]\na = Slice(h, zero, one, one)\n"
                       "b = Slice(h, zero, last, one)\ns = Concat(a, b) {axis=1}\ny = Add(h, s)\n"
                       "return y\n",
                       2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_synchronisation_of_an_encoder_is_needed),
        cmocka_unit_test(every_synchronisation_of_tensor_attention_is_needed),
        cmocka_unit_test(every_synchronisation_of_chunked_rows_is_needed),
        cmocka_unit_test(every_synchronisation_of_staged_copies_is_needed),
        cmocka_unit_test(every_synchronisation_of_a_pooled_head_is_needed),
        cmocka_unit_test(every_synchronisation_of_neighbour_reads_is_needed),
    };
    if (!cuda_host_available()) {
        print_message("skipped: no C++ compiler\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
