/* builder.c — creates nodes inside a pass (graph_builder.h), and applies rules to a graph. */
#include "ir/passes/graph_builder.h"

#include <string.h>

static mdot_status rewrite(ir_builder b, ir_rule rule, bool *out_changed)
{
    ir_graph *graph = b.graph;
    bool any = false;
    for (ir_node *node = graph->first; node != NULL;) {
        ir_node *prev = node->prev;
        b.changed = false;
        if (node->op != NULL && ir_node_has_typed_inputs(node) && !ir_node_is_dead(node)) {
            b.at = node;
            b.name = node->name;
            b.dtype = node->outputs[0] != NULL ? node->outputs[0]->type.dtype : MDOT_DTYPE_NONE;
            b.first_new = graph->value_count;
            rule(&b, node);
            if (b.status != MDOT_OK) return b.status;
        }
        any = any || b.changed;
        /* The nodes that the rule made are between prev and node, and are visited next. */
        ir_node *next_node = !b.changed ? node->next : prev != NULL ? prev->next : graph->first;
        if (ir_node_is_dead(node)) {
            if (next_node == node) next_node = node->next;
            ir_graph_remove_node(graph, node);
        }
        node = next_node;
    }
    ir_graph_remove_dead(graph);
    *out_changed = any;
    return MDOT_OK;
}

mdot_status ir_rewrite(ir_graph *graph, ir_rule rule, bool *out_changed, mdot_error *err)
{
    return rewrite((ir_builder){.graph = graph, .err = err}, rule, out_changed);
}

static void apply_by_opcode(ir_builder *b, ir_node *node)
{
    ir_rule rule = b->rules[ir_node_opcode(node)];
    if (rule != NULL) rule(b, node);
    if (b->otherwise != NULL && !b->changed) b->otherwise(b, node);
}

mdot_status ir_rewrite_by_opcode(ir_graph *graph, const ir_rule *rules, ir_rule otherwise, bool *out_changed,
                                 mdot_error *err)
{
    const ir_builder b = {.graph = graph, .rules = rules, .otherwise = otherwise, .err = err};
    return rewrite(b, apply_by_opcode, out_changed);
}

bool ir_replace(ir_builder *b, ir_value *old, ir_value *replacement)
{
    if (b->status != MDOT_OK || old == NULL || replacement == NULL || old == replacement) return false;
    if (old->type.rank < 0 || !ir_type_equal(&old->type, &replacement->type)) return false;
    bool renames = replacement->id >= b->first_new && replacement->def != NULL;
    if (old->output_uses > 0) {
        if (replacement->def == NULL || replacement->output_uses > 0) {
            if (old->def != NULL && old->def->op == &ir_ops[IR_OP_Identity]) return false;
            replacement = ir_build_op1(b, IR_OP_Identity, replacement);
            if (replacement == NULL) return false;
        }
        renames = true;
    }
    if (renames) replacement->name = old->name;
    if (replacement->known == NULL) replacement->known = old->known;
    ir_graph_replace_uses(b->graph, old, replacement);
    b->changed = true;
    return true;
}

static void *out_of_memory(ir_builder *b)
{
    if (b->status == MDOT_OK) b->status = BS_OUT_OF_MEMORY(b->err, "%s", b->graph->name);
    return NULL;
}

void *ir_build_alloc(ir_builder *b, int64_t count, size_t size_bytes)
{
    if (b->status != MDOT_OK) return NULL;
    void *memory = ir_arena_alloc(b->graph->arena, (size_t)count, size_bytes);
    return memory != NULL ? memory : out_of_memory(b);
}

ir_node *ir_build_node(ir_builder *b, ir_opcode op, ir_value *const *inputs, int input_count, int output_count)
{
    if (b->status != MDOT_OK) return NULL;
    ir_node *node = ir_graph_add_node(b->graph, b->at, &ir_ops[op], b->name, inputs, input_count, output_count);
    return node != NULL ? node : out_of_memory(b);
}

