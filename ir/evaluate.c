/* evaluate.c — runs the table's reference evaluators over a graph: the oracle of every kernel.
 *
 * Each node computes into its own arena, which is freed after the last reader has run. Attention at length 1024
 * allocates tens of megabytes per node, and only a few of them are live at once. Nodes that produce graph outputs
 * compute into the caller's arena. Therefore evaluators never return an input's storage as an output.
 *
 * Everything is computed in double, except the values on which a model's decisions depend. If a value is converted to
 * an integer or compared, a tiny difference across a whole number changes all later results. For example, T5 puts
 * distances into buckets by Cast(Log(…) * 8), and powers of two lie exactly on the border. On the way to a decision
 * each result is rounded to the type, as in every implementation of the model. */
#include "ir/ops.h"

#include "ir/ops/families.h"

typedef struct node_memory {
    ir_arena *arena;  /* NULL: freed, or the caller's */
    int live_outputs; /* number of outputs with pending readers */
} node_memory;

typedef struct evaluation {
    const ir_graph *graph;
    ir_arena *results;       /* the caller's arena */
    ir_arena *arena;         /* holds the tables below */
    const ir_wide **content; /* by value id; NULL: not computed, or freed */
    int *uses_left;          /* by value id */
    mdot_dtype rounding;     /* of matmul factors, if it has 16 bits; F32: of every result; NONE: nothing is rounded */
    uint64_t noise;          /* state of the noise's random numbers */
    double units;            /* of noise, in the last place; 0: none */
    bool *decides;           /* by value id: a decision depends on it through elementwise operators alone */
    node_memory **memory_of; /* by value id */
    node_memory **memories;
    int memory_count;
    ir_node *const *nodes; /* in an order in which each loop's body is behind its LoopBegin */
    int node_count;
} evaluation;

static ir_wide *copy_wide(ir_arena *arena, const ir_wide *wide)
{
    ir_wide *copy = ir_wide_create(arena, wide->dtype, wide->rank, wide->dims);
    if (copy == NULL) return NULL;
    for (int64_t i = 0; i < wide->count; i++) ir_copy_element(copy, i, wide, i);
    return copy;
}

static bool is_decision(const ir_node *node)
{
    if (node->op == NULL) return false;
    mdot_dtype target_dtype = (mdot_dtype)ir_node_int(node, "to", MDOT_DTYPE_NONE);
    bool is_cast = ir_node_opcode(node) == IR_OP_Cast && target_dtype != MDOT_DTYPE_NONE;
    return (is_cast && !ir_dtype_is_float(target_dtype)) ||
           IR_IS_ONE_OF(node, IR_OP_Floor, IR_OP_Ceil, IR_OP_Round, IR_OP_QuantizeLinear, IR_OP_DynamicQuantizeLinear,
                        IR_OP_Equal, IR_OP_Less, IR_OP_LessOrEqual, IR_OP_Greater, IR_OP_GreaterOrEqual);
}

static bool is_elementwise(const ir_node *node)
{
    ir_lowering lowering = node->op != NULL ? node->op->lowering : IR_LOWER_NONE;
    return lowering == IR_LOWER_POINTWISE || lowering == IR_LOWER_MOVE || lowering == IR_LOWER_ALIAS;
}

/* Does `target_value` begin to decide because `source_value` does? */
static bool decides_anew(const evaluation *e, const ir_value *source_value, const ir_value *target_value)
{
    if (source_value == NULL || !e->decides[source_value->id] || e->decides[target_value->id]) return false;
    e->decides[target_value->id] = true;
    return true;
}

/* Passes decisions from a loop's results to the values of its steps, and from its states to the steps before. Returns
 * whether a value of the body decides anew. */
