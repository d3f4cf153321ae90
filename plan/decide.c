/* decide.c — decides whether a value gets an address or is computed by its readers.
 *
 * The walk is in topological order, so the states of a value's operands are known. The first choice is a strided view,
 * which costs nothing. The second is inlining, if readers can take an expression and recomputing costs less than
 * storing and loading. Otherwise the value gets a buffer. */
#include "plan/emitters.h"

#include "plan/expr.h"
#include "plan/plan_builder.h"

/* A buffer costs one store, and one load per read. Each costs at least as much as a few operations on registers. */
static const double store_cost = 2, load_cost = 2;

/* Does the reader need memory of a given form rather than an expression? */
static bool needs_place(const pl_use *use)
{
    if (ir_node_opcode(use->node) == IR_OP_Windows) return true; /* reads the elements many times */
    switch (use->node->op->lowering) {
    case IR_LOWER_LINEAR: return use->operand == 0 && pl_is_linear(use->node);
    case IR_LOWER_ATTENTION:
    case IR_LOWER_SEQUENTIAL:
    case IR_LOWER_TREES: return true;
    case IR_LOWER_ALIAS: return !ir_only_units_differ(&use->node->inputs[0]->type, &use->node->outputs[0]->type);
    default: return false;
    }
}

static bool attention_accepts(const pl_use *use, const pl_placement *placement)
{
    pl_heads heads;
    return use->operand < 3 ? pl_heads_view(use->node, use->operand, placement, &heads)
                            : pl_mask_view(&use->node->inputs[use->operand]->type, placement, &heads);
}

static bool is_of_windows(const ir_value *v)
{
    while (v->def != NULL && ir_node_opcode(v->def) != IR_OP_Windows) {
        ir_opcode op = ir_node_opcode(v->def);
        if (op != IR_OP_Transpose && op != IR_OP_Slice && op != IR_OP_Reshape) return false;
        v = v->def->inputs[0];
    }
    return v->def != NULL;
}

/* A value's placement as windows, if all readers are linears, which take windows as rows. Other reshapes are copied,
 * because a window-reading linear computes one item's rows at a time. */
static bool find_windows(pl_builder *b, const ir_node *node, const pl_placement *source, pl_placement *out)
{
    if (ir_node_opcode(node) != IR_OP_Reshape || !is_of_windows(node->inputs[0])) return false;
    const pl_value *info = pl_info(b, node->outputs[0]);
    for (int u = 0; u < info->use_count; u++) {
        const pl_use *use = &info->uses[u];
        bool is_linear = use->node->op->lowering == IR_LOWER_LINEAR && use->operand == 0 && pl_is_linear(use->node);
        if (!is_linear) return false;
    }
    return info->output < 0 && info->use_count > 0 && pl_window_view(b, node, source, out);
}

/* Do windows read elements several times that are scattered, because the last dimension has a stride? */
static bool scatters(const ir_node *windows, const ir_type *type, const pl_placement *placement)
{
    int d = type->rank - 1;
    while (d >= 0 && pl_is_unit(type->dim[d])) d--;
    bool overlap = ir_node_int(windows, "size", 1) > ir_node_int(windows, "stride", 1);
    return overlap && d >= 0 && !ir_dim_is(placement->stride[d], 1);
}

/* Can a reader use this strided view? If a reshape cannot, one copy here is cheaper than a copy there that computes
 * quotients. One copy is also cheaper than scattered reads of each window. */
static bool accepts_view(pl_builder *b, const pl_use *use, const ir_value *v, const pl_placement *placement)
{
    pl_matrix matrix;
    if (!needs_place(use)) return true;
    if (use->node->op->lowering == IR_LOWER_SEQUENTIAL ||
        use->node->op->lowering == IR_LOWER_TREES) /* takes its operands' shapes from the buffers */
        return placement->dense && ir_type_equal(&b->plan->buffers[placement->buffer].type, &v->type);
    if (placement->dense) return true;
    if (ir_node_opcode(use->node) == IR_OP_Windows && scatters(use->node, &v->type, placement)) return false;
    switch (use->node->op->lowering) {
    case IR_LOWER_LINEAR: return pl_matrix_view(placement, &v->type, 1, &matrix);
    case IR_LOWER_ATTENTION: return attention_accepts(use, placement);
    case IR_LOWER_ALIAS:
    case IR_LOWER_MOVE:
        return pl_view_from(b, use->node, 0, placement, &(pl_placement){0}) ||
               find_windows(b, use->node, placement, &(pl_placement){0});
    default: return false;
    }
}

