/* test_memory_placement.c — buffer placement: the form, and whether shared memory holds the buffer. Two live buffers
 * must never overlap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/cuda/memory_placement.h"
#include "tests/support/assertions.h"
#include "tests/support/cuda_plan_fixture.h"
#include "tests/support/graph_notation.h"

enum { MAX_LENGTH = 128 };

static mdot_status lay_out(ir_graph *graph, cg_compute kernel_precision, cu_layout *out_layout, mdot_error *err)
{
    return cu_lay_out(cuda_stages_of(graph, MAX_LENGTH), kernel_precision, cuda_arena, out_layout, err);
}

static cu_layout layout_of(const char *text, cg_compute kernel_precision)
{
    mdot_error err = {0};
    cu_layout layout;
    if (lay_out(graph_from_notation(text, MAX_LENGTH, cuda_arena), kernel_precision, &layout, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return layout;
}

static const cu_placement *placement_of(const cu_layout *layout, const char *name)
{
    const cu_stages *stages = layout->stages;
    for (int b = 0; b < stages->buffer_count; b++)
        if (stages->buffers[b].kind != PL_WEIGHT && strcmp(stages->buffers[b].name, name) == 0)
            return &layout->placements[b];
    fail_msg("there is no buffer %s", name);
    return NULL;
}

/* ---- Live buffers have disjoint places --------------------------------------------------------------------------- */

typedef struct piece {
    cu_memory_space kind;
    size_t begin, end;
    int first, last; /* in steps for shared memory, in stages for scratch memory */
} piece;

static int pieces_of(const cu_layout *layout, piece *out)
{
    const cu_stages *stages = layout->stages;
    int count = 0;
    for (int b = 0; b < stages->buffer_count; b++) {
        const cu_location *places[] = {&layout->placements[b].plain, &layout->placements[b].half};
        for (int k = 0; k < 2; k++) {
            const cu_location *p = places[k];
            if (p->kind != CU_SHARED && p->kind != CU_SCRATCH) continue;
            piece made = {p->kind, p->offset_bytes, p->offset_bytes + p->size_bytes, -1, -1};
            for (int s = 0; s < stages->step_count; s++) {
                for (int a = 0; a < stages->steps[s].access_count; a++) {
                    if (stages->steps[s].accesses[a].buffer != b) continue;
                    made.last = p->kind == CU_SHARED ? s : stages->steps[s].stage;
                    if (made.first < 0) made.first = made.last;
                }
            }
            if (made.first >= 0) out[count++] = made;
        }
    }
    for (int s = 0; s < stages->step_count; s++)
        if (layout->work_bytes[s] > 0)
            out[count++] =
                (piece){CU_SHARED, layout->work_offset[s], layout->work_offset[s] + layout->work_bytes[s], s, s};
    return count;
}

static void assert_no_overlap(const cu_layout *layout)
{
    piece pieces[512];
    assert_compare(2 * layout->stages->buffer_count + layout->stages->step_count, <, 512);
    int count = pieces_of(layout, pieces);
    for (int i = 0; i < count; i++) {
        const piece *a = &pieces[i];
        assert_compare(a->end, <=, a->kind == CU_SHARED ? layout->shared_bytes : layout->scratch_bytes);
        assert_int_equal(a->begin % 16, 0);
        for (int j = 0; j < i; j++) {
            const piece *b = &pieces[j];
            bool together = a->kind == b->kind && a->first <= b->last && b->first <= a->last;
            assert_false(together && a->begin < b->end && b->begin < a->end);
        }
    }
}

/* Shared memory belongs to one block and one stage, so it holds only buffers not used by other blocks and later
 * stages. */
static void assert_shared_stays_in_its_block(const cu_layout *layout)
{
    const cu_stages *stages = layout->stages;
    int stage_of[256];
    assert_compare(stages->buffer_count, <=, 256);
    for (int b = 0; b < stages->buffer_count; b++) stage_of[b] = -1;
    for (int s = 0; s < stages->step_count; s++) {
        for (int k = 0; k < stages->steps[s].access_count; k++) {
            const cu_access *a = &stages->steps[s].accesses[k];
            const cu_placement *placement = &layout->placements[a->buffer];
            if (placement->plain.kind != CU_SHARED && placement->half.kind != CU_SHARED) continue;
            assert_true(a->is_local);
            assert_true(stage_of[a->buffer] < 0 || stage_of[a->buffer] == stages->steps[s].stage);
            stage_of[a->buffer] = stages->steps[s].stage;
        }
    }
}