static bool decide_in_loop(const evaluation *e, const ir_node *node)
{
    bool anew = false;
    for (int k = 0; ir_is_loop_end(node) && k < node->output_count; k++)
        if (IR_LOOP_NEXT + k < node->input_count)
            (void)decides_anew(e, node->outputs[k], node->inputs[IR_LOOP_NEXT + k]);
    const ir_node *end = ir_is_loop_begin(node) ? ir_loop_end_of(node) : NULL;
    for (int k = 0; end != NULL && k < node->input_count; k++) {
        (void)decides_anew(e, node->outputs[1 + k], node->inputs[k]);
        anew = decides_anew(e, node->outputs[1 + k], end->inputs[IR_LOOP_NEXT + k]) || anew;
    }
    return anew;
}

/* Walks from the last node to the first, so readers are visited before their operands. Returns whether another walk is
 * necessary. */
static bool walk_decisions(evaluation *e)
{
    bool again = false;
    for (const ir_node *node = e->graph->last; node != NULL; node = node->prev) {
        bool decides = is_decision(node);
        again = decide_in_loop(e, node) || again;
        for (int i = 0; is_elementwise(node) && i < node->output_count; i++)
            decides = decides || (node->outputs[i] != NULL && e->decides[node->outputs[i]->id]);
        for (int i = 0; decides && i < node->input_count; i++)
            if (node->inputs[i] != NULL) e->decides[node->inputs[i]->id] = true;
    }
    return again;
}

/* Narrower types are computed in f32, as in kernels. */
static void round_to_single(ir_wide *wide)
{
    for (int64_t i = 0; wide->f != NULL && wide->dtype != MDOT_DTYPE_F64 && i < wide->count; i++)
        wide->f[i] = (float)wide->f[i];
}

static void round_to_type(ir_wide *wide)
{
    for (int64_t i = 0; wide->f != NULL && i < wide->count; i++) wide->f[i] = ir_nearest_float(wide->dtype, wide->f[i]);
}

/* Leading inputs that are factors in matrix kernels. Products inside a kernel (with the attention weights) are left
 * unrounded. */
static int count_factors(const ir_node *node)
{
    if (IR_IS_ONE_OF(node, IR_OP_Attention, IR_OP_MultiHeadAttention)) return 3;
    return IR_IS_ONE_OF(node, IR_OP_MatMul, IR_OP_Gemm, IR_OP_Einsum, IR_OP_Linear, IR_OP_FusedMatMul, IR_OP_FusedGemm,
                        IR_OP_Conv, IR_OP_MSAttention, IR_OP_LSTM, IR_OP_GRU, IR_OP_RNN)
               ? 2
               : 0;
}

static mdot_status round_factors(const evaluation *e, const ir_node *node, const ir_wide **input, ir_arena *scratch,
                                 mdot_error *err)
{
    bool is_half = e->rounding != MDOT_DTYPE_NONE && e->rounding != MDOT_DTYPE_F32;
    int count = is_half ? count_factors(node) : 0;
    for (int i = 0; i < count && i < node->input_count; i++) {
        if (input[i] == NULL || input[i]->f == NULL) continue;
        ir_wide *rounded = copy_wide(scratch, input[i]);
        if (rounded == NULL) return ir_fail_memory(node, err);
        for (int64_t k = 0; k < rounded->count; k++) rounded->f[k] = ir_round_float(e->rounding, rounded->f[k]);
        input[i] = rounded;
    }
    return MDOT_OK;
}

/* Fetches an operand of a node: a value computed earlier, or a constant converted to its wide form in `scratch`. */
static mdot_status fetch(const evaluation *e, const ir_node *node, const ir_value *value, ir_arena *scratch,
                         const ir_wide **out, mdot_error *err)
{
    if (value->constant == NULL) {
        *out = e->content[value->id];
        return MDOT_OK;
    }
    if (value->constant->data == NULL)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "the content of \"%s\" was skipped when the file was read",
                       value->name);
    if (value->constant->dtype == MDOT_DTYPE_STRING)
        return ir_fail(node, err, MDOT_UNSUPPORTED, "\"%s\" holds strings", value->name);
    *out = ir_wide_from_tensor(scratch, value->constant);
    return *out != NULL ? MDOT_OK : ir_fail_memory(node, err);
}

