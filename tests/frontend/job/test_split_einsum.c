/* test_split_einsum.c — frontend/job/split_einsum.c: an Einsum keeps the values, and costs as much as the equivalent
 * matmuls. */
#include "frontend/job/stages.h"
#include "ir/ops.h"
#include "ir/passes.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_notation.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static ir_graph *read_graph(const char *text, ir_arena *arena)
{
    mdot_error err = {0};
    bool changed;
    ir_graph *graph = graph_from_notation(text, 1, arena);
    if (ir_run_pass(graph, "infer", &changed, &err) != MDOT_OK) fail_msg("%s", err.message);
    return graph;
}

static int count_nodes(const ir_graph *graph, ir_opcode op)
{
    int count = 0;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) count += node->op == &ir_ops[op];
    return count;
}

/* `shapes` separates the operands by ';'. The Einsum becomes `products` matmuls; -1: it stays an Einsum. */
static void expect_split(const char *equation, const char *shapes, int products)
{
    char text[1024] = "", operands[64] = "", shape[64];
    int count = 0;
    for (const char *at = shapes; *at; count++) {
        size_t length = strcspn(at, ";");
        snprintf(shape, sizeof shape, "%.*s", (int)length, at);
        snprintf(text + strlen(text), sizeof text - strlen(text), "x%d = input f32[%s]\n", count, shape);
        snprintf(operands + strlen(operands), sizeof operands - strlen(operands), "%sx%d", count ? ", " : "", count);
        at += length + (at[length] == ';');
    }
    snprintf(text + strlen(text), sizeof text - strlen(text), "y = Einsum(%s) {equation=\"%s\"}\nreturn y\n", operands,
             equation);
    ir_arena *arena = ir_arena_create(0);
    ir_graph *before = read_graph(text, arena), *after = read_graph(text, arena);
    mdot_error err = {0};
    fe_job job = {.graph = after, .err = &err};
    bool changed;
    fe_job_canonicalise(&job);
    if (job.status != MDOT_OK || ir_run_pass(after, "einsum_to_matmul", &changed, &err) != MDOT_OK)
        fail_msg("%s: %s", equation, err.message);
    if (count_nodes(after, IR_OP_Einsum) != (products < 0) ||
        count_nodes(after, IR_OP_MatMul) != (products < 0 ? 0 : products))
        fail_msg("%s: %d Einsum, %d MatMul", equation, count_nodes(after, IR_OP_Einsum),
                 count_nodes(after, IR_OP_MatMul));
    assert_same_values(before, after, 1, 1e-9);
    ir_arena_destroy(arena);
}

static void einsum_becomes_matmuls_with_equal_values(void **state)
{
    (void)state;
    expect_split("bnhd,bmhd->bhnm", "2,3,4,5;2,6,4,5", 1);
    expect_split("ibh,hnd->ibnd", "2,3,4;4,5,6", 1);
    expect_split("ij,jk", "2,3;3,4", 1);
    expect_split("ij,kj->...", "2,3;4,3", 1);
    expect_split("...ij,...jk->...ik", "2,5,3,4;2,5,4,6", 1);
    expect_split("...ij,jk->...ik", "2,5,3,4;4,6", 1);
    expect_split("...ij,...jk->...ik", "2,5,3,4;5,4,6", 1);
    expect_split("...ij,...jk->...ik", "2,1,3,4;5,4,6", 1);
    expect_split("ijk,jl->il", "2,3,4;3,5", 1);
    expect_split("ij,jk,kl->il", "2,3;3,4;4,5", 2);
    expect_split("bi,bj,ijk->bk", "2,3;2,4;3,4,5", 1);
    expect_split("ij,ij->i", "2,3;2,3", 1);
    expect_split("i,j->ji", "2;3", 0);
    expect_split("bi,bi->bi", "2,3;2,1", 0);
    expect_split("ijk->kj", "2,3,4", 0);
    expect_split("...a->...", "2,3", 0);
    expect_split("ba", "2,3", 0);
    expect_split("bA,cA", "2,3;4,3", 1);
}

static void a_diagonal_keeps_its_einsum(void **state)
{
    (void)state;
    expect_split("ii->i", "3,3", -1);
    expect_split("iij,jk->ik", "3,3,2;2,4", -1);
}

static onnx_builder *scores(bool einsum)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "q", MDOT_DTYPE_F32, "2,32,4,8");
    onnx_input(b, "k", MDOT_DTYPE_F32, "2,32,4,8");
    if (einsum) {
        onnx_node(b, "Einsum", "q,k", "y");
        onnx_attr_string(b, "equation", "bnhd,bmhd->bhnm");
    } else {
        onnx_node(b, "Transpose", "q", "left");
        onnx_attr_ints(b, "perm", 4, (int64_t[]){0, 2, 1, 3});
        onnx_node(b, "Transpose", "k", "right");
        onnx_attr_ints(b, "perm", 4, (int64_t[]){0, 2, 3, 1});
        onnx_node(b, "MatMul", "left,right", "y");
    }
    onnx_output(b, "y");
    return b;
}

static void einsum_costs_the_same_as_its_matmul(void **state)
{
    (void)state;
    job_reading r = job_expect(scores(true)), s = job_expect(scores(false));
    job_expect_types(&r, "Transpose Transpose MatMul");
    job_expect_same(&r, &s);
    job_end(&r);
    job_end(&s);
}

/* XLNet projects to heads by an Einsum with a three-axis parameter. */
static void einsum_with_a_parameter_is_a_linear(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("16,2,12");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "12,4,5", NULL);
    onnx_node(b, "Einsum", "x,w", "y");
    onnx_attr_string(b, "equation", "ibh,hnd->ibnd");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Linear");
    mdot_job_operator op = job_operator(&r, 0);
    assert_compare(op.parameters, ==, 12 * 4 * 5);
    assert_int_equal(op.setting[MDOT_SETTING_CHANNELS_IN], 12);
    assert_int_equal(op.setting[MDOT_SETTING_CHANNELS_OUT], 20);
    job_end(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(einsum_becomes_matmuls_with_equal_values),
        cmocka_unit_test(a_diagonal_keeps_its_einsum),
        cmocka_unit_test(einsum_costs_the_same_as_its_matmul),
        cmocka_unit_test(einsum_with_a_parameter_is_a_linear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
