/* dft.h — discrete Fourier transforms as matmuls. Private to frontend/onnx. */
#ifndef FE_DFT_H
#define FE_DFT_H

#include "frontend/onnx/graph_edit.h"

/* If `node`, the last of the graph, is a DFT of ONNX, rewrites it as matmuls with the cosines and sines of its
 * frequencies, or gives it up with the reason. False: out of memory. */
bool fe_write_dft(fe_upgrader *u, ir_node *node, int64_t opset);

#endif
