/* test_grid_stages.c — plans divided into stages: barrier count, each kernel's stage, and refused plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/cuda/cuda_stages.h"
#include "ir/ops.h"
#include "ir/passes.h"
#include "plan/kernel_kind.h"
#include "plan/planner.h"
#include "tests/support/assertions.h"
#include "tests/support/cuda_plan_fixture.h"
#include "tests/support/graph_notation.h"

enum { MAX_LENGTH = 64 };

static cu_stages stages_of(ir_graph *graph) { return *cuda_stages_of(graph, MAX_LENGTH); }

static cu_stages stages_of_notation(const char *text)
{
    return stages_of(graph_from_notation(text, MAX_LENGTH, cuda_arena));
}

static cu_stages stages_of_encoder(int layers) { return stages_of(cuda_encoder(layers)); }

static const cu_step *find(const cu_stages *stages, const char *part_of_name)
{
    for (int k = 0; k < stages->step_count; k++)
        if (strstr(stages->steps[k].kernel->name, part_of_name)) return &stages->steps[k];
    fail_msg("there is no kernel %s", part_of_name);
    return NULL;
}

/* `wanted` has a letter per step and a bar per barrier. Small letters run in block 0 alone; n and f are partial and
 * finishing reduction steps. */
static void assert_steps(const cu_stages *stages, const char *wanted)
{
    static const char letters[] = {[PL_LINEAR] = 'L', [PL_ATTENTION] = 'A',  [PL_NORM] = 'N',
                                   [PL_NEST] = 'E',   [PL_SEQUENTIAL] = 'S', [PL_RECURRENCE] = 'R'};
    char text[256] = "";
    size_t size = 0;
    for (int k = 0; k < stages->step_count; k++) {
        const cu_step *s = &stages->steps[k];
        if (k > 0 && s->stage != stages->steps[k - 1].stage) text[size++] = '|';
        char letter = letters[s->kernel->kind];
        if (s->part == CU_PARTIAL) letter = 'P';
        if (s->part == CU_FINISH) letter = 'F';
        if (s->distribution == CU_FREE) text[size++] = '*';
        text[size++] = s->distribution == CU_SINGLE ? (char)(letter - 'A' + 'a') : letter;
        assert_compare(size + 2, <, sizeof text);
    }
    assert_string_equal(text, wanted);
}

static void an_encoder_has_barriers_before_attention_and_head(void **state)
{
    (void)state;
    cu_stages one = stages_of_encoder(1), three = stages_of_encoder(3);
    assert_steps(&one, "LENL|ALNLLNPP|ffll");
    assert_steps(&three, "LENL|ALNLLNL|ALNLLNL|ALNLLNPP|ffll");
    assert_false(three.barrier_at_end);
    for (int k = 1; k < 4; k++) {
        assert_int_equal(three.barriers[k].after->kernel->kind, PL_ATTENTION);
        assert_int_equal(three.barriers[k].after->stage, k);
        assert_int_equal(three.barriers[k].before->stage, k - 1);
    }
}

static void attention_waits_for_its_keys(void **state)
{
    (void)state;
    cu_stages stages = stages_of_encoder(1);
    assert_int_equal(stages.barriers[1].buffer, stages.barriers[1].after->kernel->attention.k.buffer);
}

static void attention_within_a_unit_needs_no_barrier(void **state)
{
    (void)state;
    cu_stages stages = stages_of_notation("x = input f32[1,L,3,32]\nshape = constant i64[3] [-1, 3, 32]\n"
                                          "r = Reshape(x, shape)\nw = weights f32[32,96]\np = mdot.Linear(r, w)\n"
                                          "sizes = constant i64[3] [32, 32, 32]\nq, k, v = Split(p, sizes) {axis=-1}\n"
                                          "a = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\n"
                                          "axes = constant i64[1] [1]\nm = ReduceMean(a, axes) {keepdims=0}\n"
                                          "w2 = weights f32[32,32]\ny = mdot.Linear(m, w2)\nreturn y\n");
    assert_steps(&stages, "LAEL");
    assert_int_equal(find(&stages, "linear.p")->scale, 3);
    assert_int_equal(find(&stages, "attention")->loop, 0);
    assert_true(stages.barrier_at_end); /* each block writes separate rows of y */
}

