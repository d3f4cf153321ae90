/* composites.c — operators outside the table that a few standard operators express: Hardmax and ReverseSequence of
 * ONNX, and FusedConv of com.microsoft, as ONNX Runtime's optimised models have it. Also group norms as PyTorch
 * exports them, where their reshape has no form as dimensions. */
#include "frontend/onnx/rewrites.h"

#include "frontend/onnx/ml_writer.h"
#include "ir/ops/families.h"
#include "ir/passes/match.h"

#include <string.h>

static ir_value *ints(const ml_writer *w, const char *what, const int64_t *values, int count)
{
    return fe_add_ints(w->u, w->node, what, values, count);
}

ir_value *fe_positions(const ml_writer *w, ir_value *x, int64_t axis)
{
    const int64_t zero = 0, one = 1, none = -1;
    ir_value *shape = fe_ml_add1(w, IR_OP_Shape, x);
    ir_value *extent = fe_ml_add2(w, IR_OP_Gather, shape, ints(w, "axis", &axis, 1));
    ir_value *scalar = fe_ml_add2(w, IR_OP_Squeeze, extent, ints(w, "axes", &zero, 1));
    ir_value *first = fe_ml_add2(w, IR_OP_Squeeze, ints(w, "first", &zero, 1), ints(w, "axes", &none, 1));
    ir_value *step = fe_ml_add2(w, IR_OP_Squeeze, ints(w, "step", &one, 1), ints(w, "axes", &none, 1));
    return fe_add(w->u, w->node, IR_OP_Range, IR_VALUES(first, scalar, step), IR_NO_ATTRS);
}

static mdot_status read_rank(const ml_writer *w, int *out_rank)
{
    *out_rank = fe_type_of(w->u, w->node->inputs[0])->rank;
    return *out_rank >= 1 ? MDOT_OK : fe_ml_fail(w, MDOT_UNSUPPORTED, "the rank of its input is unknown");
}

/* 1 at the first greatest element along the axis, otherwise 0. */
mdot_status fe_ml_write_hardmax(const ml_writer *w)
{
    int rank;
    BS_TRY(read_rank(w, &rank));
    int64_t axis = ir_node_int(w->node, "axis", -1);
    ir_value *x = w->node->inputs[0];
    if (axis != -1 && axis != rank - 1)
        return fe_ml_fail(w, MDOT_UNSUPPORTED, "axis %lld is not the last; move it there by Transpose",
                          (long long)axis);
    ir_value *greatest = fe_add(w->u, w->node, IR_OP_ArgMax, &x, 1, IR_ATTRS(IR_INT("axis", -1)));
    ir_value *equal = fe_ml_add2(w, IR_OP_Equal, greatest, fe_positions(w, x, rank - 1));
    return fe_ml_finish(w, IR_VALUES(fe_ml_add2(w, IR_OP_CastLike, equal, x)));
}

/* Reverses the first sequence_lens[b] elements of each sequence: element t is that at len - 1 - t. */
mdot_status fe_ml_write_reverse_sequence(const ml_writer *w)
{
    int rank;
    BS_TRY(read_rank(w, &rank));
    int64_t batch = ir_node_int(w->node, "batch_axis", 1), time = ir_node_int(w->node, "time_axis", 0),
            axes[MDOT_MAX_RANK];
    const int64_t one = 1;
    if (w->node->input_count < 2 || w->node->inputs[1] == NULL || batch < 0 || batch > 1 || time != 1 - batch)
        return fe_ml_fail(w, MDOT_MALFORMED, "it needs lengths, and 0 and 1 as batch_axis and time_axis");
    ir_value *x = w->node->inputs[0];
    ir_value *place = fe_ml_add2(w, IR_OP_Unsqueeze, fe_positions(w, x, time), ints(w, "batch", &batch, 1));
    ir_value *length =
        fe_ml_add2(w, IR_OP_Unsqueeze, fe_ml_cast(w, w->node->inputs[1], MDOT_DTYPE_I64), ints(w, "time", &time, 1));
    ir_value *last = fe_ml_add2(w, IR_OP_Sub, length, ints(w, "one", &one, 1));
    ir_value *index =
        fe_ml_where(w, fe_ml_add2(w, IR_OP_Less, place, length), fe_ml_add2(w, IR_OP_Sub, last, place), place);
    for (int i = 2; i < rank; i++) axes[i - 2] = i;
    if (rank > 2) index = fe_ml_add2(w, IR_OP_Unsqueeze, index, ints(w, "rest", axes, rank - 2));
    index = fe_ml_add2(w, IR_OP_Expand, index, fe_ml_add1(w, IR_OP_Shape, x));
    ir_value *result = fe_add(w->u, w->node, IR_OP_GatherElements, IR_VALUES(x, index), IR_ATTRS(IR_INT("axis", time)));
    return fe_ml_finish(w, &result, 1);
}