void ir_build_set(ir_builder *b, ir_node *node, ir_attr attr)
{
    if (node != NULL && !ir_node_set(b->graph, node, attr)) out_of_memory(b);
}

ir_value *ir_build_infer(ir_builder *b, ir_node *node)
{
    if (b->status != MDOT_OK || node == NULL) return NULL;
    b->status = ir_infer_node(b->graph, node, b->err);
    return b->status == MDOT_OK ? node->outputs[0] : NULL;
}

ir_value *ir_build_with(ir_builder *b, ir_opcode op, ir_value *const *inputs, int input_count, const ir_attr *attrs,
                        int attr_count)
{
    while (input_count > 0 && inputs[input_count - 1] == NULL) input_count--;
    for (int i = 0; i < ir_ops[op].min_inputs; i++)
        if (i >= input_count || inputs[i] == NULL) return NULL;
    ir_node *node = ir_build_node(b, op, inputs, input_count, 1);
    for (int i = 0; i < attr_count; i++) ir_build_set(b, node, attrs[i]);
    return ir_build_infer(b, node);
}

/* Builds a node with one output and no attributes. Every input is required. */
static ir_value *apply(ir_builder *b, ir_opcode op, ir_value *const *inputs, int count)
{
    for (int i = 0; i < count; i++)
        if (inputs[i] == NULL) return NULL;
    return ir_build_infer(b, ir_build_node(b, op, inputs, count, 1));
}

ir_value *ir_build_op1(ir_builder *b, ir_opcode op, ir_value *x) { return apply(b, op, (ir_value *[]){x}, 1); }

ir_value *ir_build_op2(ir_builder *b, ir_opcode op, ir_value *x, ir_value *y)
{
    return apply(b, op, (ir_value *[]){x, y}, 2);
}

ir_value *ir_build_op3(ir_builder *b, ir_opcode op, ir_value *x, ir_value *y, ir_value *z)
{
    return apply(b, op, (ir_value *[]){x, y, z}, 3);
}

ir_value *ir_build_cast(ir_builder *b, ir_value *x, mdot_dtype dtype)
{
    if (x == NULL || x->type.dtype == dtype) return x;
    return ir_build_with(b, IR_OP_Cast, &x, 1, IR_ATTRS(IR_INT("to", dtype))); /* dtypes are numbered as in ONNX */
}

ir_value *ir_build_reduce(ir_builder *b, ir_opcode op, ir_value *x, const int64_t *axes, int axis_count)
{
    ir_value *operand = ir_build_integers(b, axes, axis_count);
    if (operand == NULL) return NULL;
    return ir_build_with(b, op, IR_VALUES(x, operand), IR_ATTRS(IR_INT("keepdims", 1)));
}

ir_value *ir_build_norm(ir_builder *b, ir_opcode op, ir_value *x, ir_value *scale, ir_value *bias, int64_t axis,
                        double epsilon)
{
    return ir_build_with(b, op, IR_VALUES(x, scale, bias),
                         IR_ATTRS(IR_INT("axis", axis), IR_FLOAT("epsilon", epsilon)));
}

ir_value *ir_build_gather(ir_builder *b, ir_value *x, const int64_t *indices, int64_t count, int64_t axis)
{
    ir_value *chosen = ir_build_integers(b, indices, (int)count);
    return ir_build_with(b, IR_OP_Gather, IR_VALUES(x, chosen), IR_ATTRS(IR_INT("axis", axis)));
}

/* Does the transpose keep the order of elements, because it moves only dimensions of extent one? */
static bool keeps_order(const ir_type *type, const int64_t *perm)
{
    int64_t last_index = -1;
    for (int i = 0; i < type->rank; i++) {
        if (ir_dim_is(type->dim[perm[i]], 1)) continue;
        if (perm[i] < last_index) return false;
        last_index = perm[i];
    }
    return true;
}

