/* chain.c — finds the pointwise operators that continue each kernel.
 *
 * A root (linear, norm, reduction) computes a value. As long as that value has one reader, and the reader is pointwise
 * on the same shape, the reader joins the root's kernel as its epilogue. Roots claim in reverse order. Therefore, of
 * two linears under one Add, the later one takes the Add, because the other's result is available by then.
 *
 * The kernel runs at the position of the chain's tail in the topological order. The order is valid: other operands of
 * the links are defined before the tail, and only the chain reads its links. */
#include "plan/emitters.h"

#include "plan/plan_builder.h"

static bool is_root(const ir_node *node)
{
    switch (node->op->lowering) {
    case IR_LOWER_LINEAR:
    case IR_LOWER_NORM:
    case IR_LOWER_REDUCE: return true;
    default: return false;
    }
}

/* The node that contains all uses of a value. NULL: there are several, or the value is a result of the graph. */
static const ir_node *only_reader(const pl_builder *b, const ir_value *v)
{
    const pl_value *info = pl_info(b, v);
    if (info->use_count == 0 || info->output >= 0) return NULL;
    for (int k = 1; k < info->use_count; k++)
        if (info->uses[k].node != info->uses[0].node) return NULL;
    return info->uses[0].node;
}

/* Are the last `count` dimensions equal? */
static bool same_trailing(const ir_type *a, const ir_type *b, int count)
{
    if (a->rank < count || b->rank < count) return false;
    for (int d = 1; d <= count; d++)
        if (!ir_dim_equal(a->dim[a->rank - d], b->dim[b->rank - d])) return false;
    return true;
}

static bool same_shape(const ir_type *a, const ir_type *b)
{
    int extra = a->rank - b->rank;
    for (int d = 0; d < extra; d++)
        if (!pl_is_unit(a->dim[d])) return false;
    return extra >= 0 && same_trailing(a, b, b->rank);
}

/* Last dimensions forming a matrix kernel's columns; 0: a nest, whose loops follow the dimensions. */
static int matrix_columns(const ir_node *root)
{
    if (root->op->lowering == IR_LOWER_LINEAR) return pl_is_linear(root) ? 1 : 0;
    return root->op->lowering == IR_LOWER_NORM && pl_is_norm(root) ? pl_norm_trailing(root) : 0;
}

/* Can `reader` be linked? Matrix kernels keep their columns and compute in f32. */
static bool can_link(const pl_builder *b, const ir_node *root, const ir_value *source_value, const ir_node *reader)
{
    int columns = matrix_columns(root);
    if (reader->op->lowering != IR_LOWER_POINTWISE && reader->op->lowering != IR_LOWER_ALIAS) return false;
    const ir_value *target_value = reader->outputs[0];
    if (pl_info(b, target_value)->loop != pl_info(b, source_value)->loop)
        return false; /* a kernel outside a loop runs once */
    if (columns && (target_value->type.dtype != MDOT_DTYPE_F32 ||
                    !same_trailing(&source_value->type, &target_value->type, columns)))
        return false;
    if (reader->op->lowering == IR_LOWER_POINTWISE) return same_shape(&target_value->type, &source_value->type);
    return columns || ir_only_units_differ(&source_value->type, &target_value->type);
}

/* The size of the chain's expression with one more link, in nodes of a tree. */
static int grown(pl_builder *b, int nodes, const ir_value *tail, const ir_node *reader)
{
    if (reader->op->lowering == IR_LOWER_ALIAS) return nodes;
    pl_growth growth = pl_pointwise_growth(b, reader, tail);
    return growth.nodes + growth.copies * nodes;
}

/* Claims the operators that continue `root` and returns the value at the chain's end. */
static const ir_value *claim_chain(pl_builder *b, const ir_node *root)
{
    const ir_value *tail = root->outputs[0];
    int nodes = 1, links = 0;
    const ir_node *reader;
    while ((reader = only_reader(b, tail)) != NULL && can_link(b, root, tail, reader)) {
        const ir_value *next_value = reader->outputs[0];
        nodes = grown(b, nodes, tail, reader);
        if (pl_info(b, next_value)->root != NULL || nodes > PL_MAX_TREE || ++links > PL_MAX_DEPTH) break;
        pl_info(b, next_value)->root = root->outputs[0];
        pl_info(b, next_value)->state = PL_CHAINED;
        tail = next_value;
    }
    return tail;
}

void pl_claim_chains(pl_builder *b)
{
    for (const ir_node *root = b->graph->last; root != NULL; root = root->prev) {
        if (!is_root(root) || root->outputs[0] == NULL) continue;
        pl_value *own_item = pl_info(b, root->outputs[0]);
        own_item->tail = claim_chain(b, root);
        own_item->root = root->outputs[0];
        own_item->state = PL_CHAINED;
    }
}
