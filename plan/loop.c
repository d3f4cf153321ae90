/* loop.c — see emitters.h.
 *
 * Each state has a buffer, which holds the initial value, then the state of the current step, and at last the final
 * one. A step ends in three parts:
 *
 *   1. Nests compute the elements of stacks, and new states that are expressions. These go into buffers of their own.
 *   2. Nests copy all new states over the old ones.
 *   3. If nothing reads an old state after its new one is computed, except at the same element, the new state takes
 *      the place of the old one, and its copy is dropped. This is so in LSTM and GRU cells, for example.
 */
#include "plan/emitters.h"

#include "ir/ops.h"
#include "plan/expr.h"
#include "plan/kernel_kind.h"
#include "plan/plan_builder.h"

#include <string.h>

struct pl_loop {
    const ir_node *begin, *end;
    ir_dim steps;
    int first_kernel; /* the body's first kernel */
    int states;
    int *old, *next; /* buffers of each state and of the next value; -1: nothing reads the state */
};

/* A value that a nest stores. */
typedef struct item {
    const ir_value *value;
    pl_placement placement; /* its destination, of type `type` */
    ir_type type;
    int axis; /* axis of the steps in the destination; -1: it is of the value's own shape */
    bool is_reversed;
} item;

static int loop_of_node(const pl_builder *b, const ir_node *node)
{
    if (ir_is_loop_begin(node)) return 0; /* initial states are read before the loop */
    if (ir_is_loop_end(node)) return pl_info(b, node->inputs[IR_LOOP_INDEX])->loop;
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NULL) return pl_info(b, node->outputs[k])->loop;
    return 0;
}

static ir_dim steps_of(const ir_node *end)
{
    ir_dim content[IR_MAX_KNOWN] = {{0}};
    int count;
    (void)ir_value_known(end->inputs[IR_LOOP_STEPS], content, &count); /* the shape rule requires it */
    if (ir_dim_is_number(content[0]) && content[0].offset < 0) return ir_dim_number(0);
    return content[0];
}

double pl_reads_by_steps(const pl_builder *b, const ir_node *reader, int loop)
{
    int other_index = loop_of_node(b, reader);
    if (other_index == 0 || other_index == loop) return 1;
    return (double)ir_dim_at(steps_of(b->loop_ends[other_index]), b->plan->max_length);
}

/* Is the value read by the loop's end, or by pointwise operators of the same shape whose results are? */
static bool ends_step(const pl_builder *b, const ir_value *v)
{
    const pl_value *info = pl_info(b, v);
    for (int k = 0; k < info->use_count; k++) {
        const ir_node *reader = info->uses[k].node;
        if (ir_is_loop_end(reader)) continue;
        bool follows = reader->op->lowering == IR_LOWER_POINTWISE &&
                       ir_type_equal(&v->type, &reader->outputs[0]->type) && pl_info(b, reader->outputs[0])->ends_step;
        if (!follows) return false;
    }
    return info->use_count > 0 && info->output < 0;
}

bool pl_find_loops(pl_builder *b)
{
    int count = 0, loop = 0;
    for (int i = 0; i < b->node_count; i++) count += ir_is_loop_begin(b->nodes[i]);
    b->loop_ends = IR_NEW_ARRAY(b->arena, const ir_node *, (size_t)count + 1);
    if (b->loop_ends == NULL) return false;
    count = 0;
    for (int i = 0; i < b->node_count; i++) {
        const ir_node *node = b->nodes[i];
        if (ir_is_loop_begin(node)) b->loop_ends[loop = ++count] = ir_loop_end_of(node);
        if (ir_is_loop_end(node)) loop = 0;
        for (int k = 0; k < node->output_count; k++)
            if (node->outputs[k] != NULL) pl_info(b, node->outputs[k])->loop = loop;
    }
    for (int i = b->node_count - 1; i >= 0 && count > 0; i--) {
        const ir_node *node = b->nodes[i];
        for (int k = 0; k < node->output_count && !ir_is_loop_begin(node); k++)
            if (node->outputs[k] != NULL && pl_info(b, node->outputs[k])->loop > 0)
                pl_info(b, node->outputs[k])->ends_step = ends_step(b, node->outputs[k]);
    }
    return true;
}

/* The position of this step's element in a stack. */
static const pl_expr *place_of_step(pl_builder *b, ir_dim steps, bool is_reversed)
{
    ir_dim last_dim;
    if (!is_reversed) return pl_step(b->arena);
    if (!ir_dim_sub(steps, ir_dim_number(1), &last_dim)) return NULL;
    return pl_op2(b, PL_ADD, pl_extent(b, last_dim), pl_op2(b, PL_MUL, pl_step(b->arena), pl_int(b, -1)));
}

