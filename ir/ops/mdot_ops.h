/* mdot_ops.h — mdot's own operators: attributes and constants shared by rules, passes and kernels. */
#pragma once

#include "ir/ops/operands.h"

/* ---- recurrent.c: the computation of one step of a recurrent node, read from its attributes in one place. It covers
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

enum { IR_GATE_ACTIVATIONS = 3 };

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

/* The ONNX node's direction count. */
int ir_recurrent_directions(const ir_node *node);

/* Checks evaluation operands like the shape rules: for LSTM, GRU and RNN, and for mdot.Recurrence. */
mdot_status ir_check_recurrent(const ir_node *node, ir_inputs in, mdot_error *err);
mdot_status ir_check_recurrence(const ir_node *node, ir_inputs in, mdot_error *err);

/* ---- trees.c: the constants of mdot.Trees: ensembles of decision trees in one form, whatever comparisons the model
 * makes.
 *
 * Inputs: x [rows, features] of type T (f32 or f64), nodes I32 [count, words], trees I32 [count, 3], values T [count].
 * A node is a record:
 *
 *   f32, 4 words: threshold, feature, child, value
 *   f64, 6 words: threshold (low word, high word), feature, child, value, 0
 *
 * The threshold is the bit pattern of a T. A step from a node goes to node `child` if x'[feature] <= threshold, and
 * otherwise, also for NaN, to node `child + 1`. x'[2f] is x[f], and x'[2f + 1] is -x[f]. So one comparison expresses
 * all of ONNX's, with either direction for NaN: for example, x > t is -x <= the next number below -t. A leaf has a NaN
 * as its threshold and child + 1 is the leaf itself, so that further steps stay there. Therefore a tree is walked by a
 * fixed number of steps, its depth, without a test for leaves.
 *
 * A tree is {root, depth, target}. Its leaf's `value` is the position in `values` of the number that it contributes to
 * the target. If the target is -1, the leaf contributes to all targets, by as many consecutive values.
 *
 * Attributes: targets (default 1), and aggregate, which is SUM (default), MIN or MAX. Output: T [rows, targets]; a
 * target without trees is 0 for SUM and otherwise the neutral infinity.
 */

enum { IR_TREE_WORDS = 3, IR_TREE_ROOT = 0, IR_TREE_DEPTH, IR_TREE_TARGET };

typedef enum ir_aggregate { IR_AGGREGATE_SUM, IR_AGGREGATE_MIN, IR_AGGREGATE_MAX } ir_aggregate;

typedef struct ir_trees {
    mdot_dtype dtype; /* F32 or F64 */
    ir_dim rows;
    int64_t features, targets;
    ir_aggregate aggregate;
    int words; /* per node */
    int64_t node_count, tree_count, value_count;
    ir_operands from;
} ir_trees;

typedef struct ir_tree_node {
    double threshold;
    int64_t feature, child, value;
} ir_tree_node;

/* Reads and checks a node's operands, so every position in them is in range. MALFORMED names the fault. */
mdot_status ir_read_trees(const ir_operands *args, ir_trees *out);
/* For positions that a checked ensemble contains. */
ir_tree_node ir_trees_node(const ir_trees *trees, int64_t index);
int64_t ir_trees_tree(const ir_trees *trees, int64_t tree, int word); /* IR_TREE_… */

static inline int ir_tree_node_words(mdot_dtype dtype) { return dtype == MDOT_DTYPE_F64 ? 6 : 4; }
