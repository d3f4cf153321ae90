/* joined_axes.c — tensors over pairs of positions whose axes a Reshape joins: [B, C, N, N] as [B, C, N * N].
 *
 * N * N is no dimension, because dimensions have one factor N. The joined form therefore stays a Reshape that only this
 * file reads: a reader computes on the tensor with the axes apart, and joins the axes of the result again. An operator
 * that reduces the joined axis, or a Reshape that parts it, ends the chain. Reshapes without readers are removed
 * (`leaves_dead_nodes`); others are refused by the shape rule of Reshape.
 */
#include "frontend/onnx/rewrites.h"

#include "frontend/onnx/import_context.h"
#include "frontend/onnx/ml_writer.h"
#include "ir/ops/families.h"

#include <string.h>

/* `apart` with axes first … first + count - 1 as one axis. count is 1 for a tensor without joined axes. */
typedef struct joined {
    ir_value *apart;
    int rank, first, count; /* rank: of `apart` */
} joined;

typedef struct pair_writer {
    ml_writer w;
    fe_upgrader *u;
    joined in[MDOT_MAX_RANK]; /* the node's first inputs */
} pair_writer;

/* The content of a Reshape's shape. One unknown element, such as a product of lengths, is -1. */
static bool read_target(fe_upgrader *u, const ir_value *shape, ir_dim *out, int *out_count)
{
    ir_dim part[IR_MAX_KNOWN];
    int unknown = 0, count;
    (void)fe_type_of_upgraded(u, shape);
    if (ir_value_known(shape, out, out_count)) return *out_count <= MDOT_MAX_RANK;
    if (shape->def == NULL || shape->def->op != &ir_ops[IR_OP_Concat]) return false;
    *out_count = 0;
    for (int i = 0; i < shape->def->input_count; i++) {
        bool is_known = ir_value_known(shape->def->inputs[i], part, &count);
        if (!is_known) {
            part[0] = ir_dim_number(-1);
            unknown += count = 1;
        }
        if (*out_count + count > MDOT_MAX_RANK) return false;
        for (int k = 0; k < count; k++) out[(*out_count)++] = part[k];
    }
    return unknown == 1;
}

/* Does target dimension i keep dimension k? 0 copies it. */
static bool keeps(const ir_dim *target, int i, const ir_type *type, int k)
{
    return ir_dim_equal(target[i], type->dim[k]) || (i == k && ir_dim_is(target[i], 0));
}

static bool read_joined(fe_upgrader *u, const ir_value *value, joined *out)
{
    const ir_node *node = value != NULL ? value->def : NULL;
    ir_dim target[IR_MAX_KNOWN], product = ir_dim_number(1);
    int count = 2;
    if (node == NULL || node->op == NULL) return false;
    ir_opcode op = ir_node_opcode(node);
    if (op != IR_OP_Reshape && op != IR_OP_Flatten) return false;
    const ir_type *type = fe_type_of_upgraded(u, node->inputs[0]);
    if (type->rank < 2 || ir_node_int(node, "allowzero", 0) != 0) return false;
    target[0] = type->dim[0]; /* Flatten at axis 1 */
    target[1] = ir_dim_number(-1);
    if (op == IR_OP_Flatten ? ir_node_int(node, "axis", 1) != 1 : !read_target(u, node->inputs[1], target, &count))
        return false;
    int first = 0, last = type->rank; /* the axes that are left to join */
    while (first < count && first < type->rank && keeps(target, first, type, first)) first++;
    for (int i = count - 1; i > first && last > first && keeps(target, i, type, last - 1); i--) last--;
    *out = (joined){node->inputs[0], type->rank, first, last - first};
    bool joins = first < count && out->count >= 2 && type->rank - out->count + 1 == count;
    bool is_dim = joins;
    for (int i = first; i < last && is_dim; i++) is_dim = ir_dim_mul(product, type->dim[i], &product);
    return joins && !is_dim && ir_dim_is(target[first], -1);
}

static ir_value *ints(const pair_writer *p, const int64_t *values, int count)
{
    return fe_add_ints(p->u, p->w.node, "axes", values, count);
}