ir_value *ir_build_transpose(ir_builder *b, ir_value *x, const int64_t *perm)
{
    if (x == NULL) return NULL;
    int rank = x->type.rank;
    int64_t first[MDOT_MAX_RANK], pair[MDOT_MAX_RANK];
    if (x->def != NULL && x->def->op == &ir_ops[IR_OP_Transpose]) {
        ir_node_perm(x->def, rank, first);
        for (int i = 0; i < rank; i++) pair[i] = first[perm[i]];
        return ir_build_transpose(b, x->def->inputs[0], pair);
    }
    if (keeps_order(&x->type, perm)) {
        ir_dim dims[MDOT_MAX_RANK];
        for (int i = 0; i < rank; i++) dims[i] = x->type.dim[perm[i]];
        return ir_build_reshape(b, x, dims, rank);
    }
    return ir_build_with(b, IR_OP_Transpose, &x, 1, IR_ATTRS(IR_INTS("perm", perm, rank)));
}

ir_value *ir_build_concat(ir_builder *b, int64_t axis, ir_value *const *parts, int count)
{
    for (int i = 0; i < count; i++)
        if (parts[i] == NULL) return NULL;
    return ir_build_with(b, IR_OP_Concat, parts, count, IR_ATTRS(IR_INT("axis", axis)));
}

ir_value *ir_build_slice(ir_builder *b, ir_value *x, int64_t axis, int64_t source, int64_t target)
{
    ir_value *inputs[] = {x, ir_build_integers(b, &source, 1), ir_build_integers(b, &target, 1),
                          ir_build_integers(b, &axis, 1)};
    return apply(b, IR_OP_Slice, inputs, 4);
}

bool ir_build_split(ir_builder *b, ir_value *x, int64_t axis, const int64_t *extents, int count, ir_value **out_parts)
{
    ir_value *inputs[] = {x, ir_build_integers(b, extents, count)};
    if (x == NULL || inputs[1] == NULL) return false;
    ir_node *node = ir_build_node(b, IR_OP_Split, inputs, 2, count);
    ir_build_set(b, node, IR_INT("axis", axis));
    if (ir_build_infer(b, node) == NULL) return false;
    for (int i = 0; i < count; i++) out_parts[i] = node->outputs[i];
    return true;
}

ir_value *ir_build_constant(ir_builder *b, mdot_dtype dtype, const int64_t *dims, int rank, const void *data)
{
    ir_tensor *tensor = ir_build_alloc(b, 1, sizeof *tensor);
    if (tensor == NULL || data == NULL) return NULL;
    *tensor = (ir_tensor){.dtype = dtype, .rank = rank, .count = ir_count_elements(rank, dims), .data = data};
    for (int i = 0; i < rank; i++) tensor->dims[i] = dims[i];
    ir_value *value = ir_graph_add_constant(b->graph, b->name, tensor);
    return value != NULL ? value : out_of_memory(b);
}

ir_value *ir_build_filled(ir_builder *b, const int64_t *dims, int rank, double value)
{
    if (b->status != MDOT_OK) return NULL;
    ir_wide *wide = ir_wide_create(b->graph->arena, b->dtype, rank, dims);
    if (wide == NULL) return out_of_memory(b);
    for (int64_t i = 0; i < wide->count; i++) {
        if (wide->f != NULL)
            wide->f[i] = value;
        else
            wide->i[i] = ir_float_to_integer(b->dtype, value);
    }
    ir_tensor *tensor = ir_tensor_from_wide(b->graph->arena, wide);
    return tensor != NULL ? ir_build_constant(b, b->dtype, dims, rank, tensor->data) : out_of_memory(b);
}

ir_value *ir_build_scalar(ir_builder *b, double value) { return ir_build_filled(b, NULL, 0, value); }

static ir_value *integer_constant(ir_builder *b, const int64_t *values, int64_t count, int rank)
{
    int64_t *copy = ir_build_alloc(b, count ? count : 1, sizeof *copy);
    if (copy == NULL) return NULL;
    if (count) memcpy(copy, values, (size_t)count * sizeof *copy);
    return ir_build_constant(b, MDOT_DTYPE_I64, &count, rank, copy);
}

