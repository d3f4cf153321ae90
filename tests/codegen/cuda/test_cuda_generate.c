/* test_cuda_generate.c — generating CUDA programs from entries: each kernel's description, sharing between steps, and
 * refusals. tests/cuda_host tests the kernels' results. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/cuda/cuda_program.h"
#include "codegen/cuda/cuda_stages.h"
#include "compiler/compiler.h"
#include "tests/support/assertions.h"
#include "tests/support/cuda_plan_fixture.h"
#include "tests/support/graph_notation.h"

static const co_hooks no_hooks;

static cg_entry entry_of(const char *name, const ir_graph *graph, const int64_t *buckets, size_t count)
{
    mdot_error err = {0};
    cg_entry entry;
    if (co_plan_entry(name, graph, buckets, count, false, &no_hooks, cuda_arena, &entry, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return entry;
}

static const ir_graph *without_length(const char *text)
{
    ir_graph *graph = graph_from_notation(text, INT64_MAX, cuda_arena);
    graph->symbol = NULL;
    return graph;
}

static cu_program generate(const cg_entry *entries, int count, cg_compute kernel_precision)
{
    mdot_error err = {0};
    cu_program program;
    if (cu_generate(entries, count, kernel_precision, &cu_blocks, cuda_arena, &program, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return program;
}

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++) count++;
    return count;
}

static void kernels_are_ordered_by_entry_and_bucket(void **state)
{
    (void)state;
    static const int64_t buckets[] = {32, 128};
    cg_entry entries[] = {
        entry_of("encode", cuda_encoder(1), buckets, 2),
        entry_of("evaluate",
                 without_length("x = input f32[4,8]\nw = weights f32[8,2]\ny = mdot.Linear(x, w)\nreturn y\n"), NULL,
                 0),
    };
    cu_program program = generate(entries, 2, CG_BF16);
    static const char *const names[] = {"entry_encode_n32", "entry_encode_n128", "entry_evaluate"};
    assert_int_equal(program.kernel_count, 3);
    for (int k = 0; k < 3; k++) {
        const cu_kernel *kernel = &program.kernels[k];
        assert_string_equal(kernel->name, names[k]);
        assert_int_equal(kernel->entry, k / 2);
        assert_int_equal(kernel->bucket, k % 2);
        assert_int_equal(kernel->threads, 256);
        assert_int_equal(kernel->tile_rows, k < 2 ? 16 : 0);
        assert_int_equal(kernel->grid_barriers, k < 2 ? 2 : 0);
        assert_non_null(strstr(program.source, names[k]));
    }
    assert_compare(program.kernels[0].scratch_bytes, <, program.kernels[1].scratch_bytes);
    assert_int_equal(program.weights.size_bytes % 256, 0);
    cu_program_done(&program);
}

/* An entry may have any name. A kernel's name must be a unique C identifier. */
static void kernel_names_are_unique_across_entries(void **state)
{
    (void)state;
    static const char price[] = "x = input f32[4,8]\nw = weights f32[8,2]\ny = mdot.Linear(x, w)\nreturn y\n";
    static const char *const names[][2] = {
        {"8x", "entry_8x"}, {"double", "entry_double"}, {"a-b", "entry_a_b"}, {"a_b", "entry_a_b_2"}};
    cg_entry entries[4];
    for (int e = 0; e < 4; e++) entries[e] = entry_of(names[e][0], without_length(price), NULL, 0);
    cu_program program = generate(entries, 4, CG_BF16);
    for (int e = 0; e < 4; e++) assert_string_equal(program.kernels[e].name, names[e][1]);
    cu_program_done(&program);
}

/* type i64, five loads f32, mask bool: each input is rounded up to 16 bytes. */
static void small_inputs_are_passed_as_parameters(void **state)
{
    (void)state;
    static const int64_t buckets[] = {32, 1000, 1024, 2048};
    cg_entry entry = entry_of("predict", cuda_encoder(1), buckets, 4);
    cu_program program = generate(&entry, 1, CG_FP32);
    assert_int_equal(program.kernels[0].inline_input_bytes, 32 * 8 + 32 * 20 + 32);
    assert_int_equal(program.kernels[1].inline_input_bytes, 1000 * 8 + 1000 * 20 + 1008);
    assert_int_equal(program.kernels[2].inline_input_bytes, 1024 * 8 + 1024 * 20 + 1024);
    assert_int_equal(program.kernels[3].inline_input_bytes, 0);
    cu_program_done(&program);
}

