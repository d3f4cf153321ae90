/* dft.c — rewrites DFT (ONNX opsets 17 and 20) as products with matrices of cosines and sines.
 *
 * Frequency k of n elements x is the sum over j of x[j] · e^(-2πi jk / n). With x = a + ib, its real part is a · cos +
 * b · sin and its imaginary part is b · cos - a · sin. A product takes n² steps where a fast transform takes n log n,
 * but it runs in the linear kernel, and n is at most a few thousand in predictors. Over a fixed dimension the matrices
 * are constants. Over the length they are computed at run time: jk is reduced modulo n as an integer, so every angle is
 * within one turn. */
#include "frontend/onnx/rewrites.h"

#include <math.h>
#include <string.h>

enum { LONGEST = 1 << 14 }; /* fixed extent: two matrices of 1 GiB each */

static const double two_pi = 6.283185307179586477;

typedef struct transform {
    fe_upgrader *u;
    ir_node *node;
    mdot_dtype dtype;
    int rank, axis;
    bool is_complex, inverse, onesided;
    ir_dim in;      /* elements of the input along the axis */
    int64_t length; /* transform length; 0: the input's, which depends on the length */
} transform;

static ir_value *add(const transform *t, ir_opcode op, ir_value *a, ir_value *b)
{
    return fe_add(t->u, t->node, op, IR_VALUES(a, b), IR_NO_ATTRS);
}

static ir_value *add1(const transform *t, ir_opcode op, ir_value *x)
{
    return fe_add(t->u, t->node, op, &x, 1, IR_NO_ATTRS);
}

static ir_value *cast(const transform *t, ir_value *x, mdot_dtype dtype)
{
    return fe_add(t->u, t->node, IR_OP_Cast, &x, 1, IR_ATTRS(IR_INT("to", dtype)));
}

static ir_value *integer(const transform *t, int64_t value)
{
    return fe_add_scalar(t->u, t->node, "integer", MDOT_DTYPE_I64, (double)value);
}

static bool read_integer(const ir_node *node, int input, int64_t fallback, int64_t *out)
{
    const ir_value *value = ir_node_input(node, input);
    *out = fallback;
    return value == NULL || ir_value_int(value, out);
}

/* NULL: the node can be rewritten. */
static const char *fault_of(transform *t, int64_t opset)
{
    ir_node *node = t->node;
    ir_value *x = ir_node_input(node, 0);
    int64_t axis = ir_node_int(node, "axis", 1), length;
    if (x == NULL) return "it lacks its input";
    if (opset >= 20 && !read_integer(node, 2, -2, &axis)) return "the axis depends on data";
    const ir_type *type = fe_type_of(t->u, x);
    t->dtype = type->dtype;
    t->rank = type->rank;
    if (type->rank < 0) return "the shape of its input is unknown here";
    if (type->rank < 2 || type->rank == MDOT_MAX_RANK || !ir_dtype_is_float(type->dtype))
        return "the input must be floats of two to seven dimensions";
    ir_dim parts = type->dim[type->rank - 1];
    if (axis < 0) axis += type->rank;
    if (axis < 0 || axis >= type->rank - 1)
        return "the axis is outside the input, or is that of real and imaginary part";
    if (!ir_dim_is(parts, 1) && !ir_dim_is(parts, 2))
        return "the last dimension must be 1 for real and 2 for complex numbers";
    t->axis = (int)axis;
    t->is_complex = ir_dim_is(parts, 2);
    t->inverse = ir_node_int(node, "inverse", 0) != 0;
    t->onesided = ir_node_int(node, "onesided", 0) != 0;
    t->in = type->dim[axis];
    if (t->onesided && t->inverse) return "an inverse transform of one side is unsupported; use both sides";
    if (!read_integer(node, 1, ir_dim_is_number(t->in) ? t->in.offset : 0, &length) || length < 0)
        return "dft_length depends on data; make it a constant, or leave it out";
    if (length > LONGEST || (ir_dim_is_number(t->in) && t->in.offset > LONGEST))
        return "a fixed dimension may have at most 16384 elements";
    t->length = length;
    if (ir_dim_is_number(t->in) && (t->in.offset == 0 || length == 0)) return "a transform of no elements";
    if (!ir_dim_is_number(t->in) && (length != 0 || t->onesided))
        return "over a dimension that depends on the length, dft_length and onesided are unsupported; take both sides, "
               "or bind the dimension with --dim";
    return NULL;
}

/* Cosines or sines of the products of two indices: [elements, frequencies], divided by n if the transform is inverse.
 * Elements beyond the transform's length are left out, so their rows are zero. */
static ir_value *constant_matrix(const transform *t, bool sines)
{
    int64_t n = t->length, dims[] = {t->in.offset, t->onesided ? n / 2 + 1 : n};
    ir_wide *wide = ir_wide_create(t->u->context->scratch, t->dtype, 2, dims);
    if (wide == NULL) return NULL;
    for (int64_t j = 0; j < dims[0] && j < n; j++) {
        for (int64_t k = 0; k < dims[1]; k++) {
            double angle = two_pi * (double)(j * k % n) / (double)n, scale = t->inverse ? 1 / (double)n : 1;
            wide->f[j * dims[1] + k] = scale * (sines ? sin(angle) : cos(angle));
        }
    }
    return fe_add_constant(t->u, t->node, sines ? "sines" : "cosines", ir_tensor_from_wide(t->u->graph->arena, wide));
}

