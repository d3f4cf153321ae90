/* simplify.c — removes operators without effect: identities, casts to the same type, pointwise operators with neutral
 * constants, layout changes that cancel out.
 *
 * Squeeze, Unsqueeze and Flatten become Reshape, so later passes handle a single operator. Chains of Reshape become one
 * Reshape, and chains of Transpose one Transpose. Every rule keeps the value's type, or ir_replace refuses it. */
#include "ir/ops.h"
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"
#include "ir/passes/match.h"

#include <math.h>
#include <stdlib.h>

static void forward_input(ir_builder *b, ir_node *node) { ir_replace(b, node->outputs[0], node->inputs[0]); }

/* The value below all reshapes of `value`, and the number of reshapes. */
static ir_value *under_reshapes(ir_value *value, int *out_count)
{
    *out_count = 0;
    for (; ir_is_reshaped(value); (*out_count)++) value = value->def->inputs[0];
    return value;
}

static bool is_constant_reshape(const ir_node *node)
{
    return node->op == &ir_ops[IR_OP_Reshape] && node->inputs[1]->constant != NULL;
}

/* [A, B, N, D] joined to [A · B, N, D], transposed and split to [A, B, D, N] becomes a transpose of the last two
 * dimensions. PyTorch's dynamo exporter writes the keys of scaled_dot_product_attention this way. A transpose that
 * has other readers stays. */
static bool transpose_of_joined(ir_builder *b, ir_node *node)
{
    const ir_node *transpose = node->inputs[0]->def;
    if (transpose == NULL || transpose->op != &ir_ops[IR_OP_Transpose] || !ir_is_reshaped(transpose->inputs[0]))
        return false;
    if (node->inputs[0]->use_count != 1) return false;
    const ir_type *joined = &transpose->inputs[0]->type, *result = &node->outputs[0]->type;
    int64_t perm[MDOT_MAX_RANK];
    int rank = result->rank;
    ir_node_perm(transpose, transpose->inputs[0]->type.rank, perm);
    if (joined->rank != 3 || perm[0] != 0 || perm[1] != 2 || rank < 4) return false;
    ir_type split = *result;
    split.dim[rank - 2] = result->dim[rank - 1];
    split.dim[rank - 1] = result->dim[rank - 2];
    for (int i = 1; i <= 2; i++)
        if (!ir_dim_equal(split.dim[rank - i], joined->dim[3 - i])) return false;
    ir_value *x = ir_build_reshape(b, transpose->inputs[0], split.dim, rank);
    if (x == NULL || (ir_is_reshaped(x) && !is_constant_reshape(x->def))) return false;
    for (int i = 0; i < rank; i++) perm[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return ir_replace(b, node->outputs[0], ir_build_transpose(b, x, perm));
}

/* Rewrites x[i] along an axis, with a number as index, as a view: a slice of extent one and a reshape. */
static void gather(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0], *result = node->outputs[0];
    int axis = ir_node_axis(node, 0, x->type.rank);
    int64_t index;
    const ir_value *operand = node->inputs[1];
    if (operand->constant == NULL || !ir_value_int(operand, &index)) return;
    if (axis < 0 || axis >= x->type.rank || !ir_dim_is_number(x->type.dim[axis])) return;
    int64_t extent = x->type.dim[axis].offset;
    if (index < 0) index += extent;
    if (index < 0 || index >= extent || x->known != NULL || x->constant != NULL) return;
    ir_value *one = extent == 1 ? x : ir_build_slice(b, x, axis, index, index + 1);
    ir_replace(b, result, one != NULL ? ir_build_reshape(b, one, result->type.dim, result->type.rank) : NULL);
}

/* The transpose that produces a value, with its permutation in `perm`. NULL: another operator produces it. */
static ir_node *transpose_under(const ir_value *value, int64_t *perm)
{
    ir_node *node = value->def;
    if (node == NULL || node->op != &ir_ops[IR_OP_Transpose]) return NULL;
    ir_node_perm(node, node->inputs[0]->type.rank, perm);
    return node;
}

/* Rewrites a slice of extent one along an axis: Slice(Transpose(x)) → Transpose(Slice(x)). Then heads of a packed
 * projection are rows that a transpose alone splits. */
