/* form_linear.c — rewrites matmuls with constant weights as mdot.Linear(x, W [K, C], bias [C]), which reads packed
 * weights. The other Gemm and FusedMatMul nodes become MatMul and pointwise operators.
 *
 * Weights must be f32, because the linear kernel computes in f32. Scales and transposes of constant operands are
 * folded into the constant here, at compile time.
 */
#include "ir/passes.h"
#include "ir/passes/attention_patterns.h"
#include "ir/passes/graph_builder.h"

static bool is_weight(const ir_value *value, int rank)
{
    return value != NULL && value->constant != NULL && value->constant->data != NULL && value->type.rank == rank &&
           value->type.dtype == MDOT_DTYPE_F32;
}

/* scale * matrix, transposed on request; the matrix itself if nothing changes. */
static ir_value *prepared_weight(ir_builder *b, ir_value *matrix, bool transposed, float scale)
{
    if (!transposed && scale == 1) return matrix;
    const ir_tensor *source = matrix->constant;
    int64_t rows = source->dims[transposed ? 1 : 0], columns = source->dims[transposed ? 0 : 1];
    const float *input = source->data;
    float *out = ir_build_alloc(b, source->count ? source->count : 1, sizeof *out);
    if (out == NULL) return NULL;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++)
            out[r * columns + c] = scale * input[transposed ? c * rows + r : r * columns + c];
    return ir_build_constant(b, MDOT_DTYPE_F32, (int64_t[]){rows, columns}, 2, out);
}

/* scale * value as a bias of `columns` elements. NULL: the value is not a constant that is equal for every row. */
static ir_value *prepared_bias(ir_builder *b, ir_value *value, int64_t columns, float scale)
{
    const ir_tensor *source = value->constant;
    if (source == NULL || source->data == NULL || source->dtype != MDOT_DTYPE_F32) return NULL;
    for (int i = 0; i + 1 < source->rank; i++)
        if (source->dims[i] != 1) return NULL;
    if (source->count != columns && source->count != 1) return NULL;
    if (source->rank == 1 && source->count == columns && scale == 1) return value;
    const float *input = source->data;
    float *out = ir_build_alloc(b, columns ? columns : 1, sizeof *out);
    if (out == NULL) return NULL;
    for (int64_t c = 0; c < columns; c++) out[c] = scale * input[source->count == 1 ? 0 : c];
    return ir_build_constant(b, MDOT_DTYPE_F32, &columns, 1, out);
}

static ir_value *linear(ir_builder *b, ir_value *x, ir_value *weight, ir_value *bias)
{
    return ir_build_with(b, IR_OP_Linear, IR_VALUES(x, weight, bias), IR_NO_ATTRS);
}

static void mat_mul(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0], *weight = node->inputs[1], *result = node->outputs[0];
    if (!is_weight(weight, 2)) return;
    if (x->type.rank >= 2) {
        ir_replace(b, result, linear(b, x, weight, NULL));
    } else { /* a vector counts as a matrix of one row */
        ir_dim row[] = {ir_dim_number(1), x->type.dim[0]};
        ir_value *matmul = linear(b, ir_build_reshape(b, x, row, 2), weight, NULL);
        ir_replace(b, result, ir_build_reshape(b, matmul, result->type.dim, result->type.rank));
    }
}

/* Add(Linear(x, W), constant vector): the vector becomes the bias if the sum is the only reader of the matmul. */
static void add(ir_builder *b, ir_node *node)
{
    for (int i = 0; i < 2; i++) {
        const ir_value *matmul = node->inputs[i];
        const ir_node *made = matmul->def;
        if (made == NULL || made->op != &ir_ops[IR_OP_Linear] || made->input_count > 2 || matmul->use_count != 1)
            continue;
        int64_t columns = made->inputs[1]->type.dim[1].offset;
        ir_value *bias = prepared_bias(b, node->inputs[1 - i], columns, 1);
        if (bias != NULL && ir_replace(b, node->outputs[0], linear(b, made->inputs[0], made->inputs[1], bias))) return;
    }
}

static ir_value *scaled(ir_builder *b, ir_value *x, double factor)
{
    return factor == 1 ? x : ir_build_mul(b, x, ir_build_scalar(b, factor));
}

static ir_value *transposed(ir_builder *b, ir_value *x, bool wanted) { return wanted ? ir_build_swap_last(b, x) : x; }

/* alpha A' B' + beta C (ONNX Gemm-13). */
static void gemm(ir_builder *b, ir_node *node)
{
    double alpha = ir_node_float(node, "alpha", 1), beta = ir_node_float(node, "beta", 1);
    bool trans_b = ir_node_int(node, "transB", 0);
    ir_value *x = transposed(b, node->inputs[0], ir_node_int(node, "transA", 0));
    ir_value *matrix = node->inputs[1], *addend = beta != 0 ? ir_node_input(node, 2) : NULL, *matmul, *bias = NULL;
    if (is_weight(matrix, 2) && x != NULL && x->type.dtype == MDOT_DTYPE_F32) {
        ir_value *weight = prepared_weight(b, matrix, trans_b, (float)alpha);
        if (addend != NULL && weight != NULL) bias = prepared_bias(b, addend, weight->type.dim[1].offset, (float)beta);
        matmul = linear(b, x, weight, bias);
    } else {
        matmul = x != NULL ? scaled(b, ir_build_mat_mul(b, x, transposed(b, matrix, trans_b)), alpha) : NULL;
    }
    if (addend != NULL && bias == NULL) matmul = ir_build_add(b, matmul, scaled(b, addend, beta));
    ir_replace(b, node->outputs[0], matmul);
}

/* alpha A' B', batched (ONNX Runtime's contrib operator). */
static void fused_mat_mul(ir_builder *b, ir_node *node)
{
    ir_value *x = transposed(b, node->inputs[0], ir_node_int(node, "transA", 0));
    double alpha = ir_node_float(node, "alpha", 1);
    bool trans_b = ir_node_int(node, "transB", 0);
    if (is_weight(node->inputs[1], 2) && x != NULL && x->type.rank >= 2 && x->type.dtype == MDOT_DTYPE_F32) {
        ir_replace(b, node->outputs[0], linear(b, x, prepared_weight(b, node->inputs[1], trans_b, (float)alpha), NULL));
    } else {
        ir_value *matmul = ir_build_mat_mul(b, x, transposed(b, node->inputs[1], trans_b));
        ir_replace(b, node->outputs[0], matmul != NULL ? scaled(b, matmul, alpha) : NULL);
    }
}

const ir_rule ir_rules_form_linear[IR_OP_COUNT] = {
    [IR_OP_MatMul] = mat_mul,
    [IR_OP_Add] = add,
    [IR_OP_Gemm] = gemm,
    [IR_OP_FusedMatMul] = fused_mat_mul,
};
