/* symbols.h — the types of a graph's inputs, with its symbolic dimensions settled. Private to frontend/. */
#ifndef FE_SYMBOLS_H
#define FE_SYMBOLS_H

#include "frontend/onnx/context.h"

#include "frontend/onnx/names.h"

/* INVALID_ARGUMENT for dimensions without a name, or bound to nothing. */
mdot_status fe_check_bindings(const fe_options *options, mdot_error *err);

/* Types `count` inputs from the file, the options' shapes and bindings, as onnx.h says. *out_symbol is the name of
 * the one symbolic dimension that is left, in the arena, or NULL. *out_bound maps the others' names to their numbers.
 */
mdot_status fe_type_inputs(const fe_context *context, Onnx__ValueInfoProto *const *inputs, int count,
                           ir_type *out_types, const char **out_symbol, fe_names **out_bound);

/* The type that a job's file states of a value, where it is of numbers and names in `bound`; false: it is not. */
bool fe_stated_type(const Onnx__ValueInfoProto *info, const fe_names *bound, ir_type *out_type);

/* The number of the dimension that is called a batch, wherever it stands; 0: none is. */
int64_t fe_named_batch(const fe_names *bound);

#endif
