/* upgrade.c — the table of changes between opsets, and the rewriting of every node by it.
 *
 * Each row rewrites a node from an older opset into the row's opset. An operator's rows run from old to new. Changes
 * that only widened types, or added attributes with a compatible default, need no row. Source: the version history in
 * ONNX's Changelog.md. */
#include "frontend/onnx/rewrites.h"

#include "frontend/onnx/import_context.h"

#include <string.h>

enum { ALWAYS = FE_NEWEST_OPSET + 1 };

typedef struct row {
    ir_opcode op;
    int64_t before; /* applies to nodes of a lower opset */
    fe_rewrite_fn *rewrite;
} row;

/* clang-format off */
static const row table[] = {
    {IR_OP_Add,                7, fe_rewrite_broadcast},
    {IR_OP_Sub,                7, fe_rewrite_broadcast},
    {IR_OP_Mul,                7, fe_rewrite_broadcast},
    {IR_OP_Div,                7, fe_rewrite_broadcast},
    {IR_OP_Pow,                7, fe_rewrite_broadcast},
    {IR_OP_And,                7, fe_rewrite_broadcast},
    {IR_OP_Or,                 7, fe_rewrite_broadcast},
    {IR_OP_Xor,                7, fe_rewrite_broadcast},
    {IR_OP_Equal,              7, fe_rewrite_broadcast},
    {IR_OP_Less,               7, fe_rewrite_broadcast},
    {IR_OP_Greater,            7, fe_rewrite_broadcast},
    {IR_OP_PRelu,              7, fe_rewrite_prelu},
    {IR_OP_Selu,               6, fe_rewrite_selu},
    {IR_OP_Cast,               6, fe_rewrite_cast},
    {IR_OP_Clip,              11, fe_rewrite_clip},
    {IR_OP_Dropout,           12, fe_rewrite_dropout},
    {IR_OP_Gemm,               7, fe_rewrite_gemm},
    {IR_OP_Reshape,            5, fe_rewrite_reshape},
    {IR_OP_Squeeze,           13, fe_rewrite_axes},
    {IR_OP_Unsqueeze,         13, fe_rewrite_axes},
    {IR_OP_Concat,             4, fe_rewrite_concat},
    {IR_OP_Slice,             10, fe_rewrite_slice},
    {IR_OP_Split,             18, fe_rewrite_split},
    {IR_OP_Pad,               11, fe_rewrite_pad},
    {IR_OP_Tile,               6, fe_rewrite_tile},
    {IR_OP_TopK,              10, fe_rewrite_top_k},
    {IR_OP_Resize,            11, fe_rewrite_resize},
    {IR_OP_ReduceSum,         13, fe_rewrite_axes},
    {IR_OP_ReduceMean,        18, fe_rewrite_axes},
    {IR_OP_ReduceMax,         18, fe_rewrite_axes},
    {IR_OP_ReduceMin,         18, fe_rewrite_axes},
    {IR_OP_ReduceProd,        18, fe_rewrite_axes},
    {IR_OP_ReduceL1,          18, fe_rewrite_axes},
    {IR_OP_ReduceL2,          18, fe_rewrite_axes},
    {IR_OP_ReduceLogSum,      18, fe_rewrite_axes},
    {IR_OP_ReduceLogSumExp,   18, fe_rewrite_axes},
    {IR_OP_ReduceSumSquare,   18, fe_rewrite_axes},
    {IR_OP_Softmax,           13, fe_rewrite_softmax},
    {IR_OP_LogSoftmax,        13, fe_rewrite_softmax},
    {IR_OP_BatchNormalization,14, fe_rewrite_batch_normalization},
    {IR_OP_GroupNormalization,21, fe_rewrite_group_normalization},
    {IR_OP_ConstantOfShape, ALWAYS, fe_rewrite_constant_of_shape},
};

/* Renamed operators: old name, first opset of the new name, new name. */
static const struct { const char *old; int64_t before; const char *name; } renamed[] = {
    {"Scatter", 11, "ScatterElements"},
    {"Upsample", 11, "Resize"},
};
/* clang-format on */

const ir_op *fe_find_operator(const char *domain, const char *op_type, int64_t opset)
{
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (!*domain && opset < renamed[i].before && strcmp(op_type, renamed[i].old) == 0) op_type = renamed[i].name;
    return ir_op_find(domain, op_type);
}

mdot_status fe_upgrade_node(fe_upgrader *u, ir_node *node, int64_t opset)
{
    /* A memory hint for Caffe2, until opset 6. */
    if (opset < 6) ir_node_remove_attr(node, "consumed_inputs");
    ir_opcode op = ir_node_opcode(node);
    for (size_t i = 0; i < sizeof table / sizeof *table && node->op != NULL; i++) {
        const row *r = &table[i];
        if (r->op == op && opset < r->before && !r->rewrite(u, node, opset)) return fe_out_of_memory(u->context);
    }
    return MDOT_OK;
}
