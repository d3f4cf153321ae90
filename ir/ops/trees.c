/* trees.c — decision tree ensembles: mdot.Trees, made from ai.onnx.ml's operators by the frontend (mdot_ops.h). */
#include "ir/ops/mdot_ops.h"

#include <math.h>
#include <string.h>

enum { X, NODES, TREES, VALUES };

static const ir_tensor *constant(const ir_operands *args, int input) { return args->node->inputs[input]->constant; }

/* Has the operand content, as a constant of a graph or as a tensor of an evaluation? */
static bool has_content(const ir_operands *args, int input)
{
    if (args->tensors != NULL) return true;
    return constant(args, input) != NULL && constant(args, input)->data != NULL;
}

static int64_t integer(const ir_trees *t, int input, int64_t offset)
{
    return t->from.tensors != NULL ? t->from.tensors[input]->i[offset]
                                   : ir_tensor_integer(constant(&t->from, input), offset);
}

static double threshold(const ir_trees *t, int64_t first)
{
    uint64_t low = (uint32_t)integer(t, NODES, first);
    if (t->dtype == MDOT_DTYPE_F32) {
        uint32_t bits = (uint32_t)low;
        float value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    uint64_t bits = low | (uint64_t)(uint32_t)integer(t, NODES, first + 1) << 32;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

ir_tree_node ir_trees_node(const ir_trees *t, int64_t index)
{
    int64_t first = index * t->words, rest = first + (t->dtype == MDOT_DTYPE_F64 ? 2 : 1);
    return (ir_tree_node){.threshold = threshold(t, first),
                          .feature = integer(t, NODES, rest),
                          .child = integer(t, NODES, rest + 1),
                          .value = integer(t, NODES, rest + 2)};
}

int64_t ir_trees_tree(const ir_trees *t, int64_t tree, int word)
{
    return integer(t, TREES, tree * IR_TREE_WORDS + word);
}

static mdot_status read_attributes(const ir_operands *args, ir_trees *t)
{
    static const char *const names[] = {
        [IR_AGGREGATE_SUM] = "SUM", [IR_AGGREGATE_MIN] = "MIN", [IR_AGGREGATE_MAX] = "MAX"};
    int aggregate = 0;
    t->targets = ir_node_int(args->node, "targets", 1);
    if (t->targets < 1 || t->targets > INT32_MAX)
        return ir_malformed(args, "the number of targets, %lld, must be from 1 to 2^31 - 1", (long long)t->targets);
    BS_TRY(ir_operand_choice(args, "aggregate", names, 3, &aggregate));
    t->aggregate = (ir_aggregate)aggregate;
    return MDOT_OK;
}

static mdot_status read_shapes(const ir_operands *args, ir_trees *t)
{
    ir_type x, nodes, trees, values;
    BS_TRY(ir_operand_need(args, X, "rows of features", 2, &x));
    BS_TRY(ir_operand_need(args, NODES, "nodes", 2, &nodes));
    BS_TRY(ir_operand_need(args, TREES, "trees", 2, &trees));
    BS_TRY(ir_operand_need(args, VALUES, "values", 1, &values));
    t->dtype = x.dtype;
    t->words = ir_tree_node_words(x.dtype);
    t->rows = x.dim[0];
    if (!ir_dim_is_number(x.dim[1]))
        return ir_unsupported(args,
                              "the number of features depends on the length; fix it, for example with --dim NAME=N");
    if (!ir_dim_is(nodes.dim[1], t->words) || !ir_dim_is(trees.dim[1], IR_TREE_WORDS) ||
        !ir_dim_is_number(nodes.dim[0]) || !ir_dim_is_number(trees.dim[0]) || !ir_dim_is_number(values.dim[0]))
        return ir_malformed(args, "the tables of nodes and trees must have %d and %d words", t->words, IR_TREE_WORDS);
    t->features = x.dim[1].offset;
    t->node_count = nodes.dim[0].offset;
    t->tree_count = trees.dim[0].offset;
    t->value_count = values.dim[0].offset;
    for (int i = NODES; i <= VALUES; i++)
        if (!has_content(args, i)) return ir_unsupported(args, "its trees must be constants");
    return MDOT_OK;
}

static mdot_status check_trees(const ir_trees *t, int64_t *out_width)
{
    *out_width = 1;
    for (int64_t k = 0; k < t->tree_count; k++) {
        int64_t root = ir_trees_tree(t, k, IR_TREE_ROOT), target = ir_trees_tree(t, k, IR_TREE_TARGET);
        int64_t depth = ir_trees_tree(t, k, IR_TREE_DEPTH);
        if (root < 0 || root >= t->node_count || depth < 0 || depth > t->node_count || target < -1 ||
            target >= t->targets)
            return ir_fail(t->from.node, t->from.err, MDOT_MALFORMED,
                           "tree %lld is out of range: root %lld, depth %lld, target %lld", (long long)k,
                           (long long)root, (long long)depth, (long long)target);
        if (target < 0) *out_width = t->targets;
    }
    return MDOT_OK;
}

static mdot_status check_nodes(const ir_trees *t, int64_t width)
{
    for (int64_t n = 0; n < t->node_count; n++) {
        ir_tree_node node = ir_trees_node(t, n);
        if (node.feature < 0 || node.feature >= 2 * t->features)
            return ir_fail(t->from.node, t->from.err, MDOT_MALFORMED,
                           "a node reads feature %lld, but the input has %lld features", (long long)(node.feature / 2),
                           (long long)t->features);
        if (node.child < 0 || node.child >= t->node_count - 1 || node.value < 0 || node.value > t->value_count - width)
            return ir_fail(t->from.node, t->from.err, MDOT_MALFORMED,
                           "node %lld is out of range: child %lld, value %lld", (long long)n, (long long)node.child,
                           (long long)node.value);
    }
    return MDOT_OK;
}

mdot_status ir_read_trees(const ir_operands *args, ir_trees *out)
{
    int64_t width;
    *out = (ir_trees){.from = *args};
    BS_TRY(read_attributes(args, out));
    BS_TRY(read_shapes(args, out));
    BS_TRY(check_trees(out, &width));
    return check_nodes(out, width);
}

mdot_status ir_result_trees(const ir_operands *args, ir_type *out_type)
{
    ir_trees trees;
    BS_TRY(ir_read_trees(args, &trees));
    *out_type = (ir_type){trees.dtype, 2, {trees.rows, ir_dim_number(trees.targets)}};
    return MDOT_OK;
}

static double combine(ir_aggregate aggregate, double before, double value)
{
    switch (aggregate) {
    case IR_AGGREGATE_MIN: return value < before ? value : before;
    case IR_AGGREGATE_MAX: return value > before ? value : before;
    default: return before + value;
    }
}

static double neutral(ir_aggregate aggregate)
{
    if (aggregate == IR_AGGREGATE_SUM) return 0;
    return aggregate == IR_AGGREGATE_MIN ? INFINITY : -INFINITY;
}

/* Position in `values` of the leaf reached by a row of x. Compares in T. */
static int64_t walk(const ir_trees *t, int64_t tree, const double *x)
{
    ir_tree_node node = ir_trees_node(t, ir_trees_tree(t, tree, IR_TREE_ROOT));
    for (int64_t step = ir_trees_tree(t, tree, IR_TREE_DEPTH); step > 0; step--) {
        double value = node.feature % 2 == 0 ? x[node.feature / 2] : -x[node.feature / 2];
        if (t->dtype == MDOT_DTYPE_F32) value = (float)value;
        node = ir_trees_node(t, node.child + (value <= node.threshold ? 0 : 1));
    }
    return node.value;
}

mdot_status ir_eval_trees(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    ir_trees t;
    BS_TRY(ir_read_trees(&args, &t));
    const double *values = input[VALUES]->f;
    for (int64_t r = 0; r < t.rows.offset; r++) {
        double *to = &out[0]->f[r * t.targets];
        for (int64_t k = 0; k < t.targets; k++) to[k] = neutral(t.aggregate);
        for (int64_t tree = 0; tree < t.tree_count; tree++) {
            const double *value = &values[walk(&t, tree, &input[X]->f[r * t.features])];
            int64_t target = ir_trees_tree(&t, tree, IR_TREE_TARGET);
            int64_t first = target < 0 ? 0 : target, count = target < 0 ? t.targets : 1;
            for (int64_t k = 0; k < count; k++) to[first + k] = combine(t.aggregate, to[first + k], value[k]);
        }
    }
    return MDOT_OK;
}

/* One FLOP per comparison and per addition of a leaf. */
void ir_cost_trees(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    const ir_tensor *trees = node->inputs[TREES]->constant;
    const ir_type *result = &node->outputs[0]->type;
    double steps = 0;
    for (int64_t k = 0; trees != NULL && trees->data != NULL && k < trees->dims[0]; k++)
        steps += 1 + (double)ir_tensor_integer(trees, k * IR_TREE_WORDS + IR_TREE_DEPTH);
    out_cost->flops = steps * (double)ir_dim_at(result->dim[0], length);
    out_cost->parameters = 0;
}
