/* symbols.h — the types of a graph's inputs, with its symbolic dimensions settled. Private to frontend/. */
#ifndef FE_SYMBOLS_H
#define FE_SYMBOLS_H

#include "frontend/context.h"

/* Types `count` inputs from the file, the options' shapes and bindings, as frontend.h says. *out_symbol is the name of
 * the one symbolic dimension that is left, in the arena, or NULL. */
mdot_status fe_type_inputs(const fe_context *context, Onnx__ValueInfoProto *const *inputs, int count,
                           ir_type *out_types, const char **out_symbol);

#endif
