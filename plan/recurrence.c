/* recurrence.c — mdot.Recurrence: a kernel for the states before the first step, then the steps. Each step is a
 * linear for the matmul with the previous state, and a nest for everything behind it. A GRU that resets before its
 * candidate's matmul has two of both.
 *
 * The states have their own buffers, which each step overwrites. ir/ops/mdot_ops.h describes operands and gates.
 */
#include "ir/ops/mdot_ops.h"
#include "plan/emitters.h"

#include "plan/expr.h"
#include "plan/plan_builder.h"

enum { CANDIDATE = 2 }; /* index among a GRU's gates: z, r, h */

typedef struct recurrence {
    pl_builder *b;
    const ir_node *node;
    ir_recurrent how;
    mdot_dtype dtype;
    ir_dim steps, batch;
    int64_t hidden;
    int states, cells;       /* buffers [batch, hidden] */
    int sums, own, reset;    /* buffers: the matmul results [batch, columns]; for a GRU, the candidate's, and its matmul
                              * input */
    int64_t columns;         /* columns of `sums` */
    const pl_expr *step;     /* position in the sequence: STEP, or steps - 1 - STEP in a reverse direction */
    const pl_expr *index[3]; /* step, item and unit of the current nest */
} recurrence;

static const pl_expr *number(const recurrence *r, double value) { return pl_const_f(r->b->arena, r->dtype, value); }

/* Element `unit + first` of the item's row in a buffer of `width` columns. */
static const pl_expr *in_row(const recurrence *r, int buffer, int64_t width, int64_t first)
{
    pl_builder *b = r->b;
    const pl_expr *row = pl_op2(b, PL_MUL, r->index[1], pl_int(b, width));
    const pl_expr *position = pl_op2(b, PL_ADD, pl_op2(b, PL_ADD, row, r->index[2]), pl_int(b, first));
    return pl_load(b->arena, buffer, r->dtype, position);
}

/* Element `unit + first` of a vector operand. */
static const pl_expr *of_operand(const recurrence *r, int operand, int64_t first)
{
    const pl_expr *position = pl_op2(r->b, PL_ADD, r->index[2], pl_int(r->b, first));
    return pl_value_at(r->b, r->node->inputs[operand], &position);
}

static const pl_expr *input_sum(const recurrence *r, int gate)
{
    pl_builder *b = r->b;
    const pl_expr *column = pl_op2(b, PL_ADD, r->index[2], pl_int(b, gate * r->hidden));
    return pl_value_at(b, r->node->inputs[0], (const pl_expr *[]){r->step, r->index[1], column});
}

static const pl_expr *preactivation(const recurrence *r, int gate)
{
    return pl_op2(r->b, PL_ADD, input_sum(r, gate), in_row(r, r->sums, r->columns, gate * r->hidden));
}

static const pl_expr *activate(const recurrence *r, int activation, const pl_expr *x)
{
    static const char *const formulas[] = {
        [IR_GATE_SIGMOID] = "sigmoid(x)",
        [IR_GATE_TANH] = "tanh(x)",
        [IR_GATE_RELU] = "max(x, 0)",
        [IR_GATE_AFFINE] = "alpha * x + beta",
        [IR_GATE_LEAKY_RELU] = "x < 0 ? alpha * x : x",
        [IR_GATE_THRESHOLDED_RELU] = "x < alpha ? 0 : x",
        [IR_GATE_SCALED_TANH] = "alpha * tanh(beta * x)",
        [IR_GATE_HARD_SIGMOID] = "min(max(alpha * x + beta, 0), 1)",
        [IR_GATE_ELU] = "x < 0 ? alpha * expm1(x) : x",
        [IR_GATE_SOFTSIGN] = "x / (1 + abs(x))",
        [IR_GATE_SOFTPLUS] = "softplus(x)",
    };
    const ir_gate_activation *a = &r->how.activation[activation];
    const pl_symbol symbols[] = {{"x", x}, {"alpha", number(r, a->alpha)}, {"beta", number(r, a->beta)}};
    return pl_formula(r->b->arena, formulas[a->function], symbols, 3);
}