ir_value *ir_build_integer(ir_builder *b, int64_t value) { return integer_constant(b, &value, 1, 0); }

ir_value *ir_build_integers(ir_builder *b, const int64_t *values, int count)
{
    return integer_constant(b, values, count, 1);
}

/* A graph input's dimension with the symbol, as an i64 value of rank 1. */
static ir_value *symbolic_dim(ir_builder *b, ir_dim *out_dim)
{
    for (int i = 0; i < b->graph->input_count; i++) {
        ir_value *input = b->graph->inputs[i];
        for (int axis = 0; axis < input->type.rank; axis++) {
            if (ir_dim_is_number(input->type.dim[axis])) continue;
            *out_dim = input->type.dim[axis];
            return ir_build_with(b, IR_OP_Shape, &input, 1, IR_ATTRS(IR_INT("start", axis), IR_INT("end", axis + 1)));
        }
    }
    if (b->status == MDOT_OK)
        b->status = mdot_fail(b->err, MDOT_UNSUPPORTED,
                              "%s: node %s requires the length, but no input has a dimension of that length",
                              b->graph->name, b->at->name);
    return NULL;
}

static ir_value *affine_of(ir_builder *b, ir_value *value, int64_t scale, int64_t offset)
{
    if (scale != 1) value = ir_build_mul(b, value, ir_build_integers(b, &scale, 1));
    if (offset) value = ir_build_add(b, value, ir_build_integers(b, &offset, 1));
    return value;
}

static ir_value *dim_as_vector(ir_builder *b, ir_dim dim)
{
    if (ir_dim_is_number(dim)) return ir_build_integers(b, &dim.offset, 1);
    ir_dim have = ir_dim_number(0);
    ir_value *value = symbolic_dim(b, &have);
    if (value == NULL || ir_dim_equal(have, dim)) return value;
    if (have.offset) value = ir_build_sub(b, value, ir_build_integers(b, &have.offset, 1));
    if (have.scale != 1) value = ir_build_div(b, value, ir_build_integers(b, &have.scale, 1));
    ir_value *floor = NULL;
    if (dim.times != 0) {
        floor = affine_of(b, value, dim.step, dim.start);
        floor = affine_of(b, ir_build_div(b, floor, ir_build_integers(b, &(int64_t){dim.divisor}, 1)), dim.times, 0);
        if (dim.scale == 0) return affine_of(b, floor, 1, dim.offset);
    }
    value = affine_of(b, value, dim.scale, dim.offset);
    return floor != NULL ? ir_build_add(b, value, floor) : value;
}

ir_value *ir_build_dim(ir_builder *b, ir_dim dim)
{
    if (ir_dim_is_number(dim)) return ir_build_integer(b, dim.offset);
    return ir_build_reshape(b, dim_as_vector(b, dim), NULL, 0);
}

ir_value *ir_build_range(ir_builder *b, ir_dim count)
{
    ir_value *first = ir_build_integer(b, 0), *last_value = ir_build_dim(b, count);
    return ir_build_op3(b, IR_OP_Range, first, last_value, ir_build_integer(b, 1));
}

ir_value *ir_build_dims(ir_builder *b, const ir_dim *dims, int count)
{
    int64_t numbers[2 * MDOT_MAX_RANK];
    ir_value *parts[2 * MDOT_MAX_RANK];
    int symbols = 0;
    for (int i = 0; i < count; i++) {
        numbers[i] = dims[i].offset;
        symbols += !ir_dim_is_number(dims[i]);
    }
    if (!symbols) return ir_build_integers(b, numbers, count);
    for (int i = 0; i < count; i++) parts[i] = dim_as_vector(b, dims[i]);
    return count == 1 ? parts[0] : ir_build_concat(b, 0, parts, count);
}

static bool same_shape(const ir_type *type, const ir_dim *dims, int rank)
{
    if (type->rank != rank) return false;
    for (int i = 0; i < rank; i++)
        if (!ir_dim_equal(type->dim[i], dims[i])) return false;
    return true;
}

