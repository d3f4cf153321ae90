/* rewrites.h — operators of older opsets and other domains, rewritten in terms of FE_NEWEST_OPSET. */
#pragma once

#include "frontend/onnx/graph_edit.h"

#include <stdbool.h>

/* ---- upgrade.c: rewrites nodes of any opset into the form of FE_NEWEST_OPSET, the only form that the rest of the
 * compiler knows. */

enum { FE_NEWEST_OPSET = 28 };

/* The row for an operator of domain "" or another; NULL: unknown. Old names of renamed operators are found, too. */
const ir_op *fe_find_operator(const char *domain, const char *op_type, int64_t opset);

/* Rewrites `node`, the graph's last, with domain "" and in the form of `opset`. Nodes may be added around it. Later
 * nodes keep reading the same output values. A node that cannot be rewritten gets op = NULL and the reason in
 * op_type. */
mdot_status fe_upgrade_node(fe_upgrader *u, ir_node *node, int64_t opset);

/* ---- The functions of upgrade.c's table. Each rewrites a node of an opset below that of its row into the form of that
 * opset, or gives the node up with a reason. False: out of memory.
 */

typedef bool fe_rewrite_fn(fe_upgrader *u, ir_node *node, int64_t opset);

/* rewrites_inputs.c: attributes that became inputs. */
fe_rewrite_fn fe_rewrite_axes, fe_rewrite_reshape, fe_rewrite_slice, fe_rewrite_split, fe_rewrite_pad, fe_rewrite_clip,
    fe_rewrite_top_k, fe_rewrite_dropout, fe_rewrite_resize, fe_rewrite_tile;
/* rewrites_meaning.c: defaults and meanings that changed. */
fe_rewrite_fn fe_rewrite_broadcast, fe_rewrite_prelu, fe_rewrite_gemm, fe_rewrite_selu, fe_rewrite_cast,
    fe_rewrite_concat, fe_rewrite_softmax, fe_rewrite_batch_normalization, fe_rewrite_group_normalization,
    fe_rewrite_constant_of_shape;

/* dft.c: if `node`, the last of the graph, is a DFT of ONNX, rewrites it as matmuls with the cosines and sines of its
 * frequencies, or gives it up with the reason. False: out of memory. */
bool fe_write_dft(fe_upgrader *u, ir_node *node, int64_t opset);

/* matmul_nbits.c: the most weights, over all nodes: as many as fit the 2 GiB reach of CPU code, in bf16. */
#define FE_MAX_UNPACKED_WEIGHTS (INT64_C(1) << 30)

/* Dequantises the weights of `node`, a MatMulNBits of com.microsoft: [K, N] in the type of the scales, in the graph's
 * arena. NULL: with a text in *out_fault, the node has a form that mdot lacks; without one, memory ran out. */
const ir_tensor *fe_unpack_n_bits(fe_upgrader *u, const ir_node *node, const char **out_fault);

/* q_operators.c: if `node`, the last of the graph, is an unknown operator on bytes with scales, rewrites it as
 * dequantisation, an operator on floats and quantisation. Otherwise it stays. MALFORMED, OUT_OF_MEMORY. */
mdot_status fe_write_q_operator(fe_upgrader *u, ir_node *node);

/* ---- loop_steps.c: the number of steps of a Loop (ONNX: a trip count, and a condition that is computed in each step).
 *
 * If the condition is known to be true, the number is the trip count. If it compares a counter with a bound, as in the
 * loops of TensorFlow and JAX (`i < n`, where each step computes i + 1), the number is the smaller of the bound minus
 * the counter's initial value, and the trip count.
 */

/* The node's type in the flat model. Its inputs: the trip count and the initial condition (or none), the condition
 * behind a step, the index of the LoopBegin, and the next value of each state. */
#define FE_LOOP_STEPS "LoopSteps"
enum { FE_STEPS_TRIPS, FE_STEPS_FIRST, FE_STEPS_CONDITION, FE_STEPS_INDEX, FE_STEPS_NEXT };

/* Computes the step count from these input values, for the loop `name`. *out is an i64 of one element. If the count
 * depends on data, *out is the result of a node whose type states so. */
mdot_status fe_count_steps(fe_upgrader *u, const char *name, ir_value *const *inputs, int count, ir_value **out);

/* ---- ml_operators.c: rewrites operators of ai.onnx.ml, which scikit-learn, LightGBM and XGBoost export. */

/* Rewrites `node`, the last of the graph, whose op is NULL, if it is a known operator of ai.onnx.ml, Hardmax,
 * ReverseSequence or com.microsoft's FusedConv. Trees become mdot.Trees; all others become standard operators. Nodes
 * may be added around it. MALFORMED and UNSUPPORTED name the node, the reason and the remedy. Other nodes stay as they
 * are. */
mdot_status fe_write_ml_operator(fe_upgrader *u, ir_node *node);

/* ---- composites.c ---------------------------------------------------------------------------------------------- */

/* If `node`, a Reshape at the end of the graph, restores the shape of a tensor over pairs of positions that was normed
 * in groups (Reshape to [N, groups, -1], InstanceNormalization), it reads a GroupNormalization instead: the product of
 * the pairs' extents is no dimension. Sets u->leaves_dead_nodes. False: out of memory. */
bool fe_join_group_norm(fe_upgrader *u, ir_node *node);

/* data_slices.c: if `node`, the last of the graph, is a Slice of a fixed number of rows from a loop's counter on, a
 * Gather replaces it. OUT_OF_MEMORY. */
mdot_status fe_slice_by_counter(fe_upgrader *u, ir_node *node);
/* Marks rows that lie inside of their tensor while the counter has the values first … first + steps - 1. */
void fe_check_counted_rows(const fe_upgrader *u, fe_counted_rows *rows, int64_t first, ir_dim steps);
/* Gives up the Gathers without that mark. False: out of memory. */
bool fe_refuse_counted_rows(const fe_upgrader *u);
/* If `node`, the last of the graph, reduces rows that a Slice selects by data, all rows are read and others masked:
 * the exporter's form of EmbeddingBag. Sets u->leaves_dead_nodes. OUT_OF_MEMORY. */
mdot_status fe_reduce_bag(fe_upgrader *u, ir_node *node);

/* joined_axes.c: if `node`, the last of the graph, reads a tensor whose axes a Reshape joined to one of N * N elements,
 * it computes on the axes apart. Otherwise it stays. Sets u->leaves_dead_nodes. OUT_OF_MEMORY. */
mdot_status fe_keep_pairs_apart(fe_upgrader *u, ir_node *node);
