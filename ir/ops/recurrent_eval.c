/* recurrent_eval.c — the evaluation of LSTM, GRU, RNN and mdot.Recurrence: one direction at a time, step by step,
 * following the equations of ONNX's operator definitions. */
#include "ir/ops/mdot_ops.h"

#include <math.h>

/* A matrix with strides, so that ONNX's [columns, k] and the recurrence's [k, columns] share one type. */
typedef struct matrix {
    const double *at;
    int64_t column_stride, k_stride;
} matrix;

typedef struct direction {
    ir_recurrent how;
    int64_t steps, batch, hidden;
    const double *x; /* (step, item, column): the matmuls of the inputs, with the biases added */
    int64_t x_step, x_item;
    matrix weights, candidate;
    const double *bias;     /* candidate bias, behind the matmul; NULL: absent */
    const int64_t *lengths; /* NULL: all steps */
    const double *peephole; /* NULL: absent */
    double *h, *c;          /* [batch, hidden]: the initial states, then the final ones */
    double *y;              /* (step, item, j); NULL: not requested */
    int64_t y_step, y_item;
    double *next;  /* space for a state and its gates */
    uint64_t seed; /* 0: nothing is rounded (IR_EVALUATED_IN_F32) */
    double units;
} direction;

/* The result as f32 holds it, with noise in its last places if the evaluation has any. */
static double rounded(direction *d, double x)
{
    if (d->seed == 0) return x;
    return (float)(d->units > 0 ? x * (1 + 0x1p-23 * d->units * ir_next_noise(&d->seed)) : x);
}

static double activate(const ir_gate_activation *a, double x)
{
    switch (a->function) {
    case IR_GATE_SIGMOID: return exp(fmin(x, 0)) / (1 + exp(-fabs(x)));
    case IR_GATE_TANH: return tanh(x);
    case IR_GATE_RELU: return x > 0 ? x : 0;
    case IR_GATE_AFFINE: return a->alpha * x + a->beta;
    case IR_GATE_LEAKY_RELU: return x >= 0 ? x : a->alpha * x;
    case IR_GATE_THRESHOLDED_RELU: return x >= a->alpha ? x : 0;
    case IR_GATE_SCALED_TANH: return a->alpha * tanh(a->beta * x);
    case IR_GATE_HARD_SIGMOID: return fmin(fmax(a->alpha * x + a->beta, 0), 1);
    case IR_GATE_ELU: return x >= 0 ? x : a->alpha * expm1(x);
    case IR_GATE_SOFTSIGN: return x / (1 + fabs(x));
    case IR_GATE_SOFTPLUS: return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
    }
    return x;
}

static double gate(direction *d, int activation, double x)
{
    double clip = d->how.clip;
    if (clip > 0) x = fmin(fmax(x, -clip), clip);
    return rounded(d, activate(&d->how.activation[activation], x));
}

static double dot(const matrix *m, int64_t column, const double *vector, int64_t count)
{
    const double *position = m->at + column * m->column_stride;
    double sum = 0;
    for (int64_t k = 0; k < count; k++) sum += position[k * m->k_stride] * vector[k];
    return sum;
}

/* In each cell, `sum` holds the gates' sums, except for a GRU's candidate; `next` receives the new state. */

static void rnn_step(direction *d, const double *sum, double *next_values)
{
    for (int64_t j = 0; j < d->hidden; j++) next_values[j] = gate(d, 0, sum[j]);
}

static void gru_step(direction *d, const double *x, const double *h, const double *sum, double *next_values)
{
    int64_t count = d->hidden;
    double *reset = next_values + count; /* the input of the candidate's matmul */
    for (int64_t j = 0; j < count; j++) reset[j] = h[j] * gate(d, 0, sum[count + j]);
    for (int64_t j = 0; j < count; j++) {
        double z = gate(d, 0, sum[j]), own_values;
        if (d->how.resets_behind) {
            double product = dot(&d->candidate, j, h, count) + (d->bias != NULL ? d->bias[j] : 0);
            own_values = x[2 * count + j] + gate(d, 0, sum[count + j]) * product;
        } else {
            own_values = x[2 * count + j] + dot(&d->candidate, j, reset, count);
        }
        next_values[j] = rounded(d, rounded(d, 1 - z) * gate(d, 1, rounded(d, own_values)) + z * h[j]);
    }
}

static void lstm_step(direction *d, double *c, const double *sum, double *next_values)
{
    int64_t count = d->hidden;
    const double *p = d->peephole;
    for (int64_t j = 0; j < count; j++) {
        double i = gate(d, 0, sum[j] + (p != NULL ? p[j] * c[j] : 0));
        double f = 1 - i;
        if (!d->how.input_forget) f = gate(d, 0, sum[2 * count + j] + (p != NULL ? p[2 * count + j] * c[j] : 0));
        c[j] = rounded(d, f * c[j] + i * gate(d, 1, sum[3 * count + j]));
        double o = gate(d, 0, sum[count + j] + (p != NULL ? p[count + j] * c[j] : 0));
        next_values[j] = rounded(d, o * rounded(d, activate(&d->how.activation[2], c[j])));
    }
}