/* Where axis i of the joined form is in `apart`: its first axis, if it is the joined one. */
static int place(const joined *j, int64_t axis)
{
    if (axis < 0) axis += j->rank - j->count + 1;
    return (int)(axis > j->first ? axis + j->count - 1 : axis);
}

static bool is_joined_axis(const joined *j, int64_t axis) { return place(j, axis) == j->first; }

/* Adds axes of extent 1 behind the axis `first` until there are `count`, or removes them. */
static ir_value *add_ones(const pair_writer *p, ir_opcode op, ir_value *x, int first, int count)
{
    int64_t axes[MDOT_MAX_RANK];
    for (int i = 1; i < count; i++) axes[i - 1] = first + i;
    return count > 1 ? fe_ml_add2(&p->w, op, x, ints(p, axes, count - 1)) : x;
}

/* Joins the axes of a result again: its shape has the dimensions of Shape(x) around -1. */
static mdot_status finish(const pair_writer *p, ir_value *x, int rank, int first, int count)
{
    ir_value *parts[3];
    int part_count = 0;
    const int64_t minus_one = -1;
    const struct {
        int start, end;
    } kept[] = {{0, first}, {first + count, rank}};
    for (int k = 0; k < 2; k++) {
        if (k == 1) parts[part_count++] = ints(p, &minus_one, 1);
        if (kept[k].start == kept[k].end) continue;
        parts[part_count++] = fe_add(p->u, p->w.node, IR_OP_Shape, &x, 1,
                                     IR_ATTRS(IR_INT("start", kept[k].start), IR_INT("end", kept[k].end)));
    }
    ir_value *target = fe_add(p->u, p->w.node, IR_OP_Concat, parts, part_count, IR_ATTRS(IR_INT("axis", 0)));
    if (target == NULL) return fe_out_of_memory(p->u->context);
    ir_node *node = p->w.node; /* itself becomes the Reshape, so that its readers find it */
    node->op = &ir_ops[IR_OP_Reshape];
    node->attr_count = 0;
    if (!ir_node_set_input_count(p->u->graph, node, 0) || !ir_node_set_input_count(p->u->graph, node, 2))
        return fe_out_of_memory(p->u->context);
    ir_node_set_input(node, 0, x);
    ir_node_set_input(node, 1, target);
    return MDOT_OK;
}

static mdot_status finish_like(const pair_writer *p, ir_value *x, const joined *j)
{
    return finish(p, x, j->rank, j->first, j->count);
}

/* The node on other inputs, which may be absent. */
static ir_node *repeat(const pair_writer *p, ir_value *const *inputs, int count)
{
    ir_graph *graph = p->u->graph;
    const ir_node *node = p->w.node;
    for (int i = 0; i < count; i++)
        if (inputs[i] == NULL && (i == 0 || ir_node_input(node, i) != NULL)) return NULL; /* making it failed */
    const char *name = ir_arena_printf(graph->arena, "%s.pairs", node->name);
    ir_node *copy = name != NULL ? ir_graph_add_node(graph, p->w.node, node->op, name, inputs, count, 1) : NULL;
    ir_attr *attrs = IR_NEW_ARRAY(graph->arena, ir_attr, (size_t)node->attr_count + 1);
    if (copy == NULL || attrs == NULL) return NULL;
    if (node->attr_count) memcpy(attrs, node->attrs, (size_t)node->attr_count * sizeof *attrs);
    copy->attrs = attrs;
    copy->attr_count = node->attr_count;
    return copy;
}

static ir_value *on_axis(const pair_writer *p, ir_node *made, int axis)
{
    return made != NULL && ir_node_set(p->u->graph, made, IR_INT("axis", axis)) ? made->outputs[0] : NULL;
}

