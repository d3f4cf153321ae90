/* build.c — converts a graph into a plan after all passes; the whole of planning is in one function.
 *
 * Chains are claimed first, because they decide which values are never stored. Then one walk in topological order
 * decides for every other value whether it is a view, inlined or stored (decide.c). It emits each kernel at the tail of
 * the chain. */
#include "plan/planner.h"

#include "ir/ops.h"
#include "plan/emitters.h"
#include "plan/expr.h"
#include "plan/kernel_kind.h"
#include "plan/plan_builder.h"

static bool add_inputs_and_outputs(pl_builder *b)
{
    const ir_graph *graph = b->graph;
    for (int k = 0; k < graph->input_count; k++) {
        const ir_value *v = graph->inputs[k];
        int buffer = pl_add_buffer(b, PL_INPUT, v->name, &v->type);
        if (buffer < 0) return false;
        b->plan->buffers[buffer].index = k;
        pl_info(b, v)->placement = (pl_placement){.buffer = buffer, .dense = true};
        pl_info(b, v)->state = PL_PLACED;
    }
    for (int k = 0; k < graph->output_count; k++) {
        const ir_value *v = graph->outputs[k];
        int buffer = pl_add_buffer(b, PL_OUTPUT, v->name, &v->type);
        if (buffer < 0) return false;
        b->plan->buffers[buffer].index = k;
        if (pl_info(b, v)->output < 0) pl_info(b, v)->output = k;
    }
    return true;
}

static bool collect_uses(pl_builder *b)
{
    for (int k = 0; k < b->graph->value_count; k++) b->values[k].output = -1;
    for (int order = 0; order < b->node_count; order++) {
        const ir_node *node = b->nodes[order];
        for (int k = 0; k < node->input_count; k++)
            if (node->inputs[k] != NULL) pl_info(b, node->inputs[k])->use_count++;
        for (int k = 0; k < node->output_count; k++)
            if (node->outputs[k] != NULL) pl_info(b, node->outputs[k])->order = order;
    }
    for (const ir_node *node = b->graph->first; node != NULL; node = node->next) {
        for (int k = 0; k < node->input_count; k++) {
            pl_value *info = node->inputs[k] != NULL ? pl_info(b, node->inputs[k]) : NULL;
            if (info == NULL) continue;
            if (info->uses == NULL) {
                info->uses = IR_NEW_ARRAY(b->arena, pl_use, info->use_count);
                if (info->uses == NULL) return false;
                info->use_count = 0;
            }
            info->uses[info->use_count++] = (pl_use){node, k};
        }
    }
    return true;
}

/* The step's number is the loop's only result without an address. */
static const pl_expr *define_loop_index(pl_builder *b, const ir_node *node, int output, const pl_expr *const *index)
{
    return pl_step(b->arena);
}

/* Operators with an expression for every element of the results. */
static const pl_define_fn definitions[IR_LOWER_COUNT] = {
    [IR_LOWER_POINTWISE] = pl_define_pointwise,
    [IR_LOWER_MOVE] = pl_define_move,
    [IR_LOWER_ALIAS] = pl_define_alias,
    [IR_LOWER_LOOP] = define_loop_index,
};

static mdot_status start(pl_builder *b)
{
    const ir_graph *graph = b->graph;
    b->plan = IR_NEW(b->arena, pl_plan);
    b->values = IR_NEW_ARRAY(b->arena, pl_value, graph->value_count + 1);
    b->zero = pl_int(b, 0);
    b->definitions = definitions;
    if (b->plan == NULL || b->values == NULL || b->zero == NULL) return pl_fault(b);
    b->plan->arena = b->arena;
    b->plan->graph = graph;
    b->plan->max_length = graph->symbol != NULL ? graph->max_length : 0;
    b->nodes = ir_loop_order(graph, b->arena, &b->node_count);
    bool is_ready = b->nodes != NULL && collect_uses(b) && add_inputs_and_outputs(b) && pl_find_loops(b);
    return is_ready ? MDOT_OK : pl_fault(b);
}

static pl_emit_fn *const emitters[IR_LOWER_COUNT] = {
    [IR_LOWER_REDUCE] = pl_emit_reduction,      [IR_LOWER_LINEAR] = pl_emit_linear,
    [IR_LOWER_ATTENTION] = pl_emit_attention,   [IR_LOWER_NORM] = pl_emit_norm,
    [IR_LOWER_SEQUENTIAL] = pl_emit_sequential, [IR_LOWER_RECURRENCE] = pl_emit_recurrence,
    [IR_LOWER_TREES] = pl_emit_trees,
};