/* Writes the shape as numbers. -1 is the one dimension that follows from the others, and 0 a dimension equal to the
 * one at the same place in `source_type`. False: more than one dimension would have to follow, or 0 means an empty
 * dimension. */
static bool shape_as_numbers(const ir_type *source_type, const ir_dim *dims, int rank, int64_t *out)
{
    int symbols = 0, following = 0;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        symbols += !ir_dim_is_number(dims[i]);
        empty = empty || ir_dim_is(dims[i], 0);
    }
    for (int i = 0; i < rank; i++) {
        bool copied = symbols > 1 && i < source_type->rank && ir_dim_equal(source_type->dim[i], dims[i]);
        if (ir_dim_is_number(dims[i])) {
            out[i] = dims[i].offset;
        } else {
            out[i] = copied ? 0 : -1;
            following += !copied;
        }
    }
    return empty ? symbols == 0 : following <= 1;
}

/* Squeezes or unsqueezes the dimensions that are 1 in `dims`. */
static ir_value *move_ones(ir_builder *b, ir_opcode op, ir_value *x, const ir_dim *dims, int rank)
{
    int64_t axes[MDOT_MAX_RANK];
    int count = 0;
    for (int i = 0; i < rank; i++)
        if (ir_dim_is(dims[i], 1)) axes[count++] = i;
    return count ? ir_build_op2(b, op, x, ir_build_integers(b, axes, count)) : x;
}

ir_value *ir_build_reshape(ir_builder *b, ir_value *x, const ir_dim *dims, int rank)
{
    if (x == NULL) return NULL;
    for (ir_value *under = x;; under = under->def->inputs[0]) {
        if (same_shape(&under->type, dims, rank)) return under;
        if (!ir_is_reshaped(under)) break;
    }
    int64_t numbers[MDOT_MAX_RANK] = {0};
    ir_type shape = {.rank = rank};
    for (int i = 0; i < rank; i++) shape.dim[i] = dims[i];
    bool constant = shape_as_numbers(&x->type, dims, rank, numbers);
    if (!constant && ir_only_units_differ(&x->type, &shape)) {
        ir_value *core = move_ones(b, IR_OP_Squeeze, x, x->type.dim, x->type.rank);
        return move_ones(b, IR_OP_Unsqueeze, core, dims, rank);
    }
    ir_value *inputs[] = {x, constant ? ir_build_integers(b, numbers, rank) : ir_build_dims(b, dims, rank)};
    if (inputs[1] == NULL) return NULL;
    ir_node *node = ir_build_node(b, IR_OP_Reshape, inputs, 2, 1);
    for (int i = 0; i < rank; i++)
        if (ir_dim_is(dims[i], 0))
            ir_build_set(b, node, IR_INT("allowzero", 1)); /* then 0 means empty rather than
                                                                               * copied */
    return ir_build_infer(b, node);
}

ir_value *ir_build_unit_axis(ir_builder *b, ir_value *x, int axis)
{
    ir_dim dims[MDOT_MAX_RANK];
    if (x == NULL) return NULL;
    for (int d = 0; d < x->type.rank; d++) dims[d < axis ? d : d + 1] = x->type.dim[d];
    dims[axis] = ir_dim_number(1);
    return ir_build_reshape(b, x, dims, x->type.rank + 1);
}

ir_value *ir_build_expand(ir_builder *b, ir_value *x, const ir_dim *dims, int rank)
{
    if (x == NULL || same_shape(&x->type, dims, rank)) return x;
    ir_dim target[MDOT_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int axis = i - (rank - x->type.rank);
        bool there = axis >= 0 && ir_dim_equal(x->type.dim[axis], dims[i]);
        target[i] = there ? ir_dim_number(1) : dims[i]; /* Expand keeps a dimension where 1 is requested */
    }
    return ir_build_op2(b, IR_OP_Expand, x, ir_build_dims(b, target, rank));
}
