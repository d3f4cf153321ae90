/* symbols.h — input types of a graph, with resolved symbolic dimensions. */
#pragma once

#include "frontend/onnx/import_context.h"

#include "frontend/onnx/names.h"

/* INVALID_ARGUMENT if a binding lacks a dimension name or a value. */
mdot_status fe_check_bindings(const fe_options *options, mdot_error *err);

/* Derives types for `count` inputs from the file and the options' shapes and bindings, by the rules of onnx.h.
 * *out_symbol is the one remaining symbolic dimension, in the arena, or NULL. *out_bound maps the other names to
 * numbers. *out_has_batch becomes true if a job's batch is a symbol. */
mdot_status fe_type_inputs(const fe_context *context, Onnx__ValueInfoProto *const *inputs, int count,
                           ir_type *out_types, const char **out_symbol, fe_names **out_bound, bool *out_has_batch);

/* The type that a job's file states for a value. Returns false if the type is incomplete, for example if `bound` lacks
 * a dimension's name. */
bool fe_stated_type(const Onnx__ValueInfoProto *info, const fe_names *bound, ir_type *out_type);

/* The size of the dimension named as a batch, at any position. 0: there is none. */
int64_t fe_named_batch(const fe_names *bound);
