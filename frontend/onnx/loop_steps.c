/* loop_steps.c — see rewrites.h. */
#include "frontend/onnx/rewrites.h"

#include "frontend/onnx/import_context.h"
#include "ir/ops.h"
#include "ir/ops/families.h"

typedef struct counting {
    fe_upgrader *u;
    const char *name;
    ir_value *const *inputs;
    int count;
    const ir_node *begin; /* the LoopBegin */
} counting;

/* A step count: `length` plus a number, or without a limit. */
typedef struct limit {
    bool is_set;
    ir_dim steps;
} limit;

static bool is_op(const ir_value *v, ir_opcode op) { return v != NULL && v->def != NULL && v->def->op == &ir_ops[op]; }

static bool read_known(const counting *c, const ir_value *v, ir_dim *out)
{
    ir_dim content[IR_MAX_KNOWN];
    int count;
    if (v == NULL) return false;
    (void)fe_type_of_upgraded(c->u, v);
    if (!ir_value_known(v, content, &count) || count != 1) return false;
    *out = content[0];
    return true;
}

static bool read_number(const counting *c, const ir_value *v, int64_t *out)
{
    ir_dim known;
    if (!read_known(c, v, &known) || !ir_dim_is_number(known)) return false;
    *out = known.offset;
    return true;
}

/* x + number, in either order. */
static const ir_value *split_sum(const counting *c, const ir_value *v, int64_t *out_number)
{
    v = fe_strip_shape(v);
    if (!is_op(v, IR_OP_Add)) return NULL;
    for (int i = 0; i < 2; i++)
        if (read_number(c, v->def->inputs[1 - i], out_number)) return fe_strip_shape(v->def->inputs[i]);
    return NULL;
}

/* Is the value start + t in step t? */
static bool is_counter(const counting *c, const ir_value *v, int64_t *out_start)
{
    int64_t added = 0, stride;
    v = fe_strip_shape(v);
    const ir_value *base = split_sum(c, v, &added);
    if (base == NULL) added = 0;
    if (base != NULL) v = base;
    if (v == NULL || v->def != c->begin) return false;
    if (v->output == 0) {
        *out_start = added;
        return true;
    }
    int k = v->output - 1;
    if (FE_STEPS_NEXT + k >= c->count || split_sum(c, c->inputs[FE_STEPS_NEXT + k], &stride) != v || stride != 1)
        return false;
    int64_t initial;
    return read_number(c, c->begin->inputs[k], &initial) && !__builtin_add_overflow(initial, added, out_start);
}

static bool smaller(const counting *c, limit a, limit b, limit *out)
{
    *out = a.is_set ? a : b;
    if (!a.is_set || !b.is_set) return true;
    return ir_dim_min(c->u->graph, a.steps, b.steps, &out->steps);
}

/* counter < bound (+ 1 if they may be equal) continues behind step t while start + t < bound, so there are bound -
 * start + 1 steps, and at least one. */
static bool limit_by_bound(const counting *c, const ir_value *counter, const ir_value *bound, bool or_equal, limit *out)
{
    int64_t start, shift;
    ir_dim maximum;
    if (!is_counter(c, counter, &start) || !read_known(c, fe_strip_shape(bound), &maximum)) return false;
    if (__builtin_sub_overflow((int64_t)1 + or_equal, start, &shift)) return false;
    out->is_set = true;
    return ir_dim_add(maximum, ir_dim_number(shift), &out->steps) &&
           ir_dim_max(c->u->graph, out->steps, ir_dim_number(1), &out->steps);
}

/* The limit that a condition behind the steps sets. False: it depends on data. */
static bool limit_of(const counting *c, const ir_value *condition, int depth, limit *out)
{
    enum { MOST_TERMS = 8 };
    int64_t known;
    limit a = {0}, b = {0};
    *out = (limit){0};
    condition = fe_strip_shape(condition);
    if (condition == NULL || depth > MOST_TERMS) return false;
    if (read_number(c, condition, &known)) {
        if (known == 0) *out = (limit){true, ir_dim_number(1)};
        return true;
    }
    bool is_negated = is_op(condition, IR_OP_Not);
    if (is_negated) condition = fe_strip_shape(condition->def->inputs[0]);
    if (condition == NULL || condition->def == NULL || condition->def->op == NULL) return false;
    ir_value *const *input = condition->def->inputs;
    switch (ir_node_opcode(condition->def)) {
    case IR_OP_And:
        return !is_negated && limit_of(c, input[0], depth + 1, &a) && limit_of(c, input[1], depth + 1, &b) &&
               smaller(c, a, b, out);
    case IR_OP_Less: /* not (b < a) is a <= b */
        return is_negated ? limit_by_bound(c, input[1], input[0], true, out)
                          : limit_by_bound(c, input[0], input[1], false, out);
    case IR_OP_Greater:
        return is_negated ? limit_by_bound(c, input[0], input[1], true, out)
                          : limit_by_bound(c, input[1], input[0], false, out);
    case IR_OP_LessOrEqual:
        return is_negated ? limit_by_bound(c, input[1], input[0], false, out)
                          : limit_by_bound(c, input[0], input[1], true, out);
    case IR_OP_GreaterOrEqual:
        return is_negated ? limit_by_bound(c, input[0], input[1], false, out)
                          : limit_by_bound(c, input[1], input[0], true, out);
    default: return false;
    }
}

