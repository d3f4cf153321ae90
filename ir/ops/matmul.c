/* matmul.c — matmuls: MatMul, Gemm, Linear (mdot's own: constant weights and a bias), FusedMatMul.
 *
 * All four are batches of one matmul, rows × inner by inner × columns, with operands that may be transposed, repeated
 * over the batch or vectors. A multiply-add costs two FLOPs. Einsum and FusedGemm (gemm_fused.c) are in separate
 * files.
 */
#include "ir/ops/operands.h"

/* The matmuls of one node. Operand a has `rows` × `inner` in the last two dimensions, b `inner` × `columns`, each
 * swapped if transposed. A vector is one row or one column that the output lacks. */
typedef struct matmul {
    mdot_dtype dtype;
    bool transpose_a, transpose_b;
    bool a_vector, b_vector;
    ir_dim rows, inner, columns;
    int batch_rank;
    ir_dim batch[MDOT_MAX_RANK]; /* broadcast shape of leading dimensions */
} matmul;

/* The last two dimensions of an operand, exchanged if `swap` is set. */
static void matrix_dims(const ir_type *type, bool swap, ir_dim *out_first, ir_dim *out_second)
{
    *out_first = type->dim[type->rank - (swap ? 1 : 2)];
    *out_second = type->dim[type->rank - (swap ? 2 : 1)];
}

static mdot_status read_matmul(const ir_operands *args, bool transpose_a, bool transpose_b, matmul *out)
{
    ir_type a, b;
    BS_TRY(ir_operand_need(args, 0, "left matrix", -1, &a));
    BS_TRY(ir_operand_need(args, 1, "right matrix", -1, &b));
    BS_TRY(ir_operand_need_same(args, 1, 0));
    if (a.rank < 1 || b.rank < 1) return ir_malformed(args, "a scalar is not a matrix");
    matmul p = {.dtype = a.dtype, .a_vector = a.rank == 1, .b_vector = b.rank == 1};
    p.transpose_a = transpose_a && !p.a_vector;
    p.transpose_b = transpose_b && !p.b_vector;
    ir_dim b_inner;
    p.rows = p.columns = ir_dim_number(1);
    p.inner = a.dim[0];
    b_inner = b.dim[0];
    if (!p.a_vector) matrix_dims(&a, p.transpose_a, &p.rows, &p.inner);
    if (!p.b_vector) matrix_dims(&b, p.transpose_b, &b_inner, &p.columns);
    if (!ir_dim_equal(p.inner, b_inner)) {
        char a_text[IR_SHAPE_TEXT_BYTES], b_text[IR_SHAPE_TEXT_BYTES];
        return ir_refuse(args, ir_dims_fault(2, (ir_dim[]){p.inner, b_inner}),
                         "%s%s times %s%s: the inner dimensions differ", ir_shape_text(args, a.rank, a.dim, a_text),
                         p.transpose_a ? " transposed" : "", ir_shape_text(args, b.rank, b.dim, b_text),
                         p.transpose_b ? " transposed" : "");
    }
    BS_TRY(ir_broadcast_dims(args->node, a.dim, p.a_vector ? 0 : a.rank - 2, b.dim, p.b_vector ? 0 : b.rank - 2,
                             p.batch, &p.batch_rank, args->err));
    *out = p;
    return MDOT_OK;
}

static ir_type matmul_type(const matmul *p)
{
    ir_type type = {p->dtype, p->batch_rank, {{0}}};
    for (int i = 0; i < p->batch_rank; i++) type.dim[i] = p->batch[i];
    if (!p->a_vector) type.dim[type.rank++] = p->rows;
    if (!p->b_vector) type.dim[type.rank++] = p->columns;
    return type;
}

typedef struct matrix_view { /* element (row, column) is at row * row_stride + column * column_stride */
    int64_t row_stride, column_stride;
} matrix_view;

/* out[r, c] += sum over k of a[r, k] * b[k, c], `out` dense. The inner loop runs along rows of b and out, so the oracle
 * runs at cache speed for models of billions of FLOPs. */
static void multiply_floats(const double *a, matrix_view a_view, const double *b, matrix_view b_view, double *out,
                            int64_t rows, int64_t inner, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        double *row = out + r * columns;
        for (int64_t k = 0; k < inner; k++) {
            double factor = a[r * a_view.row_stride + k * a_view.column_stride];
            const double *b_row = b + k * b_view.row_stride;
            if (b_view.column_stride == 1) {
                for (int64_t c = 0; c < columns; c++) row[c] += factor * b_row[c];
            } else {
                for (int64_t c = 0; c < columns; c++) row[c] += factor * b_row[c * b_view.column_stride];
            }
        }
    }
}

