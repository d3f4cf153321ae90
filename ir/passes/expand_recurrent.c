/* expand_recurrent.c — rewrites LSTM, GRU and RNN as parallel matmuls and a sequential part:
 *
 *   x W' + b of all steps and directions      one mdot.Linear, at full speed
 *   the rest of each direction                an mdot.Recurrence (ir/ops/mdot_ops.h)
 *
 * Operators bring the weights into the required layout. They fold if the weights are constants, as trained ones are.
 */
#include "ir/ops/mdot_ops.h"
#include "ir/passes/pass_rules.h"

typedef struct recurrent {
    const ir_node *node;
    ir_recurrent how; /* attributes of the current direction */
    int directions;
    bool batch_first;
    ir_dim steps, batch;
    int64_t inputs, hidden, columns; /* columns: gates · hidden, per direction */
} recurrent;

/* The bias of the input matmul: Wb + Rb, without the part that a GRU's reset gate multiplies. [directions · columns] */
static ir_value *input_bias(ir_builder *b, const recurrent *r)
{
    ir_value *pair = ir_node_input(r->node, 3);
    ir_dim total = ir_dim_number(r->directions * r->columns);
    int64_t adds = r->how.resets_behind ? 2 * r->hidden : r->columns;
    if (pair == NULL) return NULL;
    ir_value *of_input = ir_build_slice(b, pair, 1, 0, adds);
    ir_value *of_state = ir_build_slice(b, pair, 1, r->columns, r->columns + adds);
    ir_value *sum = ir_build_add(b, of_input, of_state);
    ir_value *parts[] = {sum, adds < r->columns ? ir_build_slice(b, pair, 1, adds, r->columns) : NULL};
    if (adds < r->columns) sum = ir_build_concat(b, 1, parts, 2);
    return ir_build_reshape(b, sum, &total, 1);
}

/* [steps, batch, directions · columns] */
static ir_value *input_matmul(ir_builder *b, const recurrent *r)
{
    static const int64_t swap[] = {1, 0, 2}, inputs_first[] = {2, 0, 1};
    ir_value *x = r->node->inputs[0], *weights = ir_build_transpose(b, r->node->inputs[1], inputs_first);
    if (r->batch_first) x = ir_build_transpose(b, x, swap);
    weights = ir_build_reshape(b, weights,
                               (ir_dim[]){ir_dim_number(r->inputs), ir_dim_number(r->directions * r->columns)}, 2);
    ir_value *bias = input_bias(b, r);
    return ir_build_with(b, IR_OP_Linear, IR_VALUES(x, weights, bias), IR_NO_ATTRS);
}

/* One direction's part of an operand whose dimension `axis` runs over directions. NULL: the operand is absent. */
static ir_value *part_of(ir_builder *b, const recurrent *r, int input, int axis, int number, const ir_dim *dims,
                         int rank)
{
    ir_value *whole = ir_node_input(r->node, input);
    if (whole == NULL) return NULL;
    ir_value *part = r->directions > 1 ? ir_build_slice(b, whole, axis, number, number + 1) : whole;
    return ir_build_reshape(b, part, dims, rank);
}

/* Rows first … first + count - 1 of the direction's R, transposed: [hidden, count]. */
static ir_value *recurrence_weights(ir_builder *b, const recurrent *r, int number, int64_t first, int64_t count)
{
    static const int64_t swap[] = {1, 0};
    ir_dim dims[] = {ir_dim_number(r->columns), ir_dim_number(r->hidden)};
    ir_value *rows = part_of(b, r, 2, 0, number, dims, 2);
    if (count < r->columns && rows != NULL) rows = ir_build_slice(b, rows, 0, first, first + count);
    return ir_build_transpose(b, rows, swap);
}

/* Rb of a candidate reset after the matmul. */
static ir_value *candidate_bias(ir_builder *b, const recurrent *r, int number)
{
    ir_dim dims[] = {ir_dim_number(2 * r->columns)};
    ir_value *pair = r->how.resets_behind ? part_of(b, r, 3, 0, number, dims, 1) : NULL;
    return pair != NULL ? ir_build_slice(b, pair, 0, 2 * r->columns - r->hidden, 2 * r->columns) : NULL;
}