static void release_inputs(evaluation *e, const ir_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        const ir_value *value = node->inputs[i];
        if (value == NULL || --e->uses_left[value->id] > 0) continue;
        node_memory *h = e->memory_of[value->id];
        if (h == NULL || --h->live_outputs > 0) continue;
        ir_arena_destroy(h->arena);
        h->arena = NULL;
    }
}

/* Creates memory for the outputs. NULL: out of memory. */
static node_memory *create_memory(evaluation *e, const ir_node *node, ir_arena **out_arena)
{
    node_memory *h = IR_NEW(e->arena, node_memory);
    if (h == NULL) return NULL;
    bool is_result = false;
    for (int i = 0; i < node->output_count; i++) {
        const ir_value *value = node->outputs[i];
        if (value == NULL) continue;
        is_result = is_result || value->output_uses > 0;
        h->live_outputs += value->use_count > 0;
        e->memory_of[value->id] = h;
    }
    h->arena = is_result ? NULL : ir_arena_create(0);
    *out_arena = is_result ? e->results : h->arena;
    e->memories[e->memory_count++] = h;
    return *out_arena != NULL ? h : NULL;
}

/* Computes a node's outputs in `target`. */
static mdot_status compute(evaluation *e, const ir_node *node, ir_arena *target, ir_arena *scratch, mdot_error *err)
{
    BS_TRY(ir_check_arity(node, err));
    if (node->op->eval == NULL) return ir_fail(node, err, MDOT_UNSUPPORTED, "the operator lacks an evaluator");

    const ir_wide **input = IR_NEW_ARRAY(scratch, const ir_wide *, node->input_count);
    ir_wide **out = IR_NEW_ARRAY(scratch, ir_wide *, node->output_count);
    if (input == NULL || out == NULL) return ir_fail_memory(node, err);
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == NULL) continue;
        BS_TRY(fetch(e, node, node->inputs[i], scratch, &input[i], err));
    }
    BS_TRY(round_factors(e, node, input, scratch, err));
    ir_node marked = *node;
    if (e->rounding == MDOT_DTYPE_F32) {
        marked.attrs = IR_NEW_ARRAY(scratch, ir_attr, node->attr_count + 2);
        if (marked.attrs == NULL) return ir_fail_memory(node, err);
        for (int i = 0; i < node->attr_count; i++) marked.attrs[i] = node->attrs[i];
        marked.attrs[marked.attr_count++] = IR_INT(IR_EVALUATED_IN_F32, (int64_t)(e->noise | 1));
        marked.attrs[marked.attr_count++] = IR_FLOAT(IR_EVALUATED_WITH_NOISE, e->units);
    }
    BS_TRY(ir_eval_node(target, &marked, input, out, err));
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] == NULL) continue;
        if (out[i] == NULL) return ir_fail(node, err, MDOT_UNSUPPORTED, "output %d lacks an evaluator", i);
        bool decides = e->decides[node->outputs[i]->id];
        if (e->units > 0) ir_add_noise(&marked, input, e->units, out[i], scratch, &e->noise);
        if (e->rounding == MDOT_DTYPE_F32) round_to_single(out[i]);
        if (decides) round_to_type(out[i]);
        e->content[node->outputs[i]->id] = out[i];
    }
    return MDOT_OK;
}

static mdot_status run_node(evaluation *e, const ir_node *node, ir_arena *scratch, mdot_error *err)
{
    ir_arena *target;
    node_memory *h = create_memory(e, node, &target);
    if (h == NULL) return ir_fail_memory(node, err);
    BS_TRY(compute(e, node, target, scratch, err));
    release_inputs(e, node);
    if (h->live_outputs == 0) {
        ir_arena_destroy(h->arena);
        h->arena = NULL;
    }
    return MDOT_OK;
}