static const pl_expr *gate(const recurrence *r, int activation, const pl_expr *x)
{
    double clip = r->how.clip;
    if (clip > 0) x = pl_op2(r->b, PL_MIN, pl_op2(r->b, PL_MAX, x, number(r, -clip)), number(r, clip));
    return activate(r, activation, x);
}

static const pl_expr *with_peephole(const recurrence *r, const pl_expr *sum, int gate, const pl_expr *cell)
{
    if (ir_node_input(r->node, 7) == NULL) return sum;
    return pl_op2(r->b, PL_ADD, sum, pl_op2(r->b, PL_MUL, of_operand(r, 7, gate * r->hidden), cell));
}

/* Gates i o f c. */
static const pl_expr *lstm(const recurrence *r, const pl_expr **out_cell)
{
    pl_builder *b = r->b;
    const pl_expr *before = in_row(r, r->cells, r->hidden, 0);
    const pl_expr *input = gate(r, 0, with_peephole(r, preactivation(r, 0), 0, before));
    const pl_expr *forget = r->how.input_forget ? pl_op2(b, PL_SUB, number(r, 1), input)
                                                : gate(r, 0, with_peephole(r, preactivation(r, 2), 2, before));
    const pl_expr *fresh = pl_op2(b, PL_MUL, input, gate(r, 1, preactivation(r, 3)));
    const pl_expr *cell = pl_op2(b, PL_ADD, pl_op2(b, PL_MUL, forget, before), fresh);
    const pl_expr *output = gate(r, 0, with_peephole(r, preactivation(r, 1), 1, cell));
    *out_cell = cell;
    return pl_op2(b, PL_MUL, output, activate(r, 2, cell));
}

/* Gates z r h. */
static const pl_expr *gru(const recurrence *r)
{
    pl_builder *b = r->b;
    const pl_expr *before = in_row(r, r->states, r->hidden, 0), *keep = gate(r, 0, preactivation(r, 0)), *product;
    if (r->how.resets_behind) {
        product = in_row(r, r->sums, r->columns, CANDIDATE * r->hidden);
        if (ir_node_input(r->node, 3) != NULL) product = pl_op2(b, PL_ADD, product, of_operand(r, 3, 0));
        product = pl_op2(b, PL_MUL, gate(r, 0, preactivation(r, 1)), product);
    } else {
        product = in_row(r, r->own, r->hidden, 0);
    }
    const pl_expr *fresh = gate(r, 1, pl_op2(b, PL_ADD, input_sum(r, CANDIDATE), product));
    const pl_expr *rest = pl_op2(b, PL_MUL, pl_op2(b, PL_SUB, number(r, 1), keep), fresh);
    return pl_op2(b, PL_ADD, rest, pl_op2(b, PL_MUL, keep, before));
}

/* [batch, columns] */
static int row_buffer(const recurrence *r, const char *what, int64_t columns)
{
    const ir_type type = {r->dtype, 2, {r->batch, ir_dim_number(columns)}};
    const char *name = ir_arena_printf(r->b->arena, "%s.%s", r->node->name, what);
    return name != NULL ? pl_add_buffer(r->b, PL_SCRATCH, name, &type) : -1;
}

/* A state's buffer: the final state's placement if that is read. */
static int state_buffer(const recurrence *r, int output)
{
    const ir_value *v = output < r->node->output_count ? r->node->outputs[output] : NULL;
    if (v == NULL || v->use_count == 0) return row_buffer(r, output == 1 ? "state" : "cell", r->hidden);
    return pl_place_output(r->b, v, PL_PLACEMENT_DENSE) ? pl_info(r->b, v)->placement.buffer : -1;
}

static void begin_nest(recurrence *r, pl_nest *nest)
{
    pl_begin_kernel(r->b, NULL);
    *nest = (pl_nest){0};
    pl_add_loops(r->b, nest, 2, (const ir_dim[]){r->batch, ir_dim_number(r->hidden)}, r->index + 1);
}