static bool slice_of_transposed(ir_builder *b, ir_node *node)
{
    int64_t perm[MDOT_MAX_RANK], axis;
    const ir_node *transpose = transpose_under(node->inputs[0], perm);
    const ir_value *operand = ir_node_input(node, 3);
    if (transpose == NULL || operand == NULL || !ir_value_int(operand, &axis)) return false;
    if (axis < 0) axis += node->inputs[0]->type.rank;
    if (!ir_dim_is(node->outputs[0]->type.dim[axis], 1)) return false;
    ir_value *input[5] = {transpose->inputs[0], node->inputs[1], node->inputs[2], ir_build_integers(b, &perm[axis], 1),
                          ir_node_input(node, 4)};
    ir_value *part = ir_build_with(b, IR_OP_Slice, input, 5, IR_NO_ATTRS);
    return ir_replace(b, node->outputs[0], ir_build_transpose(b, part, perm));
}

/* Does the same for a Split into parts of extent one. */
static bool split_of_transposed(ir_builder *b, ir_node *node)
{
    int64_t perm[MDOT_MAX_RANK], extents[MDOT_MAX_RANK];
    int axis = ir_node_axis(node, 0, node->inputs[0]->type.rank);
    const ir_node *transpose = transpose_under(node->inputs[0], perm);
    ir_value *parts[MDOT_MAX_RANK];
    if (transpose == NULL || node->output_count > MDOT_MAX_RANK) return false;
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL || !ir_dim_is(node->outputs[i]->type.dim[axis], 1)) return false;
        extents[i] = 1;
    }
    if (!ir_build_split(b, transpose->inputs[0], perm[axis], extents, node->output_count, parts)) return false;
    bool replaced = true;
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i]->use_count)
            replaced = ir_replace(b, node->outputs[i], ir_build_transpose(b, parts[i], perm)) && replaced;
    return replaced;
}

static void split(ir_builder *b, ir_node *node)
{
    if (node->output_count == 1)
        ir_replace(b, node->outputs[0], node->inputs[0]);
    else
        split_of_transposed(b, node);
}

static bool is_part(const ir_value *value)
{
    return value->def != NULL && (value->def->op == &ir_ops[IR_OP_Slice] || value->def->op == &ir_ops[IR_OP_Split]);
}

/* If a part of extent one is transposed and then loses that axis, removes the axis first and then transposes. */
static bool squeeze_of_transposed(ir_builder *b, ir_node *node)
{
    int64_t perm[MDOT_MAX_RANK], kept_perm[MDOT_MAX_RANK];
    const ir_node *transpose = transpose_under(node->inputs[0], perm);
    const ir_type *whole = &node->inputs[0]->type, *result = &node->outputs[0]->type;
    if (transpose == NULL || result->rank != whole->rank - 1 || !is_part(transpose->inputs[0])) return false;
    int gone = 0;
    while (gone < result->rank && ir_dim_equal(whole->dim[gone], result->dim[gone])) gone++;
    if (!ir_dim_is(whole->dim[gone], 1)) return false;
    for (int i = gone; i < result->rank; i++)
        if (!ir_dim_equal(whole->dim[i + 1], result->dim[i])) return false;
    ir_dim dims[MDOT_MAX_RANK];
    const ir_type *source = &transpose->inputs[0]->type;
    int rank = 0, count = 0;
    for (int i = 0; i < source->rank; i++)
        if (i != perm[gone]) dims[rank++] = source->dim[i];
    for (int i = 0; i < whole->rank; i++)
        if (i != gone) kept_perm[count++] = perm[i] - (perm[i] > perm[gone]);
    ir_value *part = ir_build_reshape(b, transpose->inputs[0], dims, rank);
    return ir_replace(b, node->outputs[0], ir_build_transpose(b, part, kept_perm));
}

/* Reduces a chain of shape changes to the shortest form: nothing, or one Reshape by a constant. If a constant cannot
 * express the shape, the model's own operators stay. */
static void reshape(ir_builder *b, ir_node *node)
{
    int count, new_count;
    if (transpose_of_joined(b, node) || squeeze_of_transposed(b, node)) return;
    ir_value *result = node->outputs[0], *source = under_reshapes(result, &count);
    if (ir_type_equal(&source->type, &result->type)) {
        ir_replace(b, result, source);
        return;
    }
    if (count == 1 && is_constant_reshape(node)) return;
    ir_value *reshaped = ir_build_reshape(b, source, result->type.dim, result->type.rank);
    if (reshaped == NULL || reshaped->def->inputs[1]->constant == NULL) return;
    under_reshapes(reshaped, &new_count);
    if (new_count < count || (new_count == count && is_constant_reshape(reshaped->def)))
        ir_replace(b, result, reshaped);
}