/* activation(Conv(X, W, B) + Z) */
mdot_status fe_ml_write_fused_conv(const ml_writer *w)
{
    int rank;
    BS_TRY(read_rank(w, &rank));
    static const struct {
        const char *name;
        ir_opcode op;
        const char *attributes[2];
    } activations[] = {{"", IR_OP_Identity, {NULL}},
                       {"Relu", IR_OP_Relu, {NULL}},
                       {"Tanh", IR_OP_Tanh, {NULL}},
                       {"Sigmoid", IR_OP_Sigmoid, {NULL}},
                       {"LeakyRelu", IR_OP_LeakyRelu, {"alpha"}},
                       {"HardSigmoid", IR_OP_HardSigmoid, {"alpha", "beta"}},
                       {"Clip", IR_OP_Clip, {NULL}}};
    const char *name = ir_node_string(w->node, "activation", "");
    size_t kind = 0;
    while (kind < sizeof activations / sizeof *activations && strcmp(activations[kind].name, name) != 0) kind++;
    if (kind == sizeof activations / sizeof *activations)
        return fe_ml_fail(
            w, MDOT_UNSUPPORTED,
            "activation \"%s\" is unknown; known are Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid and Clip", name);
    const double *parameters;
    int64_t parameter_count;
    BS_TRY(fe_ml_floats(w, "activation_params", &parameters, &parameter_count));
    ir_value *addend = ir_node_input(w->node, 3);
    int count = w->node->input_count < 3 ? w->node->input_count : 3;
    ir_value *sum = fe_add(w->u, w->node, IR_OP_Conv, w->node->inputs, count, w->node->attrs, w->node->attr_count);
    if (addend != NULL) sum = fe_ml_add2(w, IR_OP_Add, sum, addend);
    ir_attr attrs[2];
    int attr_count = 0;
    for (; attr_count < 2 && attr_count < parameter_count; attr_count++) {
        if (activations[kind].attributes[attr_count] == NULL) break;
        attrs[attr_count] = IR_FLOAT(activations[kind].attributes[attr_count], parameters[attr_count]);
    }
    w->node->attrs = NULL;
    w->node->attr_count = 0;
    ir_value *operands[3] = {sum};
    count = activations[kind].op == IR_OP_Clip && parameter_count == 2 ? 3 : 1;
    for (int i = 1; i < count; i++) operands[i] = fe_ml_scalar(w, "limit", parameters[i - 1]);
    return fe_ml_finish(w, IR_VALUES(fe_add(w->u, w->node, activations[kind].op, operands, count, attrs, attr_count)));
}

static ir_node *made_by(const ir_value *value, ir_opcode op)
{
    ir_node *node = value != NULL ? value->def : NULL;
    return node != NULL && node->op == &ir_ops[op] && value->use_count == 1 ? node : NULL;
}

/* Number of groups if `flat` is x as [N, groups, -1], and x has an extent whose product with another is not affine;
 * otherwise 0. */
static int64_t groups_of_pairs(fe_upgrader *u, const ir_node *flat)
{
    const ir_tensor *shape = flat->inputs[1] != NULL ? flat->inputs[1]->constant : NULL;
    const ir_type *type = fe_type_of_upgraded(u, flat->inputs[0]);
    ir_dim product = ir_dim_number(1);
    if (shape == NULL || shape->data == NULL || shape->count != 3 || type->rank < 4) return 0;
    bool is_affine = true;
    for (int i = 2; i < type->rank; i++) is_affine = is_affine && ir_dim_mul(product, type->dim[i], &product);
    int64_t groups = ir_tensor_integer(shape, 1);
    bool divides = ir_dim_is_number(type->dim[1]) && groups > 0 && type->dim[1].offset % groups == 0;
    return !is_affine && divides && ir_tensor_integer(shape, 2) == -1 ? groups : 0;
}

bool fe_join_group_norm(fe_upgrader *u, ir_node *node)
{
    ir_node *norm = node->input_count > 1 ? made_by(node->inputs[0], IR_OP_InstanceNormalization) : NULL;
    ir_node *flat = norm != NULL && norm->input_count == 3 ? made_by(norm->inputs[0], IR_OP_Reshape) : NULL;
    if (flat == NULL || !ir_value_is_filled(norm->inputs[1], 1, 0) || !ir_value_is_filled(norm->inputs[2], 0, 0))
        return true;
    int64_t groups = groups_of_pairs(u, flat);
    if (groups == 0) return true;
    ir_value *x = flat->inputs[0];
    int64_t channels = x->type.dim[1].offset;
    float *ones = IR_NEW_ARRAY(u->graph->arena, float, channels),
          *zeros = IR_NEW_ARRAY(u->graph->arena, float, channels);
    if (ones == NULL || zeros == NULL) return false;
    for (int64_t c = 0; c < channels; c++) ones[c] = 1;
    ir_value *inputs[] = {x, fe_add_data(u, node, "scale", MDOT_DTYPE_F32, 1, &channels, ones),
                          fe_add_data(u, node, "bias", MDOT_DTYPE_F32, 1, &channels, zeros)};
    const ir_attr attrs[] = {IR_INT("num_groups", groups), IR_FLOAT("epsilon", ir_node_float(norm, "epsilon", 1e-5))};
    ir_value *joined = fe_add(u, node, IR_OP_GroupNormalization, inputs, 3, attrs, 2);
    if (joined == NULL) return false;
    ir_node_set_input(node, 0, joined);
    u->leaves_dead_nodes = true;
    return true;
}
