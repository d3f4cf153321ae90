/* fuzz_operators.c — single operators with arbitrary inputs and attributes: shape rule, cost rule and evaluator.
 *
 *     scripts/fuzz.sh 600 operators
 *
 * The bytes choose an operator from the table, inputs (type, shape, content, absence) and attributes, so seeds are
 * unnecessary. The input must never cause a crash or undefined behaviour. An accepted node must verify, and after a
 * successful evaluation the results must have the inferred types. A refused node is not evaluated, as in the
 * compiler. */
#include "ir/ops.h"
#include "tests/support/infer_graph.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct source {
    const uint8_t *at, *end;
} source;

/* Returns the next byte below `bound`, or 0 if the bytes are used up. */
static int draw(source *s, int bound) { return s->at < s->end ? *s->at++ % bound : 0; }

static const mdot_dtype dtypes[] = {MDOT_DTYPE_F32,  MDOT_DTYPE_I64, MDOT_DTYPE_F32, MDOT_DTYPE_I64,
                                    MDOT_DTYPE_BOOL, MDOT_DTYPE_I32, MDOT_DTYPE_F16, MDOT_DTYPE_F64,
                                    MDOT_DTYPE_U64,  MDOT_DTYPE_I8,  MDOT_DTYPE_U8,  MDOT_DTYPE_BF16};
static const int64_t integers[] = {
    0, 1, 2, -1, 3, -2, 4, 5, 8, -3, 100, INT32_MAX, INT64_MAX, INT64_MIN, INT64_MIN + 1, 1 << 20};
static const double reals[] = {0, 1, -1, 0.5, 2, -0.0, 1e30, -1e300, 3};
static const char *const names[] = {"axis",
                                    "keepdims",
                                    "to",
                                    "perm",
                                    "num_outputs",
                                    "fmod",
                                    "direction",
                                    "mode",
                                    "noop_with_empty_axes",
                                    "batch_dims",
                                    "reduction",
                                    "equation",
                                    "epsilon",
                                    "alpha",
                                    "beta",
                                    "num_heads",
                                    "q_num_heads",
                                    "kv_num_heads",
                                    "is_causal",
                                    "qk_matmul_output_mode",
                                    "softcap",
                                    "scale",
                                    "blocksize",
                                    "k",
                                    "p",
                                    "upper",
                                    "allowzero",
                                    "start",
                                    "end",
                                    "exclusive",
                                    "reverse",
                                    "largest",
                                    "sorted",
                                    "num_groups",
                                    "axes",
                                    "transA",
                                    "transB",
                                    "training_mode",
                                    "interleaved",
                                    "rotary_embedding_dim",
                                    "stash_type",
                                    "dtype",
                                    "value",
                                    "approximate",
                                    "unidirectional",
                                    "qkv_hidden_sizes",
                                    "mask_filter_value",
                                    "transBatchA",
                                    "value_ints"};
static const char *const strings[] = {"LEFT",     "RIGHT",   "tanh",   "none",     "add",       "mul",
                                      "max",      "min",     "linear", "circular", "DCR",       "CRD",
                                      "constant", "reflect", "edge",   "wrap",     "ij,jk->ik", "...i,...i",
                                      "ii->i",    "bij,bjk", "i,j->",  ",->",      "->",        "ab"};
#define PICK(s, table) ((table)[draw(s, (int)(sizeof(table) / sizeof((table)[0])))])

/* Makes a small tensor: rank up to 4, dims mostly below 4. Returns NULL if memory is exhausted. */
static const ir_tensor *draw_tensor(source *s, ir_arena *arena)
{
    int64_t dims[MDOT_MAX_RANK] = {0};
    int rank = draw(s, 5);
    for (int i = 0; i < rank; i++) dims[i] = draw(s, 16) == 15 ? 8 : draw(s, 4);
    ir_wide *wide = ir_wide_create(arena, PICK(s, dtypes), rank, dims);
    if (!wide) return NULL;
    for (int64_t i = 0; i < wide->count; i++) {
        if (wide->f)
            wide->f[i] = PICK(s, reals);
        else
            wide->i[i] = ir_wrap_integer(wide->dtype, PICK(s, integers));
    }
    return ir_tensor_from_wide(arena, wide);
}

