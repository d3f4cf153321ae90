/* test_passes.c — the pass runner, the passes' common builder, and allocation failures. */
#include "ir/ops.h"
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char encoder[] = "x = input f32[1,L,8]\n"
                              "mask = input bool[1,L]\n"
                              "wq = weights f32[8,8]\n"
                              "bq = weights f32[8]\n"
                              "wk = weights f32[8,8]\n"
                              "gamma = weights f32[8]\n"
                              "n = LayerNormalization(x, gamma) {axis=-1, epsilon=1e-5}\n"
                              "q0 = MatMul(n, wq)\n"
                              "q1 = Add(q0, bq)\n"
                              "k0 = MatMul(n, wk)\n"
                              "shape = Shape(n)\n"
                              "zero = constant i64[1] [0]\n"
                              "two = constant i64[1] [2]\n"
                              "lead = Slice(shape, zero, two)\n"
                              "heads = constant i64[2] [2, 4]\n"
                              "split = Concat(lead, heads) {axis=0}\n"
                              "q2 = Reshape(q1, split)\n"
                              "k2 = Reshape(k0, split)\n"
                              "q = Transpose(q2) {perm=[0, 2, 1, 3]}\n"
                              "k = Transpose(k2) {perm=[0, 2, 3, 1]}\n"
                              "v = Transpose(k2) {perm=[0, 2, 1, 3]}\n"
                              "s = MatMul(q, k)\n"
                              "never = constant f32[] [-1e9]\n"
                              "masked = Where(mask, s, never)\n"
                              "p = Softmax(masked) {axis=-1}\n"
                              "o = MatMul(p, v)\n"
                              "y = com.microsoft.Gelu(o)\n"
                              "return y\n";

static void an_unknown_pass_is_not_found(void **state)
{
    (void)state;
    mdot_error err = {0};
    bool changed = true;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation(encoder, 16, arena);
    assert_int_equal(ir_run_pass(graph, "no_such_pass", &changed, &err), MDOT_NOT_FOUND);
    assert_non_null(strstr(err.message, "no_such_pass"));
    assert_true(changed); /* the output argument is unchanged */
    ir_arena_destroy(arena);
}

static void every_pass_has_a_unique_name(void **state)
{
    (void)state;
    for (int i = 0; i < ir_pass_count; i++)
        for (int k = 0; k < i; k++) assert_string_not_equal(ir_passes[i].name, ir_passes[k].name);
}

static void keep_text(void *user, const char *text) { snprintf(user, 1 << 16, "%s", text); }

static void the_dump_shows_the_graph_after_its_pass(void **state)
{
    (void)state;
    static char text[1 << 16];
    ir_arena *arena = ir_arena_create(0);
    ir_pass_options options = {.dump_pass = "form_linear", .dump = keep_text, .user = text};
    assert_int_equal(ir_run_passes(graph_from_notation(encoder, 16, arena), &options, NULL), MDOT_OK);
    assert_non_null(strstr(text, "mdot.Linear"));
    assert_non_null(strstr(text, "Softmax")); /* the attention pass runs later */
    ir_arena_destroy(arena);
}

static void a_second_run_of_every_pass_changes_nothing(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation(encoder, 16, arena);
    assert_int_equal(ir_run_passes(graph, NULL, NULL), MDOT_OK);
    const char *once = graph_to_golden(graph, arena);
    for (int i = 0; i < ir_pass_count; i++) {
        bool changed = false;
        assert_int_equal(ir_run_pass(graph, ir_passes[i].name, &changed, NULL), MDOT_OK);
        assert_true(!changed || strcmp(ir_passes[i].name, "infer") == 0);
    }
    assert_string_equal(once, graph_to_golden(graph, arena));
    ir_arena_destroy(arena);
}

/* Writes "OP(x, v0, v1, …)" with so many inputs, some equal. */
static const char *sum_like(const char *op, int inputs, char *text, size_t size)
{
    enum { VALUES = 17 };
    size_t used = (size_t)snprintf(text, size, "x = input f32[2,L]\n");
    for (int i = 0; i < VALUES; i++) {
        used += (size_t)snprintf(text + used, size - used, "c%d = constant f32[] [%d.5]\n", i, 3 * i % 7 - 3);
        used += (size_t)snprintf(text + used, size - used, "v%d = Mul(x, c%d)\n", i, i);
    }
    used += (size_t)snprintf(text + used, size - used, "y = %s(x", op);
    for (int i = 1; i < inputs; i++) used += (size_t)snprintf(text + used, size - used, ", v%d", i % VALUES);
    snprintf(text + used, size - used, ")\nreturn y\n");
    return text;
}