static void run_step(direction *d, int64_t step, int64_t item)
{
    int64_t count = d->hidden, columns = d->how.gates * count;
    double *h = d->h + item * count, *next_values = d->next, *sum = next_values + 2 * count;
    const double *x = d->x + step * d->x_step + item * d->x_item;
    int64_t known = d->how.cell == IR_CELL_GRU ? 2 * count : columns;
    for (int64_t column = 0; column < known; column++)
        sum[column] = rounded(d, x[column] + dot(&d->weights, column, h, count));
    switch (d->how.cell) {
    case IR_CELL_RNN: rnn_step(d, sum, next_values); break;
    case IR_CELL_GRU: gru_step(d, x, h, sum, next_values); break;
    case IR_CELL_LSTM: lstm_step(d, d->c + item * count, sum, next_values); break;
    }
    for (int64_t j = 0; j < count; j++) h[j] = next_values[j];
    for (int64_t j = 0; d->y != NULL && j < count; j++) d->y[step * d->y_step + item * d->y_item + j] = next_values[j];
}

/* Steps beyond an item's length keep the states and give zeros, with which results are initialised. */
static void run_direction(direction *d)
{
    for (int64_t t = 0; t < d->steps; t++) {
        int64_t step = d->how.reverse ? d->steps - 1 - t : t;
        for (int64_t item = 0; item < d->batch; item++)
            if (d->lengths == NULL || step < d->lengths[item]) run_step(d, step, item);
    }
}

static double *zeros(ir_arena *arena, int64_t count) { return IR_NEW_ARRAY(arena, double, count + 1); }

/* X is (step, item, i) at step · x_step + item · x_item + i, in either order of axes. */
typedef struct source {
    const double *x, *w, *bias; /* of the direction; bias: Wb, then Rb, or NULL */
    int64_t x_step, x_item, inputs;
} source;

/* x W' with the biases that can be added in advance: [steps, batch, columns]. */
static void project(const direction *d, const source *s, double *out)
{
    int64_t columns = d->how.gates * d->hidden, behind = d->how.resets_behind ? 2 * d->hidden : columns;
    for (int64_t step = 0; step < d->steps; step++) {
        for (int64_t item = 0; item < d->batch; item++, out += columns) {
            const matrix w = {s->w, s->inputs, 1};
            const double *x = s->x + step * s->x_step + item * s->x_item;
            for (int64_t column = 0; column < columns; column++) {
                out[column] = dot(&w, column, x, s->inputs) + (s->bias != NULL ? s->bias[column] : 0);
                if (s->bias != NULL && column < behind) out[column] += s->bias[columns + column];
            }
        }
    }
}

/* Copies a direction's states between ONNX's tensor and [batch, hidden]. */
static void copy_states(ir_wide *tensor, const ir_wide *initial, double *states, const direction *d, int64_t number,
                        int64_t directions, bool batch_first)
{
    for (int64_t item = 0; item < d->batch; item++)
        for (int64_t j = 0; j < d->hidden; j++) {
            int64_t row = batch_first ? item * directions + number : number * d->batch + item;
            if (initial != NULL)
                states[item * d->hidden + j] = initial->f[row * d->hidden + j];
            else if (tensor != NULL)
                tensor->f[row * d->hidden + j] = states[item * d->hidden + j];
        }
}