/* Does the same for integers, modulo 2^64. */
static void multiply_integers(const int64_t *a, matrix_view a_view, const int64_t *b, matrix_view b_view, int64_t *out,
                              int64_t rows, int64_t inner, int64_t columns)
{
    for (int64_t r = 0; r < rows; r++) {
        for (int64_t k = 0; k < inner; k++) {
            uint64_t factor = (uint64_t)a[r * a_view.row_stride + k * a_view.column_stride];
            for (int64_t c = 0; c < columns; c++) {
                int64_t *sum = &out[r * columns + c];
                uint64_t other_bits = (uint64_t)b[k * b_view.row_stride + c * b_view.column_stride];
                *sum = (int64_t)((uint64_t)*sum + factor * other_bits);
            }
        }
    }
}

/* Strides of an operand's leading dimensions at the batch's indices. */
static void batch_strides(const ir_wide *operand, bool vector, int batch_rank, int64_t matrix, int64_t *out_strides)
{
    ir_broadcast_strides(vector ? 0 : operand->rank - 2, operand->dims, batch_rank, out_strides);
    for (int i = 0; i < batch_rank; i++) out_strides[i] *= matrix;
}

/* Adds all matmul results to `out`, which is dense and has the same size. */
static void multiply(const matmul *p, const ir_wide *a, const ir_wide *b, ir_wide *out)
{
    int64_t rows = p->rows.offset, inner = p->inner.offset, columns = p->columns.offset;
    matrix_view a_view = p->transpose_a ? (matrix_view){1, rows} : (matrix_view){inner, 1};
    matrix_view b_view = p->transpose_b ? (matrix_view){1, inner} : (matrix_view){columns, 1};
    int64_t batch[MDOT_MAX_RANK], index[MDOT_MAX_RANK] = {0};
    int64_t a_strides[MDOT_MAX_RANK], b_strides[MDOT_MAX_RANK];
    for (int i = 0; i < p->batch_rank; i++) batch[i] = p->batch[i].offset;
    batch_strides(a, p->a_vector, p->batch_rank, rows * inner, a_strides);
    batch_strides(b, p->b_vector, p->batch_rank, inner * columns, b_strides);
    for (int64_t offset = 0; offset < out->count; offset += rows * columns) {
        int64_t a_at = ir_dot_index(p->batch_rank, index, a_strides);
        int64_t b_at = ir_dot_index(p->batch_rank, index, b_strides);
        if (out->f != NULL)
            multiply_floats(a->f + a_at, a_view, b->f + b_at, b_view, out->f + offset, rows, inner, columns);
        else
            multiply_integers(a->i + a_at, a_view, b->i + b_at, b_view, out->i + offset, rows, inner, columns);
        ir_next_index(p->batch_rank, batch, index);
    }
    for (int64_t k = 0; out->i != NULL && k < out->count; k++) out->i[k] = ir_wrap_integer(out->dtype, out->i[k]);
}

typedef mdot_status (*reader)(const ir_operands *args, matmul *out);

static mdot_status type_by(reader read, const ir_operands *args, ir_type *out_type)
{
    matmul p;
    BS_TRY(read(args, &p));
    *out_type = matmul_type(&p);
    return MDOT_OK;
}

static mdot_status multiply_by(reader read, const ir_node *node, ir_inputs input, ir_wide *out, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    matmul p;
    BS_TRY(read(&args, &p));
    multiply(&p, input[0], input[1], out);
    return MDOT_OK;
}

/* MatMul lacks FusedMatMul's attributes, whose defaults give a MatMul (com.microsoft, ONNX Runtime's contrib
 * operators). */
static mdot_status read_mat_mul(const ir_operands *args, matmul *out)
{
    const ir_node *node = args->node;
    if (ir_node_int(node, "transBatchA", 0) || ir_node_int(node, "transBatchB", 0))
        return ir_fail(node, args->err, MDOT_UNSUPPORTED, "transBatchA and transBatchB are unsupported");
    return read_matmul(args, ir_node_int(node, "transA", 0) != 0, ir_node_int(node, "transB", 0) != 0, out);
}

mdot_status ir_result_mat_mul(const ir_operands *args, ir_type *out_type)
{
    return type_by(read_mat_mul, args, out_type);
}

mdot_status ir_eval_mat_mul(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    return multiply_by(read_mat_mul, node, input, out[0], err);
}

/* `factor` times an integer, exact if the factor is 1. The result saturates at the ends of 64 bits, as in Cast. */
static int64_t scaled_integer(double factor, int64_t integer)
{
    return factor == 1 ? integer : ir_float_to_integer(MDOT_DTYPE_I64, factor * (double)integer);
}

static void scale_elements(ir_wide *wide, double factor)
{
    for (int64_t i = 0; i < wide->count; i++) {
        if (wide->f != NULL)
            wide->f[i] *= factor;
        else
            wide->i[i] = ir_wrap_integer(wide->dtype, scaled_integer(factor, wide->i[i]));
    }
}