static void live_buffers_do_not_overlap(void **state)
{
    (void)state;
    static const cg_compute computes[] = {CG_FP32, CG_BF16, CG_FP16};
    for (int layers = 1; layers < 4; layers++) {
        for (int m = 0; m < 3; m++) {
            mdot_error err = {0};
            cu_layout layout;
            if (lay_out(cuda_encoder(layers), computes[m], &layout, &err) != MDOT_OK) fail_msg("%s", err.message);
            assert_no_overlap(&layout);
            assert_shared_stays_in_its_block(&layout);
            assert_compare(layout.shared_bytes, >, 0);
            assert_compare(layout.scratch_bytes, >, 0);
        }
    }
}

/* Each layer's buffers follow the previous layer's. */
static void memory_is_constant_for_a_chain(void **state)
{
    (void)state;
    static const char few[] = "x = input f32[1,L,32]\nw = weights f32[32,32]\na = mdot.Linear(x, w)\nb = Softmax(a)\n"
                              "c = mdot.Linear(b, w)\nd = Softmax(c)\ny = mdot.Linear(d, w)\nreturn y\n";
    static const char many[] = "x = input f32[1,L,32]\nw = weights f32[32,32]\na = mdot.Linear(x, w)\nb = Softmax(a)\n"
                               "c = mdot.Linear(b, w)\nd = Softmax(c)\ne = mdot.Linear(d, w)\nf = Softmax(e)\n"
                               "g = mdot.Linear(f, w)\nh = Softmax(g)\ny = mdot.Linear(h, w)\nreturn y\n";
    cu_layout small = layout_of(few, CG_BF16), large = layout_of(many, CG_BF16);
    assert_no_overlap(&large);
    assert_compare(large.shared_bytes, <=, small.shared_bytes);
    assert_int_equal(large.scratch_bytes, 0);
}

/* ---- Forms ------------------------------------------------------------------------------------------------------- */

/* h is a matmul's and a sum's input, n only a matmul's, s a norm's. */
static const char RESIDUAL[] = "x = input f32[1,L,32]\nw = weights f32[32,32]\nh = mdot.Linear(x, w)\n"
                               "p = mdot.Linear(h, w)\ns = Add(p, h)\ng = weights f32[32]\n"
                               "n = LayerNormalization(s, g) {axis=-1}\ny = mdot.Linear(n, w)\nreturn y\n";

static void operands_of_matmuls_are_stored_in_16_bits_only(void **state)
{
    (void)state;
    cu_layout layout = layout_of(RESIDUAL, CG_BF16);
    const cu_placement *n = placement_of(&layout, "n"), *h = placement_of(&layout, "h");
    assert_int_equal(n->plain.kind, CU_UNPLACED);
    assert_int_equal(n->half.kind, CU_SHARED);
    assert_true(n->half.is_half);
    assert_int_equal(h->plain.kind, CU_SHARED);
    assert_int_equal(h->half.kind, CU_SHARED);
    assert_false(h->plain.is_half);
    assert_no_overlap(&layout);
}

static void fp32_has_no_16_bit_copies(void **state)
{
    (void)state;
    cu_layout layout = layout_of(RESIDUAL, CG_FP32);
    for (int b = 0; b < layout.stages->buffer_count; b++) assert_int_equal(layout.placements[b].half.kind, CU_UNPLACED);
    assert_int_equal(placement_of(&layout, "n")->plain.kind, CU_SHARED);
}

static void inputs_and_outputs_stay_in_caller_memory(void **state)
{
    (void)state;
    cu_layout layout = layout_of(RESIDUAL, CG_BF16);
    const cu_placement *x = placement_of(&layout, "x"), *y = placement_of(&layout, "y");
    assert_int_equal(x->plain.kind, CU_INPUT);
    assert_int_equal(x->half.kind, CU_UNPLACED);
    assert_int_equal(y->output.kind, CU_OUTPUT);
    assert_int_equal(y->plain.kind, CU_UNPLACED); /* the plain form is unused */
}