/* Sets *out_limit to the smaller of trip count and condition. False: it depends on data. A trip count above
 * INT32_MAX means that the condition alone ends the loop, because exporters write the greatest i64 then. */
static bool find_limit(const counting *c, limit *out_limit)
{
    limit by_condition, by_count = {0};
    int64_t first = 1;
    if (c->inputs[FE_STEPS_FIRST] != NULL && !read_number(c, fe_strip_shape(c->inputs[FE_STEPS_FIRST]), &first))
        return false;
    if (first == 0) {
        *out_limit = (limit){true, ir_dim_number(0)};
        return true;
    }
    if (!limit_of(c, c->inputs[FE_STEPS_CONDITION], 0, &by_condition)) return false;
    if (c->inputs[FE_STEPS_TRIPS] != NULL) {
        if (!read_known(c, fe_strip_shape(c->inputs[FE_STEPS_TRIPS]), &by_count.steps)) return false;
        by_count.is_set = !ir_dim_is_number(by_count.steps) || by_count.steps.offset <= INT32_MAX;
    }
    return smaller(c, by_condition, by_count, out_limit) && out_limit->is_set;
}

static ir_value *add_unsupported(const counting *c)
{
    ir_graph *graph = c->u->graph;
    ir_node *node = ir_graph_add_node(graph, NULL, NULL, c->name, NULL, 0, 1);
    if (node == NULL) return NULL;
    node->op_type = "Loop (its steps depend on data)";
    return node->outputs[0];
}

/* scale * length + offset, as nodes: the length is a dimension of a graph input. Rounded quotients of the length are
 * not supported as numbers of steps. */
static ir_value *add_dim(const counting *c, ir_dim steps)
{
    ir_graph *graph = c->u->graph;
    const ir_node named = {.name = c->name};
    if (ir_dim_is_number(steps)) return fe_add_scalar(c->u, &named, "steps", MDOT_DTYPE_I64, (double)steps.offset);
    for (int i = 0; i < graph->input_count && ir_dim_is_affine(steps); i++) {
        const ir_type *type = &graph->inputs[i]->type;
        for (int d = 0; d < type->rank; d++) {
            if (ir_dim_is_number(type->dim[d]) || steps.scale % type->dim[d].scale != 0) continue;
            int64_t factor = steps.scale / type->dim[d].scale;
            ir_value *input[2] = {graph->inputs[i]};
            ir_node *node = ir_graph_add_node(graph, NULL, &ir_ops[IR_OP_Shape], c->name, input, 1, 1);
            if (node == NULL || !ir_node_set(graph, node, IR_INT("start", d)) ||
                !ir_node_set(graph, node, IR_INT("end", d + 1)))
                return NULL;
            input[0] = node->outputs[0];
            input[1] = fe_add_scalar(c->u, &named, "factor", MDOT_DTYPE_I64, (double)factor);
            node = input[1] != NULL ? ir_graph_add_node(graph, NULL, &ir_ops[IR_OP_Mul], c->name, input, 2, 1) : NULL;
            if (node == NULL) return NULL;
            input[0] = node->outputs[0];
            input[1] = fe_add_scalar(c->u, &named, "more", MDOT_DTYPE_I64,
                                     (double)(steps.offset - factor * type->dim[d].offset));
            node = input[1] != NULL ? ir_graph_add_node(graph, NULL, &ir_ops[IR_OP_Add], c->name, input, 2, 1) : NULL;
            return node != NULL ? node->outputs[0] : NULL;
        }
    }
    return add_unsupported(c);
}

mdot_status fe_count_steps(fe_upgrader *u, const char *name, ir_value *const *inputs, int count, ir_value **out)
{
    const ir_value *index = inputs[FE_STEPS_INDEX];
    counting c = {.u = u, .name = name, .inputs = inputs, .count = count, .begin = index != NULL ? index->def : NULL};
    limit steps;
    bool is_counted = ir_is_loop_begin(c.begin) && find_limit(&c, &steps);
    for (fe_counted_rows *rows = u->counted_rows; rows != NULL && is_counted; rows = rows->next) {
        int64_t first;
        if (is_counter(&c, rows->base, &first)) fe_check_counted_rows(u, rows, first, steps.steps);
    }
    *out = is_counted ? add_dim(&c, steps.steps) : add_unsupported(&c);
    return *out != NULL ? MDOT_OK : fe_out_of_memory(u->context);
}
