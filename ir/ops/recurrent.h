/* recurrent.h — the computation of one step of a recurrent node, read from its attributes in one place. It covers
 * LSTM, GRU and RNN of ONNX (opset 22), and mdot.Recurrence, into which the `expand` pass converts each of their
 * directions.
 *
 *   mdot.Recurrence(x, weights, candidate?, bias?, lengths?, hidden?, cell?, peephole?) → steps?, hidden?, cell?
 *
 *     x          [steps, batch, gates · H]  the matmuls of the inputs with their weights, plus all biases that can be
 *                added in advance
 *     weights    [H, gates · H]; for a GRU that resets before its matmul [H, 2 H]
 *     candidate  [H, H], for such a GRU
 *     bias       [H], for the candidate of a GRU that resets behind its matmul
 *     lengths    [batch] i32; hidden, cell [batch, H]; peephole [3 H]
 *     results    [steps, batch, H], [batch, H], [batch, H]
 *
 * Attributes: `cell` is the ONNX operator's name; `reverse`, `clip`, `input_forget`; and for each activation k its
 * name `activation<k>` with `alpha<k>` and `beta<k>`. Gates are in ONNX's order: i o f c; z r h.
 */
#ifndef IR_OPS_RECURRENT_H
#define IR_OPS_RECURRENT_H

#include "ir/ops/operands.h"

typedef enum ir_cell { IR_CELL_RNN, IR_CELL_GRU, IR_CELL_LSTM } ir_cell;
const char *ir_cell_name(ir_cell cell); /* ONNX's operator */

/* name, whether it takes an alpha and a beta, and their defaults */
#define IR_GATE_MAP(X)                                                                                                 \
    X(SIGMOID, "Sigmoid", 0, 0, 0, 0)                                                                                  \
    X(TANH, "Tanh", 0, 0, 0, 0)                                                                                        \
    X(RELU, "Relu", 0, 0, 0, 0)                                                                                        \
    X(AFFINE, "Affine", 1, 1, 1, 0)                                                                                    \
    X(LEAKY_RELU, "LeakyRelu", 1, 0, 0.01, 0)                                                                          \
    X(THRESHOLDED_RELU, "ThresholdedRelu", 1, 0, 1, 0)                                                                 \
    X(SCALED_TANH, "ScaledTanh", 1, 1, 1, 1)                                                                           \
    X(HARD_SIGMOID, "HardSigmoid", 1, 1, 0.2, 0.5)                                                                     \
    X(ELU, "Elu", 1, 0, 1, 0)                                                                                          \
    X(SOFTSIGN, "Softsign", 0, 0, 0, 0)                                                                                \
    X(SOFTPLUS, "Softplus", 0, 0, 0, 0)

typedef enum ir_gate_function {
#define GATE(id, name, takes_alpha, takes_beta, alpha, beta) IR_GATE_##id,
    IR_GATE_MAP(GATE)
#undef GATE
} ir_gate_function;

typedef struct ir_gate_activation {
    ir_gate_function function;
    double alpha, beta;
} ir_gate_activation;
const char *ir_gate_name(ir_gate_function function);

enum { IR_MAX_GATES = 4, IR_GATE_ACTIVATIONS = 3 };

typedef struct ir_recurrent {
    ir_cell cell;
    int gates;
    ir_gate_activation activation[IR_GATE_ACTIVATIONS]; /* ONNX's f, g, h; an RNN has only the first, a GRU two */
    int activation_count;
    bool reverse;
    bool resets_behind; /* GRU: linear_before_reset */
    bool input_forget;  /* LSTM: the forget gate is 1 - the input gate */
    double clip;        /* 0: no clipping */
} ir_recurrent;

/* Reads direction 0 or 1 of an ONNX node, or an mdot.Recurrence. MALFORMED for an invalid direction, UNSUPPORTED for
 * an activation that ONNX lacks. */
mdot_status ir_read_recurrent(const ir_node *node, int direction, ir_recurrent *out, mdot_error *err);

/* Number of directions of an ONNX node. */
int ir_recurrent_directions(const ir_node *node);

/* Checks the operands of an evaluation, as the shape rules do: of LSTM, GRU and RNN, and of mdot.Recurrence. */
mdot_status ir_check_recurrent(const ir_node *node, const ir_wide *const *in, mdot_error *err);
mdot_status ir_check_recurrence(const ir_node *node, const ir_wide *const *in, mdot_error *err);

#endif
