/* bound_nonzero.c — replaces NonZero, whose result depends on data, by the indices of all elements.
 *
 * A mixture of experts selects tokens with a mask, computes an expert on them, and adds the results to their tokens:
 *
 *     i = NonZero(mask)    x[i]    expert(x[i])    y.scatter_add(i, expert(x[i]))
 *
 * The result is the same if the expert computes all tokens and the scatter ignores those outside of the mask. The pass
 * follows the axis of selected elements ("the selection") from NonZero through operators that treat each element by
 * itself. It ends where elements are combined: a sum gets a neutral number for each element outside of the mask, and a
 * scatter gets the number of selected elements. Where an operator combines them in another way, the model is refused.
 *
 * In a graph with a scatter, the selected elements come first. Then a scatter needs no others, and neither do the
 * kernels before it (plan/limit_rows.c): an expert computes its own tokens only.
 *
 * Shapes are typed on the way, because the place of the axis depends on them. The number of selected elements is no
 * shape: values that contain it may only describe the shape of a selection.
 */
#include "ir/passes/pass_rules.h"

#include "ir/ops/families.h"
#include "ir/passes.h"
#include "ir/passes/graph_builder.h"

#include <string.h>

static ir_mark mark_of(const ir_bounding *w, const ir_value *value)
{
    return value != NULL && value->id < w->mark_count ? w->marks[value->id] : (ir_mark){0};
}

static void set_mark(ir_bounding *w, const ir_value *value, ir_mark mark)
{
    if (value == NULL || w->b.status != MDOT_OK) return;
    if (value->id >= w->mark_count) {
        int count = 2 * (value->id + 16);
        ir_mark *marks = ir_build_alloc(&w->b, count, sizeof *marks);
        if (marks == NULL) return;
        memset(marks, 0, (size_t)count * sizeof *marks);
        if (w->mark_count > 0) memcpy(marks, w->marks, (size_t)w->mark_count * sizeof *marks);
        w->marks = marks;
        w->mark_count = count;
    }
    w->marks[value->id] = mark;
}

/* Each mask element's index along `axis`: [1, bound]. */
static ir_value *indices_along(ir_builder *b, const ir_type *type, int axis, ir_dim bound)
{
    ir_dim dims[MDOT_MAX_RANK], row[] = {ir_dim_number(1), bound};
    for (int d = 0; d < type->rank; d++) dims[d] = d == axis ? type->dim[d] : ir_dim_number(1);
    ir_value *range = ir_build_reshape(b, ir_build_range(b, type->dim[axis]), dims, type->rank);
    return ir_build_reshape(b, ir_build_expand(b, range, type->dim, type->rank), row, 2);
}

/* If the mask expands the mask of an earlier selection along new last axes, notes that selection. */
static void note_rows(const ir_bounding *w, ir_selection *s)
{
    const ir_value *x = s->source,
                   *inner = x->def != NULL && ir_node_opcode(x->def) == IR_OP_Expand ? x->def->inputs[0] : NULL;
    const ir_value *mask = inner != NULL && ir_is_reshaped(inner) ? inner->def->inputs[0] : inner;
    if (mask == NULL || mask->type.rank >= x->type.rank || inner->type.rank != x->type.rank) return;
    for (int d = 0; d < x->type.rank; d++) {
        bool is_row = d < mask->type.rank;
        if (!ir_dim_equal(inner->type.dim[d], is_row ? x->type.dim[d] : ir_dim_number(1))) return;
        if (is_row && !ir_dim_equal(mask->type.dim[d], x->type.dim[d])) return;
    }
    s->width = ir_dim_number(1);
    for (int d = mask->type.rank; d < x->type.rank; d++)
        if (!ir_dim_mul(s->width, x->type.dim[d], &s->width)) return;
    for (const ir_selection *rows = w->selections; rows != NULL; rows = rows->next)
        if (rows->source == mask) s->rows = rows;
}

/* The count and order of a row's elements follow from those of the rows. */
static void repeat_order(ir_builder *b, ir_selection *s)
{
    ir_dim column[] = {s->rows->bound, ir_dim_number(1)};
    ir_value *width = ir_build_dim(b, s->width), *row = ir_build_range(b, s->width);
    ir_value *first = ir_build_mul(b, ir_build_reshape(b, s->rows->order, column, 2), width);
    s->count = ir_build_mul(b, s->rows->count, width);
    s->order = ir_build_reshape(b, ir_build_add(b, first, row), &s->bound, 1);
}

static void find_order(ir_builder *b, ir_selection *s, ir_value *range)
{
    const int64_t axis = 0;
    ir_value *number = ir_build_cast(b, s->mask, MDOT_DTYPE_I64);
    s->count = ir_build_reduce(b, IR_OP_ReduceSum, number, &axis, 1);
    ir_value *sums = ir_build_op2(b, IR_OP_CumSum, number, ir_build_integer(b, axis));
    ir_value *in_front = ir_build_add(b, sums, ir_build_integer(b, -1)), *behind = ir_build_sub(b, range, sums);
    ir_value *place = ir_build_where(b, s->mask, in_front, ir_build_add(b, s->count, behind));
    s->order = ir_build_op3(b, IR_OP_ScatterElements, range, place, range);
}