static void transpose(ir_builder *b, ir_node *node)
{
    int64_t perm[MDOT_MAX_RANK];
    ir_node_perm(node, node->inputs[0]->type.rank, perm);
    ir_value *transposed = ir_build_transpose(b, node->inputs[0], perm);
    bool is_same = transposed != NULL && transposed->def != NULL && transposed->def->op == node->op &&
                   transposed->def->inputs[0] == node->inputs[0];
    if (!is_same) ir_replace(b, node->outputs[0], transposed);
}

/* Removes a slice of the whole axis, unless it reverses the order. */
static void slice(ir_builder *b, ir_node *node)
{
    if (slice_of_transposed(b, node)) return;
    int64_t steps[IR_MAX_KNOWN];
    int count = 0;
    const ir_value *operand = ir_node_input(node, 4);
    if (operand != NULL && !ir_value_ints(operand, steps, &count)) return;
    for (int i = 0; i < count; i++)
        if (steps[i] < 0) return;
    forward_input(b, node);
}

static void pad(ir_builder *b, ir_node *node)
{
    if (ir_value_is_filled(node->inputs[1], 0, 0)) forward_input(b, node);
}

/* Removes Max and similar operators with a single input. */
static void single_part(ir_builder *b, ir_node *node)
{
    if (node->input_count == 1) forward_input(b, node);
}

static bool is_empty(const ir_value *value)
{
    for (int i = 0; i < value->type.rank; i++)
        if (ir_dim_is(value->type.dim[i], 0)) return true;
    return false;
}

/* Drops parts without elements, for example the keys of an empty past. */
static void concat(ir_builder *b, ir_node *node)
{
    int count = 0;
    ir_value **parts = ir_build_alloc(b, node->input_count, sizeof *parts);
    for (int i = 0; parts != NULL && i < node->input_count; i++)
        if (!is_empty(node->inputs[i])) parts[count++] = node->inputs[i];
    if (parts == NULL || count == 0) return;
    if (count == 1) ir_replace(b, node->outputs[0], parts[0]);
    if (count == 1 || count == node->input_count) return;
    ir_replace(b, node->outputs[0], ir_build_with(b, IR_OP_Concat, parts, count, node->attrs, node->attr_count));
}

/* Softmax(Reshape(x)) = Reshape(Softmax(x)) if rows stay rows. Therefore the flattening that the frontend adds for
 * the Softmax of old opsets cancels against the reshape behind it. */
static void softmax(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0], *result = node->outputs[0];
    if (!ir_is_reshaped(x) || x->type.rank < 1) return;
    ir_value *source = x->def->inputs[0];
    int64_t axis = ir_node_int(node, "axis", -1);
    int last_index = source->type.rank - 1;
    if ((axis != -1 && axis != x->type.rank - 1) || last_index < 0) return;
    if (!ir_dim_equal(source->type.dim[last_index], x->type.dim[x->type.rank - 1])) return;
    ir_value *rows = ir_build_with(b, ir_node_opcode(node), &source, 1, IR_ATTRS(IR_INT("axis", -1)));
    ir_replace(b, result, ir_build_reshape(b, rows, result->type.dim, result->type.rank));
}

/* If operand `i` is filled with `number`, replaces the node by the other one. A traced program runs it. */
static bool drop_neutral(ir_builder *b, ir_node *node, int i, double number)
{
    if (b->graph->keeps_equals || !ir_value_is_filled(node->inputs[i], number, 0)) return false;
    return ir_replace(b, node->outputs[0], node->inputs[1 - i]);
}

static void add(ir_builder *b, ir_node *node)
{
    if (!drop_neutral(b, node, 0, 0)) drop_neutral(b, node, 1, 0);
}

static void subtract(ir_builder *b, ir_node *node) { drop_neutral(b, node, 1, 0); }

static void multiply(ir_builder *b, ir_node *node)
{
    if (!drop_neutral(b, node, 0, 1)) drop_neutral(b, node, 1, 1);
}

/* x / c equals x * (1/c) exactly if c is a power of two and 1/c is a normal number of every type. In a trace, c may be
 * the batch, and the trace at another batch keeps its division. */