static void an_output_that_is_read_back_has_a_copy(void **state)
{
    (void)state;
    cu_layout layout = layout_of("x = input f32[1,L,32]\nw = weights f32[32,32]\nh = mdot.Linear(x, w)\n"
                                 "y = mdot.Linear(h, w)\nreturn h, y\n",
                                 CG_BF16);
    const cu_placement *h = placement_of(&layout, "h");
    assert_int_equal(h->output.kind, CU_OUTPUT);
    assert_int_equal(h->half.kind, CU_SHARED);
    assert_int_equal(h->plain.kind, CU_UNPLACED);
}

/* ---- Shared memory ----------------------------------------------------------------------------------------------- */

/* A row tile. Each row is padded by eight elements, so eight row starts lie in different banks. */
static void rows_of_a_tile_are_padded(void **state)
{
    (void)state;
    cu_layout layout = layout_of(RESIDUAL, CG_BF16);
    const cu_location *n = &placement_of(&layout, "n")->half;
    assert_int_equal(n->unit, 32);
    assert_int_equal(n->width, 32);
    assert_int_equal(n->pitch, 40);
    assert_int_equal(n->size_bytes, 16 * 40 * 2);
}

static void assert_width(const char *columns, int64_t width, int64_t pitch)
{
    char text[256];
    snprintf(text, sizeof text,
             "x = input f32[1,L,16]\nw = weights f32[16,%s]\nh = mdot.Linear(x, w)\ny = Softmax(h)\nreturn y\n",
             columns);
    cu_layout layout = layout_of(text, CG_FP32);
    const cu_location *h = &placement_of(&layout, "h")->plain;
    assert_int_equal(h->kind, CU_SHARED);
    assert_int_equal(h->width, width);
    assert_int_equal(h->pitch, pitch);
    assert_int_equal(h->size_bytes, 16 * pitch * 4);
}

/* Padding would double narrow rows. After odd rows, reads of eight elements would be unaligned. */
static void only_wide_and_even_rows_are_padded(void **state)
{
    (void)state;
    assert_width("8", 8, 8);
    assert_width("16", 16, 24);
    assert_width("20", 20, 20);
    assert_width("24", 24, 32);
}

/* The rows are written with width 64 and read as twice as many rows with width 32. Padding stands at their common row
 * ends. */
static void row_pitch_follows_the_narrowest_reader(void **state)
{
    (void)state;
    cu_layout layout = layout_of("x = input f32[1,L,16]\nw = weights f32[16,64]\nh = mdot.Linear(x, w)\n"
                                 "shape = constant i64[3] [1, -1, 32]\nr = Reshape(h, shape)\nv = weights f32[32,16]\n"
                                 "y = mdot.Linear(r, v)\nreturn y\n",
                                 CG_BF16);
    const cu_location *h = &placement_of(&layout, "h")->half;
    assert_int_equal(h->unit, 64);
    assert_int_equal(h->width, 32);
    assert_int_equal(h->pitch, 40);
    assert_int_equal(h->size_bytes, 16 * 2 * 40 * 2);
}

/* Results that one block computes alone may take up to 16 KB, at 8 bytes per element. */
static void small_single_block_results_stay_in_shared_memory(void **state)
{
    (void)state;
    static const char text[] = "x = input f32[1,%d]\na = Softmax(x)\nw = weights f32[%d,4]\ny = mdot.Linear(a, w)\n"
                               "return y\n";
    for (int columns = 2048; columns <= 2049; columns++) {
        char graph[256];
        snprintf(graph, sizeof graph, text, columns, columns);
        cu_layout layout = layout_of(graph, CG_FP32);
        assert_int_equal(placement_of(&layout, "a")->plain.kind, columns == 2048 ? CU_SHARED : CU_SCRATCH);
    }
}

