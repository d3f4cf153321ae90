/* stated_weights.h — how many weights a model has, from the shapes in its file. Private to frontend/onnx. */
#ifndef FE_STATED_WEIGHTS_H
#define FE_STATED_WEIGHTS_H

#include "frontend/onnx/flat.h"

/* Adds up the elements of the float initializers and constants that nodes read. A node inside a branch of an If does
 * not count, because the branch may be left out. Needs the definitions of fe_define_values. */
mdot_status fe_count_stated_weights(const fe_context *context, const Onnx__GraphProto *graph, const fe_flat *flat,
                                    double *out_elements);

#endif