/* Operands that broadcast to joined ones get axes of extent 1, unless all their axes are behind the joined one. */
static mdot_status write_pointwise(const pair_writer *p)
{
    ir_value *operands[MDOT_MAX_RANK];
    int input_count = p->w.node->input_count, behind = 0, count = 1, rank = 0;
    for (int i = 0; i < input_count; i++) {
        const joined *j = &p->in[i];
        if (j->count > 1) count = j->count;
        if (j->count > 1) behind = j->rank - j->first - j->count;
    }
    for (int i = 0; i < input_count; i++) {
        const joined *j = &p->in[i];
        int axis = j->rank - 1 - behind, joined_rank = j->rank - j->count + 1;
        operands[i] = j->apart;
        rank = joined_rank > rank ? joined_rank : rank;
        if (j->apart == NULL || (j->count == 1 && axis < 0 && j->rank >= 0)) continue;
        if (j->count > 1 && (j->count != count || j->rank - j->first - j->count != behind)) return MDOT_OK;
        if (j->count > 1) continue;
        if (j->rank < 0 || !ir_dim_is(j->apart->type.dim[axis], 1)) return MDOT_OK;
        operands[i] = add_ones(p, IR_OP_Unsqueeze, j->apart, axis, count);
        if (operands[i] == NULL) return fe_out_of_memory(p->u->context);
    }
    if (rank + count - 1 > MDOT_MAX_RANK) return MDOT_OK;
    ir_node *made = repeat(p, operands, input_count);
    return finish(p, made != NULL ? made->outputs[0] : NULL, rank + count - 1, rank - 1 - behind, count);
}

static mdot_status write_softmax(const pair_writer *p)
{
    const joined *j = &p->in[0];
    int64_t axis = ir_node_int(p->w.node, "axis", -1), axes[MDOT_MAX_RANK];
    if (!is_joined_axis(j, axis))
        return finish_like(p, on_axis(p, repeat(p, &(ir_value *){j->apart}, 1), place(j, axis)), j);
    for (int i = 0; i < j->count; i++) axes[i] = j->first + i;
    ir_value *list = ints(p, axes, j->count), *x = j->apart;
    ir_value *shifted = fe_ml_add2(&p->w, IR_OP_Sub, x, fe_ml_add2(&p->w, IR_OP_ReduceMax, x, list));
    ir_value *power = fe_ml_add1(&p->w, IR_OP_Exp, shifted);
    ir_value *sum = fe_ml_add2(&p->w, IR_OP_ReduceSum, power, list);
    if (ir_node_opcode(p->w.node) == IR_OP_Softmax) return finish_like(p, fe_ml_add2(&p->w, IR_OP_Div, power, sum), j);
    return finish_like(p, fe_ml_add2(&p->w, IR_OP_Sub, shifted, fe_ml_add1(&p->w, IR_OP_Log, sum)), j);
}

static mdot_status write_norm(const pair_writer *p)
{
    const joined *j = &p->in[0];
    int64_t axis = ir_node_int(p->w.node, "axis", -1);
    if (place(j, axis) <= j->first || p->w.node->output_count > 1) return MDOT_OK;
    ir_value *inputs[MDOT_MAX_RANK];
    for (int i = 0; i < p->w.node->input_count; i++) inputs[i] = i == 0 ? j->apart : p->w.node->inputs[i];
    return finish_like(p, on_axis(p, repeat(p, inputs, p->w.node->input_count), place(j, axis)), j);
}

/* Axes of the joined form as axes of `apart`, without repetition. Axes may be absent: all. */
static bool read_axes(const pair_writer *p, int64_t *out, int *out_count, bool *out_joined)
{
    const joined *j = &p->in[0];
    int64_t given[IR_MAX_KNOWN];
    int rank = j->rank - j->count + 1, count = 0;
    ir_value *list = ir_node_input(p->w.node, 1);
    if (list != NULL) (void)fe_type_of(p->u, list);
    if (list != NULL && !ir_value_ints(list, given, &count)) return false;
    if (list == NULL || count == 0)
        for (count = 0; count < rank; count++) given[count] = count;
    *out_count = 0;
    *out_joined = false;
    for (int i = 0; i < count; i++) {
        int axis = place(j, given[i]);
        if (given[i] < -rank || given[i] >= rank || *out_count + j->count > MDOT_MAX_RANK) return false;
        bool is_joined = axis == j->first;
        *out_joined = *out_joined || is_joined;
        for (int k = 0; k < (is_joined ? j->count : 1); k++) out[(*out_count)++] = axis + k;
    }
    return true;
}