/* The number of times that this use reads an element, if the reader's result is computed once. */
static double reads_per_element(const pl_builder *b, const pl_use *use, double elements)
{
    const ir_node *node = use->node;
    switch (ir_node_opcode(node)) {
    case IR_OP_MatMul:
    case IR_OP_Einsum:
    case IR_OP_Linear: return ir_node_cost(node, b->plan->max_length).flops / 2 / elements;
    case IR_OP_Concat: return 1;
    case IR_OP_ReduceLogSumExp: return 2;
    default: break;
    }
    if (node->op->lowering == IR_LOWER_REDUCE || node->op->lowering == IR_LOWER_LOOP) return 1;
    if (node->op->lowering == IR_LOWER_NORM && use->operand == 0) return pl_is_norm(node) ? 1 : 3; /* norm_nests.c */
    double results = 0;
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NULL) results += pl_elements(b, node->outputs[k]);
    return results / elements;
}

static double total_reads(const pl_builder *b, const ir_value *v)
{
    const pl_value *info = pl_info(b, v);
    double elements = pl_elements(b, v), reads = 0;
    if (elements < 1) elements = 1;
    for (int k = 0; k < info->use_count; k++)
        reads += reads_per_element(b, &info->uses[k], elements) * pl_reads_by_steps(b, info->uses[k].node, info->loop);
    return reads;
}

static int depth_of(const pl_builder *b, const ir_value *v)
{
    int depth = 0;
    for (int k = 0; k < v->def->input_count; k++) {
        const pl_value *info = v->def->inputs[k] != NULL ? pl_info(b, v->def->inputs[k]) : NULL;
        if (info != NULL && info->state == PL_INLINED && info->depth > depth) depth = info->depth;
    }
    return depth + 1;
}

/* Concatenation is faster when written part by part than when selected element by element. */
static bool can_inline(const pl_builder *b, const ir_value *v)
{
    const pl_value *info = pl_info(b, v);
    if (ir_node_opcode(v->def) == IR_OP_Concat && v->known == NULL) return false;
    if (depth_of(b, v) > PL_MAX_DEPTH) return false;
    for (int k = 0; k < info->use_count; k++)
        if (needs_place(&info->uses[k])) return false;
    if (v->def->op->lowering != IR_LOWER_ALIAS) return true;
    return ir_only_units_differ(&v->def->inputs[0]->type, &v->type);
}

/* False also if the expression cannot be built; emitting it then reports the reason. */
static bool is_cheap(pl_builder *b, const ir_value *v)
{
    const pl_expr *index[MDOT_MAX_RANK];
    pl_begin_kernel(b, NULL);
    for (int d = 0; d < v->type.rank; d++) index[d] = pl_index(b->arena, d);
    const pl_expr *expr = pl_define(b, v, index);
    if (expr == NULL) return false;
    int budget = PL_MAX_TREE;
    double cost = pl_expr_cost(expr, &budget), reads = total_reads(b, v);
    if (budget < 0) return false;
    if (pl_info(b, v)->ends_step) return true; /* one nest computes it for all readers (loop.c) */
    return reads <= 1 || cost * (reads - 1) <= store_cost + load_cost * reads;
}

/* Places output `k` as windows over a placed input. */
static bool place_as_windows(pl_builder *b, const ir_node *node, pl_placement *out)
{
    const pl_value *source = node->input_count ? pl_info(b, node->inputs[0]) : NULL;
    return source != NULL && source->state == PL_PLACED && find_windows(b, node, &source->placement, out);
}

/* Does a view serve all readers? For a graph output: is the view that output already? */
static bool can_stay(pl_builder *b, const ir_value *v, const pl_placement *placement)
{
    const pl_value *info = pl_info(b, v);
    if (info->output >= 0) return placement->dense && placement->buffer == b->graph->input_count + info->output;
    for (int u = 0; u < info->use_count; u++)
        if (!accepts_view(b, &info->uses[u], v, placement)) return false;
    return true;
}

mdot_status pl_decide(pl_builder *b, const ir_node *node, int k)
{
    const ir_value *v = node->outputs[k];
    pl_value *info = pl_info(b, v);
    pl_placement placement;
    bool is_output = info->output >= 0;
    if (info->use_count == 0 && !is_output) return MDOT_OK;
    if ((pl_view(b, node, k, &placement) && can_stay(b, v, &placement)) || place_as_windows(b, node, &placement)) {
        info->placement = placement;
        info->state = PL_PLACED;
        return MDOT_OK;
    }
    if (!is_output && can_inline(b, v) && (v->known != NULL || is_cheap(b, v))) {
        info->state = PL_INLINED;
        info->depth = depth_of(b, v);
        return MDOT_OK;
    }
    return b->status != MDOT_OK ? b->status : pl_emit_value(b, v);
}