typedef struct loop {
    evaluation *e;
    const ir_node *begin, *end;
    int first, last;       /* their positions in e->nodes */
    const ir_wide **state; /* the states of the current step */
    ir_wide **stack;       /* the outputs of `end` behind the final states; NULL: absent, or not yet made */
    ir_arena *arena;       /* holds these arrays */
    ir_arena *result;      /* holds the outputs of `end` */
    int64_t steps;
} loop;

static mdot_status run_loop(evaluation *e, int first, int last, ir_arena *result, mdot_error *err);

static int end_of_loop(const evaluation *e, int first)
{
    const ir_node *end = ir_loop_end_of(e->nodes[first]);
    int last_index = first + 1;
    while (last_index < e->node_count && e->nodes[last_index] != end) last_index++;
    return last_index;
}

static mdot_status run_step(const loop *l, ir_arena *arena, mdot_error *err)
{
    evaluation *e = l->e;
    mdot_status status = MDOT_OK;
    for (int i = l->first + 1; i < l->last && status == MDOT_OK; i++) {
        if (ir_is_loop_begin(e->nodes[i])) {
            int last_index = end_of_loop(e, i);
            if (last_index >= l->last) return ir_fail(e->nodes[i], err, MDOT_MALFORMED, "the loop has no end");
            status = run_loop(e, i, last_index, arena, err);
            i = last_index;
        } else {
            status = compute(e, e->nodes[i], arena, arena, err);
        }
    }
    return status;
}

/* Copies the step's element into a stack, which the first step makes. */
static mdot_status put_element(const loop *l, int k, int64_t step, const ir_wide *element, mdot_error *err)
{
    int axis = ir_loop_axis(l->end, k, element->rank);
    int64_t dims[MDOT_MAX_RANK + 1], before = 1, behind = 1;
    if (axis < 0 || element->rank == MDOT_MAX_RANK)
        return ir_fail(l->end, err, MDOT_MALFORMED, "the axis of stack %d is out of range", k);
    for (int d = 0; d <= element->rank; d++) dims[d] = d == axis ? l->steps : element->dims[d < axis ? d : d - 1];
    for (int d = 0; d < element->rank; d++) *(d < axis ? &before : &behind) *= element->dims[d];
    ir_wide **stack = &l->stack[k];
    if (*stack == NULL) BS_TRY(ir_make_wide(l->result, l->end, element->dtype, element->rank + 1, dims, stack, err));
    bool same = (*stack)->dtype == element->dtype && (*stack)->rank == element->rank + 1;
    for (int d = 0; d <= element->rank && same; d++) same = (*stack)->dims[d] == dims[d];
    if (!same) return ir_fail(l->end, err, MDOT_MALFORMED, "the elements of stack %d differ in shape", k);
    int64_t place = ir_loop_is_reversed(l->end, k) ? l->steps - 1 - step : step;
    for (int64_t o = 0; o < before; o++)
        for (int64_t i = 0; i < behind; i++)
            ir_copy_element(*stack, (o * l->steps + place) * behind + i, element, o * behind + i);
    return MDOT_OK;
}

/* Takes the states for the next step, and the elements of this one. */
static mdot_status end_step(const loop *l, int64_t step, ir_arena *successor, mdot_error *err)
{
    const evaluation *e = l->e;
    int states = ir_loop_states(l->begin);
    for (int k = 0; k < ir_loop_elements(l->end); k++) {
        if (states + k >= l->end->output_count || l->end->outputs[states + k] == NULL) continue;
        const ir_wide *element;
        BS_TRY(fetch(e, l->end, l->end->inputs[IR_LOOP_NEXT + states + k], successor, &element, err));
        BS_TRY(put_element(l, k, step, element, err));
    }
    for (int k = 0; k < states; k++) {
        const ir_wide *value, *before = l->state[k];
        BS_TRY(fetch(e, l->end, l->end->inputs[IR_LOOP_NEXT + k], successor, &value, err));
        bool is_same = value->dtype == before->dtype && value->rank == before->rank;
        for (int d = 0; d < value->rank && is_same; d++) is_same = value->dims[d] == before->dims[d];
        if (!is_same) return ir_fail(l->end, err, MDOT_MALFORMED, "state %d changes its type or shape", k);
        l->state[k] = copy_wide(successor, value);
        if (l->state[k] == NULL) return ir_fail_memory(l->end, err);
    }
    return MDOT_OK;
}