static void set_activations(ir_builder *b, ir_node *node, const ir_recurrent *how)
{
    for (int k = 0; k < how->activation_count; k++) {
        char name[] = "activation0", alpha[] = "alpha0", beta[] = "beta0";
        name[sizeof name - 2] = alpha[sizeof alpha - 2] = beta[sizeof beta - 2] = (char)('0' + k);
        ir_build_set(b, node, IR_STRING(name, ir_gate_name(how->activation[k].function)));
        ir_build_set(b, node, IR_FLOAT(alpha, how->activation[k].alpha));
        ir_build_set(b, node, IR_FLOAT(beta, how->activation[k].beta));
    }
}

static ir_node *recurrence(ir_builder *b, const recurrent *r, ir_value *x, int number)
{
    bool is_lstm = r->how.cell == IR_CELL_LSTM, splits = r->how.cell == IR_CELL_GRU && !r->how.resets_behind;
    ir_dim hidden = ir_dim_number(r->hidden), state[] = {r->batch, hidden}, peephole = ir_dim_number(3 * r->hidden);
    int64_t first = number * r->columns, width = splits ? 2 * r->hidden : r->columns;
    int axis = r->batch_first ? 1 : 0;
    ir_value *operands[8] = {
        r->directions > 1 ? ir_build_slice(b, x, 2, first, first + r->columns) : x,
        recurrence_weights(b, r, number, 0, width),
        splits ? recurrence_weights(b, r, number, width, r->hidden) : NULL,
        candidate_bias(b, r, number),
        ir_node_input(r->node, 4),
        part_of(b, r, 5, axis, number, state, 2),
        is_lstm ? part_of(b, r, 6, axis, number, state, 2) : NULL,
        is_lstm ? part_of(b, r, 7, 0, number, &peephole, 1) : NULL,
    };
    if (operands[0] == NULL || operands[1] == NULL || b->status != MDOT_OK) return NULL;
    ir_node *node = ir_build_node(b, IR_OP_Recurrence, operands, 8, is_lstm ? 3 : 2);
    ir_build_set(b, node, IR_STRING("cell", ir_cell_name(r->how.cell)));
    ir_build_set(b, node, IR_INT("reverse", r->how.reverse));
    ir_build_set(b, node, IR_INT("input_forget", r->how.input_forget));
    ir_build_set(b, node, IR_FLOAT("clip", r->how.clip));
    set_activations(b, node, &r->how);
    ir_build_infer(b, node);
    return b->status == MDOT_OK ? node : NULL;
}

/* Output `i` of all directions, concatenated along a dimension for the directions. */
static ir_value *joined(ir_builder *b, const recurrent *r, ir_node *const *made, int i)
{
    static const int64_t batch_first_all[] = {2, 0, 1, 3}, batch_first_last[] = {1, 0, 2};
    ir_dim one = ir_dim_number(1), hidden = ir_dim_number(r->hidden);
    ir_dim total[] = {r->steps, one, r->batch, hidden}, last_dim[] = {one, r->batch, hidden};
    ir_value *parts[2];
    for (int number = 0; number < r->directions; number++)
        parts[number] = ir_build_reshape(b, made[number]->outputs[i], i == 0 ? total : last_dim, i == 0 ? 4 : 3);
    ir_value *whole = r->directions > 1 ? ir_build_concat(b, i == 0 ? 1 : 0, parts, r->directions) : parts[0];
    if (!r->batch_first) return whole;
    return ir_build_transpose(b, whole, i == 0 ? batch_first_all : batch_first_last);
}

void ir_expand_recurrent(ir_builder *b, ir_node *node)
{
    recurrent r = {.node = node, .directions = ir_recurrent_directions(node)};
    ir_value *x = node->inputs[0];
    ir_node *made[2];
    r.batch_first = ir_node_int(node, "layout", 0) != 0;
    r.steps = x->type.dim[r.batch_first];
    r.batch = x->type.dim[!r.batch_first];
    r.inputs = node->inputs[1]->type.dim[2].offset;
    r.hidden = node->inputs[2]->type.dim[2].offset;
    r.columns = node->inputs[2]->type.dim[1].offset;
    if (b->status == MDOT_OK) b->status = ir_read_recurrent(node, 0, &r.how, b->err);
    ir_value *whole = b->status == MDOT_OK ? input_matmul(b, &r) : NULL;
    for (int number = 0; number < r.directions; number++) {
        if (b->status == MDOT_OK) b->status = ir_read_recurrent(node, number, &r.how, b->err);
        made[number] = b->status == MDOT_OK ? recurrence(b, &r, whole, number) : NULL;
        if (made[number] == NULL) return;
    }
    for (int i = 0; i < node->output_count; i++) {
        ir_value *old = ir_read_output(node, i);
        if (old != NULL) ir_replace(b, old, joined(b, &r, made, i));
    }
}
