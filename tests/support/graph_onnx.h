/* graph_onnx.h — graphs written as ONNX models. */
#pragma once

#include "ir/graph.h"
#include "tests/support/onnx_builder.h"

/* Returns the model's bytes, with ai.onnx at opset 23 and com.microsoft at 1. The graph must have ONNX operators, as
 * graph_from_notation makes it. Fails the test if an attribute is something other than a number, text or a list of
 * integers. */
pb_buffer graph_to_onnx(const ir_graph *graph);
