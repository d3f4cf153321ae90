/* test_plan_random.c — random graphs, planned and compared with the reference evaluation. They have views on views,
 * reshape chains, concatenated views, aliasing outputs, and other unforeseen combinations. Every graph follows from its
 * number. A failure names the number; for example, MDOT_RANDOM_GRAPH=7 prints graph 7 and its plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ops.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "tests/support/plan_oracle.h"

enum { GRAPHS = 3000, MAX_LENGTH = 6, MAX_POOL = 64, MAX_ELEMENTS = 3000 };

typedef struct maker {
    ir_arena *arena;
    ir_graph *graph;
    uint64_t random;
    ir_value *pool[MAX_POOL]; /* f32 values to choose from */
    int pool_count;
} maker;

static int below(maker *m, int limit)
{
    m->random = m->random * 6364136223846793005u + 1442695040888963407u;
    return (int)((m->random >> 33) % (uint64_t)limit);
}

/* Half the choices are among the latest values, so chains grow. */
static ir_value *any(maker *m)
{
    int latest = m->pool_count < 4 || below(m, 2) ? m->pool_count : 4;
    return m->pool[m->pool_count - 1 - below(m, latest)];
}

static ir_value *ints(maker *m, const int64_t *values, int count)
{
    int64_t *data = IR_NEW_ARRAY(m->arena, int64_t, count + 1);
    ir_tensor *tensor = IR_NEW(m->arena, ir_tensor);
    memcpy(data, values, (size_t)count * sizeof *data);
    *tensor = (ir_tensor){.dtype = MDOT_DTYPE_I64, .rank = 1, .dims = {count}, .count = count, .data = data};
    return ir_graph_add_constant(m->graph, "ints", tensor);
}

static ir_value *floats(maker *m, int rank, const int64_t *dims)
{
    int64_t count = ir_count_elements(rank, dims);
    float *data = IR_NEW_ARRAY(m->arena, float, count + 1);
    ir_tensor *tensor = IR_NEW(m->arena, ir_tensor);
    *tensor = (ir_tensor){.dtype = MDOT_DTYPE_F32, .rank = rank, .count = count, .data = data};
    for (int d = 0; d < rank; d++) tensor->dims[d] = dims[d];
    for (int64_t k = 0; k < count; k++) data[k] = (float)(below(m, 200) - 100) / 100;
    return ir_graph_add_constant(m->graph, "floats", tensor);
}

/* Keeps the node if the types are valid and the results small enough. f32 results join the pool. */
static bool keep(maker *m, ir_node *node)
{
    bool fits = ir_infer_node(m->graph, node, NULL) == MDOT_OK;
    for (int k = 0; fits && k < node->output_count; k++) {
        int64_t most = ir_type_count_at(&node->outputs[k]->type, MAX_LENGTH);
        fits = most > 0 && most <= MAX_ELEMENTS && ir_type_count_at(&node->outputs[k]->type, 1) > 0;
    }
    if (!fits) {
        ir_graph_remove_node(m->graph, node);
        return false;
    }
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k]->type.dtype == MDOT_DTYPE_F32 && m->pool_count < MAX_POOL)
            m->pool[m->pool_count++] = node->outputs[k];
    return true;
}

