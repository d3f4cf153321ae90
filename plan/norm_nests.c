/* norm_nests.c — normalisations that the norm kernel cannot express (rows or columns not affine in L, types other
 * than f32, softmax over an axis other than the last). Their statistics are separate reductions, followed by one nest
 * over the elements. */
#include "plan/emitters.h"

#include "plan/expr.h"
#include "plan/plan_builder.h"

typedef struct norm_nests {
    pl_builder *b;
    const ir_node *node;
    const ir_value *x;
    mdot_dtype real;   /* the type of the computation */
    unsigned reduced;  /* bit d: the statistics run over dimension d */
    ir_type statistic; /* x's shape with 1 in the reduced dimensions */
} norm_nests;

static const pl_expr *element(const norm_nests *n, const pl_expr *const *index)
{
    return pl_cast(n->b->arena, pl_value_at(n->b, n->x, index), n->real);
}

enum { MAX_STATISTICS = 2 };

/* Formulas of an element or a sum x, with the statistics computed before: `first` and `second`, the number of elements
 * of a sum, and the attribute epsilon. */
static const struct norm_rule {
    int statistics;
    struct {
        pl_reducer reducer;
        const char *before, *after; /* of each element, and of the sum */
    } statistic[MAX_STATISTICS];
    const char *result;
} rules[IR_OP_COUNT] = {
    [IR_OP_Softmax] = {2,
                       {{PL_REDUCE_MAX, "x", "x"}, {PL_REDUCE_SUM, "exp(x - first)", "x"}},
                       "exp(x - first) / second"},
    [IR_OP_LogSoftmax] = {2,
                          {{PL_REDUCE_MAX, "x", "x"}, {PL_REDUCE_SUM, "exp(x - first)", "x"}},
                          "x - first - log(second)"},
    [IR_OP_LayerNormalization] = {2,
                                  {{PL_REDUCE_SUM, "x", "x / count"},
                                   {PL_REDUCE_SUM, "d = x - first; d * d", "sqrt(x / count + epsilon)"}},
                                  "(x - first) / second"},
    [IR_OP_RMSNormalization] = {1, {{PL_REDUCE_SUM, "x * x", "sqrt(x / count + epsilon)"}}, "x / first"},
};

static const pl_expr *formula(const norm_nests *n, const char *text, const pl_expr *x, const pl_expr *const *known)
{
    pl_builder *b = n->b;
    const pl_expr *count = pl_int(b, 1);
    for (int d = 0; d < n->x->type.rank; d++)
        if (n->reduced & 1u << d) count = pl_op2(b, PL_MUL, count, pl_extent(b, n->x->type.dim[d]));
    const pl_symbol symbols[] = {{"x", x},
                                 {"first", known[0]},
                                 {"second", known[1]},
                                 {"count", pl_cast(b->arena, count, n->real)},
                                 {"epsilon", pl_const_f(b->arena, n->real, ir_node_float(n->node, "epsilon", 1e-5))}};
    return pl_formula(b->arena, text, symbols, sizeof symbols / sizeof *symbols);
}

/* Loads the statistics computed so far, at the element's row. */
static void load_statistics(const norm_nests *n, const int *buffers, int count, const pl_expr *const *index,
                            const pl_expr **out)
{
    for (int k = 0; k < count; k++) {
        pl_placement placement = {.buffer = buffers[k], .dense = true};
        out[k] = pl_load_at(n->b, &placement, &n->statistic, index);
    }
}

static mdot_status emit_statistic(const norm_nests *n, const struct norm_rule *rule, int number, int *buffers)
{
    pl_builder *b = n->b;
    const pl_expr *index[MDOT_MAX_RANK], *known[MAX_STATISTICS] = {NULL};
    pl_nest nest = {0};
    pl_begin_kernel(b, n->node);
    for (int d = 0; d < n->x->type.rank; d++)
        if (!(n->reduced & 1u << d)) pl_add_loops(b, &nest, 1, &n->x->type.dim[d], &index[d]);
    for (int d = 0; d < n->x->type.rank; d++)
        if (n->reduced & 1u << d) index[d] = pl_add_reduction(b, &nest, n->x->type.dim[d]);
    load_statistics(n, buffers, number, index, known);
    const pl_expr *body = formula(n, rule->statistic[number].before, element(n, index), known), *sum = body;
    if (body == NULL) return pl_fault(b);
    if (nest.reduce_count > 0) {
        nest.reducer = rule->statistic[number].reducer;
        nest.body = body;
        sum = pl_acc(b->arena, 0, n->real);
    }
    buffers[number] = pl_add_buffer(b, PL_SCRATCH, n->node->outputs[0]->name, &n->statistic);
    if (buffers[number] < 0) return pl_fault(b);
    const pl_expr *position = pl_flatten(b, n->statistic.rank, n->statistic.dim, index);
    nest.store[nest.store_count++] =
        (pl_store){buffers[number], position, formula(n, rule->statistic[number].after, sum, known)};
    return pl_end_nest(b, n->node->name, &nest);
}

/* The result at one element, with scale and shift if the node has them. */
static const pl_expr *result_at(const norm_nests *n, const struct norm_rule *rule, const int *buffers,
                                const pl_expr *const *index)
{
    const pl_expr *known[MAX_STATISTICS] = {NULL};
    int rank = n->x->type.rank;
    load_statistics(n, buffers, rule->statistics, index, known);
    const pl_expr *result = pl_cast(n->b->arena, formula(n, rule->result, element(n, index), known), n->x->type.dtype);
    const ir_value *gamma = ir_node_input(n->node, 1), *beta = ir_node_input(n->node, 2);
    if (gamma != NULL) result = pl_op2(n->b, PL_MUL, result, pl_operand_at(n->b, gamma, rank, index));
    if (beta != NULL) result = pl_op2(n->b, PL_ADD, result, pl_operand_at(n->b, beta, rank, index));
    return result;
}

mdot_status pl_emit_norm_nests(pl_builder *b, const ir_node *node)
{
    const struct norm_rule *rule = &rules[ir_node_opcode(node)];
    const ir_value *x = node->inputs[0];
    int axis = ir_node_axis(node, -1, x->type.rank), buffers[MAX_STATISTICS];
    bool is_softmax = node->input_count == 1;
    norm_nests n = {b, node, x, x->type.dtype, 1u << axis, x->type};
    if (x->type.dtype != MDOT_DTYPE_F64) n.real = MDOT_DTYPE_F32;
    for (int d = axis + 1; d < x->type.rank && !is_softmax; d++) n.reduced |= 1u << d;
    n.statistic.dtype = n.real;
    for (int d = 0; d < x->type.rank; d++)
        if (n.reduced & 1u << d) n.statistic.dim[d] = ir_dim_number(1);
    for (int k = 0; k < rule->statistics; k++) BS_TRY(emit_statistic(&n, rule, k, buffers));
    const pl_expr *index[MDOT_MAX_RANK];
    pl_nest nest = {0};
    pl_begin_kernel(b, node);
    pl_add_loops(b, &nest, x->type.rank, x->type.dim, index);
    return pl_finish_nest(b, node, &nest, result_at(&n, rule, buffers, index), index);
}