static mdot_status run_steps(const loop *l, ir_arena **states, mdot_error *err)
{
    evaluation *e = l->e;
    mdot_status status = MDOT_OK;
    for (int64_t step = 0; step < l->steps && status == MDOT_OK; step++) {
        ir_arena *arena = ir_arena_create(0), *successor = ir_arena_create(0);
        ir_wide *index = arena != NULL ? ir_wide_create(arena, MDOT_DTYPE_I64, 0, NULL) : NULL;
        if (index == NULL || successor == NULL) status = ir_fail_memory(l->begin, err);
        if (status == MDOT_OK) {
            index->i[0] = step;
            e->content[l->begin->outputs[0]->id] = index;
            for (int k = 0; k < ir_loop_states(l->begin); k++)
                if (l->begin->outputs[1 + k] != NULL) e->content[l->begin->outputs[1 + k]->id] = l->state[k];
            status = run_step(l, arena, err);
        }
        if (status == MDOT_OK) status = end_step(l, step, successor, err);
        ir_arena_destroy(arena);
        ir_arena_destroy(*states);
        *states = successor;
    }
    return status;
}

/* The inputs' length; 1 if no input has the symbol. */
static int64_t length_of(const evaluation *e)
{
    for (int i = 0; i < e->graph->input_count; i++) {
        const ir_value *value = e->graph->inputs[i];
        for (int d = 0; d < value->type.rank; d++) {
            ir_dim dim = value->type.dim[d];
            if (!ir_dim_is_number(dim)) return (e->content[value->id]->dims[d] - dim.offset) / dim.scale;
        }
    }
    return 1;
}

/* The outputs of the LoopEnd: the states behind the last step, and the stacks. A loop of zero steps gives empty stacks,
 * whose shape follows from the type. */
static mdot_status end_loop(const loop *l, mdot_error *err)
{
    int states = ir_loop_states(l->begin);
    for (int i = 0; i < l->end->output_count; i++) {
        const ir_value *value = l->end->outputs[i];
        if (value == NULL) continue;
        ir_wide *out = i < states ? copy_wide(l->result, l->state[i]) : l->stack[i - states];
        if (i >= states && out == NULL) {
            int64_t dims[MDOT_MAX_RANK], length = length_of(l->e);
            if (value->type.rank < 0) return ir_fail(l->end, err, MDOT_UNSUPPORTED, "a loop of no steps has no type");
            for (int d = 0; d < value->type.rank; d++) dims[d] = ir_dim_at(value->type.dim[d], length);
            BS_TRY(ir_make_wide(l->result, l->end, value->type.dtype, value->type.rank, dims, &out, err));
        }
        if (out == NULL) return ir_fail_memory(l->end, err);
        if (l->e->decides[value->id]) round_to_type(out);
        l->e->content[value->id] = out;
    }
    return MDOT_OK;
}

