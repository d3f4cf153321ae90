/* sink_transposes.c — moves transposes behind elementwise operators, so they meet the transposes that undo them.
 *
 * Convolutions move their channels to the end and back. Activations, residuals and normalisations between two
 * convolutions separate the two transposes: T'(f(T(x), T(y))) becomes f(x, y). This is done only if a later transpose
 * does undo the first one and at most elementwise operators are in between. */
#include "ir/ops.h"
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"

/* Limits of the search: consecutive elementwise operators to look through, and readers in total, because each
 * operator may have many. */
enum { MOST_BETWEEN = 8, MOST_READERS = 64 };

typedef struct permutation {
    int rank;
    int64_t at[MDOT_MAX_RANK];
} permutation;

static bool read_transpose(const ir_value *value, permutation *out)
{
    const ir_node *node = value != NULL ? value->def : NULL;
    if (node == NULL || node->op != &ir_ops[IR_OP_Transpose]) return false;
    out->rank = value->type.rank;
    ir_node_perm(node, out->rank, out->at);
    return true;
}

static bool is_elementwise(const ir_node *node)
{
    return node->op->lowering == IR_LOWER_POINTWISE && node->output_count == 1 && node->input_count <= MDOT_MAX_RANK;
}

static bool undoes(const permutation *second, const permutation *first)
{
    if (second->rank != first->rank) return false;
    for (int d = 0; d < first->rank; d++)
        if (first->at[second->at[d]] != d) return false;
    return true;
}

/* Does a reader undo a transpose of a value with this permutation? */
static bool is_undone(const ir_value *value, const permutation *first, int left, int *readers_left)
{
    permutation second;
    for (const ir_use *use = value->uses; use != NULL && *readers_left > 0; use = use->next) {
        const ir_node *node = use->node;
        if (node == NULL || node->op == NULL || node->outputs[0] == NULL) continue;
        --*readers_left;
        if (read_transpose(node->outputs[0], &second) && undoes(&second, first)) return true;
        bool goes_on = left > 0 && is_elementwise(node) && node->outputs[0]->type.rank == first->rank;
        if (goes_on && is_undone(node->outputs[0], first, left - 1, readers_left)) return true;
    }
    return false;
}

/* The operand before the transpose; a smaller operand that broadcasts is transposed to that order. */
static ir_value *before(ir_builder *b, ir_value *operand, const permutation *perm)
{
    permutation own_item;
    int64_t inverse[MDOT_MAX_RANK];
    ir_dim dims[MDOT_MAX_RANK];
    int missing = perm->rank - operand->type.rank;
    if (operand->type.rank == 0) return operand;
    if (read_transpose(operand, &own_item)) return operand->def->inputs[0];
    for (int d = 0; d < perm->rank; d++) {
        dims[d] = d < missing ? ir_dim_number(1) : operand->type.dim[d - missing];
        inverse[perm->at[d]] = d;
    }
    return ir_build_transpose(b, ir_build_reshape(b, operand, dims, perm->rank), inverse);
}

/* Finds the common permutation: operands of the result's shape share one transpose, and all others are constants that
 * broadcast. */
static bool find_common(const ir_node *node, permutation *out)
{
    bool found = false;
    for (int i = 0; i < node->input_count; i++) {
        const ir_value *operand = node->inputs[i];
        permutation own_item;
        if (operand == NULL || operand->constant != NULL) continue;
        if (!read_transpose(operand, &own_item) || own_item.rank != node->outputs[0]->type.rank) return false;
        for (int d = 0; found && d < own_item.rank; d++)
            if (own_item.at[d] != out->at[d]) return false;
        *out = own_item;
        found = true;
    }
    return found;
}

/* Cancels a pair at once, because otherwise each later operator would have to search past all earlier pairs. */
static bool cancel(ir_builder *b, ir_node *node)
{
    permutation first, second;
    bool is_pair = read_transpose(node->outputs[0], &second) && read_transpose(node->inputs[0], &first);
    return is_pair && undoes(&second, &first) && ir_replace(b, node->outputs[0], node->inputs[0]->def->inputs[0]);
}

void ir_rule_sink_transposes(ir_builder *b, ir_node *node)
{
    permutation perm;
    int readers_left = MOST_READERS;
    if (cancel(b, node)) return;
    ir_value *operands[MDOT_MAX_RANK];
    if (!is_elementwise(node) || !find_common(node, &perm)) return;
    if (!is_undone(node->outputs[0], &perm, MOST_BETWEEN, &readers_left)) return;
    for (int i = 0; i < node->input_count; i++) {
        operands[i] = node->inputs[i] != NULL ? before(b, node->inputs[i], &perm) : NULL;
        if (node->inputs[i] != NULL && operands[i] == NULL) return;
    }
    ir_value *moved =
        ir_build_with(b, ir_node_opcode(node), operands, node->input_count, node->attrs, node->attr_count);
    ir_replace(b, node->outputs[0], ir_build_transpose(b, moved, perm.at));
}