static void reading_a_neighbouring_row_needs_a_barrier(void **state)
{
    (void)state;
    cu_stages stages = stages_of_notation("x = input f32[1,L,16]\nw = weights f32[16,16]\nh = mdot.Linear(x, w)\n"
                                          "zero = constant i64[1] [0]\none = constant i64[1] [1]\n"
                                          "last = constant i64[1] [-1]\na = Slice(h, zero, one, one)\n"
                                          "b = Slice(h, zero, last, one)\ns = Concat(a, b) {axis=1}\ny = Add(h, s)\n"
                                          "return y\n");
    const cu_step *linear = find(&stages, "linear.h");
    for (int k = 0; k < stages.step_count; k++)
        if (&stages.steps[k] != linear) assert_compare(stages.steps[k].stage, >, linear->stage);
}

static void reductions_of_the_length_keep_a_result_for_each_tile(void **state)
{
    (void)state;
    cu_stages stages = stages_of_notation("x = input f32[1,L,8]\naxes = constant i64[1] [1]\n"
                                          "y = ReduceSum(x, axes) {keepdims=0}\nreturn y\n");
    assert_steps(&stages, "P|f");
    assert_int_equal(stages.buffer_count, stages.plan->buffer_count + 1);
    assert_int_equal(stages.buffers[stages.plan->buffer_count].type.dim[0].offset, MAX_LENGTH / cu_blocks.tile_units);
}

static void positions_are_computed_by_one_block(void **state)
{
    (void)state;
    cu_stages stages = stages_of_notation("x = input f32[1,L,8]\ny = ArgMax(x) {axis=1, keepdims=0}\nreturn y\n");
    assert_steps(&stages, "e");
}

static void batches_of_sequences_need_no_barrier(void **state)
{
    (void)state;
    cu_stages stages = stages_of_notation("x = input f32[2,L,48]\nsizes = constant i64[3] [16, 16, 16]\n"
                                          "q, k, v = Split(x, sizes) {axis=-1}\n"
                                          "y = Attention(q, k, v) {q_num_heads=1, kv_num_heads=1}\nreturn y\n");
    assert_steps(&stages, "*A");
}

static void kernels_are_scheduled_as_late_as_possible(void **state)
{
    (void)state;
    cu_stages stages = stages_of_notation("x = input f32[1,L,16]\nm = input f32[1,L,16]\ns = Sigmoid(m)\n"
                                          "w = weights f32[16,48]\np = mdot.Linear(x, w)\n"
                                          "sizes = constant i64[3] [16, 16, 16]\nq, k, v = Split(p, sizes) {axis=-1}\n"
                                          "a = Attention(q, k, v) {q_num_heads=1, kv_num_heads=1}\n"
                                          "t = Concat(a, s) {axis=2}\nn = Softmax(t) {axis=-1}\nreturn n\n");
    for (int k = 0; k < stages.step_count; k++)
        if (stages.steps[k].kernel->kind != PL_LINEAR) assert_int_equal(stages.steps[k].stage, 1);
}