static void divide(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0], *divisor = node->inputs[1];
    double number;
    int exponent;
    if (b->graph->keeps_equals || drop_neutral(b, node, 1, 1)) return;
    if (!ir_dtype_is_float(x->type.dtype) || !ir_value_scalar(divisor, &number)) return;
    if (fabs(frexp(number, &exponent)) != 0.5 || abs(exponent) > 12) return;
    ir_replace(b, node->outputs[0],
               ir_build_mul(b, x, ir_build_filled(b, divisor->constant->dims, divisor->type.rank, 1 / number)));
}

/* Rewrites whole powers up to three as products. */
static void power(ir_builder *b, ir_node *node)
{
    ir_value *x = node->inputs[0];
    double exponent;
    if (!ir_value_scalar(node->inputs[1], &exponent)) return;
    if (exponent == 1 && !b->graph->keeps_equals) ir_replace(b, node->outputs[0], x);
    if (exponent == 2) ir_replace(b, node->outputs[0], ir_build_mul(b, x, x));
    if (exponent == 3) ir_replace(b, node->outputs[0], ir_build_mul(b, ir_build_mul(b, x, x), x));
}

static void sum(ir_builder *b, ir_node *node)
{
    single_part(b, node);
    if (node->input_count == 2) ir_replace(b, node->outputs[0], ir_build_add(b, node->inputs[0], node->inputs[1]));
}

static void where(ir_builder *b, ir_node *node)
{
    if (b->graph->keeps_equals) return;
    if (ir_value_is_filled(node->inputs[0], 1, 0)) ir_replace(b, node->outputs[0], node->inputs[1]);
    if (ir_value_is_filled(node->inputs[0], 0, 0)) ir_replace(b, node->outputs[0], node->inputs[2]);
}

static void cast_like(ir_builder *b, ir_node *node)
{
    ir_replace(b, node->outputs[0], ir_build_cast(b, node->inputs[0], node->inputs[1]->type.dtype));
}

/* In inference, Dropout is the input itself, and the mask (ONNX Dropout-22) keeps everything. */
static void dropout(ir_builder *b, ir_node *node)
{
    const ir_value *ratio = ir_node_input(node, 1), *training = ir_node_input(node, 2);
    bool keeps_all =
        training == NULL || ir_value_is_filled(training, 0, 0) || (ratio != NULL && ir_value_is_filled(ratio, 0, 0));
    if (!keeps_all) return;
    ir_replace(b, node->outputs[0], node->inputs[0]);
    ir_value *mask = node->output_count > 1 ? node->outputs[1] : NULL;
    if (mask == NULL || !mask->use_count) return;
    b->dtype = mask->type.dtype;
    ir_replace(b, mask, ir_build_expand(b, ir_build_scalar(b, 1), mask->type.dim, mask->type.rank));
}

static const ir_rule rule_of[IR_OP_COUNT] = {
    [IR_OP_Identity] = forward_input,
    [IR_OP_Cast] = forward_input,
    [IR_OP_Expand] = forward_input,
    [IR_OP_Tile] = forward_input,
    [IR_OP_CastLike] = cast_like,
    [IR_OP_Dropout] = dropout,
    [IR_OP_Reshape] = reshape,
    [IR_OP_Flatten] = reshape,
    [IR_OP_Squeeze] = reshape,
    [IR_OP_Unsqueeze] = reshape,
    [IR_OP_Transpose] = transpose,
    [IR_OP_Softmax] = softmax,
    [IR_OP_LogSoftmax] = softmax,
    [IR_OP_Slice] = slice,
    [IR_OP_Pad] = pad,
    [IR_OP_Concat] = concat,
    [IR_OP_Split] = split,
    [IR_OP_Gather] = gather,
    [IR_OP_Min] = single_part,
    [IR_OP_Max] = single_part,
    [IR_OP_Mean] = single_part,
    [IR_OP_Sum] = sum,
    [IR_OP_Add] = add,
    [IR_OP_Sub] = subtract,
    [IR_OP_Mul] = multiply,
    [IR_OP_Div] = divide,
    [IR_OP_Pow] = power,
    [IR_OP_Where] = where,
};

mdot_status ir_pass_simplify(ir_graph *graph, bool *out_changed, mdot_error *err)
{
    bool simplified = false, shared = false;
    mdot_status status = ir_rewrite_by_opcode(graph, rule_of, ir_fold_node, &simplified, err);
    if (status == MDOT_OK) status = ir_eliminate_common_subexpressions(graph, &shared, err);
    if (status == MDOT_OK) *out_changed = simplified || shared;
    return status;
}