mdot_status ir_eval_fused_mat_mul(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    mdot_status status = ir_eval_mat_mul(arena, node, input, out, err);
    if (status == MDOT_OK) scale_elements(out[0], ir_node_float(node, "alpha", 1));
    return status;
}

void ir_cost_mat_mul(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_graph range = {.max_length = length};
    ir_operands args = ir_operands_of_graph(&range, node, NULL);
    matmul p;
    bool reads = read_mat_mul(&args, &p) == MDOT_OK;
    out_cost->flops = reads ? 2 * (double)ir_dim_at(p.rows, length) * (double)ir_dim_at(p.inner, length) *
                                  (double)ir_dim_at(p.columns, length)
                            : 0;
    for (int i = 0; reads && i < p.batch_rank; i++) out_cost->flops *= (double)ir_dim_at(p.batch[i], length);
}

/* ---- Gemm: alpha · A' · B' + beta · C --------------------------------------------------------------------------- */

static mdot_status read_gemm(const ir_operands *args, matmul *out)
{
    ir_type matrix, c;
    BS_TRY(ir_operand_need(args, 0, "matrix A", 2, &matrix));
    BS_TRY(ir_operand_need(args, 1, "matrix B", 2, &matrix));
    BS_TRY(ir_operand_need_same(args, 2, 0));
    BS_TRY(
        read_matmul(args, ir_node_int(args->node, "transA", 0) != 0, ir_node_int(args->node, "transB", 0) != 0, out));
    if (!ir_operand_given(args, 2)) return MDOT_OK;
    c = ir_operand_type(args, 2);
    bool fits = c.rank <= 2;
    for (int i = 1; i <= c.rank && fits; i++) {
        ir_dim dim = c.dim[c.rank - i];
        fits = ir_dim_is(dim, 1) || ir_dim_equal(dim, i == 1 ? out->columns : out->rows);
    }
    if (fits) return MDOT_OK;
    char text[IR_SHAPE_TEXT_BYTES];
    return ir_malformed(args, "C of shape %s does not broadcast to the result of the matmul",
                        ir_shape_text(args, c.rank, c.dim, text));
}

mdot_status ir_result_gemm(const ir_operands *args, ir_type *out_type) { return type_by(read_gemm, args, out_type); }

static void add_scaled(ir_wide *out, const ir_wide *c, double beta)
{
    int64_t strides[MDOT_MAX_RANK], index[MDOT_MAX_RANK] = {0};
    ir_broadcast_strides(c->rank, c->dims, out->rank, strides);
    for (int64_t k = 0; k < out->count; k++) {
        int64_t offset = ir_dot_index(out->rank, index, strides);
        if (out->f != NULL) {
            out->f[k] += beta * c->f[offset];
        } else {
            uint64_t term = (uint64_t)scaled_integer(beta, c->i[offset]);
            out->i[k] = ir_wrap_integer(out->dtype, (int64_t)((uint64_t)out->i[k] + term));
        }
        ir_next_index(out->rank, out->dims, index);
    }
}

mdot_status ir_eval_gemm(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    BS_TRY(multiply_by(read_gemm, node, input, out[0], err));
    scale_elements(out[0], ir_node_float(node, "alpha", 1));
    const ir_wide *c = ir_tensor_input(node, input, 2);
    double beta = ir_node_float(node, "beta", 1);
    if (c != NULL && beta != 0) add_scaled(out[0], c, beta); /* as in BLAS, C is not read otherwise */
    return MDOT_OK;
}

void ir_cost_gemm(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_cost_mat_mul(node, length, out_cost); /* it has the same attributes */
    if (ir_node_input(node, 2) != NULL) out_cost->flops += ir_value_elements(node->outputs[0], length);
}

/* ---- Linear: x[…, K] · W[K, C] + bias[C] ------------------------------------------------------------------------ */

static mdot_status read_linear(const ir_operands *args, matmul *out)
{
    ir_type weight, bias;
    mdot_status status = ir_operand_need(args, 1, "weight", 2, &weight);
    if (status == MDOT_OK) status = ir_operand_need_same(args, 2, 0);
    if (status == MDOT_OK) status = read_matmul(args, false, false, out);
    if (status != MDOT_OK || !ir_operand_given(args, 2)) return status;
    BS_TRY(ir_operand_need(args, 2, "bias", 1, &bias));
    if (!ir_dim_equal(bias.dim[0], out->columns))
        return ir_malformed(args, "the length of the bias differs from the number of columns of the weight");
    return MDOT_OK;
}

mdot_status ir_result_linear(const ir_operands *args, ir_type *out_type)
{
    return type_by(read_linear, args, out_type);
}

mdot_status ir_eval_linear(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    BS_TRY(multiply_by(read_linear, node, input, out[0], err));
    const ir_wide *bias = ir_tensor_input(node, input, 2);
    if (bias != NULL) add_scaled(out[0], bias, 1);
    return MDOT_OK;
}