/* One dimension grows with L, the other shrinks. The element count is largest between the extremes. */
static void scratch_memory_fits_the_most_expensive_length(void **state)
{
    (void)state;
    mdot_error err = {0};
    cu_layout layout;
    cu_stages *stages = cuda_stages_of(graph_from_notation("x = input f32[1,L,32]\naxes = constant i64[1] [1]\n"
                                                           "m = ReduceMean(x, axes)\ny = Sub(x, m)\nreturn y\n",
                                                           MAX_LENGTH, cuda_arena),
                                       MAX_LENGTH);
    int shrinking = -1;
    for (int b = 0; b < stages->buffer_count; b++)
        if (stages->buffers[b].kind == PL_SCRATCH) shrinking = b;
    assert_compare(shrinking, >=, 0);
    ((pl_buffer *)stages->buffers)[shrinking].type =
        (ir_type){.dtype = MDOT_DTYPE_F32, .rank = 2, .dim = {{.scale = -1, .offset = 1000}, {.scale = 1}}};
    assert_int_equal(cu_lay_out(stages, CG_FP32, cuda_arena, &layout, &err), MDOT_OK);
    assert_int_equal(layout.placements[shrinking].plain.kind, CU_SCRATCH);
    assert_int_equal(layout.placements[shrinking].plain.size_bytes, 999 * MAX_LENGTH * 4);
}

/* A residual sum's row may be narrower than the buffer's last dimension. */
static void the_sum_of_a_norm_has_the_written_row_width(void **state)
{
    (void)state;
    mdot_error err = {0};
    cu_layout layout;
    cu_stages *stages = cuda_stages_of(graph_from_notation(RESIDUAL, MAX_LENGTH, cuda_arena), MAX_LENGTH);
    int target = -1;
    for (int b = 0; b < stages->buffer_count; b++)
        if (strcmp(stages->buffers[b].name, "h") == 0) target = b;
    assert_compare(target, >=, 0);
    for (int s = 0; s < stages->step_count; s++) {
        pl_kernel *kernel = (pl_kernel *)stages->steps[s].kernel;
        if (kernel->kind == PL_NORM) kernel->norm.sum = (pl_matrix){.buffer = target, .row_stride = {.offset = 16}};
    }
    assert_int_equal(cu_lay_out(stages, CG_BF16, cuda_arena, &layout, &err), MDOT_OK);
    assert_int_equal(layout.placements[target].plain.width, 16);
}

static void results_read_by_other_tiles_are_in_scratch_memory(void **state)
{
    (void)state;
    cu_layout layout = layout_of("x = input f32[1,L,32]\nw = weights f32[32,96]\np = mdot.Linear(x, w)\n"
                                 "sizes = constant i64[3] [32, 32, 32]\nq, k, v = Split(p, sizes) {axis=-1}\n"
                                 "y = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\nreturn y\n",
                                 CG_BF16);
    const cu_location *p = &placement_of(&layout, "p")->half;
    assert_int_equal(p->kind, CU_SCRATCH);
    assert_int_equal(p->size_bytes, MAX_LENGTH * 96 * 2);
    assert_int_equal(p->pitch, p->width);
    assert_int_equal(layout.scratch_bytes, MAX_LENGTH * 96 * 2);
}

/* 16 rows with 1024 f32 take 64 KB. A block has room for only one such buffer. */
static void the_largest_buffer_is_evicted_from_full_shared_memory(void **state)
{
    (void)state;
    cu_layout layout = layout_of("x = input f32[1,L,32]\nw = weights f32[32,1024]\nv = weights f32[32,512]\n"
                                 "a = mdot.Linear(x, w)\nb = mdot.Linear(x, v)\n"
                                 "c = Softmax(a)\nd = Softmax(b)\naxes = constant i64[1] [2]\n"
                                 "e = ReduceSum(c, axes)\nf = ReduceSum(d, axes)\ny = Add(e, f)\nreturn y\n",
                                 CG_FP32);
    assert_compare(layout.shared_bytes, <=, 99 << 10);
    int moved = 0, kept = 0;
    for (int b = 0; b < layout.stages->plan->buffer_count; b++) {
        const cu_location *p = &layout.placements[b].plain;
        moved += p->kind == CU_SCRATCH && p->size_bytes == MAX_LENGTH * 1024 * 4;
        kept += p->kind == CU_SHARED && p->width == 512;
    }
    assert_compare(moved, >=, 1);
    assert_compare(kept, >=, 1);
    assert_no_overlap(&layout);
}