static mdot_status write_reduction(const pair_writer *p)
{
    const joined *j = &p->in[0];
    int64_t axes[MDOT_MAX_RANK];
    int count, before = 0;
    bool reduces, keeps_axes = ir_node_int(p->w.node, "keepdims", 1) != 0;
    if (!read_axes(p, axes, &count, &reduces) || ir_node_int(p->w.node, "noop_with_empty_axes", 0) != 0) return MDOT_OK;
    ir_node *made = repeat(p, (ir_value *[]){j->apart, ints(p, axes, count)}, 2);
    ir_value *result = made != NULL ? made->outputs[0] : NULL;
    for (int i = 0; i < count; i++) before += axes[i] < j->first;
    if (!reduces && keeps_axes) return finish_like(p, result, j);
    if (!reduces) return finish(p, result, j->rank - count, j->first - before, j->count);
    if (keeps_axes) result = add_ones(p, IR_OP_Squeeze, result, j->first, j->count);
    return fe_ml_finish(&p->w, &result, 1);
}

/* The extreme of the joined axis is in the first (last) row whose own extreme is greatest: row * extent + column. */
static mdot_status write_arg(const pair_writer *p)
{
    const joined *j = &p->in[0];
    ir_node *node = p->w.node;
    int64_t axis = ir_node_int(node, "axis", 0);
    const int64_t last = j->first + 1, columns = last;
    if (!is_joined_axis(j, axis) || j->count != 2) return MDOT_OK;
    bool keeps_axis = ir_node_int(node, "keepdims", 1) != 0;
    ir_opcode reduction = ir_node_opcode(node) == IR_OP_ArgMax ? IR_OP_ReduceMax : IR_OP_ReduceMin;
    ir_value *best = fe_ml_add2(&p->w, reduction, j->apart, ints(p, &last, 1));
    ir_value *extent = fe_ml_add2(&p->w, IR_OP_Gather, fe_ml_add1(&p->w, IR_OP_Shape, j->apart), ints(p, &columns, 1));
    ir_node *row = best != NULL ? repeat(p, &best, 1) : NULL, *column = repeat(p, &(ir_value *){j->apart}, 1);
    for (int k = 0; k < 2; k++) {
        ir_node *made = k == 0 ? row : column;
        if (made == NULL || on_axis(p, made, j->first + k) == NULL ||
            !ir_node_set(p->u->graph, made, IR_INT("keepdims", 1)))
            return fe_out_of_memory(p->u->context);
    }
    ir_value *chosen = fe_add(p->u, node, IR_OP_GatherElements, IR_VALUES(column->outputs[0], row->outputs[0]),
                              IR_ATTRS(IR_INT("axis", j->first)));
    ir_value *result = fe_ml_add2(&p->w, IR_OP_Add, fe_ml_add2(&p->w, IR_OP_Mul, row->outputs[0], extent), chosen);
    const int64_t unwanted[] = {last, j->first};
    result = fe_ml_add2(&p->w, IR_OP_Squeeze, result, ints(p, unwanted, keeps_axis ? 1 : 2));
    return fe_ml_finish(&p->w, &result, 1);
}

static mdot_status write_transpose(const pair_writer *p)
{
    const joined *j = &p->in[0];
    int rank = j->rank - j->count + 1, count = 0, first = 0;
    int64_t perm[MDOT_MAX_RANK], apart[MDOT_MAX_RANK];
    ir_node_perm(p->w.node, rank, perm);
    for (int i = 0; i < rank; i++) {
        bool is_joined = is_joined_axis(j, perm[i]);
        if (is_joined) first = count;
        for (int k = 0; k < (is_joined ? j->count : 1); k++) apart[count++] = place(j, perm[i]) + k;
    }
    ir_value *made =
        fe_add(p->u, p->w.node, IR_OP_Transpose, IR_VALUES(j->apart), IR_ATTRS(IR_INTS("perm", apart, count)));
    return finish(p, made, j->rank, first, j->count);
}

