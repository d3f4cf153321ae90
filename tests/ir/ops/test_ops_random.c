/* test_ops_random.c — every row of the operator table on random nodes: whatever a file says, no rule reads what is not
 * there, inference and evaluation agree on types, too little memory is reported, and every message names its node.
 *
 * Most nodes are malformed; small dimensions and shared shapes make enough of them valid. The seed is fixed.
 */
#include "ir/ops.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { NODES_PER_OPERATOR = 400, MOST_INPUTS = 9, MOST_OUTPUTS = 4, MOST_ATTRS = 4 };
enum { ARENA_BYTES = 1 << 26 }; /* what random shapes may claim of a machine that promises more than it has */

/* Marsaglia's xorshift64 (Journal of Statistical Software 8, 2003). */
static uint64_t random_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

/* 0 … count - 1. */
static int pick(uint64_t *state, int count)
{
    return (int)(random_bits(state) % (uint64_t)count);
}

static const char *const int_attrs[] = {"axis",
                                        "axis",
                                        "axis",
                                        "keepdims",
                                        "num_heads",
                                        "q_num_heads",
                                        "kv_num_heads",
                                        "batch_dims",
                                        "transA",
                                        "transB",
                                        "upper",
                                        "largest",
                                        "exclusive",
                                        "blocksize",
                                        "num_outputs",
                                        "allowzero",
                                        "to",
                                        "dtype",
                                        "num_groups",
                                        "is_causal",
                                        "interleaved",
                                        "k",
                                        "p",
                                        "select_last_index",
                                        "start",
                                        "end",
                                        "noop_with_empty_axes",
                                        "qk_matmul_output_mode",
                                        "left_window_size",
                                        "right_window_size",
                                        "rotary_embedding_dim",
                                        "unidirectional",
                                        "stash_type",
                                        "fmod",
                                        "detect_negative",
                                        "reverse"};
static const char *const ints_attrs[] = {"axes", "perm", "qkv_hidden_sizes", "value_ints", "axis"};
static const char *const float_attrs[] = {"alpha", "beta", "epsilon", "scale", "softcap", "gamma", "perm"};
static const struct {
    const char *name, *value;
} string_attrs[] = {{"mode", "reflect"},   {"mode", "wrap"},       {"mode", "circular"},  {"mode", "CRD"},
                    {"reduction", "add"},  {"reduction", "max"},   {"equation", "ij,jk"}, {"equation", "...i,i->..."},
                    {"equation", "ii->i"}, {"equation", "ij->ji"}, {"direction", "LEFT"}, {"approximate", "tanh"},
                    {"equation", "ab,b-"}, {"axis", "text"}};

#define PICK_FROM(state, table) (table)[pick(state, (int)(sizeof(table) / sizeof *(table)))]

static void add_random_attr(uint64_t *state, ir_graph *graph, ir_node *node)
{
    int64_t ints[4];
    int count = pick(state, 5), which = pick(state, (int)(sizeof string_attrs / sizeof *string_attrs));
    switch (pick(state, 6)) {
    case 0:
        for (int i = 0; i < count; i++) ints[i] = pick(state, 7) - 3;
        ir_node_set_ints(graph, node, PICK_FROM(state, ints_attrs), ints, count);
        break;
    case 1:
        ir_node_set_float(graph, node, PICK_FROM(state, float_attrs), pick(state, 9) * 0.5 - 2);
        break;
    case 2:
        ir_node_set_string(graph, node, string_attrs[which].name, string_attrs[which].value);
        break;
    default:
        ir_node_set_int(graph, node, PICK_FROM(state, int_attrs), pick(state, 16) ? pick(state, 6) - 2 : INT64_MIN);
        break;
    }
}

static mdot_dtype random_dtype(uint64_t *state)
{
    static const mdot_dtype others[] = {MDOT_DTYPE_I32, MDOT_DTYPE_BOOL, MDOT_DTYPE_F16, MDOT_DTYPE_U8,
                                        MDOT_DTYPE_U64, MDOT_DTYPE_F64,  MDOT_DTYPE_I8,  MDOT_DTYPE_BF16};
    int which = pick(state, 10);
    return which < 5 ? MDOT_DTYPE_F32 : which < 8 ? MDOT_DTYPE_I64 : PICK_FROM(state, others);
}

static ir_wide *random_tensor(uint64_t *state, ir_arena *arena, mdot_dtype dtype, int rank, const int64_t *dims)
{
    ir_wide *wide = ir_wide_create(arena, dtype, rank, dims);
    for (int64_t i = 0; wide->f && i < wide->count; i++) wide->f[i] = pick(state, 50) ? pick(state, 13) * 0.5 - 3 : NAN;
    for (int64_t i = 0; wide->i && i < wide->count; i++) {
        wide->i[i] = ir_wrap_integer(dtype, pick(state, 50) ? pick(state, 6) - 2 : INT64_MIN + pick(state, 2));
    }
    return wide;
}