static void put_store(const recurrence *r, pl_nest *nest, int buffer, const pl_expr *value)
{
    const ir_dim dims[] = {r->batch, ir_dim_number(r->hidden)};
    nest->store[nest->store_count++] = (pl_store){buffer, pl_flatten(r->b, 2, dims, r->index + 1), value};
}

static const pl_expr *initial(const recurrence *r, int operand)
{
    const ir_value *v = ir_node_input(r->node, operand);
    return v != NULL ? pl_value_at(r->b, v, r->index + 1) : number(r, 0);
}

static mdot_status emit_start(recurrence *r)
{
    pl_nest nest;
    begin_nest(r, &nest);
    put_store(r, &nest, r->states, initial(r, 5));
    if (r->cells >= 0) put_store(r, &nest, r->cells, initial(r, 6));
    return pl_end_nest(r->b, r->node->name, &nest);
}

/* Computes out = in · weights over the batch's rows by a linear. */
static mdot_status emit_matmul_as_linear(const recurrence *r, const ir_value *weights, int input, int out)
{
    int64_t columns = weights->type.dim[1].offset;
    pl_linear linear = {.rows = r->batch,
                        .k = r->hidden,
                        .columns = columns,
                        .bias = -1,
                        .a = {.buffer = input, .row_stride = ir_dim_number(r->hidden)},
                        .out = {.buffer = out, .row_stride = ir_dim_number(columns)}};
    pl_begin_kernel(r->b, NULL);
    linear.weight = pl_constant_buffer(r->b, weights->constant, weights->name, PL_MATRIX);
    if (linear.weight < 0) return pl_fault(r->b);
    return pl_end_kernel(r->b, PL_LINEAR, r->node->name, &(pl_kernel){.linear = linear});
}

/* Computes the same by a nest, for weights that are known only at run time and for f64. */
static mdot_status emit_matmul_as_nest(const recurrence *r, const ir_value *weights, int input, int out)
{
    pl_builder *b = r->b;
    const ir_dim dims[] = {r->batch, weights->type.dim[1]}, rows[] = {r->batch, weights->type.dim[0]};
    const pl_expr *index[2], *position[2];
    pl_nest nest = {.reducer = PL_REDUCE_SUM};
    pl_begin_kernel(b, NULL);
    pl_add_loops(b, &nest, 2, dims, index);
    nest.extent[nest.loop_count] = rows[1]; /* a loop even if it has one iteration, because a reduction needs one */
    const pl_expr *k = pl_index(b->arena, nest.loop_count + nest.reduce_count++);
    position[0] = index[0];
    position[1] = k;
    const pl_expr *state = pl_load(b->arena, input, r->dtype, pl_flatten(b, 2, rows, position));
    nest.body = pl_op2(b, PL_MUL, state, pl_value_at(b, weights, (const pl_expr *[]){k, index[1]}));
    if (nest.body == NULL) return pl_fault(b);
    nest.store[nest.store_count++] = (pl_store){out, pl_flatten(b, 2, dims, index), pl_acc(b->arena, 0, r->dtype)};
    return pl_end_nest(b, r->node->name, &nest);
}

static mdot_status emit_matmul(const recurrence *r, int operand, int input, int out)
{
    const ir_value *weights = r->node->inputs[operand];
    bool is_linear = weights->constant != NULL && r->dtype == MDOT_DTYPE_F32;
    return (is_linear ? emit_matmul_as_linear : emit_matmul_as_nest)(r, weights, input, out);
}

static mdot_status emit_reset(recurrence *r)
{
    pl_nest nest;
    begin_nest(r, &nest);
    const pl_expr *kept = pl_op2(r->b, PL_MUL, gate(r, 0, preactivation(r, 1)), in_row(r, r->states, r->hidden, 0));
    put_store(r, &nest, r->reset, kept);
    return pl_end_nest(r->b, r->node->name, &nest);
}