static void layers_and_buckets_share_the_functions_of_their_steps(void **state)
{
    (void)state;
    static const int64_t buckets[] = {32, 64};
    cg_entry two = entry_of("predict", cuda_encoder(3), buckets, 1),
             six = entry_of("predict", cuda_encoder(6), buckets, 2);
    cu_program small = generate(&two, 1, CG_BF16), large = generate(&six, 1, CG_BF16);
    int functions = count_of(small.source, "__noinline__");
    assert_compare(functions, >, 10);
    assert_int_equal(count_of(large.source, "__noinline__"), functions);
    assert_int_equal(count_of(small.source, "grid_barrier("), 4);
    assert_int_equal(count_of(large.source, "grid_barrier("), 2 * 7);
    cu_program_done(&small);
    cu_program_done(&large);
}

static void assert_refused(const char *graph, const char *kernel, const char *reason)
{
    static const int64_t buckets[] = {32};
    cg_entry entry = entry_of("predict", graph_from_notation(graph, INT64_MAX, cuda_arena), buckets, 1);
    cu_program program = {.kernel_count = -1};
    mdot_error err = {0};
    assert_int_equal(cu_generate(&entry, 1, CG_BF16, &cu_blocks, cuda_arena, &program, &err), MDOT_UNSUPPORTED);
    assert_int_equal(program.kernel_count, -1);
    if (!strstr(err.message, kernel) || !strstr(err.message, reason)) fail_msg("%s", err.message);
}

static void kernels_without_cuda_code_are_refused_by_name(void **state)
{
    (void)state;
    assert_refused("x = input f64[1,L]\naxis = constant i64[] [1]\nsum = CumSum(x, axis)\nreturn sum\n",
                   "sequential.sum", "f64");
    assert_refused("x = input f32[1,L,8]\ni = input i64[1,L,2]\nb = Cast(x) {to=2}\nu = Cast(i) {to=2}\n"
                   "s = ScatterElements(b, i, u) {axis=2}\nreturn s\n",
                   ".b", "u8");
    assert_refused("x = input f64[1,L]\nroot = Sqrt(x)\nreturn root\n", "nest.root", "f64");
    assert_refused("x = input f32[1,L,4]\ns = Softmax(x) {axis=1}\nreturn s\n", ".s", "");
    assert_refused("x = input f32[1,L,3000]\nn = Softmax(x) {axis=-1}\nreturn n\n", "norm.n", "2048");
}

static void an_entry_with_a_length_needs_a_bucket(void **state)
{
    (void)state;
    const ir_graph *graph =
        graph_from_notation("x = input f32[1,L]\nroot = Sqrt(x)\nreturn root\n", INT64_MAX, cuda_arena);
    cg_entry entry = {.plan_count = -1};
    mdot_error err = {0};
    assert_int_equal(co_plan_entry("predict", graph, NULL, 0, false, &no_hooks, cuda_arena, &entry, &err),
                     MDOT_INVALID_ARGUMENT);
    assert_int_equal(entry.plan_count, -1);
    assert_non_null(strstr(err.message, "the list of buckets is empty"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_ordered_by_entry_and_bucket),
        cmocka_unit_test(kernel_names_are_unique_across_entries),
        cmocka_unit_test(small_inputs_are_passed_as_parameters),
        cmocka_unit_test(layers_and_buckets_share_the_functions_of_their_steps),
        cmocka_unit_test(kernels_without_cuda_code_are_refused_by_name),
        cmocka_unit_test(an_entry_with_a_length_needs_a_bucket),
    };
    return cmocka_run_group_tests(tests, cuda_arena_begin, cuda_arena_end);
}