static bool add_item(pl_builder *b, pl_nest *nest, const item *it, const pl_expr *const *index)
{
    const pl_expr *position[MDOT_MAX_RANK + 1] = {NULL};
    for (int d = 0, source = 0; d < it->type.rank; d++)
        position[d] = d == it->axis ? place_of_step(b, it->type.dim[d], it->is_reversed) : index[source++];
    nest->store[nest->store_count++] = (pl_store){
        it->placement.buffer, pl_position(b, &it->placement, &it->type, position), pl_value_at(b, it->value, index)};
    return b->status == MDOT_OK;
}

/* Emits nests for all items. Values of one type share nests, which compute common sub-expressions once. */
static mdot_status emit_items(pl_builder *b, const ir_node *node, const item *items, int count)
{
    bool *done = IR_NEW_ARRAY(b->arena, bool, (size_t)count + 1);
    if (done == NULL) return pl_fault(b);
    for (int first = 0; first < count; first++) {
        if (done[first]) continue;
        const ir_type *type = &items[first].value->type;
        const pl_expr *index[MDOT_MAX_RANK + 1] = {NULL};
        pl_nest nest = {0};
        pl_begin_kernel(b, node);
        pl_add_loops(b, &nest, type->rank, type->dim, index);
        for (int k = first; k < count && nest.store_count < PL_MAX_STORES; k++) {
            bool alike = !done[k] && items[k].value->type.rank == type->rank;
            for (int d = 0; d < type->rank && alike; d++)
                alike = ir_dim_equal(items[k].value->type.dim[d], type->dim[d]);
            if (!alike) continue;
            done[k] = true;
            if (!add_item(b, &nest, &items[k], index)) return b->status;
        }
        BS_TRY(pl_end_nest(b, node->name, &nest));
    }
    return MDOT_OK;
}

static bool is_read(const ir_node *node, int k)
{
    return k < node->output_count && node->outputs[k] != NULL && node->outputs[k]->use_count > 0;
}

static int own_buffer(pl_builder *b, const ir_node *node, const char *what, int k, const ir_type *type)
{
    const char *name = ir_arena_printf(b->arena, "%s.%s%d", node->name, what, k);
    return name != NULL ? pl_add_buffer(b, PL_SCRATCH, name, type) : -1;
}

/* A state's buffer: the final state's placement if that is read. */
static int place_state(pl_builder *b, const pl_loop *loop, int k)
{
    if (!is_read(loop->end, k)) return own_buffer(b, loop->end, "state", k, &loop->begin->inputs[k]->type);
    const ir_value *final = loop->end->outputs[k];
    return pl_place_output(b, final, PL_PLACEMENT_TYPED) ? pl_info(b, final)->placement.buffer : -1;
}

static bool place_states(pl_builder *b, pl_loop *loop)
{
    for (int k = 0; k < loop->states; k++) {
        loop->old[k] = loop->next[k] = -1;
        if (!is_read(loop->end, k) && !is_read(loop->begin, 1 + k)) continue;
        loop->old[k] = place_state(b, loop, k);
        if (loop->old[k] < 0) return false;
        if (!is_read(loop->begin, 1 + k)) continue;
        pl_value *info = pl_info(b, loop->begin->outputs[1 + k]);
        info->placement = (pl_placement){.buffer = loop->old[k], .dense = true};
        info->state = PL_PLACED;
    }
    return true;
}

static item to_buffer(const ir_value *value, int buffer)
{
    return (item){.value = value, .placement = {.buffer = buffer, .dense = true}, .type = value->type, .axis = -1};
}