/* Most kernels of a fixed form compute only the first output. Passes rewrite nodes whose other outputs are read. */
static bool only_first_is_read(const pl_builder *b, const ir_node *node)
{
    for (int k = 1; k < node->output_count; k++) {
        const pl_value *info = node->outputs[k] != NULL ? pl_info(b, node->outputs[k]) : NULL;
        if (info != NULL && (info->use_count > 0 || info->output >= 0)) return false;
    }
    return true;
}

static mdot_status emit_node(pl_builder *b, const ir_node *node)
{
    pl_emit_fn *emit = emitters[node->op->lowering];
    bool makes_all = node->op->lowering == IR_LOWER_SEQUENTIAL || node->op->lowering == IR_LOWER_RECURRENCE;
    if (emit == NULL)
        pl_reject(b, node, "has no kernel");
    else if (!makes_all && !only_first_is_read(b, node))
        pl_reject(b, node, "only its first output may be used");
    return b->status != MDOT_OK ? b->status : emit(b, node);
}

/* Does the operator have an expression for every element? Every operator does if the results follow from the length. */
static bool has_expressions(const ir_node *node)
{
    if (definitions[node->op->lowering] != NULL) return true;
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NULL && node->outputs[k]->known == NULL) return false;
    return true;
}

static mdot_status plan_node(pl_builder *b, const ir_node *node)
{
    const ir_value *first = node->output_count > 0 ? node->outputs[0] : NULL;
    const ir_value *root = first != NULL ? pl_info(b, first)->root : NULL;
    if (root != NULL) return pl_info(b, root)->tail == first ? emit_node(b, root->def) : MDOT_OK;
    if (ir_is_loop_begin(node)) return pl_begin_loop(b, node);
    if (ir_is_loop_end(node)) return pl_end_loop(b, node);
    if (!has_expressions(node)) return emit_node(b, node);
    for (int k = 0; k < node->output_count; k++) BS_TRY(node->outputs[k] != NULL ? pl_decide(b, node, k) : MDOT_OK);
    return MDOT_OK;
}

/* Copies outputs that are inputs, constants, views, or the same value as another output. */
static mdot_status copy_outputs(pl_builder *b)
{
    for (int k = 0; k < b->graph->output_count; k++) {
        const ir_value *v = b->graph->outputs[k];
        const pl_value *info = pl_info(b, v);
        if (info->state == PL_PLACED && info->placement.dense && info->placement.buffer == b->graph->input_count + k)
            continue;
        BS_TRY(pl_emit_copy(b, v, k));
    }
    return MDOT_OK;
}

typedef struct life {
    pl_plan *plan;
    int kernel;
} life;

static void extend_live_range(void *user, int buffer, bool is_written)
{
    const life *l = user;
    pl_buffer *b = &l->plan->buffers[buffer];
    if (b->first_use < 0) b->first_use = l->kernel;
    b->last_use = l->kernel;
}

mdot_status pl_build(const ir_graph *graph, ir_arena *arena, pl_plan **out_plan, mdot_error *err)
{
    pl_builder b = {.graph = graph, .arena = arena, .names.arena = arena, .err = err};
    for (int use = 0; use < PL_WEIGHT_USE_COUNT; use++) b.constants[use].arena = arena;
    BS_TRY(start(&b));
    pl_claim_chains(&b);
    for (int i = 0; i < b.node_count; i++) BS_TRY(plan_node(&b, b.nodes[i]));
    BS_TRY(copy_outputs(&b));
    for (int k = 0; k < b.plan->kernel_count; k++)
        pl_kernel_visit_buffers(&b.plan->kernels[k], extend_live_range, &(life){b.plan, k});
    if (!pl_limit_rows(b.plan)) return pl_fault(&b);
    pl_decide_precision(b.plan);
    pl_decide_items(b.plan);
    if (!pl_assign_memory(b.plan) || ir_arena_failed(arena)) return pl_fault(&b);
#ifdef MDOT_VERIFY
    if (pl_verify(b.plan, err) != MDOT_OK) return MDOT_MALFORMED;
#endif
    *out_plan = b.plan;
    return MDOT_OK;
}