/* Unsqueeze and Squeeze of axes other than the joined one. */
static mdot_status write_ones(const pair_writer *p)
{
    const joined *j = &p->in[0];
    bool adds = ir_node_opcode(p->w.node) == IR_OP_Unsqueeze;
    int64_t axes[IR_MAX_KNOWN];
    int count, first = j->first;
    ir_value *list = ir_node_input(p->w.node, 1);
    if (list != NULL) (void)fe_type_of(p->u, list);
    if (list == NULL || !ir_value_ints(list, axes, &count) || (adds && j->rank + count > MDOT_MAX_RANK)) return MDOT_OK;
    int rank = j->rank - j->count + 1 + (adds ? count : 0); /* of the joined form that the axes count */
    for (int i = 0; i < count; i++) {
        if (axes[i] < 0) axes[i] += rank;
        if (axes[i] < 0 || axes[i] >= rank || (!adds && axes[i] == j->first)) return MDOT_OK;
    }
    for (int axis = 0; axis < rank; axis++) { /* in order, because an added axis moves the joined one */
        bool is_listed = false;
        for (int i = 0; i < count; i++) is_listed = is_listed || axes[i] == axis;
        if (is_listed && axis <= first && adds) first++;
        if (is_listed && axis < j->first && !adds) first--;
    }
    for (int i = 0; i < count; i++) axes[i] += axes[i] > (adds ? first : j->first) ? j->count - 1 : 0;
    ir_value *result = fe_ml_add2(&p->w, ir_node_opcode(p->w.node), j->apart, ints(p, axes, count));
    return finish(p, result, j->rank + (adds ? count : -count), first, j->count);
}

/* [… F, C] by a matrix; or [… M, F] by [… F, K], as a product per row of pairs and the sum of these. */
static mdot_status write_product(const pair_writer *p)
{
    const joined *a = &p->in[0], *b = &p->in[1];
    if (b->count == 1 && b->rank == 2 && a->count > 1 && a->first + a->count < a->rank)
        return finish_like(p, fe_ml_add2(&p->w, IR_OP_MatMul, a->apart, b->apart), a);
    bool is_sum = a->count == 2 && b->count == 2 && a->first == a->rank - 2 && b->first == b->rank - 3 && a->rank >= 3;
    int64_t perm[MDOT_MAX_RANK];
    if (!is_sum) return MDOT_OK;
    for (int i = 0; i < a->rank; i++) perm[i] = i;
    perm[a->rank - 3] = a->rank - 2;
    perm[a->rank - 2] = a->rank - 3;
    const int64_t axis = -3;
    ir_value *rows =
        fe_add(p->u, p->w.node, IR_OP_Transpose, IR_VALUES(a->apart), IR_ATTRS(IR_INTS("perm", perm, a->rank)));
    ir_value *products = fe_ml_add2(&p->w, IR_OP_MatMul, rows, b->apart);
    ir_value *sum = fe_ml_add2(&p->w, IR_OP_ReduceSum, products, ints(p, &axis, 1));
    ir_value *result = fe_ml_add2(&p->w, IR_OP_Squeeze, sum, ints(p, &axis, 1));
    return fe_ml_finish(&p->w, &result, 1);
}

/* Flat[F, C] by a weight, plus a bias of the last axis. */
static mdot_status write_gemm(const pair_writer *p)
{
    const joined *a = &p->in[0];
    const ir_node *node = p->w.node;
    ir_value *bias = ir_node_input(node, 2);
    bool is_plain = ir_node_float(node, "alpha", 1) == 1 && ir_node_float(node, "beta", 1) == 1 &&
                    ir_node_int(node, "transA", 0) == 0 && a->first == 0 && a->count > 1 && p->in[1].rank == 2 &&
                    p->in[1].count == 1 && (bias == NULL || fe_type_of(p->u, bias)->rank == 1);
    if (!is_plain) return MDOT_OK;
    ir_value *weight = p->in[1].apart;
    if (ir_node_int(node, "transB", 0) != 0) weight = fe_ml_add1(&p->w, IR_OP_Transpose, weight);
    ir_value *result = fe_ml_add2(&p->w, IR_OP_MatMul, a->apart, weight);
    if (bias != NULL) result = fe_ml_add2(&p->w, IR_OP_Add, result, bias);
    return finish_like(p, result, a);
}

