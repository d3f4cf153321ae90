/* recurrent.c — LSTM, GRU and RNN (ONNX opset 22). Shapes and costs only. */
#include "ir/ops/operands.h"

#include <string.h>

/* X [S, B, I] or with layout 1 [B, S, I]; W [D, gates * H, I]; R [D, gates * H, H]. */
typedef struct recurrent {
    ir_type input;
    ir_dim steps, batch;
    int64_t directions, hidden;
} recurrent;

static int64_t gates_of(const ir_node *node)
{
    ir_opcode op = ir_node_opcode(node);
    return op == IR_OP_LSTM ? 4 : op == IR_OP_GRU ? 3 : 1;
}

static mdot_status read_recurrent(const ir_operands *from, recurrent *r)
{
    ir_type w, u;
    mdot_status status = ir_operand_need(from, 0, "input", 3, &r->input);
    if (status == MDOT_OK) status = ir_operand_need(from, 1, "weights", 3, &w);
    if (status == MDOT_OK) status = ir_operand_need(from, 2, "recurrence weights", 3, &u);
    if (status != MDOT_OK) return status;
    bool batch_first = ir_node_int(from->node, "layout", 0) != 0;
    r->steps = r->input.dim[batch_first];
    r->batch = r->input.dim[!batch_first];
    r->directions = strcmp(ir_node_string(from->node, "direction", "forward"), "bidirectional") == 0 ? 2 : 1;
    r->hidden = ir_dim_is_number(u.dim[2]) ? u.dim[2].offset : 0;
    int64_t gates = gates_of(from->node), rows;
    bool agree = r->hidden > 0 && !__builtin_mul_overflow(gates, r->hidden, &rows) && ir_dim_is(w.dim[1], rows) &&
                 ir_dim_is(u.dim[1], rows) && ir_dim_is(w.dim[0], r->directions) &&
                 ir_dim_is(u.dim[0], r->directions) && ir_dim_equal(w.dim[2], r->input.dim[2]);
    if (agree && r->hidden == ir_node_int(from->node, "hidden_size", r->hidden)) return MDOT_OK;
    return ir_fail(from->node, from->err, MDOT_MALFORMED,
                   "the weights do not agree with the input, the direction and hidden_size");
}

mdot_status ir_shape_recurrent(ir_graph *graph, ir_node *node, mdot_error *err)
{
    ir_operands from = ir_operands_of_graph(graph, node, err);
    recurrent r;
    mdot_status status = read_recurrent(&from, &r);
    if (status != MDOT_OK) return status;
    ir_dim directions = ir_dim_number(r.directions), hidden = ir_dim_number(r.hidden);
    bool batch_first = ir_node_int(node, "layout", 0) != 0;
    ir_dim all[] = {r.steps, directions, r.batch, hidden}, all_batch_first[] = {r.batch, r.steps, directions, hidden};
    ir_dim last[] = {directions, r.batch, hidden}, last_batch_first[] = {r.batch, directions, hidden};
    ir_set_type(node, 0, r.input.dtype, 4, batch_first ? all_batch_first : all);
    for (int i = 1; i < node->output_count; i++) {
        ir_set_type(node, i, r.input.dtype, 3, batch_first ? last_batch_first : last);
    }
    return MDOT_OK;
}

/* A multiply-add for each weight of W and R in each step of each sample, and some ten FLOPs of activations a gate. */
void ir_cost_recurrent(const ir_node *node, int64_t length, ir_cost *out_cost)
{
    ir_cost_traffic(node, length, out_cost);
    const ir_type *x = &node->inputs[0]->type, *recurrence = &node->inputs[2]->type;
    double positions = (double)ir_dim_at(x->dim[0], length) * (double)ir_dim_at(x->dim[1], length);
    double weights = ir_value_elements(node->inputs[1], length) + ir_value_elements(node->inputs[2], length);
    double gates = (double)ir_dim_at(recurrence->dim[0], length) * (double)ir_dim_at(recurrence->dim[1], length);
    out_cost->flops = positions * (2 * weights + 10 * gates);
}