/* Puts the selected elements in front of the others. Both keep their order. */
static void put_selected_first(ir_builder *b, ir_selection *s)
{
    ir_value *range = ir_build_range(b, s->bound);
    if (s->rows != NULL)
        repeat_order(b, s);
    else
        find_order(b, s, range);
    s->indices = ir_build_with(b, IR_OP_Gather, IR_VALUES(s->indices, s->order), &IR_INT("axis", 1), 1);
    s->mask = ir_build_op2(b, IR_OP_Less, range, s->count);
}

static void replace_nonzero(ir_bounding *w, ir_node *node)
{
    ir_builder *b = &w->b;
    ir_value *x = node->inputs[0], *rows[MDOT_MAX_RANK];
    for (ir_selection *s = w->selections; s != NULL; s = s->next) {
        if (s->source != x) continue; /* a second NonZero of the same mask selects the same elements */
        ir_replace(b, node->outputs[0], s->indices);
        return;
    }
    ir_dim bound = node->outputs[0]->type.dim[1];
    for (int d = 0; d < x->type.rank; d++) rows[d] = indices_along(b, &x->type, d, bound);
    ir_value *indices = ir_build_concat(b, 0, rows, x->type.rank);
    ir_selection *s = ir_build_alloc(b, 1, sizeof *s);
    if (s == NULL || indices == NULL) return;
    *s = (ir_selection){.name = node->name,
                        .source = x,
                        .bound = bound,
                        .mask = ir_build_reshape(b, ir_build_cast(b, x, MDOT_DTYPE_BOOL), &bound, 1),
                        .indices = indices,
                        .next = w->selections};
    note_rows(w, s);
    w->selections = s;
    if (w->has_scatter) put_selected_first(b, s);
    ir_replace(b, node->outputs[0], s->indices);
    set_mark(w, s->indices, (ir_mark){.of = s, .axis = 1});
}

static bool reads_selection(const ir_bounding *w, const ir_node *node)
{
    for (int i = 0; i < node->input_count; i++)
        if (mark_of(w, node->inputs[i]).of != NULL) return true;
    return false;
}

/* Passes marks from a node's inputs to the outputs. */
static void follow(ir_bounding *w, ir_node *node)
{
    ir_mark mark[IR_MARKED_INPUTS], out = {0};
    const char *reason = NULL;
    const ir_selection *s = NULL;
    bool fits = node->input_count <= IR_MARKED_INPUTS;
    for (int i = 0; i < node->input_count; i++) {
        ir_mark m = mark_of(w, node->inputs[i]);
        if (i < IR_MARKED_INPUTS) mark[i] = m;
        if (m.of == NULL) continue;
        if (s != NULL && m.of != s) reason = "it combines elements of another selection with elements";
        s = m.of;
    }
    if (!fits) reason = "it combines elements";
    if (reason == NULL) reason = ir_follow_selection(w, node, mark, &out);
    if (reason != NULL && w->b.status == MDOT_OK) ir_refuse_selection(&w->b, node, s, reason);
    for (int i = 0; i < node->output_count && out.of != NULL; i++) set_mark(w, node->outputs[i], out);
}

static void visit(ir_bounding *w, ir_node *node)
{
    ir_builder *b = &w->b;
    b->at = node;
    b->name = node->name;
    b->status = ir_infer_node(b->graph, node, b->err);
    if (b->status != MDOT_OK) return;
    b->dtype = node->outputs[0] != NULL ? node->outputs[0]->type.dtype : MDOT_DTYPE_NONE;
    b->first_new = b->graph->value_count;
    if (reads_selection(w, node))
        follow(w, node);
    else if (node->op == &ir_ops[IR_OP_NonZero] && node->inputs[0]->constant == NULL)
        replace_nonzero(w, node);
    else
        ir_fold_node(b, node);
}

static mdot_status check_outputs(const ir_bounding *w)
{
    const ir_graph *graph = w->b.graph;
    for (int i = 0; i < graph->output_count; i++) {
        ir_mark m = mark_of(w, graph->outputs[i]);
        if (m.of == NULL) continue;
        return mdot_fail(w->b.err, MDOT_UNSUPPORTED,
                         "%s: the shape of output \"%s\" is the number of elements that NonZero at \"%s\" selects, and "
                         "depends on data: instead of x[mask], keep the shape and write torch.where(mask, x, 0)",
                         graph->name, graph->outputs[i]->name, m.of->name);
    }
    return MDOT_OK;
}

mdot_status ir_pass_bound_nonzero(ir_graph *graph, bool *out_changed, mdot_error *err)
{
    ir_bounding w = {.b = {.graph = graph, .err = err}};
    bool has_any = false;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (node->op == NULL) continue;
        has_any = has_any || ir_node_opcode(node) == IR_OP_NonZero;
        w.has_scatter =
            w.has_scatter || ir_node_opcode(node) == IR_OP_ScatterND || ir_node_opcode(node) == IR_OP_ScatterElements;
    }
    if (!has_any) return MDOT_OK;
    for (ir_node *node = graph->first; node != NULL; node = node->next) {
        if (node->op != NULL && ir_node_has_typed_inputs(node)) visit(&w, node);
        if (w.b.status != MDOT_OK) return w.b.status;
    }
    BS_TRY(check_outputs(&w));
    ir_graph_remove_dead(graph);
    *out_changed = true;
    return MDOT_OK;
}