/* `value` while the item's sequence lasts, then `after`. */
static const pl_expr *while_it_lasts(const recurrence *r, const pl_expr *value, const pl_expr *after)
{
    const ir_value *lengths = ir_node_input(r->node, 4);
    if (lengths == NULL) return value;
    const pl_expr *length = pl_cast(r->b->arena, pl_value_at(r->b, lengths, r->index + 1), MDOT_DTYPE_I64);
    return pl_select(r->b->arena, pl_op2(r->b, PL_LT, r->step, length), value, after);
}

static mdot_status emit_update(recurrence *r)
{
    const ir_value *whole = r->node->outputs[0];
    const pl_expr *cell = NULL, *state;
    pl_nest nest;
    begin_nest(r, &nest);
    switch (r->how.cell) {
    case IR_CELL_LSTM: state = lstm(r, &cell); break;
    case IR_CELL_GRU: state = gru(r); break;
    default: state = gate(r, 0, preactivation(r, 0)); break;
    }
    put_store(r, &nest, r->states, while_it_lasts(r, state, in_row(r, r->states, r->hidden, 0)));
    if (cell != NULL) put_store(r, &nest, r->cells, while_it_lasts(r, cell, in_row(r, r->cells, r->hidden, 0)));
    if (whole != NULL && whole->use_count > 0) {
        const pl_placement *placement = &pl_info(r->b, whole)->placement;
        const pl_expr *index[] = {r->step, r->index[1], r->index[2]};
        nest.store[nest.store_count++] =
            (pl_store){placement->buffer, pl_position(r->b, placement, &whole->type, index),
                       while_it_lasts(r, state, number(r, 0))};
    }
    return pl_end_nest(r->b, r->node->name, &nest);
}

static mdot_status emit_step(recurrence *r)
{
    mdot_status status = emit_matmul(r, 1, r->states, r->sums);
    if (status == MDOT_OK && r->own >= 0) {
        status = emit_reset(r);
        if (status == MDOT_OK) status = emit_matmul(r, 2, r->reset, r->own);
    }
    return status == MDOT_OK ? emit_update(r) : status;
}

static bool make_buffers(recurrence *r)
{
    const ir_value *whole = r->node->outputs[0];
    bool splits = r->how.cell == IR_CELL_GRU && !r->how.resets_behind;
    r->columns = r->node->inputs[1]->type.dim[1].offset;
    r->states = state_buffer(r, 1);
    r->cells = r->how.cell == IR_CELL_LSTM ? state_buffer(r, 2) : -1;
    r->sums = row_buffer(r, "sums", r->columns);
    r->own = splits ? row_buffer(r, "candidate", r->hidden) : -1;
    r->reset = splits ? row_buffer(r, "reset", r->hidden) : -1;
    if (r->states < 0 || r->sums < 0 || (r->how.cell == IR_CELL_LSTM && r->cells < 0)) return false;
    if (splits && (r->own < 0 || r->reset < 0)) return false;
    return whole == NULL || whole->use_count == 0 || pl_place_output(r->b, whole, PL_PLACEMENT_ANYWHERE);
}

mdot_status pl_emit_recurrence(pl_builder *b, const ir_node *node)
{
    recurrence r = {.b = b, .node = node, .steps = node->inputs[0]->type.dim[0], .batch = node->inputs[0]->type.dim[1]};
    r.hidden = node->inputs[1]->type.dim[0].offset;
    r.dtype = node->inputs[0]->type.dtype;
    BS_TRY(ir_read_recurrent(node, 0, &r.how, b->err));
    if (!make_buffers(&r)) return pl_fault(b);
    r.step = pl_step(b->arena);
    ir_dim last_dim;
    if (r.how.reverse) {
        if (!ir_dim_sub(r.steps, ir_dim_number(1), &last_dim)) return pl_fault(b);
        r.step = pl_op2(b, PL_ADD, pl_extent(b, last_dim), pl_op2(b, PL_MUL, r.step, pl_int(b, -1)));
    }
    mdot_status status = emit_start(&r);
    int first = b->plan->kernel_count;
    if (status == MDOT_OK) status = emit_step(&r);
    if (status == MDOT_OK && b->plan->kernel_count > first) status = pl_end_steps(b, node, r.steps, first);
    return status;
}
