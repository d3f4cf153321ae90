/* context.h — the per-thread state of running. */
#ifndef RT_CONTEXT_H
#define RT_CONTEXT_H

#include "runtime/core/core.h"

/* Also usable while the predictor is being opened. `options` have been resolved. */
mdot_status rt_context_create(const mdot_predictor *predictor, const mdot_context_options *options,
                              mdot_context **out_context, mdot_error *err);

#endif