/* The depth of kernel expressions is bounded, and so is recursion over them. */
static void operators_of_many_inputs_become_trees(void **state)
{
    (void)state;
    static const char *const ops[] = {"Sum", "Mean", "Min", "Max"};
    static char text[1 << 16];
    enum { MOST = 32 };
    for (int o = 0; o < 4; o++) {
        for (int inputs = MOST; inputs <= 1100; inputs = inputs == MOST ? MOST + 1 : inputs + 1067) {
            bool changed = false;
            ir_arena *arena = ir_arena_create(0);
            ir_graph *graph = graph_from_notation(sum_like(ops[o], inputs, text, sizeof text), 16, arena);
            assert_int_equal(ir_run_pass(graph, "infer", &changed, NULL), MDOT_OK);
            ir_graph *before = ir_graph_clone(graph, arena);
            assert_int_equal(ir_run_pass(graph, "expand", &changed, NULL), MDOT_OK);
            assert_int_equal(changed, inputs > MOST);
            for (const ir_node *node = graph->first; node != NULL; node = node->next)
                assert_compare(node->input_count, <=, MOST);
            assert_same_values(before, graph, 5, 1e-9);
            ir_arena_destroy(arena);
        }
    }
}

/* A job may have unknown operators. The operators around them are still simplified. */
static void unknown_operators_are_left_alone(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation("x = input f32[2,L]\n"
                                          "a = Identity(x)\n"
                                          "u = unknown \"my.domain.Op\"(a)\n"
                                          "one = constant f32[] [1.0]\n"
                                          "m = Mul(u, one)\n"
                                          "c = Cast(m) {to=1}\n"
                                          "b = Mul(x, one)\n"
                                          "y = Add(b, c)\n"
                                          "return y\n",
                                          16, arena);
    for (int i = 0; i < ir_pass_count; i++) {
        bool changed;
        mdot_error err;
        if (ir_run_pass(graph, ir_passes[i].name, &changed, &err) != MDOT_OK) fail_msg("%s", err.message);
    }
    assert_string_equal(graph_to_golden(graph, arena), "  %0 : f32[2,L] = input\n"
                                                       "  %1 : ?[*] = unknown \"my.domain.Op\"(%0)\n"
                                                       "  %2 : f32[] = constant [1.0]\n"
                                                       "  %3 : ?[*] = Mul(%1, %2)\n"
                                                       "  %4 : ?[*] = Cast(%3) {to=1}\n"
                                                       "  %5 : ?[*] = Add(%0, %4)\n"
                                                       "  return %5\n");
    ir_arena_destroy(arena);
}

/* Each allocation fails in turn. */
static void exhausted_memory_is_reported(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation(encoder, 16, arena);
    mdot_status status = MDOT_OUT_OF_MEMORY;
    int failures = 0;
    for (size_t limit = 1 << 12; status == MDOT_OUT_OF_MEMORY; limit += 512) {
        mdot_error err = {0};
        ir_arena *small = ir_arena_create(limit);
        ir_graph *clone = small ? ir_graph_clone(graph, small) : NULL;
        if (clone) {
            status = ir_run_passes(clone, NULL, &err);
            failures += status == MDOT_OUT_OF_MEMORY;
            if (status != MDOT_OK) assert_int_equal(status, MDOT_OUT_OF_MEMORY);
        }
        ir_arena_destroy(small);
        assert_compare(limit, <, 1 << 22);
    }
    assert_compare(failures, >, 10);
    ir_arena_destroy(arena);
}

/* Returns a builder that inserts before an inferred graph's first node. */
static ir_builder builder_for(const char *text, ir_arena *arena)
{
    ir_graph *graph = graph_from_notation(text, 16, arena);
    assert_int_equal(ir_infer(graph, NULL), MDOT_OK);
    return (ir_builder){
        .graph = graph, .at = graph->first, .name = "new", .dtype = MDOT_DTYPE_F32, .first_new = graph->value_count};
}

static void a_replacement_with_another_type_is_refused(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_builder b = builder_for("x = input f32[L,4]\ny = Exp(x)\nz = Log(y)\nreturn z\n", arena);
    ir_value *y = b.at->outputs[0], *x = b.graph->inputs[0];
    assert_false(ir_replace(&b, y, ir_build_scalar(&b, 1)));
    assert_false(ir_replace(&b, y, NULL));
    assert_false(b.changed);
    assert_true(ir_replace(&b, y, ir_build_mul(&b, x, ir_build_scalar(&b, 2))));
    assert_true(b.changed);
    assert_string_equal(b.graph->last->inputs[0]->name, "y"); /* the new value takes over the name */
    ir_arena_destroy(arena);
}