mdot_status ir_eval_recurrent(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    BS_TRY(ir_check_recurrent(node, input, err));
    const ir_wide *x = input[0], *w = input[1], *r = input[2], *b = ir_tensor_input(node, input, 3);
    const ir_wide *lengths = ir_tensor_input(node, input, 4), *h = ir_tensor_input(node, input, 5);
    bool is_lstm = ir_node_opcode(node) == IR_OP_LSTM;
    const ir_wide *c = is_lstm ? ir_tensor_input(node, input, 6) : NULL;
    const ir_wide *p = is_lstm ? ir_tensor_input(node, input, 7) : NULL;
    bool batch_first = ir_node_int(node, "layout", 0) != 0;
    int64_t directions = ir_recurrent_directions(node), inputs = x->dims[2];
    direction d = {.steps = x->dims[batch_first], .batch = x->dims[!batch_first], .hidden = r->dims[2]};
    d.seed = (uint64_t)ir_node_int(node, IR_EVALUATED_IN_F32, 0);
    d.units = ir_node_float(node, IR_EVALUATED_WITH_NOISE, 0);
    mdot_status status = MDOT_OK;
    ir_arena *scratch = ir_arena_create(0);
    if (scratch == NULL) status = ir_fail_memory(node, err);
    for (int number = 0; number < directions && status == MDOT_OK; number++) {
        status = ir_read_recurrent(node, number, &d.how, err);
        if (status != MDOT_OK) break;
        int64_t columns = d.how.gates * d.hidden, states = d.batch * d.hidden;
        double *projected = zeros(scratch, d.steps * d.batch * columns);
        d.next = zeros(scratch, 2 * d.hidden + columns);
        d.h = zeros(scratch, states);
        d.c = zeros(scratch, states);
        if (projected == NULL || d.next == NULL || d.h == NULL || d.c == NULL) {
            status = ir_fail_memory(node, err);
            break;
        }
        source s = {.x = x->f,
                    .w = w->f + number * columns * inputs,
                    .bias = b != NULL ? b->f + number * 2 * columns : NULL,
                    .x_step = batch_first ? inputs : d.batch * inputs,
                    .x_item = batch_first ? d.steps * inputs : inputs,
                    .inputs = inputs};
        project(&d, &s, projected);
        d.x = projected;
        d.x_item = columns;
        d.x_step = d.batch * columns;
        d.weights = (matrix){r->f + number * columns * d.hidden, d.hidden, 1};
        d.candidate = (matrix){d.weights.at + 2 * d.hidden * d.hidden, d.hidden, 1};
        d.bias = d.how.resets_behind && b != NULL ? s.bias + columns + 2 * d.hidden : NULL;
        d.lengths = lengths != NULL ? lengths->i : NULL;
        d.peephole = p != NULL ? p->f + number * 3 * d.hidden : NULL;
        if (h != NULL) copy_states(NULL, h, d.h, &d, number, directions, batch_first);
        if (c != NULL) copy_states(NULL, c, d.c, &d, number, directions, batch_first);
        d.y = ir_node_wants(node, 0) ? out[0]->f + number * (batch_first ? d.hidden : states) : NULL;
        d.y_step = batch_first ? directions * d.hidden : directions * states;
        d.y_item = batch_first ? d.steps * directions * d.hidden : d.hidden;
        run_direction(&d);
        if (ir_node_wants(node, 1)) copy_states(out[1], NULL, d.h, &d, number, directions, batch_first);
        if (ir_node_wants(node, 2)) copy_states(out[2], NULL, d.c, &d, number, directions, batch_first);
    }
    ir_arena_destroy(scratch);
    return status;
}

static void copy_all(double *target, const ir_wide *tensor, int64_t count)
{
    for (int64_t k = 0; tensor != NULL && k < count; k++) target[k] = tensor->f[k];
}

mdot_status ir_eval_recurrence(ir_arena *arena, const ir_node *node, ir_inputs input, ir_wide **out, mdot_error *err)
{
    BS_TRY(ir_check_recurrence(node, input, err));
    const ir_wide *x = input[0], *weights = input[1], *candidate = ir_tensor_input(node, input, 2);
    const ir_wide *bias = ir_tensor_input(node, input, 3), *lengths = ir_tensor_input(node, input, 4);
    const ir_wide *peephole = ir_tensor_input(node, input, 7);
    direction d = {.steps = x->dims[0], .batch = x->dims[1], .hidden = weights->dims[0], .x = x->f};
    BS_TRY(ir_read_recurrent(node, 0, &d.how, err));
    int64_t columns = d.how.gates * d.hidden, states = d.batch * d.hidden;
    d.x_item = columns;
    d.x_step = d.batch * columns;
    d.weights = (matrix){weights->f, 1, weights->dims[1]};
    d.candidate = candidate != NULL ? (matrix){candidate->f, 1, d.hidden}
                                    : (matrix){weights->f + 2 * d.hidden, 1, weights->dims[1]};
    d.bias = bias != NULL ? bias->f : NULL;
    d.lengths = lengths != NULL ? lengths->i : NULL;
    d.peephole = peephole != NULL ? peephole->f : NULL;
    ir_arena *scratch = ir_arena_create(0);
    d.next = scratch != NULL ? zeros(scratch, 2 * d.hidden + columns) : NULL;
    d.h = ir_node_wants(node, 1) ? out[1]->f : scratch != NULL ? zeros(scratch, states) : NULL;
    d.c = ir_node_wants(node, 2) ? out[2]->f : scratch != NULL ? zeros(scratch, states) : NULL;
    d.y = ir_node_wants(node, 0) ? out[0]->f : NULL;
    d.y_step = states;
    d.y_item = d.hidden;
    bool allocated = d.next != NULL && d.h != NULL && d.c != NULL;
    if (allocated) {
        copy_all(d.h, ir_tensor_input(node, input, 5), states);
        copy_all(d.c, ir_tensor_input(node, input, 6), states);
        run_direction(&d);
    }
    ir_arena_destroy(scratch);
    return allocated ? MDOT_OK : ir_fail_memory(node, err);
}