/* The product of the joined extents is data, because it is no dimension. */
static mdot_status write_shape(const pair_writer *p)
{
    const joined *j = &p->in[0];
    int64_t range[3][MDOT_MAX_RANK];
    int behind = j->rank - j->first - j->count;
    if (p->w.node->attr_count > 0) return MDOT_OK;
    ir_value *shape = fe_ml_add1(&p->w, IR_OP_Shape, j->apart), *parts[3];
    for (int i = 0; i < j->rank; i++)
        if (i < j->first)
            range[0][i] = i;
        else if (i < j->first + j->count)
            range[1][i - j->first] = i;
        else
            range[2][i - j->first - j->count] = i;
    parts[0] = fe_ml_add2(&p->w, IR_OP_Gather, shape, ints(p, range[0], j->first));
    parts[1] =
        fe_ml_reduce(&p->w, IR_OP_ReduceProd, fe_ml_add2(&p->w, IR_OP_Gather, shape, ints(p, range[1], j->count)));
    parts[2] = fe_ml_add2(&p->w, IR_OP_Gather, shape, ints(p, range[2], behind));
    int first = j->first > 0 ? 0 : 1, count = 3 - first - (behind == 0);
    ir_value *result = fe_add(p->u, p->w.node, IR_OP_Concat, parts + first, count, IR_ATTRS(IR_INT("axis", 0)));
    return fe_ml_finish(&p->w, &result, 1);
}

/* A Reshape of a Reshape reads its input. A 0 copies an extent of the joined form. */
static mdot_status write_reshape(const pair_writer *p)
{
    const joined *j = &p->in[0];
    ir_dim target[IR_MAX_KNOWN];
    int count;
    if (!read_target(p->u, p->w.node->inputs[1], target, &count)) return MDOT_OK;
    for (int i = j->first; i < count; i++)
        if (ir_dim_is(target[i], 0)) return MDOT_OK;
    ir_node_set_input(p->w.node, 0, j->apart);
    return MDOT_OK;
}

typedef mdot_status pair_rule(const pair_writer *p);

static pair_rule *rule_of(const ir_node *node)
{
    switch (ir_node_opcode(node)) {
    case IR_OP_Softmax:
    case IR_OP_LogSoftmax: return write_softmax;
    case IR_OP_LayerNormalization:
    case IR_OP_RMSNormalization: return write_norm;
    case IR_OP_ArgMax:
    case IR_OP_ArgMin: return write_arg;
    case IR_OP_Transpose: return write_transpose;
    case IR_OP_Unsqueeze:
    case IR_OP_Squeeze: return write_ones;
    case IR_OP_MatMul: return write_product;
    case IR_OP_Shape: return write_shape;
    case IR_OP_Gemm: return write_gemm;
    case IR_OP_Reshape: return write_reshape;
    case IR_OP_Identity: return write_pointwise;
    case IR_OP_ReduceSum:
    case IR_OP_ReduceMean:
    case IR_OP_ReduceMax:
    case IR_OP_ReduceMin:
    case IR_OP_ReduceProd:
    case IR_OP_ReduceL1:
    case IR_OP_ReduceL2:
    case IR_OP_ReduceLogSum:
    case IR_OP_ReduceLogSumExp:
    case IR_OP_ReduceSumSquare: return write_reduction;
    default: return node->op->lowering == IR_LOWER_POINTWISE ? write_pointwise : NULL;
    }
}

mdot_status fe_keep_pairs_apart(fe_upgrader *u, ir_node *node)
{
    pair_writer p = {.w = {.u = u, .node = node}, .u = u};
    pair_rule *rule = node->op != NULL && node->input_count <= MDOT_MAX_RANK ? rule_of(node) : NULL;
    bool is_joined = false;
    for (int i = 0; i < node->input_count && rule != NULL; i++) {
        bool found = read_joined(u, node->inputs[i], &p.in[i]);
        is_joined = is_joined || found;
        if (!found) p.in[i] = (joined){.apart = node->inputs[i], .rank = -1, .count = 1};
    }
    if (!is_joined || (p.in[0].count == 1 && rule != write_pointwise)) return MDOT_OK;
    for (int i = 0; i < node->input_count; i++)
        if (p.in[i].count == 1 && p.in[i].apart != NULL) p.in[i].rank = fe_type_of(u, p.in[i].apart)->rank;
    mdot_status status = rule(&p);
    u->leaves_dead_nodes = true;
    return status;
}