static void builder_failures_persist_and_absent_operands_give_null(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_builder b = builder_for("x = input f32[L,4]\ny = Exp(x)\nreturn y\n", arena);
    ir_value *x = b.graph->inputs[0], *y = b.at->outputs[0];
    assert_null(ir_build_add(&b, x, NULL));
    assert_int_equal(b.status, MDOT_OK);
    int64_t dims[] = {3, 3};
    assert_null(ir_build_add(&b, x, ir_build_filled(&b, dims, 2, 1))); /* 4 and 3 fail to broadcast */
    mdot_status first = b.status;
    assert_int_not_equal(first, MDOT_OK);
    assert_null(ir_build_exp(&b, x));
    assert_null(ir_build_scalar(&b, 1));
    assert_false(ir_replace(&b, y, x));
    assert_int_equal(b.status, first);
    ir_arena_destroy(arena);
}

static void expect_known(const ir_value *value, const char *expected)
{
    ir_dim dims[IR_MAX_KNOWN];
    int count;
    char text[256] = "";
    assert_true(ir_value_known(value, dims, &count));
    for (int i = 0; i < count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%dL%+d", i ? " " : "", (int)dims[i].scale, (int)dims[i].offset);
    }
    assert_string_equal(text, expected);
}

static void dimensions_are_computed_from_the_inputs(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_builder b = builder_for("x = input f32[4,2L+1]\ny = Exp(x)\nreturn y\n", arena);
    const ir_dim wanted[] = {{.offset = 7}, {.scale = 2, .offset = 1}, {.scale = 1}, {.scale = 3, .offset = -1}};
    expect_known(ir_build_dims(&b, wanted, 4), "0L+7 2L+1 1L+0 3L-1");
    ir_value *one = ir_build_dim(&b, wanted[3]);
    expect_known(one, "3L-1");
    assert_int_equal(one->type.rank, 0);
    expect_known(ir_build_dim(&b, wanted[0]), "0L+7");
    ir_arena_destroy(arena);
}

static void reshapes_use_constant_shapes(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_builder b = builder_for("x = input f32[2,L,L,6]\ny = Exp(x)\nreturn y\n", arena);
    ir_value *x = b.graph->inputs[0];
    const ir_dim L = {.scale = 1}, two = {.offset = 2}, three = {.offset = 3}, one = {.offset = 1}, six = {.offset = 6};
    assert_ptr_equal(ir_build_reshape(&b, x, x->type.dim, 4), x);
    ir_value *copied = ir_build_reshape(&b, x, (ir_dim[]){two, L, L, two, three}, 5);
    expect_known(copied->def->inputs[1], "0L+2 0L+0 0L+0 0L+2 0L+3");
    ir_value *ones =
        /* Reshape's 0 and -1 can express only one L */
        ir_build_reshape(&b, x, (ir_dim[]){one, one, two, L, L, six}, 6);
    assert_string_equal(ones->def->op->name, "Unsqueeze");
    assert_ptr_equal(ir_build_reshape(&b, ones, x->type.dim, 4), x); /* the builder returns the value that has this
                                                                      * shape already */
    assert_string_equal(ir_build_reshape(&b, ir_build_exp(&b, ones), x->type.dim, 4)->def->op->name, "Squeeze");
    ir_arena_destroy(arena);
}

static void consecutive_transposes_are_merged(void **state)
{
    (void)state;
    ir_arena *arena = ir_arena_create(0);
    ir_builder b = builder_for("x = input f32[2,L,1,6]\ny = Exp(x)\nreturn y\n", arena);
    ir_value *x = b.graph->inputs[0];
    ir_value *last = ir_build_transpose(&b, x, (const int64_t[]){0, 3, 2, 1});
    assert_ptr_equal(ir_build_transpose(&b, last, (const int64_t[]){0, 3, 2, 1}), x);
    assert_ptr_equal(ir_build_transpose(&b, last, (const int64_t[]){1, 0, 2, 3})->def->inputs[0], x);
    assert_string_equal(ir_build_transpose(&b, x, (const int64_t[]){2, 0, 1, 3})->def->op->name, "Reshape");
    ir_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unknown_pass_is_not_found),
        cmocka_unit_test(every_pass_has_a_unique_name),
        cmocka_unit_test(the_dump_shows_the_graph_after_its_pass),
        cmocka_unit_test(a_second_run_of_every_pass_changes_nothing),
        cmocka_unit_test(operators_of_many_inputs_become_trees),
        cmocka_unit_test(unknown_operators_are_left_alone),
        cmocka_unit_test(exhausted_memory_is_reported),
        cmocka_unit_test(a_replacement_with_another_type_is_refused),
        cmocka_unit_test(builder_failures_persist_and_absent_operands_give_null),
        cmocka_unit_test(dimensions_are_computed_from_the_inputs),
        cmocka_unit_test(reshapes_use_constant_shapes),
        cmocka_unit_test(consecutive_transposes_are_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