/* Runs the nodes first … last, which are a LoopBegin, the loop's body and its LoopEnd. */
static mdot_status run_loop(evaluation *e, int first, int last_index, ir_arena *result, mdot_error *err)
{
    loop l = {.e = e,
              .begin = e->nodes[first],
              .end = e->nodes[last_index],
              .first = first,
              .last = last_index,
              .result = result};
    ir_arena *states = ir_arena_create(0);
    const ir_wide *steps;
    mdot_status status = MDOT_OK;
    l.arena = ir_arena_create(0);
    if (l.arena == NULL || states == NULL) status = ir_fail_memory(l.begin, err);
    if (status == MDOT_OK) {
        l.state = IR_NEW_ARRAY(l.arena, const ir_wide *, ir_loop_states(l.begin));
        l.stack = IR_NEW_ARRAY(l.arena, ir_wide *, ir_loop_elements(l.end));
        if (l.state == NULL || l.stack == NULL) status = ir_fail_memory(l.begin, err);
    }
    if (status == MDOT_OK) status = fetch(e, l.end, l.end->inputs[IR_LOOP_STEPS], l.arena, &steps, err);
    if (status == MDOT_OK && (steps->i == NULL || steps->count != 1))
        status = ir_fail(l.end, err, MDOT_MALFORMED, "the number of steps must be one integer");
    if (status == MDOT_OK) l.steps = steps->i[0] > 0 ? steps->i[0] : 0;
    for (int k = 0; k < ir_loop_states(l.begin) && status == MDOT_OK; k++)
        status = fetch(e, l.begin, l.begin->inputs[k], l.arena, &l.state[k], err);
    if (status == MDOT_OK) status = run_steps(&l, &states, err);
    if (status == MDOT_OK) status = end_loop(&l, err);
    ir_arena_destroy(states);
    ir_arena_destroy(l.arena);
    return status;
}

static mdot_status run_outer_loop(evaluation *e, int first, int *out_last, mdot_error *err)
{
    int last_index = end_of_loop(e, first);
    ir_arena *result;
    if (last_index == e->node_count) return ir_fail(e->nodes[first], err, MDOT_MALFORMED, "the loop has no end");
    node_memory *h = create_memory(e, e->nodes[last_index], &result);
    if (h == NULL) return ir_fail_memory(e->nodes[first], err);
    mdot_status status = run_loop(e, first, last_index, result, err);
    for (int i = first; i <= last_index && status == MDOT_OK; i++) release_inputs(e, e->nodes[i]);
    *out_last = last_index;
    return status;
}

static mdot_status run_nodes(evaluation *e, mdot_error *err)
{
    for (int i = 0; i < e->node_count; i++) {
        ir_arena *scratch = ir_arena_create(0);
        mdot_status status;
        if (scratch == NULL)
            status = ir_fail_memory(e->nodes[i], err);
        else if (ir_is_loop_begin(e->nodes[i]))
            status = run_outer_loop(e, i, &i, err);
        else
            status = run_node(e, e->nodes[i], scratch, err);
        ir_arena_destroy(scratch);
        if (status != MDOT_OK) return ir_fail_in_file(e->graph, status, err);
    }
    return MDOT_OK;
}

static mdot_status take_inputs(evaluation *e, ir_inputs inputs, mdot_error *err)
{
    const ir_graph *graph = e->graph;
    for (int i = 0; i < graph->input_count; i++) {
        const ir_value *value = graph->inputs[i];
        const ir_type *type = &value->type;
        if (inputs[i]->dtype != type->dtype && type->dtype != MDOT_DTYPE_NONE)
            return BS_INVALID(err, "%s: input \"%s\" is %s, not %s", graph->name, value->name,
                              mdot_dtype_name(type->dtype), mdot_dtype_name(inputs[i]->dtype));
        if (inputs[i]->rank != type->rank && type->rank >= 0)
            return BS_INVALID(err, "%s: input \"%s\" has rank %d, not %d", graph->name, value->name, type->rank,
                              inputs[i]->rank);
        e->content[value->id] = inputs[i];
    }
    return MDOT_OK;
}