/* The same for a run-time length: cos or sin(2π (jk mod n) / n). */
static bool computed_matrices(const transform *t, ir_value **out_cosines, ir_value **out_sines)
{
    int64_t one = 1;
    bool is_half = t->dtype == MDOT_DTYPE_F16 || t->dtype == MDOT_DTYPE_BF16; /* too coarse for indices */
    mdot_dtype dtype = is_half ? MDOT_DTYPE_F32 : t->dtype;
    ir_value *x = t->node->inputs[0], *axes = fe_add_ints(t->u, t->node, "axes", &one, 1);
    ir_value *n = add(t, IR_OP_Gather, add1(t, IR_OP_Shape, x), integer(t, t->axis));
    ir_value *row = fe_add(t->u, t->node, IR_OP_Range, IR_VALUES(integer(t, 0), n, integer(t, 1)), IR_NO_ATTRS);
    ir_value *column = add(t, IR_OP_Unsqueeze, row, axes);
    ir_value *turns = add(t, IR_OP_Mod, add(t, IR_OP_Mul, column, row), n);
    ir_value *real_turns = cast(t, turns, dtype), *real_n = cast(t, n, dtype);
    ir_value *angles =
        add(t, IR_OP_Mul, add(t, IR_OP_Div, real_turns, real_n), fe_add_scalar(t->u, t->node, "turn", dtype, two_pi));
    ir_value *cosines = add1(t, IR_OP_Cos, angles), *sines = add1(t, IR_OP_Sin, angles);
    if (t->inverse) {
        cosines = add(t, IR_OP_Div, cosines, real_n);
        sines = add(t, IR_OP_Div, sines, real_n);
    }
    if (is_half) {
        cosines = cast(t, cosines, t->dtype);
        sines = cast(t, sines, t->dtype);
    }
    *out_cosines = cosines;
    *out_sines = sines;
    return *out_cosines != NULL && *out_sines != NULL;
}

/* One part of x: 0 real, 1 imaginary, along the last dimension but one. */
static ir_value *part(const transform *t, ir_value *x, int64_t choice)
{
    int64_t end = choice + 1, axis = -2;
    ir_value *inputs[] = {x, fe_add_ints(t->u, t->node, "from", &choice, 1), fe_add_ints(t->u, t->node, "to", &end, 1),
                          fe_add_ints(t->u, t->node, "axis", &axis, 1)};
    return fe_add(t->u, t->node, IR_OP_Slice, inputs, 4, IR_NO_ATTRS);
}

/* x, with the transformed axis last, as the real and the imaginary part of the result. */
static bool transformed(const transform *t, ir_value *x, ir_value *cosines, ir_value *sines, ir_value **out_parts)
{
    if (!t->is_complex) {
        out_parts[0] = add(t, IR_OP_MatMul, x, cosines);
        out_parts[1] = add(t, IR_OP_MatMul, x, sines);
        if (!t->inverse) out_parts[1] = add1(t, IR_OP_Neg, out_parts[1]);
        return out_parts[0] != NULL && out_parts[1] != NULL;
    }
    ir_value *a = part(t, x, 0), *b = part(t, x, 1);
    ir_value *a_cos = add(t, IR_OP_MatMul, a, cosines), *b_sin = add(t, IR_OP_MatMul, b, sines);
    ir_value *b_cos = add(t, IR_OP_MatMul, b, cosines), *a_sin = add(t, IR_OP_MatMul, a, sines);
    out_parts[0] = add(t, t->inverse ? IR_OP_Sub : IR_OP_Add, a_cos, b_sin);
    out_parts[1] = add(t, t->inverse ? IR_OP_Add : IR_OP_Sub, b_cos, a_sin);
    return out_parts[0] != NULL && out_parts[1] != NULL;
}

bool fe_write_dft(fe_upgrader *u, ir_node *node, int64_t opset)
{
    transform t = {.u = u, .node = node};
    if (strcmp(node->op_type, "DFT") != 0) return true;
    const char *fault = fault_of(&t, opset);
    if (fault != NULL) return fe_give_up(u, node, fault);
    int64_t last_index[MDOT_MAX_RANK], back[MDOT_MAX_RANK];
    for (int d = 0; d < t.rank; d++) {
        last_index[d] = d < t.axis ? d : d + 1;
        back[d] = d < t.axis ? d : d - 1;
    }
    last_index[t.rank - 1] = t.axis;
    back[t.axis] = t.rank - 1;
    ir_value *parts[2], *cosines, *sines;
    if (ir_dim_is_number(t.in)) {
        cosines = constant_matrix(&t, false);
        sines = constant_matrix(&t, true);
    } else if (!computed_matrices(&t, &cosines, &sines)) {
        return false;
    }
    ir_value *x = fe_add(u, node, IR_OP_Transpose, node->inputs, 1, IR_ATTRS(IR_INTS("perm", last_index, t.rank)));
    if (!transformed(&t, x, cosines, sines, parts)) return false;
    ir_value *pair = fe_add(u, node, IR_OP_Concat, parts, 2, IR_ATTRS(IR_INT("axis", t.rank - 2)));
    node->op = &ir_ops[IR_OP_Transpose];
    node->attr_count = 0;
    if (pair == NULL || !ir_node_set_input_count(u->graph, node, 1)) return false;
    ir_node_set_input(node, 0, pair);
    return ir_node_set(u->graph, node, IR_INTS("perm", back, t.rank));
}
