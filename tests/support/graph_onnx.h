/* graph_onnx.h — graphs written as ONNX models. */
#ifndef TEST_GRAPH_ONNX_H
#define TEST_GRAPH_ONNX_H

#include "ir/graph.h"
#include "tests/support/onnx_builder.h"

/* The model's bytes, with ai.onnx at opset 23 and com.microsoft at 1. The graph is one in ONNX's operators, as
 * graph_from_notation gives it; fails the test where an attribute is neither a number, text nor a list of integers. */
pb_buffer graph_to_onnx(const ir_graph *graph);

#endif