static mdot_status give_outputs(const evaluation *e, ir_wide **out_outputs, mdot_error *err)
{
    const ir_graph *graph = e->graph;
    ir_wide **outputs = IR_NEW_ARRAY(e->arena, ir_wide *, graph->output_count);
    if (outputs == NULL) return BS_OUT_OF_MEMORY(err, "%s", graph->name);
    for (int i = 0; i < graph->output_count; i++) {
        const ir_value *value = graph->outputs[i];
        /* An output may be an input or a constant itself, or occur twice. Each becomes a separate tensor. */
        const ir_tensor *constant = value->constant;
        if (constant != NULL && constant->data == NULL)
            return mdot_fail(err, MDOT_UNSUPPORTED,
                             "%s: the content of output \"%s\" was skipped when the file was read", graph->name,
                             value->name);
        outputs[i] =
            constant != NULL ? ir_wide_from_tensor(e->results, constant) : copy_wide(e->results, e->content[value->id]);
        if (outputs[i] == NULL) return BS_OUT_OF_MEMORY(err, "%s", graph->name);
    }
    for (int i = 0; i < graph->output_count; i++) out_outputs[i] = outputs[i];
    return MDOT_OK;
}

static bool make_tables(evaluation *e)
{
    const ir_graph *graph = e->graph;
    e->nodes = ir_loop_order(graph, e->arena, &e->node_count);
    e->content = IR_NEW_ARRAY(e->arena, const ir_wide *, graph->value_count);
    e->uses_left = IR_NEW_ARRAY(e->arena, int, graph->value_count);
    e->decides = IR_NEW_ARRAY(e->arena, bool, graph->value_count);
    e->memory_of = IR_NEW_ARRAY(e->arena, node_memory *, graph->value_count);
    e->memories = IR_NEW_ARRAY(e->arena, node_memory *, e->node_count);
    if (e->nodes == NULL || e->content == NULL || e->uses_left == NULL || e->decides == NULL || e->memory_of == NULL ||
        e->memories == NULL)
        return false;
    while (walk_decisions(e)) continue;
    for (const ir_node *node = graph->first; node != NULL; node = node->next)
        for (int i = 0; i < node->input_count; i++)
            if (node->inputs[i] != NULL) e->uses_left[node->inputs[i]->id] = node->inputs[i]->use_count;
    return true;
}

static mdot_status evaluate(const ir_graph *graph, mdot_dtype rounding, uint64_t noise, double units, ir_inputs inputs,
                            ir_arena *arena, ir_wide **out_outputs, mdot_error *err)
{
    evaluation e = {.graph = graph, .rounding = rounding, .noise = noise, .units = units, .results = arena};
    e.arena = ir_arena_create(0);
    mdot_status status;
    if (e.arena == NULL || !make_tables(&e)) {
        status = BS_OUT_OF_MEMORY(err, "%s", graph->name);
        goto done;
    }
    status = take_inputs(&e, inputs, err);
    if (status != MDOT_OK) goto done;
    status = run_nodes(&e, err);
    if (status != MDOT_OK) goto done;
    status = give_outputs(&e, out_outputs, err);
done:
    for (int i = 0; i < e.memory_count; i++) ir_arena_destroy(e.memories[i]->arena);
    ir_arena_destroy(e.arena);
    return status;
}

mdot_status ir_evaluate_in(const ir_graph *graph, mdot_dtype rounding, ir_inputs inputs, ir_arena *arena,
                           ir_wide **out_outputs, mdot_error *err)
{
    return evaluate(graph, rounding, 0, 0, inputs, arena, out_outputs, err);
}

mdot_status ir_evaluate_noisily(const ir_graph *graph, uint64_t seed, double units, ir_inputs inputs, ir_arena *arena,
                                ir_wide **out_outputs, mdot_error *err)
{
    return evaluate(graph, MDOT_DTYPE_F32, seed, units, inputs, arena, out_outputs, err);
}

mdot_status ir_evaluate(const ir_graph *graph, ir_inputs inputs, ir_arena *arena, ir_wide **out_outputs,
                        mdot_error *err)
{
    return ir_evaluate_in(graph, MDOT_DTYPE_NONE, inputs, arena, out_outputs, err);
}