static ir_node *add(maker *m, ir_opcode opcode, ir_value *const *inputs, int input_count, int output_count)
{
    char name[16];
    snprintf(name, sizeof name, "n%d", m->graph->value_count);
    return ir_graph_add_node(m->graph, NULL, &ir_ops[opcode], name, inputs, input_count, output_count);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static void add_unary(maker *m)
{
    static const ir_opcode opcodes[] = {IR_OP_Tanh, IR_OP_Sin,  IR_OP_Sigmoid, IR_OP_Abs,
                                        IR_OP_Neg,  IR_OP_Relu, IR_OP_Gelu};
    keep(m, add(m, opcodes[below(m, 7)], (ir_value *[]){any(m)}, 1, 1));
}

static void add_binary(maker *m)
{
    static const ir_opcode opcodes[] = {IR_OP_Add, IR_OP_Mul, IR_OP_Sub, IR_OP_Max, IR_OP_Min};
    keep(m, add(m, opcodes[below(m, 5)], (ir_value *[]){any(m), any(m)}, 2, 1));
}

static void add_where(maker *m)
{
    ir_value *x = any(m), *y = any(m);
    ir_node *less = add(m, IR_OP_Less, (ir_value *[]){x, y}, 2, 1);
    if (keep(m, less)) keep(m, add(m, IR_OP_Where, (ir_value *[]){less->outputs[0], y, x}, 3, 1));
}

static void add_transpose(maker *m)
{
    ir_value *x = any(m);
    int64_t perm[MDOT_MAX_RANK];
    int rank = x->type.rank;
    for (int d = 0; d < rank; d++) perm[d] = d;
    for (int d = rank - 1; d > 0; d--) {
        int other = below(m, d + 1);
        int64_t kept = perm[d];
        perm[d] = perm[other];
        perm[other] = kept;
    }
    ir_node *node = add(m, IR_OP_Transpose, (ir_value *[]){x}, 1, 1);
    ir_node_set(m->graph, node, IR_INTS("perm", perm, rank));
    keep(m, node);
}

static void add_slice(maker *m)
{
    ir_value *x = any(m);
    bool backwards = below(m, 4) == 0;
    int64_t axis = below(m, x->type.rank + 1) - 1, start = below(m, 5) - 2, step = 1 + below(m, 2);
    int64_t end = below(m, 2) ? INT64_MAX : below(m, 6) - 2;
    if (backwards) {
        start = -1 - below(m, 2);
        end = INT64_MIN;
        step = -step;
    }
    ir_value *inputs[] = {x, ints(m, &start, 1), ints(m, &end, 1), ints(m, &axis, 1), ints(m, &step, 1)};
    keep(m, add(m, IR_OP_Slice, inputs, 5, 1));
}

static void add_split(maker *m)
{
    ir_node *node = add(m, IR_OP_Split, (ir_value *[]){any(m)}, 1, 2);
    ir_node_set(m->graph, node, IR_INT("axis", -1));
    ir_node_set(m->graph, node, IR_INT("num_outputs", 2));
    keep(m, node);
}

static void add_concat(maker *m)
{
    ir_value *x = any(m), *parts[] = {x, below(m, 3) ? any(m) : x, any(m)};
    ir_node *node = add(m, IR_OP_Concat, parts, 2 + below(m, 2), 1);
    ir_node_set(m->graph, node, IR_INT("axis", below(m, x->type.rank + 1)));
    keep(m, node);
}

static void add_pad(maker *m)
{
    static const char *const modes[] = {"constant", "edge", "reflect", "wrap"};
    ir_value *x = any(m);
    int64_t pads[2 * MDOT_MAX_RANK];
    for (int k = 0; k < 2 * x->type.rank; k++) pads[k] = below(m, 3) ? 0 : below(m, 3);
    ir_node *node = add(m, IR_OP_Pad, (ir_value *[]){x, ints(m, pads, 2 * x->type.rank)}, 2, 1);
    ir_node_set(m->graph, node, IR_STRING("mode", modes[below(m, 4)]));
    keep(m, node);
}

static void add_unsqueeze(maker *m)
{
    ir_value *x = any(m);
    int64_t axis = below(m, x->type.rank + 1);
    keep(m, add(m, IR_OP_Unsqueeze, (ir_value *[]){x, ints(m, &axis, 1)}, 2, 1));
}

static void add_squeeze(maker *m, ir_value *x)
{
    for (int64_t d = 0; d < x->type.rank; d++) {
        if (!ir_dim_is(x->type.dim[d], 1)) continue;
        keep(m, add(m, IR_OP_Squeeze, (ir_value *[]){x, ints(m, &d, 1)}, 2, 1));
        return;
    }
}

/* Merges two dimensions, splits the last, flattens, or drops one-element dimensions. */
static void add_reshape(maker *m)
{
    static const int64_t shapes[][4] = {{-1, 4}, {0, -1}, {0, 0, 2, -1}, {-1, 2, 2}, {2, -1}, {1, -1}, {0, 1, -1}};
    static const int ranks[] = {2, 2, 4, 3, 2, 2, 3};
    int k = below(m, 9);
    ir_value *x = any(m);
    if (k == 7)
        keep(m, add(m, IR_OP_Flatten, &x, 1, 1));
    else if (k == 8)
        add_squeeze(m, x);
    else
        keep(m, add(m, IR_OP_Reshape, (ir_value *[]){x, ints(m, shapes[k], ranks[k])}, 2, 1));
}

static void add_repeat(maker *m)
{
    ir_value *x = any(m);
    int64_t repeats[MDOT_MAX_RANK], target[] = {2, 3, 1, 1};
    for (int d = 0; d < x->type.rank; d++) repeats[d] = 1 + (below(m, 3) == 0);
    if (below(m, 2))
        keep(m, add(m, IR_OP_Tile, (ir_value *[]){x, ints(m, repeats, x->type.rank)}, 2, 1));
    else
        keep(m, add(m, IR_OP_Expand, (ir_value *[]){x, ints(m, target, 1 + below(m, 4))}, 2, 1));
}

static void add_gather(maker *m)
{
    ir_value *x = any(m);
    int axis = below(m, x->type.rank + 1);
    int64_t positions[] = {0, -1, 0};
    ir_node *node = add(m, IR_OP_Gather, (ir_value *[]){x, ints(m, positions, 1 + below(m, 3))}, 2, 1);
    ir_node_set(m->graph, node, IR_INT("axis", axis));
    keep(m, node);
}

static void add_reduce(maker *m)
{
    static const ir_opcode opcodes[] = {IR_OP_ReduceSum, IR_OP_ReduceMean,      IR_OP_ReduceMax,
                                        IR_OP_ReduceL2,  IR_OP_ReduceLogSumExp, IR_OP_ReduceSumSquare};
    ir_value *x = any(m);
    int64_t axes[] = {below(m, x->type.rank + 1), -1};
    ir_node *node = add(m, opcodes[below(m, 6)], (ir_value *[]){x, ints(m, axes, 1 + below(m, 2))}, 2, 1);
    ir_node_set(m->graph, node, IR_INT("keepdims", below(m, 2)));
    keep(m, node);
}

static void add_norm(maker *m)
{
    ir_value *x = any(m);
    if (below(m, 2) || !x->type.rank || !ir_dim_is_number(x->type.dim[x->type.rank - 1])) {
        keep(m, add(m, below(m, 2) ? IR_OP_Softmax : IR_OP_LogSoftmax, &x, 1, 1));
        return;
    }
    int64_t width = x->type.dim[x->type.rank - 1].offset;
    ir_value *inputs[] = {x, floats(m, 1, &width), floats(m, 1, &width)};
    keep(m,
         below(m, 2) ? add(m, IR_OP_LayerNormalization, inputs, 3, 1) : add(m, IR_OP_RMSNormalization, inputs, 2, 1));
}

static void add_linear(maker *m)
{
    ir_value *x = any(m);
    if (!x->type.rank || !ir_dim_is_number(x->type.dim[x->type.rank - 1])) return;
    int64_t width[] = {x->type.dim[x->type.rank - 1].offset, 2 + 2 * below(m, 3)};
    ir_value *inputs[] = {x, floats(m, 2, width), floats(m, 1, &width[1])};
    keep(m, add(m, IR_OP_Linear, inputs, 2 + below(m, 2), 1));
}

static void add_matmul(maker *m) { keep(m, add(m, IR_OP_MatMul, (ir_value *[]){any(m), any(m)}, 2, 1)); }

static void add_attention(maker *m)
{
    ir_value *x = any(m), *y = below(m, 2) ? any(m) : x;
    ir_node *node = add(m, IR_OP_Attention, (ir_value *[]){x, y, y}, 3, 1);
    bool is_flat =
        x->type.rank == 3 && y->type.rank == 3 && ir_dim_is(x->type.dim[2], 4) && ir_dim_is(y->type.dim[2], 4);
    ir_node_set(m->graph, node, IR_INT("q_num_heads", 2));
    ir_node_set(m->graph, node, IR_INT("kv_num_heads", 1 + below(m, 2)));
    if (is_flat)
        keep(m, node);
    else
        ir_graph_remove_node(m->graph, node);
}

static void add_cumulative(maker *m)
{
    ir_value *x = any(m);
    int64_t axis = below(m, x->type.rank + 1);
    keep(m, add(m, IR_OP_CumSum, (ir_value *[]){x, ints(m, &axis, 1)}, 2, 1));
}

typedef void (*step_fn)(maker *m);
static const step_fn steps[] = {
    add_unary,  add_unary,  add_binary, add_binary, add_binary,    add_where,   add_transpose, add_slice,
    add_split,  add_concat, add_concat, add_pad,    add_unsqueeze, add_reshape, add_reshape,   add_repeat,
    add_gather, add_reduce, add_norm,   add_linear, add_linear,    add_matmul,  add_attention, add_cumulative,
};

/* ---- Graphs ------------------------------------------------------------------------------------------------------ */

static void add_inputs(maker *m)
{
    static const ir_type types[] = {
        {MDOT_DTYPE_F32, 3, {{.offset = 1}, {.scale = 1}, {.offset = 4}}},
        {MDOT_DTYPE_F32, 2, {{.offset = 2}, {.scale = 1}}},
        {MDOT_DTYPE_F32, 1, {{.offset = 4}}},
        {MDOT_DTYPE_F32, 3, {{.scale = 1}, {.offset = 2}, {.offset = 4}}},
        {MDOT_DTYPE_F32, 3, {{.offset = 2}, {.scale = 1}, {.offset = 4}}},
    };
    for (int k = 0; k < 5; k++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", k);
        m->pool[m->pool_count++] = ir_graph_add_input(m->graph, name, &types[k]);
    }
}

static ir_graph *make_graph(ir_arena *arena, int number)
{
    maker m = {.arena = arena, .graph = ir_graph_create(arena, "random"), .random = (uint64_t)number * 77777 + 5};
    m.graph->symbol = "L";
    m.graph->max_length = MAX_LENGTH;
    add_inputs(&m);
    for (int wanted = 3 + below(&m, 24); wanted > 0; wanted--)
        steps[below(&m, (int)(sizeof steps / sizeof *steps))](&m);
    int outputs = 1 + below(&m, 3);
    ir_graph_add_output(m.graph, m.pool[m.pool_count - 1]);
    for (int k = 1; k < outputs; k++) ir_graph_add_output(m.graph, any(&m));
    ir_graph_remove_dead(m.graph);
    return m.graph;
}

/* The current graph number, for failure messages. */
static int current;

static int print_number(void **state)
{
    (void)state;
    if (current >= 0) print_message("MDOT_RANDOM_GRAPH=%d shows the graph and the plan\n", current);
    return 0;
}

static void plans_of_random_graphs_match_the_evaluator(void **state)
{
    (void)state;
    const char *only = getenv("MDOT_RANDOM_GRAPH");
    for (int number = only ? atoi(only) : 0; number < (only ? atoi(only) + 1 : GRAPHS); number++) {
        ir_arena *arena = ir_arena_create(0);
        mdot_error err = {0};
        pl_plan *plan;
        ir_graph *graph = make_graph(arena, number);
        current = number;
        if (only) printf("%s\n", ir_graph_print(graph, arena));
        if (ir_graph_verify(graph, &err) != MDOT_OK) fail_msg("graph %d: %s", number, err.message);
        if (pl_build(graph, arena, &plan, &err) != MDOT_OK) fail_msg("graph %d: %s", number, err.message);
        if (only)
            printf("%s\n%s\n", ir_graph_print(graph, arena), pl_print(plan, arena));
        else
            current = number;
        for (int64_t length = 1; length <= MAX_LENGTH; length += 1 + length / 2)
            assert_plan_agrees(graph, plan, length, 1e-6);
        ir_arena_destroy(arena);
    }
    current = -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(plans_of_random_graphs_match_the_evaluator, print_number)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
