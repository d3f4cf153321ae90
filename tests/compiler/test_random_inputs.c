/* test_random_inputs.c — random inputs within a model's readable range, as far as the graph determines it. */
#include "compiler/compiler.h"
#include "ir/ops.h"
#include "ir/passes.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_notation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static ir_graph *typed_graph(const char *text, ir_arena *arena)
{
    bool changed;
    mdot_error err;
    ir_graph *graph = graph_from_notation(text, 16, arena);
    if (ir_run_pass(graph, "infer", &changed, &err) != MDOT_OK) fail_msg("%s", err.message);
    return graph;
}

/* Draws the graph's first input many times at a length. Returns the greatest element. All elements are at least 0. */
static int64_t greatest_drawn(const char *text, int64_t length)
{
    int64_t greatest = -1;
    uint64_t random = 1;
    int64_t cursor = 0;
    ir_arena *arena = ir_arena_create(0);
    const ir_graph *graph = typed_graph(text, arena);
    const ir_type *type = &graph->inputs[0]->type;
    co_tensor shape = {.dtype = type->dtype, .rank = type->rank};
    for (int i = 0; i < type->rank; i++) shape.dims[i] = ir_dim_at(type->dim[i], length);
    for (int draw = 0; draw < 200; draw++) {
        const ir_wide *wide = co_random_input(graph, 0, length, &shape, CO_NORMAL, &cursor, &random, arena);
        assert_non_null(wide);
        for (int64_t i = 0; i < wide->count; i++) {
            assert_compare(wide->i[i], >=, 0);
            if (wide->i[i] > greatest) greatest = wide->i[i];
        }
    }
    ir_arena_destroy(arena);
    return greatest;
}

static void indices_are_in_range(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bound; /* 0 = the length */
    } cases[] = {
        {"i = input i64[3]\nt = weights f32[5,2]\ny = Gather(t, i)\nreturn y\n", 5},
        {"i = input i64[3]\nt = weights f32[5,2]\ny = Gather(t, i) {axis=1}\nreturn y\n", 2},
        {"i = input i64[3]\nx = input f32[L,2]\ny = Gather(x, i)\nreturn y\n", 0},
        {"i = input i64[3]\nx = input f32[2,L]\ny = Gather(x, i) {axis=-1}\nreturn y\n", 0},
        {"i = input i32[L]\nx = input f32[L,2]\nc = Cast(i) {to=7}\ny = Gather(x, c)\nreturn y\n", 0},
        {"i = input i64[2,2]\nx = input f32[L,2]\ny = GatherElements(x, i)\nreturn y\n", 0},
        {"i = input i64[3,1]\nx = input f32[L,2]\ny = GatherND(x, i)\nreturn y\n", 0},
        {"i = input i64[1,1]\nx = input f32[L,2]\nu = input f32[1,2]\ny = ScatterND(x, i, u)\nreturn y\n", 0},
        {"i = input i64[3]\nt = weights f32[5,2]\none = constant i64[] [2]\np = Add(i, one)\ny = Gather(t, p)\nreturn "
         "y\n",
         3},
        {"i = input i64[3]\nt = weights f32[5,2]\np = constant i64[] [31]\nm = constant i64[] [5]\na = Mul(i, p)\n"
         "b = Add(a, i)\nr = Mod(b, m)\ny = Gather(t, r)\nreturn y\n",
         10}, /* twice the divisor, however the hash multiplies */
        {"i = input i64[3]\nt = weights f32[12,2]\np = constant i64[] [4]\nm = constant i64[] [9]\na = Mul(i, p)\n"
         "r = Mod(a, m)\nx = Gather(t, r)\nz = Gather(t, a)\ny = Add(x, z)\nreturn y\n",
         3}, /* the hash's operand is an index, too */
        {"i = input i64[3]\nt = weights f32[12,2]\np = constant i64[] [4]\na = Mul(i, p)\ny = Gather(t, a)\n"
         "return y\n",
         3},
        {"i = input i64[3]\nd = constant i64[] [4]\nv = constant f32[2] [0, 1]\ny = OneHot(i, d, v)\nreturn y\n", 4},
        {"i = input i64[3]\ny = Cast(i) {to=1}\nreturn y\n", 2},
        {"i = input i64[3]\nt = weights f32[5,2]\nfar = constant i64[] [-9223372036854775808]\np = Add(i, far)\n"
         "y = Gather(t, p)\nreturn y\n",
         2}, /* every 63-bit value is in range */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int64_t length = 1; length <= 9; length += 4) {
            int64_t bound = cases[i].bound > 0 ? cases[i].bound : length;
            if (greatest_drawn(cases[i].text, length) != bound - 1)
                fail_msg("not all below %lld are drawn: %s", (long long)bound, cases[i].text);
        }
    }
}

/* Causal queries before the first key of a mask would see masked keys alone. */
static void masks_begin_with_a_key_and_leave_others_out(void **state)
{
    (void)state;
    enum { ROWS = 3, KEYS = 12 };
    uint64_t random = 1;
    int64_t cursor = 0;
    bool is_off[KEYS] = {false};
    ir_arena *arena = ir_arena_create(0);
    const ir_graph *graph = typed_graph("m = input i64[3,L]\ny = Cast(m) {to=1}\nreturn y\n", arena);
    const co_tensor shape = {.dtype = MDOT_DTYPE_I64, .rank = 2, .dims = {ROWS, KEYS}};
    for (int draw = 0; draw < 50; draw++) {
        const ir_wide *wide = co_random_input(graph, 0, KEYS, &shape, CO_NORMAL, &cursor, &random, arena);
        assert_non_null(wide);
        for (int i = 0; i < ROWS * KEYS; i++) is_off[i % KEYS] = is_off[i % KEYS] || wide->i[i] == 0;
    }
    ir_arena_destroy(arena);
    assert_false(is_off[0]);
    for (int i = 1; i < KEYS; i++) assert_true(is_off[i]);
}

/* Each index of a table is drawn once before any is drawn again, at every size of the table. */
static void indices_cover_the_table(void **state)
{
    (void)state;
    for (int64_t rows = 1; rows < 200; rows++) {
        char text[128];
        bool seen[200] = {false};
        uint64_t random = 1;
        int64_t cursor = 0;
        ir_arena *arena = ir_arena_create(0);
        snprintf(text, sizeof text, "i = input i64[1]\nt = weights f32[%d,2]\ny = Gather(t, i)\nreturn y\n", (int)rows);
        const ir_graph *graph = typed_graph(text, arena);
        const co_tensor shape = {.dtype = MDOT_DTYPE_I64, .rank = 1, .dims = {1}};
        for (int64_t i = 0; i < rows; i++) {
            const ir_wide *wide = co_random_input(graph, 0, 1, &shape, CO_NORMAL, &cursor, &random, arena);
            assert_false(seen[wide->i[0]]);
            seen[wide->i[0]] = true;
        }
        ir_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(indices_are_in_range),
        cmocka_unit_test(masks_begin_with_a_key_and_leave_others_out),
        cmocka_unit_test(indices_cover_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
