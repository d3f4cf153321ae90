/* bags.c — an EmbeddingBag, which files spell as a loop (frontend/onnx/loops.h), is a Gather and a reduction. Bags
 * count as equally long; where they cannot be, the loop stays an operator of its own kind.
 */
#include "frontend/job/job.h"

void fe_job_reduce_bags(ir_builder *b, ir_node *node)
{
    int64_t bags;
    int known = 0;
    if (fe_foreign_role_of(node) != FE_FOREIGN_BAGS || node->input_count != 3 || node->outputs[0] == NULL) return;
    ir_value *count = node->inputs[0], *table = node->inputs[1], *indices = node->inputs[2];
    if (count == NULL || !ir_value_ints(count, &bags, &known) || known != 1 || bags < 1) return;
    if (table->type.rank != 2 || indices->type.rank != 1 || indices->type.dim[0].offset % bags != 0) return;
    ir_opcode reduction = fe_foreign_of(node)->op;
    ir_node *gather = ir_build_node(b, IR_OP_Gather, (ir_value *[]){table, indices}, 2, 1);
    ir_value *rows = ir_build_infer(b, gather);
    if (rows == NULL) return;
    ir_dim apart[] = {ir_dim_number(bags), ir_dim_number(indices->type.dim[0].offset / bags), table->type.dim[1]};
    ir_dim whole[] = {apart[0], apart[2]};
    int64_t axis = 1;
    ir_value *made = ir_build_reduce(b, reduction, ir_build_reshape(b, rows, apart, 3), &axis, 1);
    made = ir_build_reshape(b, made, whole, 2);
    if (made == NULL) return;
    node->outputs[0]->type = made->type;
    ir_replace(b, node->outputs[0], made);
}
