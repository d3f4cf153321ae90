/* random_node.c — see random_node.h. */
#include "tests/support/random_node.h"

#include <math.h>

enum { MOST_ATTRS = 4 };

/* Marsaglia's xorshift64 (Journal of Statistical Software 8, 2003). */
static uint64_t random_bits(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state >> 11;
}

/* 0 … count - 1. */
int random_pick(uint64_t *state, int count) { return (int)(random_bits(state) % (uint64_t)count); }

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

#define PICK_FROM(state, table) (table)[random_pick(state, (int)(sizeof(table) / sizeof *(table)))]

static void add_random_attr(uint64_t *state, ir_graph *graph, ir_node *node)
{
    int64_t ints[4], number;
    double real; /* drawn in a separate statement, because the evaluation order of arguments is unspecified */
    int count = random_pick(state, 5), which = random_pick(state, (int)(sizeof string_attrs / sizeof *string_attrs));
    switch (random_pick(state, 6)) {
    case 0:
        for (int i = 0; i < count; i++) ints[i] = random_pick(state, 7) - 3;
        ir_node_set(graph, node, IR_INTS(PICK_FROM(state, ints_attrs), ints, count));
        break;
    case 1:
        real = random_pick(state, 9) * 0.5 - 2;
        ir_node_set(graph, node, IR_FLOAT(PICK_FROM(state, float_attrs), real));
        break;
    case 2: ir_node_set(graph, node, IR_STRING(string_attrs[which].name, string_attrs[which].value)); break;
    default:
        number = random_pick(state, 16) ? random_pick(state, 6) - 2 : INT64_MIN;
        ir_node_set(graph, node, IR_INT(PICK_FROM(state, int_attrs), number));
        break;
    }
}

mdot_dtype random_dtype(uint64_t *state)
{
    static const mdot_dtype others[] = {MDOT_DTYPE_I32, MDOT_DTYPE_BOOL, MDOT_DTYPE_F16, MDOT_DTYPE_U8,
                                        MDOT_DTYPE_U64, MDOT_DTYPE_F64,  MDOT_DTYPE_I8,  MDOT_DTYPE_BF16};
    int which = random_pick(state, 10);
    return which < 5 ? MDOT_DTYPE_F32 : which < 8 ? MDOT_DTYPE_I64 : PICK_FROM(state, others);
}

static ir_wide *random_tensor(uint64_t *state, ir_arena *arena, mdot_dtype dtype, int rank, const int64_t *dims)
{
    ir_wide *wide = ir_wide_create(arena, dtype, rank, dims);
    for (int64_t i = 0; wide->f && i < wide->count; i++)
        wide->f[i] = random_pick(state, 50) ? random_pick(state, 13) * 0.5 - 3 : NAN;
    for (int64_t i = 0; wide->i && i < wide->count; i++) {
        wide->i[i] = ir_wrap_integer(dtype, random_pick(state, 50) ? random_pick(state, 6) - 2
                                                                   : INT64_MIN + random_pick(state, 2));
    }
    return wide;
}

/* Makes node inputs: constants, many with the same type and shape, some absent. */
static int random_inputs(uint64_t *state, ir_graph *graph, const ir_op *op, const ir_wide **tensors, ir_value **values)
{
    int span = op->max_inputs - op->min_inputs, count = op->min_inputs + random_pick(state, span < 5 ? span + 1 : 5);
    if (count > RANDOM_NODE_INPUTS) count = RANDOM_NODE_INPUTS;
    mdot_dtype dtype = random_dtype(state);
    int rank = random_pick(state, 5);
    int64_t dims[MDOT_MAX_RANK];
    for (int k = 0; k < MDOT_MAX_RANK; k++) dims[k] = random_pick(state, 12) ? 1 + random_pick(state, 4) : 0;
    for (int i = 0; i < count; i++) {
        tensors[i] = NULL;
        values[i] = NULL;
        if (i >= op->min_inputs && random_pick(state, 4) == 0) continue;
        if (random_pick(state, 3) == 0) dtype = random_dtype(state);
        if (random_pick(state, 3) == 0) rank = random_pick(state, 5);
        int extent = random_pick(state, 3) == 0 ? 1 + random_pick(state, 4) : 0;
        if (extent > 0) dims[random_pick(state, 4)] = extent;
        ir_wide *wide = random_tensor(state, graph->arena, dtype, rank, dims);
        tensors[i] = wide;
        values[i] = ir_graph_add_constant(graph, "input", ir_tensor_from_wide(graph->arena, wide));
    }
    return count;
}

ir_node *random_node(uint64_t *state, ir_graph *graph, const ir_op *op, const ir_wide **tensors)
{
    ir_value *values[RANDOM_NODE_INPUTS];
    int inputs = random_inputs(state, graph, op, tensors, values);
    int span = op->max_outputs - op->min_outputs,
        outputs = op->min_outputs + random_pick(state, span < 3 ? span + 1 : 3);
    ir_node *node = ir_graph_add_node(graph, NULL, op, "the node", values, inputs, outputs);
    for (int i = random_pick(state, MOST_ATTRS + 1); i > 0; i--) add_random_attr(state, graph, node);
    return node;
}
