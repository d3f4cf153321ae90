/* allocator.h — the caller's memory functions, or libc's. */
#ifndef RT_ALLOCATOR_H
#define RT_ALLOCATOR_H

#include "runtime/core/core.h"

/* Returns INVALID_ARGUMENT if only one of the two functions is given. */
mdot_status rt_allocator_init(rt_allocator *allocator, const mdot_open_options *options, mdot_error *err);

#endif
