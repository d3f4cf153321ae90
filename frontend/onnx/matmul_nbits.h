/* matmul_nbits.h — weights of a few bits each, in blocks with their own scale. Private to frontend/onnx. */
#ifndef FE_MATMUL_NBITS_H
#define FE_MATMUL_NBITS_H

#include "frontend/onnx/graph_edit.h"

/* The most weights of a model, over all its nodes: as many as fit the 2 GiB that CPU code reaches, in bf16. */
#define FE_MAX_UNPACKED_WEIGHTS (INT64_C(1) << 30)

/* Dequantises the weights of `node`, a MatMulNBits of com.microsoft: [K, N] in the type of the scales, in the graph's
 * arena. NULL: with a text in *out_fault, the node has a form that mdot lacks; without one, memory ran out. */
const ir_tensor *fe_unpack_n_bits(fe_upgrader *u, const ir_node *node, const char **out_fault);

#endif
