/* embedding_bag.c — rewrites an EmbeddingBag, which files express as a loop (frontend/onnx/flatten.h), as a Gather and
 * a reduction. Bags count as equally long. If the rows cannot be divided equally, the loop remains an opaque operator.
 */
#include "frontend/job/job_rules.h"
#include "frontend/job/job_tables.h"
#include "ir/passes/match.h"

/* The rows before multiplication by per-sample weights. An exporter writes that multiplication with ones if the model
 * has no weights. */
static ir_value *without_weights(ir_value *rows)
{
    ir_value *value = rows;
    while (value != NULL && value->def != NULL && value->def->op == &ir_ops[IR_OP_Cast])
        value = ir_node_input(value->def, 0);
    const ir_node *node = value != NULL ? value->def : NULL;
    if (node == NULL || node->op != &ir_ops[IR_OP_Mul] || !ir_value_is_filled(node->inputs[1], 1, 0)) return rows;
    ir_value *whole = ir_node_input(node, 0);
    return whole != NULL && ir_type_equal(&whole->type, &value->type) ? whole : rows;
}

/* The bags' rows, [rows, width]: the loop's input, or rows gathered from a table in the loop. NULL: unknown. */
static ir_value *rows_of(ir_builder *b, const ir_node *loop)
{
    ir_value *rows = loop->inputs[1], *indices = ir_node_input(loop, 2);
    if (rows == NULL || rows->type.rank != 2 || (indices == NULL && loop->input_count != 2)) return NULL;
    if (indices == NULL) return without_weights(rows);
    if (indices->type.rank != 1) return NULL;
    return ir_build_op2(b, IR_OP_Gather, rows, indices);
}

/* Joining a list of bags gives the bags themselves, so the join is replaced by them. */
static void replace_joined(ir_builder *b, const ir_value *list, ir_value *bags)
{
    for (const ir_use *use = list->uses, *successor; use != NULL; use = successor) {
        ir_node *reader = use->node;
        successor = use->next; /* read now, because the reader may be removed */
        if (reader == NULL || fe_job_op_role_of(reader) != FE_JOB_OP_JOIN) continue;
        if (reader->output_count < 1 || reader->outputs[0] == NULL) continue;
        reader->outputs[0]->type = bags->type;
        if (ir_replace(b, reader->outputs[0], bags)) ir_graph_remove_node(b->graph, reader);
    }
}

void fe_job_reduce_embedding_bags(ir_builder *b, ir_node *node)
{
    int64_t bags;
    if (fe_job_op_role_of(node) != FE_JOB_OP_EMBEDDING_BAGS || node->input_count < 2 || node->outputs[0] == NULL)
        return;
    if (node->inputs[0] == NULL || !ir_value_int(node->inputs[0], &bags) || bags < 1) return;
    ir_value *rows = rows_of(b, node);
    if (rows == NULL || rows->type.dim[0].offset % bags != 0) return;
    ir_dim by_bag[] = {ir_dim_number(bags), ir_dim_number(rows->type.dim[0].offset / bags), rows->type.dim[1]};
    ir_dim reduced[] = {by_bag[0], by_bag[2]};
    int64_t axis = 1;
    ir_value *result = ir_build_reduce(b, fe_job_op_of(node)->op, ir_build_reshape(b, rows, by_bag, 3), &axis, 1);
    result = ir_build_reshape(b, result, reduced, 2);
    if (result == NULL) return;
    replace_joined(b, node->outputs[0], result);
    node->outputs[0]->type = result->type;
    ir_replace(b, node->outputs[0], result);
}