mdot_status pl_begin_loop(pl_builder *b, const ir_node *begin)
{
    const ir_node *end = ir_loop_end_of(begin);
    pl_loop *loop = IR_NEW(b->arena, pl_loop);
    if (loop == NULL) return pl_fault(b);
    if (end == NULL || b->loop != NULL) {
        pl_reject(b, begin, end == NULL ? "the loop has no end" : "a loop within a loop is unsupported");
        return b->status;
    }
    *loop = (pl_loop){.begin = begin, .end = end, .steps = steps_of(end), .states = ir_loop_states(begin)};
    loop->old = IR_NEW_ARRAY(b->arena, int, (size_t)loop->states + 1);
    loop->next = IR_NEW_ARRAY(b->arena, int, (size_t)loop->states + 1);
    item *items = IR_NEW_ARRAY(b->arena, item, (size_t)loop->states + 1);
    if (loop->old == NULL || loop->next == NULL || items == NULL || !place_states(b, loop)) return pl_fault(b);
    int count = 0;
    for (int k = 0; k < loop->states; k++)
        if (loop->old[k] >= 0) items[count++] = to_buffer(begin->inputs[k], loop->old[k]);
    mdot_status status = emit_items(b, begin, items, count);
    pl_info(b, begin->outputs[0])->state = PL_INLINED;
    pl_info(b, begin->outputs[0])->depth = 1;
    loop->first_kernel = b->plan->kernel_count;
    b->loop = loop;
    return status;
}

static bool is_old_state(const pl_loop *loop, int buffer)
{
    for (int k = 0; k < loop->states; k++)
        if (loop->old[k] == buffer) return true;
    return false;
}

/* The buffer that holds exactly this value, beside the states. -1: there is none. */
static int buffer_of(const pl_builder *b, const pl_loop *loop, const ir_value *v)
{
    const pl_value *info = pl_info(b, v);
    if (v->constant != NULL || info->state != PL_PLACED || !info->placement.dense) return -1;
    const pl_buffer *buffer = &b->plan->buffers[info->placement.buffer];
    bool is_own = buffer->kind == PL_SCRATCH && ir_type_equal(&buffer->type, &v->type) &&
                  pl_info(b, v)->loop == pl_info(b, loop->begin->outputs[0])->loop;
    return is_own && !is_old_state(loop, info->placement.buffer) ? info->placement.buffer : -1;
}

/* Part 1: elements of stacks, and next states without a buffer. */
static mdot_status emit_results(pl_builder *b, pl_loop *loop)
{
    const ir_node *end = loop->end;
    int count = 0;
    item *items = IR_NEW_ARRAY(b->arena, item, (size_t)end->input_count + 1);
    if (items == NULL) return pl_fault(b);
    for (int k = 0; k < loop->states; k++) {
        const ir_value *next_value = end->inputs[IR_LOOP_NEXT + k];
        if (loop->old[k] < 0) continue;
        loop->next[k] = buffer_of(b, loop, next_value);
        if (loop->next[k] >= 0) continue;
        loop->next[k] = own_buffer(b, end, "next", k, &next_value->type);
        if (loop->next[k] < 0) return pl_fault(b);
        items[count++] = to_buffer(next_value, loop->next[k]);
    }
    for (int k = 0; k < ir_loop_elements(end); k++) {
        const ir_value *element = end->inputs[IR_LOOP_NEXT + loop->states + k];
        if (!is_read(end, loop->states + k)) continue;
        const ir_value *stack = end->outputs[loop->states + k];
        if (!pl_place_output(b, stack, PL_PLACEMENT_ANYWHERE)) return pl_fault(b);
        items[count++] = (item){.value = element,
                                .placement = pl_info(b, stack)->placement,
                                .type = stack->type,
                                .axis = ir_loop_axis(end, k, element->type.rank),
                                .is_reversed = ir_loop_is_reversed(end, k)};
    }
    return emit_items(b, end, items, count);
}

/* Part 2 for one state. *out_kernel is the number of the copy; -1: there is none, because the state is empty. */
static mdot_status emit_copy(pl_builder *b, const pl_loop *loop, int k, int *out_kernel)
{
    const ir_type *type = &loop->begin->inputs[k]->type;
    const pl_placement origin = {.buffer = loop->next[k], .dense = true},
                       target = {.buffer = loop->old[k], .dense = true};
    const pl_expr *index[MDOT_MAX_RANK + 1] = {NULL};
    pl_nest nest = {0};
    pl_begin_kernel(b, loop->end);
    pl_add_loops(b, &nest, type->rank, type->dim, index);
    nest.store[nest.store_count++] =
        (pl_store){target.buffer, pl_position(b, &target, type, index), pl_load_at(b, &origin, type, index)};
    int before = b->plan->kernel_count;
    mdot_status status = pl_end_nest(b, loop->end->name, &nest);
    *out_kernel = b->plan->kernel_count > before ? before : -1;
    return status;
}

typedef struct accesses {
    int buffer;
    int reads, writes;
} accesses;

static void note_access(void *user, int buffer, bool is_written)
{
    accesses *a = user;
    if (buffer == a->buffer) *(is_written ? &a->writes : &a->reads) += 1;
}