/* A sum along the length is computed by block 0; one within a unit joins the tiles, as do the k best and a scatter. */
static void lines_within_a_unit_need_no_barrier(void **state)
{
    (void)state;
    cu_stages across = stages_of_notation("x = input f32[1,L,8]\naxis = constant i64[] [1]\nt = Tanh(x)\n"
                                          "c = CumSum(t, axis)\ny = Sigmoid(c)\nreturn y\n");
    assert_steps(&across, "E|s|E");
    cu_stages within = stages_of_notation("x = input f32[1,L,8]\ni = input i64[1,L,3]\nu = input f32[1,L,3]\n"
                                          "axis = constant i64[] [2]\nk = constant i64[1] [2]\nt = Tanh(x)\n"
                                          "c = CumSum(t, axis)\na = ScatterElements(c, i, u) {axis=2}\n"
                                          "v, p = TopK(a, k)\ny = Sigmoid(v)\nreturn y\n");
    assert_steps(&within, "ESSSSE");
    cu_stages many = stages_of_notation("x = input f32[L,64]\naxis = constant i64[] [0]\nc = CumSum(x, axis)\n"
                                        "k = constant i64[1] [1]\nv, p = TopK(c, k) {axis=0}\nreturn v\n");
    assert_steps(&many, "*S|*S");
}

static void a_recurrence_is_one_step_of_block_0(void **state)
{
    (void)state;
    cu_stages stages = stages_of_notation("x = input f32[L,1,5]\nw = weights f32[1,60,5]\nr = weights f32[1,60,20]\n"
                                          "y, h = GRU(x, w, r) {hidden_size=20}\nreturn y\n");
    assert_steps(&stages, "L|er");
    const cu_step *recurrence = find(&stages, "recurrence");
    assert_int_equal(recurrence->inner_count, 4);
    for (int k = 0; k < 4; k++) assert_int_equal(recurrence->inner[k].distribution, CU_SINGLE);
}

static void assert_kind_is_needed(const char *graph_text, pl_kind kind, const char *kernel)
{
    ir_graph *graph = graph_from_notation(graph_text, MAX_LENGTH, cuda_arena);
    cu_schedule schedule = cu_blocks;
    mdot_error err = {0};
    pl_plan *plan;
    cu_stages stages;
    schedule.kinds[kind] = NULL;
    assert_int_equal(ir_run_passes(graph, NULL, &err), MDOT_OK);
    assert_int_equal(pl_build(graph, cuda_arena, &plan, &err), MDOT_OK);
    assert_int_equal(cu_find_stages(plan, &schedule, cuda_arena, &stages, &err), MDOT_UNSUPPORTED);
    if (strstr(err.message, kernel) == NULL || strstr(err.message, pl_kind_name(kind)) == NULL)
        fail_msg("%s", err.message);
}

static void a_schedule_refuses_kinds_that_it_lacks(void **state)
{
    (void)state;
    assert_kind_is_needed("x = input f32[1,L]\naxis = constant i64[] [1]\nsum = CumSum(x, axis)\nreturn sum\n",
                          PL_SEQUENTIAL, "sequential.sum");
    assert_kind_is_needed("x = input f32[L,3]\ns0 = input f32[3]\nn = constant i64[] [2]\naxis = constant i64[] [0]\n"
                          "i, s = mdot.LoopBegin(s0)\nxt = Gather(x, i)\nc = CumSum(xt, axis)\na = Add(c, s)\n"
                          "f = mdot.LoopEnd(i, n, a) {states=1}\nreturn f\n",
                          PL_SEQUENTIAL, "sequential.c");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_encoder_has_barriers_before_attention_and_head),
        cmocka_unit_test(attention_waits_for_its_keys),
        cmocka_unit_test(attention_within_a_unit_needs_no_barrier),
        cmocka_unit_test(reading_a_neighbouring_row_needs_a_barrier),
        cmocka_unit_test(reductions_of_the_length_keep_a_result_for_each_tile),
        cmocka_unit_test(positions_are_computed_by_one_block),
        cmocka_unit_test(batches_of_sequences_need_no_barrier),
        cmocka_unit_test(kernels_are_scheduled_as_late_as_possible),
        cmocka_unit_test(lines_within_a_unit_need_no_barrier),
        cmocka_unit_test(a_recurrence_is_one_step_of_block_0),
        cmocka_unit_test(a_schedule_refuses_kinds_that_it_lacks),
    };
    return cmocka_run_group_tests(tests, cuda_arena_begin, cuda_arena_end);
}