/* Makes a constant, an input of the graph (possibly with L in its shape), or an absent operand. */
static ir_value *draw_operand(source *s, ir_graph *graph, bool *out_constant)
{
    int choice = draw(s, 16);
    if (choice == 0) return NULL;
    const ir_tensor *tensor = draw_tensor(s, graph->arena);
    if (!tensor) return NULL;
    if (choice > 3) return ir_graph_add_constant(graph, "constant", tensor);
    *out_constant = false;
    ir_type type = {.dtype = tensor->dtype, .rank = tensor->rank};
    for (int i = 0; i < tensor->rank; i++) {
        type.dim[i] = ir_dim_number(tensor->dims[i]);
        if (draw(s, 3) == 0) { /* one draw per statement, so that compilers agree on the order */
            int64_t scale = 1 + draw(s, 2);
            type.dim[i] = ir_dim_affine(scale, draw(s, 2));
        }
    }
    return ir_graph_add_input(graph, "input", &type);
}

static void draw_attribute(source *s, ir_graph *graph, ir_node *node)
{
    const char *name = PICK(s, names);
    int64_t list[4] = {PICK(s, integers), PICK(s, integers), PICK(s, integers), PICK(s, integers)};
    switch (draw(s, 4)) {
    case 0: ir_node_set(graph, node, IR_INTS(name, list, draw(s, 5))); break;
    case 1: ir_node_set(graph, node, IR_FLOAT(name, PICK(s, reals))); break;
    case 2: ir_node_set(graph, node, IR_STRING(name, PICK(s, strings))); break;
    default: ir_node_set(graph, node, IR_INT(name, list[0])); break;
    }
}

static void require(bool holds, const char *what, const ir_graph *graph)
{
    if (holds) return;
    const char *text = ir_graph_print(graph, graph->arena);
    fprintf(stderr, "%s:\n%s", what, text ? text : "");
    abort();
}

static void check(ir_graph *graph, bool constant)
{
    mdot_error err = {.status = MDOT_OK};
    ir_wide *out[8] = {0};
    if (ir_infer(graph, &err) != MDOT_OK) return;
    mdot_status status = ir_graph_verify(graph, &err);
    require(status == MDOT_OK || status == MDOT_OUT_OF_MEMORY, err.message, graph);
    (void)ir_node_cost(graph->first, 7);
    if (!constant || ir_evaluate(graph, NULL, graph->arena, out, &err) != MDOT_OK) return;
    for (int i = 0; i < graph->output_count; i++) {
        const ir_type *type = &graph->outputs[i]->type;
        require(out[i]->dtype == type->dtype && out[i]->rank == type->rank, "an inferred type is wrong", graph);
        for (int k = 0; k < type->rank; k++) {
            bool fits = !ir_dim_is_number(type->dim[k]) || type->dim[k].offset == out[i]->dims[k];
            require(fits, "an inferred dimension is wrong", graph);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    source s = {data, data + size};
    ir_arena *arena = ir_arena_create((size_t)64 << 20);
    ir_graph *graph = arena ? ir_graph_create(arena, "fuzz") : NULL;
    if (graph) {
        graph->symbol = "N";
        graph->max_length = 7;
        int id = draw(&s, IR_OP_COUNT);
        if (id == IR_OP_LoopBegin || id == IR_OP_LoopEnd) id = IR_OP_Identity; /* a loop has several nodes */
        const ir_op *op = &ir_ops[id];
        ir_value *operands[10];
        bool constant = true;
        int inputs = draw(&s, (op->max_inputs < 9 ? op->max_inputs : 9) + 1);
        int outputs = 1 + draw(&s, op->max_outputs < 4 ? op->max_outputs : 4);
        int attributes = draw(&s, 5);
        for (int i = 0; i < inputs; i++) operands[i] = draw_operand(&s, graph, &constant);
        ir_node *node = ir_graph_add_node(graph, NULL, op, "node", operands, inputs, outputs);
        for (int i = 0; node && i < attributes; i++) draw_attribute(&s, graph, node);
        for (int i = 0; node && i < outputs; i++) ir_graph_add_output(graph, node->outputs[i]);
        if (!ir_arena_failed(arena)) check(graph, constant);
    }
    ir_arena_destroy(arena);
    return 0;
}