static accesses accesses_of(const pl_kernel *kernel, int buffer)
{
    accesses a = {.buffer = buffer};
    pl_kernel_visit_buffers(kernel, note_access, &a);
    return a;
}

/* Are all loads of the buffer at this position? */
static bool loads_only_at(const pl_expr *e, int buffer, const pl_expr *position)
{
    if (e == NULL) return true;
    if (e->op == PL_LOAD && e->i == buffer && !pl_expr_equal(e->arg[0], position)) return false;
    for (int k = 0; k < pl_expr_operand_count(e->op); k++)
        if (!loads_only_at(e->arg[k], buffer, position)) return false;
    return true;
}

/* Does the nest store into `next_index`, and read `old` only at the element that it stores? */
static bool updates_elements(const pl_kernel *kernel, int old, int next_index)
{
    if (kernel->kind != PL_NEST) return false;
    const pl_nest *nest = &kernel->nest;
    const pl_expr *position = NULL;
    for (int s = 0; s < nest->store_count; s++)
        if (nest->store[s].buffer == next_index) position = nest->store[s].index;
    if (position == NULL || !loads_only_at(nest->body, old, position)) return false;
    for (int s = 0; s < nest->store_count; s++)
        if (!loads_only_at(nest->store[s].value, old, position) || !loads_only_at(nest->store[s].index, old, position))
            return false;
    return true;
}

/* Can state k's next value take the place of the state? `copy` is the number of the kernel that would copy it. */
static bool fits_in_place(const pl_builder *b, const pl_loop *loop, int k, int copy)
{
    const pl_plan *plan = b->plan;
    int writer = -1;
    for (int other_index = 0; other_index < loop->states; other_index++)
        if (other_index != k && loop->next[other_index] == loop->next[k])
            return false; /* it must stay for the other state */
    for (int i = loop->first_kernel; i < plan->kernel_count; i++) {
        if (i == copy) continue;
        accesses old = accesses_of(&plan->kernels[i], loop->old[k]),
                 successor = accesses_of(&plan->kernels[i], loop->next[k]);
        if (old.writes > 0 || successor.writes > 1 || (successor.writes > 0 && writer >= 0)) return false;
        if (successor.writes > 0 && !updates_elements(&plan->kernels[i], loop->old[k], loop->next[k])) return false;
        if (successor.writes == 0 && writer >= 0 && old.reads > 0) return false;
        if (successor.reads > 0 && (writer < 0 || !pl_can_rename(&plan->kernels[i]))) return false;
        if (successor.writes > 0) writer = i;
    }
    return writer >= 0;
}

static bool put_in_place(pl_builder *b, const pl_loop *loop, int k, int copy)
{
    pl_plan *plan = b->plan;
    for (int i = loop->first_kernel; i < plan->kernel_count; i++)
        if (i != copy && !pl_rename_buffer(b, &plan->kernels[i], loop->next[k], loop->old[k])) return false;
    memmove(&plan->kernels[copy], &plan->kernels[copy + 1],
            (size_t)(plan->kernel_count - copy - 1) * sizeof *plan->kernels);
    plan->kernel_count--;
    return true;
}

mdot_status pl_end_loop(pl_builder *b, const ir_node *end)
{
    pl_loop *loop = b->loop;
    if (loop == NULL || loop->end != end) {
        pl_reject(b, end, "the loop has no begin");
        return b->status;
    }
    mdot_status status = emit_results(b, loop);
    int *copy = IR_NEW_ARRAY(b->arena, int, (size_t)loop->states + 1);
    if (copy == NULL) return pl_fault(b);
    for (int k = 0; k < loop->states && status == MDOT_OK; k++) {
        copy[k] = -1;
        if (loop->old[k] >= 0) status = emit_copy(b, loop, k, &copy[k]);
    }
    for (int k = loop->states - 1; k >= 0 && status == MDOT_OK; k--) {
        if (copy[k] < 0 || !fits_in_place(b, loop, k, copy[k])) continue;
        if (!put_in_place(b, loop, k, copy[k])) status = pl_fault(b);
        for (int later = k + 1; later < loop->states; later++) copy[later] -= copy[later] > copy[k];
    }
    b->loop = NULL;
    if (ir_dim_is(loop->steps, 0)) b->plan->kernel_count = loop->first_kernel;
    if (status != MDOT_OK || b->plan->kernel_count == loop->first_kernel) return status;
    return pl_end_steps(b, end, loop->steps, loop->first_kernel);
}
