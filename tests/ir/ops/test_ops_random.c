/* test_ops_random.c — every operator table row on random nodes. For any file content, the rules read only existing
 * inputs, inference and evaluation agree on types, too little memory is reported, and every message names the node. The
 * seed is fixed. */
#include "ir/ops/families.h"
#include "tests/support/assertions.h"
#include "tests/support/random_node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NODES_PER_OPERATOR = 800, MOST_OUTPUTS = 4 };
enum { ARENA_BYTES = 1 << 26 }; /* memory limit for random shapes, because a machine may overcommit memory */

static ir_type type_of(const ir_wide *wide)
{
    ir_type type = {.dtype = wide->dtype, .rank = wide->rank};
    for (int i = 0; i < wide->rank; i++) type.dim[i] = ir_dim_number(wide->dims[i]);
    return type;
}

static void expect_named(mdot_status status, const mdot_error *err, const char *op)
{
    if (status != MDOT_OK && !strstr(err->message, "\"the node\""))
        fail_msg("%s does not name its node: %s", op, err->message);
}

/* Evaluates again with more and more memory. Too little memory is reported until it suffices. */
static void expect_memory_is_reported(const ir_op *op, const ir_node *node, const ir_wide *const *in)
{
    mdot_status status = MDOT_OUT_OF_MEMORY;
    for (size_t limit = 16; status != MDOT_OK; limit *= 2) {
        ir_wide *out[MOST_OUTPUTS] = {NULL};
        mdot_error err = {.status = MDOT_OK};
        ir_arena *arena = ir_arena_create(limit);
        status = ir_eval_node(arena, node, in, out, &err);
        ir_arena_destroy(arena);
        expect_named(status, &err, op->name);
        if (status != MDOT_OK) assert_int_equal(status, MDOT_OUT_OF_MEMORY);
    }
}

/* Runs one random node. Returns true if inference and evaluation both accept it. */
static bool run_node(uint64_t *state, const ir_op *op)
{
    const ir_wide *in[RANDOM_NODE_INPUTS];
    ir_wide *out[MOST_OUTPUTS] = {NULL};
    mdot_error infer_err = {.status = MDOT_OK}, eval_err = {.status = MDOT_OK};
    ir_arena *arena = ir_arena_create(ARENA_BYTES);
    ir_graph *graph = ir_graph_create(arena, "test");
    ir_node *node = random_node(state, graph, op, in);
    mdot_status inferred = ir_infer_node(graph, node, &infer_err);
    bool evaluates = inferred != MDOT_MALFORMED && op->eval; /* some operators have only a shape and a cost */
    mdot_status evaluated = evaluates ? ir_eval_node(arena, node, in, out, &eval_err) : MDOT_UNSUPPORTED;
    expect_named(inferred, &infer_err, op->name);
    if (evaluates) expect_named(evaluated, &eval_err, op->name);
    if (inferred == MDOT_OK) (void)ir_node_cost(node, 1);
    bool both = inferred == MDOT_OK && evaluated == MDOT_OK;
    for (int i = 0; both && i < node->output_count; i++) {
        ir_type type = type_of(out[i]);
        if (!ir_type_equal(&type, &node->outputs[i]->type)) fail_msg("%s: output %d is not as inferred", op->name, i);
    }
    if (both) expect_memory_is_reported(op, node, in);
    ir_arena_destroy(arena);
    return both;
}

static void random_nodes_agree_or_are_refused(void **unused)
{
    (void)unused;
    uint64_t state = UINT64_C(0x2545F4914F6CDD1D);
    int operators = 0; /* operators with a node accepted by inference and evaluation; nearly all, otherwise the test
                        * covers too little */
    int evaluators = 0;
    for (int op = 0; op < IR_OP_COUNT; op++) {
        int accepted = 0;
        for (int i = 0; i < NODES_PER_OPERATOR; i++) accepted += run_node(&state, &ir_ops[op]);
        operators += accepted > 0;
        /* random integers are no trees (test_ops_trees) */
        evaluators += ir_ops[op].eval != NULL && ir_ops[op].lowering != IR_LOWER_TREES;
    }
    assert_compare(operators, >=, evaluators * 9 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_nodes_agree_or_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
