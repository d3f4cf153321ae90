/* canonicalise.c — canonical forms for patterns that exporters and models write in several ways. Runs before
 * recognition.
 *
 *   - A pointwise operator broadcasts by itself, so an Expand in front of it (PyTorch's expand_as) is removed.
 *   - A mean over the whole map becomes GlobalAveragePool, whether written as ReduceMean or as AveragePool with a large
 *     kernel.
 *   - A bias of zeros is removed. PyTorch's dynamo exporter writes one if a convolution has no bias.
 *   - An Einsum becomes products of two operands, sums and transposes (job_rules.h).
 *   - A constant that is added between two reshapes that cancel (Swin's masks, one per window) is added without them.
 */
#include "frontend/job/stages.h"

#include "frontend/job/job_rules.h"
#include "ir/passes/graph_builder.h"
#include "ir/passes/match.h"

/* Does another operand already have the result's type? */
static bool has_full_operand_besides(const ir_node *node, int operand)
{
    for (int i = 0; i < node->input_count; i++) {
        if (i == operand || node->inputs[i] == NULL) continue;
        const ir_type *type = &node->inputs[i]->type, *result = &node->outputs[0]->type;
        bool is_same = type->rank == result->rank;
        for (int k = 0; is_same && k < type->rank; k++) is_same = ir_dim_equal(type->dim[k], result->dim[k]);
        if (is_same) return true;
    }
    return false;
}

static void pointwise(ir_builder *b, ir_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const ir_value *value = node->inputs[i];
        if (value == NULL || value->def == NULL || value->def->op != &ir_ops[IR_OP_Expand] ||
            !has_full_operand_besides(node, i))
            continue;
        ir_node_set_input(node, i, value->def->inputs[0]);
        b->changed = true;
    }
}

static void global_pool(ir_builder *b, ir_node *node)
{
    if (!ir_dtype_is_float(b->dtype)) return;
    ir_value *pooled = ir_build_op1(b, IR_OP_GlobalAveragePool, node->inputs[0]), *result = node->outputs[0];
    ir_replace(b, result, ir_build_reshape(b, pooled, result->type.dim, result->type.rank));
}

static void reduce_mean(ir_builder *b, ir_node *node)
{
    int64_t axes[IR_MAX_KNOWN];
    int count = 0, rank = node->inputs[0]->type.rank;
    const ir_value *operand = ir_node_input(node, 1);
    if (rank != 4 || operand == NULL || !ir_value_ints(operand, axes, &count) || count != 2) return;
    unsigned mask = 0;
    for (int i = 0; i < count; i++) mask |= 1u << (axes[i] < 0 ? axes[i] + rank : axes[i]);
    if (mask == (1u << 2 | 1u << 3)) global_pool(b, node);
}

static int64_t map_positions(const ir_type *map)
{
    int64_t product = 1;
    for (int i = 2; i < map->rank; i++)
        if (__builtin_mul_overflow(product, map->dim[i].offset, &product)) return INT64_MAX;
    return product;
}

static void average_pool(ir_builder *b, ir_node *node)
{
    if (map_positions(&node->outputs[0]->type) == 1 && map_positions(&node->inputs[0]->type) > 1) global_pool(b, node);
}

static void convolution(ir_builder *b, ir_node *node)
{
    const ir_value *bias = ir_node_input(node, 2);
    if (bias == NULL || !ir_value_is_filled(bias, 0, 0)) return;
    ir_node_set_input(node, 2, NULL);
    b->changed = true;
}

static ir_value *before_reshape(const ir_value *value)
{
    return value->def != NULL && value->def->op == &ir_ops[IR_OP_Reshape] ? value->def->inputs[0] : NULL;
}

/* Converts `added`, which broadcasts against [A, B, …], to broadcast against [A · B, …]. NULL: the types do not match
 * this. */
static ir_value *joined(ir_builder *b, ir_value *added, const ir_type *split, const ir_type *whole)
{
    ir_type type = added->type;
    if (split->rank != whole->rank + 1 || type.rank != split->rank) return NULL;
    for (int i = 2; i < split->rank; i++)
        if (!ir_dim_equal(split->dim[i], whole->dim[i - 1])) return NULL;
    type.dim[0] = split->dim[0];
    type.dim[1] = split->dim[1];
    ir_value *full = ir_build_expand(b, added, type.dim, type.rank);
    type.dim[1] = whole->dim[0];
    return ir_build_reshape(b, full, type.dim + 1, whole->rank);
}

static void reshape(ir_builder *b, ir_node *node)
{
    const ir_node *sum = node->inputs[0]->def;
    if (sum == NULL || sum->op != &ir_ops[IR_OP_Add] || node->inputs[0]->use_count != 1) return;
    for (int i = 0; i < 2; i++) {
        ir_value *added = sum->inputs[1 - i], *x = before_reshape(sum->inputs[i]), *result = node->outputs[0];
        if (x == NULL || added->constant == NULL || !ir_type_equal(&x->type, &result->type)) continue;
        ir_value *whole = joined(b, added, &sum->inputs[i]->type, &result->type);
        if (whole != NULL && ir_replace(b, result, ir_build_add(b, x, whole))) return;
    }
}

static const ir_rule rule_of[IR_OP_COUNT] = {
    [IR_OP_Reshape] = reshape,  [IR_OP_ReduceMean] = reduce_mean,    [IR_OP_AveragePool] = average_pool,
    [IR_OP_Conv] = convolution, [IR_OP_ConvTranspose] = convolution, [IR_OP_Einsum] = fe_job_split_einsum,
};

static void rewrite(ir_builder *b, ir_node *node)
{
    ir_rule rule = rule_of[ir_node_opcode(node)];
    if (rule != NULL) rule(b, node);
    if (node->op->lowering == IR_LOWER_POINTWISE) pointwise(b, node);
}

void fe_job_canonicalise(fe_job *job)
{
    bool changed;
    job->status = ir_rewrite(job->graph, rewrite, &changed, job->err);
}