/* Unpadded rows of a and b are live at the same time. Together they take the bytes of `columns` columns, from 1577
 * upwards. */
static void assert_both_stay(int columns, bool stay)
{
    char text[256];
    snprintf(text, sizeof text,
             "x = input f32[1,L,4]\nw = weights f32[4,1577]\nv = weights f32[4,%d]\na = mdot.Linear(x, w)\n"
             "b = mdot.Linear(x, v)\nc = Softmax(a)\nd = Softmax(b)\nreturn c, d\n",
             columns);
    cu_layout layout = layout_of(text, CG_FP32);
    assert_int_equal(placement_of(&layout, "a")->plain.kind, stay ? CU_SHARED : CU_SCRATCH);
    assert_int_equal(placement_of(&layout, "b")->plain.kind, CU_SHARED);
    if (stay) assert_int_equal(layout.shared_bytes, (99 << 10) - 64);
}

static void shared_memory_limit_includes_the_memory_of_items(void **state)
{
    (void)state;
    assert_both_stay(6, true);
    assert_both_stay(7, false);
}

/* Inputs are staged whole: 16 rows of 16-bit elements, each row padded by eight elements. */
static void assert_rows_fit(int64_t k, cg_compute kernel_precision, bool fit)
{
    char text[256];
    snprintf(text, sizeof text, "x = input f32[1,L,%d]\nw = weights f32[%d,16]\ny = mdot.Linear(x, w)\nreturn y\n",
             (int)k, (int)k);
    mdot_error err = {0};
    cu_layout layout = {.shared_bytes = 12345};
    mdot_status status = lay_out(graph_from_notation(text, MAX_LENGTH, cuda_arena), kernel_precision, &layout, &err);
    if (fit) {
        assert_int_equal(status, MDOT_OK);
        assert_int_equal(layout.shared_bytes, 16 * (k + 8) * 2);
        return;
    }
    assert_int_equal(status, MDOT_UNSUPPORTED);
    assert_int_equal(layout.shared_bytes, 12345);
    assert_non_null(strstr(err.message, "linear.y"));
    assert_non_null(strstr(err.message, "shared memory"));
}

static void the_working_memory_of_a_step_must_fit(void **state)
{
    (void)state;
    /* 64 bytes belong to the item. */
    assert_rows_fit(((99 << 10) - 64) / 32 / 16 * 16 - 16, CG_BF16, true);
    assert_rows_fit(((99 << 10) - 64) / 32 / 16 * 16 + 16, CG_BF16, false);
    assert_rows_fit(((64 << 10) - 64) / 32 / 16 * 16 - 16, CG_FP16, true);
    assert_rows_fit(((64 << 10) - 64) / 32 / 16 * 16 + 16, CG_FP16, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(live_buffers_do_not_overlap),
        cmocka_unit_test(memory_is_constant_for_a_chain),
        cmocka_unit_test(operands_of_matmuls_are_stored_in_16_bits_only),
        cmocka_unit_test(fp32_has_no_16_bit_copies),
        cmocka_unit_test(inputs_and_outputs_stay_in_caller_memory),
        cmocka_unit_test(an_output_that_is_read_back_has_a_copy),
        cmocka_unit_test(rows_of_a_tile_are_padded),
        cmocka_unit_test(only_wide_and_even_rows_are_padded),
        cmocka_unit_test(row_pitch_follows_the_narrowest_reader),
        cmocka_unit_test(small_single_block_results_stay_in_shared_memory),
        cmocka_unit_test(scratch_memory_fits_the_most_expensive_length),
        cmocka_unit_test(the_sum_of_a_norm_has_the_written_row_width),
        cmocka_unit_test(results_read_by_other_tiles_are_in_scratch_memory),
        cmocka_unit_test(the_largest_buffer_is_evicted_from_full_shared_memory),
        cmocka_unit_test(shared_memory_limit_includes_the_memory_of_items),
        cmocka_unit_test(the_working_memory_of_a_step_must_fit),
    };
    return cmocka_run_group_tests(tests, cuda_arena_begin, cuda_arena_end);
}
