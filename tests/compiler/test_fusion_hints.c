/* test_fusion_hints.c — hints about operators that are not fused into attention. Other operators cause no hint. */
#include "compiler/compiler.h"
#include "ir/passes.h"
#include "tests/support/graph_notation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct hint_list {
    int count;
    char text[2048];
} hint_list;

static void keep(void *user, const char *text)
{
    hint_list *t = user;
    size_t used = strlen(t->text);
    t->count++;
    snprintf(t->text + used, sizeof t->text - used, "%s\n", text);
}

static hint_list hints_for(const char *between)
{
    char text[2048];
    mdot_error err;
    hint_list t = {.count = 0};
    ir_arena *arena = ir_arena_create(0);
    snprintf(
        text, sizeof text,
        "q = input f32[1,2,L,4]\nk = input f32[1,2,L,4]\nkt = Transpose(k) {perm=[0, 1, 3, 2]}\ns = MatMul(q, kt)\n"
        "%s\no = MatMul(w, k)\nwo = weights f32[4,4]\ny = MatMul(o, wo)\nreturn y\n",
        between);
    ir_graph *graph = graph_from_notation(text, 16, arena);
    if (ir_run_passes(graph, NULL, &err) != MDOT_OK) fail_msg("%s", err.message);
    co_hint_unfused(graph, &(co_hooks){.warning = keep, .user = &t});
    co_hint_unfused(graph, &(co_hooks){.warning = NULL});
    ir_arena_destroy(arena);
    return t;
}

static void unfused_matmuls_and_softmaxes_are_named(void **state)
{
    (void)state;
    hint_list t = hints_for("m = input f32[1,2,L,L]\np = Softmax(s) {axis=-1}\nw = Mul(p, m)");
    assert_int_equal(t.count, 2);
    assert_non_null(strstr(t.text, "2 matmuls are not fused into attention: \"s\", \"o\""));
    assert_non_null(strstr(t.text, "1 softmaxes are not fused into attention: \"p\""));
}

static void fused_attention_gives_no_hint(void **state)
{
    (void)state;
    assert_int_equal(hints_for("w = Softmax(s) {axis=-1}").count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unfused_matmuls_and_softmaxes_are_named),
        cmocka_unit_test(fused_attention_gives_no_hint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