/* The inputs of a node: constants, many of one type and shape, some absent. */
static int random_inputs(uint64_t *state, ir_graph *graph, const ir_op *op, const ir_wide **tensors, ir_value **values)
{
    int span = op->max_inputs - op->min_inputs, count = op->min_inputs + pick(state, span < 5 ? span + 1 : 5);
    if (count > MOST_INPUTS) count = MOST_INPUTS;
    mdot_dtype dtype = random_dtype(state);
    int rank = pick(state, 5);
    int64_t dims[MDOT_MAX_RANK];
    for (int k = 0; k < MDOT_MAX_RANK; k++) dims[k] = pick(state, 12) ? 1 + pick(state, 4) : 0;
    for (int i = 0; i < count; i++) {
        tensors[i] = NULL;
        values[i] = NULL;
        if (i >= op->min_inputs && pick(state, 4) == 0) continue;
        if (pick(state, 3) == 0) dtype = random_dtype(state);
        if (pick(state, 3) == 0) rank = pick(state, 5);
        if (pick(state, 3) == 0) dims[pick(state, 4)] = 1 + pick(state, 4);
        ir_wide *wide = random_tensor(state, graph->arena, dtype, rank, dims);
        tensors[i] = wide;
        values[i] = ir_graph_add_constant(graph, "input", ir_tensor_from_wide(graph->arena, wide));
    }
    return count;
}

static ir_node *random_node(uint64_t *state, ir_graph *graph, const ir_op *op, const ir_wide **tensors)
{
    ir_value *values[MOST_INPUTS];
    int inputs = random_inputs(state, graph, op, tensors, values);
    int span = op->max_outputs - op->min_outputs, outputs = op->min_outputs + pick(state, span < 3 ? span + 1 : 3);
    ir_node *node = ir_graph_add_node(graph, NULL, op, "the node", values, inputs, outputs);
    for (int i = pick(state, MOST_ATTRS + 1); i > 0; i--) add_random_attr(state, graph, node);
    return node;
}

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

/* Evaluates again in ever more memory: what is too little is reported, until it is enough. */
static void expect_memory_is_reported(const ir_op *op, const ir_node *node, const ir_wide *const *in)
{
    mdot_status status = MDOT_OUT_OF_MEMORY;
    for (size_t limit = 16; status != MDOT_OK; limit *= 2) {
        ir_wide *out[MOST_OUTPUTS] = {NULL};
        mdot_error err = {.status = MDOT_OK};
        ir_arena *arena = ir_arena_create(limit);
        status = op->eval(arena, node, in, out, &err);
        ir_arena_destroy(arena);
        expect_named(status, &err, op->name);
        if (status != MDOT_OK) assert_int_equal(status, MDOT_OUT_OF_MEMORY);
    }
}

/* Runs one random node; true where inference and evaluation both accept it. */
static bool run_node(uint64_t *state, const ir_op *op)
{
    const ir_wide *in[MOST_INPUTS];
    ir_wide *out[MOST_OUTPUTS] = {NULL};
    mdot_error infer_err = {.status = MDOT_OK}, eval_err = {.status = MDOT_OK};
    ir_arena *arena = ir_arena_create(ARENA_BYTES);
    ir_graph *graph = ir_graph_create(arena, "test");
    ir_node *node = random_node(state, graph, op, in);
    ir_cost cost;
    mdot_status inferred = ir_infer_node(graph, node, &infer_err);
    bool evaluates = inferred != MDOT_MALFORMED && op->eval; /* some operators have a shape and a cost only */
    mdot_status evaluated = evaluates ? op->eval(arena, node, in, out, &eval_err) : MDOT_UNSUPPORTED;
    expect_named(inferred, &infer_err, op->name);
    if (evaluates) expect_named(evaluated, &eval_err, op->name);
    if (inferred == MDOT_OK) op->cost(node, 1, &cost);
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
    int operators = 0; /* with a node that both accepted: nearly all, or this test has lost its reach */
    int evaluators = 0;
    for (int op = 0; op < IR_OP_COUNT; op++) {
        int accepted = 0;
        for (int i = 0; i < NODES_PER_OPERATOR; i++) accepted += run_node(&state, &ir_ops[op]);
        operators += accepted > 0;
        evaluators += ir_ops[op].eval != NULL;
    }
    assert_true(operators >= evaluators * 9 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_nodes_agree_or_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
