/* recurrent.c — LSTM, GRU and RNN (ONNX opset 22), and mdot.Recurrence, which is one direction of them: attributes,
 * shapes and costs. Their evaluation is in recurrent_eval.c. */
#include "ir/ops/mdot_ops.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    int gates, activations;
    ir_gate_function default_name[IR_GATE_ACTIVATIONS];
} cells[] = {
    [IR_CELL_RNN] = {"RNN", 1, 1, {IR_GATE_TANH}},
    [IR_CELL_GRU] = {"GRU", 3, 2, {IR_GATE_SIGMOID, IR_GATE_TANH}},
    [IR_CELL_LSTM] = {"LSTM", 4, 3, {IR_GATE_SIGMOID, IR_GATE_TANH, IR_GATE_TANH}},
};

static const struct {
    const char *name;
    bool takes_alpha, takes_beta;
    double alpha, beta;
} functions[] = {
#define GATE(id, name, takes_alpha, takes_beta, alpha, beta) {name, takes_alpha, takes_beta, alpha, beta},
    IR_GATE_MAP(GATE)
#undef GATE
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

const char *ir_cell_name(ir_cell cell) { return cells[cell].name; }

const char *ir_gate_name(ir_gate_function function) { return functions[function].name; }

static ir_cell cell_of(const ir_node *node)
{
    switch (ir_node_opcode(node)) {
    case IR_OP_LSTM: return IR_CELL_LSTM;
    case IR_OP_GRU: return IR_CELL_GRU;
    case IR_OP_RNN: return IR_CELL_RNN;
    default: break;
    }
    const char *name = ir_node_string(node, "cell", "");
    return strcmp(name, "LSTM") == 0 ? IR_CELL_LSTM : strcmp(name, "GRU") == 0 ? IR_CELL_GRU : IR_CELL_RNN;
}

/* Names may have any case, because ONNX Runtime's exporters and older PyTorch disagree. */
static mdot_status find_function(const ir_node *node, const char *name, ir_gate_activation *out, mdot_error *err)
{
    for (int k = 0; k < FUNCTIONS; k++) {
        if (strcasecmp(name, functions[k].name) != 0) continue;
        *out = (ir_gate_activation){(ir_gate_function)k, functions[k].alpha, functions[k].beta};
        return MDOT_OK;
    }
    return ir_fail(node, err, MDOT_UNSUPPORTED, "activation \"%s\" of a recurrent operator is unsupported", name);
}

/* The next element of a list with one entry per activation that takes it, over all directions in order. */
static double take(const ir_attr *list, int *next_index, double default_name)
{
    int index = (*next_index)++;
    return list != NULL && list->kind == IR_ATTR_FLOATS && index < list->count ? list->floats[index] : default_name;
}

static mdot_status read_activations(const ir_node *node, int direction, ir_recurrent *r, mdot_error *err)
{
    const ir_attr *names = ir_node_attr(node, "activations");
    const ir_attr *alphas = ir_node_attr(node, "activation_alpha"), *betas = ir_node_attr(node, "activation_beta");
    int alpha = 0, beta = 0, wanted = r->activation_count * ir_recurrent_directions(node);
    bool has_names = names != NULL && names->kind == IR_ATTR_STRINGS && names->count > 0;
    if (has_names && names->count != wanted)
        return ir_fail(node, err, MDOT_MALFORMED, "%d activations instead of %d", names->count, wanted);
    for (int k = 0; k < (direction + 1) * r->activation_count; k++) {
        ir_gate_activation found;
        const char *default_name = functions[cells[r->cell].default_name[k % r->activation_count]].name;
        BS_TRY(find_function(node, has_names ? names->strings[k] : default_name, &found, err));
        if (functions[found.function].takes_alpha) found.alpha = take(alphas, &alpha, found.alpha);
        if (functions[found.function].takes_beta) found.beta = take(betas, &beta, found.beta);
        r->activation[k % r->activation_count] = found;
    }
    return MDOT_OK;
}

/* Reads the activations of an mdot.Recurrence, whose attribute names are mdot's own. */
static mdot_status read_own_activations(const ir_node *node, ir_recurrent *r, mdot_error *err)
{
    for (int k = 0; k < r->activation_count; k++) {
        char name[] = "activation0", alpha[] = "alpha0", beta[] = "beta0";
        name[sizeof name - 2] = alpha[sizeof alpha - 2] = beta[sizeof beta - 2] = (char)('0' + k);
        const char *default_name = functions[cells[r->cell].default_name[k]].name;
        BS_TRY(find_function(node, ir_node_string(node, name, default_name), &r->activation[k], err));
        r->activation[k].alpha = ir_node_float(node, alpha, r->activation[k].alpha);
        r->activation[k].beta = ir_node_float(node, beta, r->activation[k].beta);
    }
    return MDOT_OK;
}

int ir_recurrent_directions(const ir_node *node)
{
    return strcmp(ir_node_string(node, "direction", "forward"), "bidirectional") == 0 ? 2 : 1;
}

mdot_status ir_read_recurrent(const ir_node *node, int direction, ir_recurrent *out, mdot_error *err)
{
    ir_cell cell = cell_of(node);
    ir_recurrent r = {.cell = cell, .gates = cells[cell].gates, .activation_count = cells[cell].activations};
    r.clip = ir_node_float(node, "clip", 0);
    r.input_forget = cell == IR_CELL_LSTM && ir_node_int(node, "input_forget", 0) != 0;
    mdot_status status;
    if (ir_node_opcode(node) == IR_OP_Recurrence) {
        r.reverse = ir_node_int(node, "reverse", 0) != 0;
        r.resets_behind = cell == IR_CELL_GRU && ir_node_input(node, 2) == NULL;
        status = read_own_activations(node, &r, err);
    } else {
        const char *way = ir_node_string(node, "direction", "forward");
        bool is_reverse = strcmp(way, "reverse") == 0;
        if (!is_reverse && strcmp(way, "forward") != 0 && strcmp(way, "bidirectional") != 0)
            return ir_fail(node, err, MDOT_MALFORMED, "direction \"%s\" must be forward, reverse or bidirectional",
                           way);
        r.reverse = is_reverse || direction == 1;
        r.resets_behind = cell == IR_CELL_GRU && ir_node_int(node, "linear_before_reset", 0) != 0;
        status = read_activations(node, direction, &r, err);
    }
    if (status == MDOT_OK) *out = r;
    return status;
}

/* X [S, B, I] or with layout 1 [B, S, I]; W [D, gates * H, I]; R [D, gates * H, H]. */
typedef struct recurrent {
    ir_type input;
    ir_dim steps, batch;
    int64_t directions, hidden;
} recurrent;

/* An optional operand of the given dimensions. */
static mdot_status check_operand(const ir_operands *args, int i, const char *what, int rank, const ir_dim *dims)
{
    if (!ir_operand_given(args, i)) return MDOT_OK;
    ir_type type;
    BS_TRY(ir_operand_need(args, i, what, rank, &type));
    for (int d = 0; d < rank; d++) {
        if (ir_dim_equal(type.dim[d], dims[d])) continue;
        char got[IR_SHAPE_TEXT_BYTES], wanted[IR_SHAPE_TEXT_BYTES];
        return ir_refuse(args, ir_dims_fault(2, (ir_dim[]){type.dim[d], dims[d]}), "the %s have shape %s, not %s", what,
                         ir_shape_text(args, rank, type.dim, got), ir_shape_text(args, rank, dims, wanted));
    }
    return MDOT_OK;
}

static mdot_status check_operands(const ir_operands *args, const recurrent *r, int64_t gates)
{
    ir_dim d = ir_dim_number(r->directions), h = ir_dim_number(r->hidden);
    bool batch_first = ir_node_int(args->node, "layout", 0) != 0;
    ir_dim biases[] = {d, ir_dim_number(2 * gates * r->hidden)}, peepholes[] = {d, ir_dim_number(3 * r->hidden)};
    ir_dim states[] = {d, r->batch, h}, states_batch_first[] = {r->batch, d, h};
    const ir_dim *state = batch_first ? states_batch_first : states;
    BS_TRY(check_operand(args, 3, "biases", 2, biases));
    BS_TRY(check_operand(args, 4, "lengths", 1, &r->batch));
    BS_TRY(check_operand(args, 5, "initial hidden states", 3, state));
    if (ir_node_opcode(args->node) != IR_OP_LSTM) return MDOT_OK;
    BS_TRY(check_operand(args, 6, "initial cell states", 3, state));
    return check_operand(args, 7, "peepholes", 2, peepholes);
}

static mdot_status read_operands(const ir_operands *args, recurrent *r)
{
    ir_type w, u;
    BS_TRY(ir_operand_need(args, 0, "input", 3, &r->input));
    BS_TRY(ir_operand_need(args, 1, "weights", 3, &w));
    BS_TRY(ir_operand_need(args, 2, "recurrence weights", 3, &u));
    bool batch_first = ir_node_int(args->node, "layout", 0) != 0;
    r->steps = r->input.dim[batch_first];
    r->batch = r->input.dim[!batch_first];
    r->directions = ir_recurrent_directions(args->node);
    r->hidden = ir_dim_is_number(u.dim[2]) ? u.dim[2].offset : 0;
    int64_t gates = cells[cell_of(args->node)].gates, rows;
    bool agree = r->hidden > 0 && !__builtin_mul_overflow(2 * gates, r->hidden, &rows) &&
                 ir_dim_is(w.dim[1], rows / 2) && ir_dim_is(u.dim[1], rows / 2) && ir_dim_is(w.dim[0], r->directions) &&
                 ir_dim_is(u.dim[0], r->directions) && ir_dim_equal(w.dim[2], r->input.dim[2]);
    if (agree && r->hidden == ir_node_int(args->node, "hidden_size", r->hidden)) return check_operands(args, r, gates);
    return ir_malformed(args, "the shapes of the weights do not match the input, the direction and hidden_size");
}

mdot_status ir_check_recurrent(const ir_node *node, ir_inputs input, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    recurrent r;
    return read_operands(&args, &r);
}

mdot_status ir_outputs_recurrent(const ir_operands *args, int output, ir_type *out_type)
{
    recurrent r;
    ir_recurrent how;
    BS_TRY(read_operands(args, &r));
    BS_TRY(ir_read_recurrent(args->node, (int)r.directions - 1, &how, args->err));
    ir_dim d = ir_dim_number(r.directions), h = ir_dim_number(r.hidden);
    bool batch_first = ir_node_int(args->node, "layout", 0) != 0;
    if (output == 0)
        *out_type = batch_first ? (ir_type){r.input.dtype, 4, {r.batch, r.steps, d, h}}
                                : (ir_type){r.input.dtype, 4, {r.steps, d, r.batch, h}};
    else
        *out_type = (ir_type){r.input.dtype, 3, {batch_first ? r.batch : d, batch_first ? d : r.batch, h}};
    return MDOT_OK;
}

/* One multiply-add per weight of W and R in each step of each sample, and about ten FLOPs of activations per gate. */
void ir_cost_recurrent(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    const ir_type *x = &node->inputs[0]->type, *recurrence = &node->inputs[2]->type;
    double positions = (double)ir_dim_at(x->dim[0], length) * (double)ir_dim_at(x->dim[1], length);
    double weights = ir_value_elements(node->inputs[1], length) + ir_value_elements(node->inputs[2], length);
    double gates = (double)ir_dim_at(recurrence->dim[0], length) * (double)ir_dim_at(recurrence->dim[1], length);
    out_cost->flops = positions * (2 * weights + 10 * gates);
}

/* Checks all operands. *out_all is the type of all steps' states. */
static mdot_status read_recurrence(const ir_operands *args, ir_type *out_all)
{
    ir_recurrent how;
    ir_type x, weights;
    BS_TRY(ir_read_recurrent(args->node, 0, &how, args->err));
    BS_TRY(ir_operand_need(args, 0, "input", 3, &x));
    BS_TRY(ir_operand_need(args, 1, "weights", 2, &weights));
    int64_t hidden = ir_dim_is_number(weights.dim[0]) ? weights.dim[0].offset : 0, columns, own_index;
    bool splits = how.cell == IR_CELL_GRU && !how.resets_behind;
    bool agree = hidden > 0 && !__builtin_mul_overflow(how.gates, hidden, &columns) && ir_dim_is(x.dim[2], columns);
    own_index = agree && splits ? columns - hidden : columns;
    if (!agree || !ir_dim_is(weights.dim[1], own_index))
        return ir_malformed(args, "the shapes of the weights do not match the input");
    ir_dim h = ir_dim_number(hidden), square[] = {h, h}, state[] = {x.dim[1], h}, peephole = ir_dim_number(3 * hidden);
    BS_TRY(check_operand(args, 2, "candidate weights", 2, square));
    BS_TRY(check_operand(args, 3, "biases", 1, &h));
    BS_TRY(check_operand(args, 4, "lengths", 1, &x.dim[1]));
    BS_TRY(check_operand(args, 5, "initial hidden states", 2, state));
    BS_TRY(check_operand(args, 6, "initial cell states", 2, state));
    BS_TRY(check_operand(args, 7, "peepholes", 1, &peephole));
    *out_all = (ir_type){x.dtype, 3, {x.dim[0], x.dim[1], h}};
    return MDOT_OK;
}

mdot_status ir_check_recurrence(const ir_node *node, ir_inputs input, mdot_error *err)
{
    ir_operands args = ir_operands_of_tensors(node, input, err);
    ir_type whole;
    return read_recurrence(&args, &whole);
}

mdot_status ir_outputs_recurrence(const ir_operands *args, int output, ir_type *out_type)
{
    BS_TRY(read_recurrence(args, out_type));
    if (output > 0) *out_type = (ir_type){out_type->dtype, 2, {out_type->dim[1], out_type->dim[2]}};
    return MDOT_OK;
}

void ir_cost_recurrence(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    const ir_type *x = &node->inputs[0]->type;
    double positions = (double)ir_dim_at(x->dim[0], length) * (double)ir_dim_at(x->dim[1], length);
    double weights = ir_value_elements(node->inputs[1], length);
    if (ir_node_input(node, 2) != NULL) weights += ir_value_elements(node->inputs[2], length);
    out_cost->flops = positions * (2 * weights + 10 * (double)ir_dim_at(x->dim[2], length));
}
