/* status.h — passing failures on: one way to leave a function, and one wording for lack of memory, "memory ran out for
 * a job of 12 operators". Without a subject, pass NULL as the format of mdot_fail. */
#pragma once

#include "mdot/mdot_base.h"

/* Evaluates an mdot_status and returns it from the calling function unless it is MDOT_OK. For functions that have
 * nothing to release. */
#define BS_TRY(call)                                                                                                   \
    do {                                                                                                               \
        mdot_status bs_tried = (call);                                                                                 \
        if (bs_tried != MDOT_OK) return bs_tried;                                                                      \
    } while (0)

/* BS_OUT_OF_MEMORY(err, subject, ...) fills *err and returns MDOT_OUT_OF_MEMORY. `subject` is a string literal, a
 * format as in printf. */
#define BS_OUT_OF_MEMORY(err, ...) mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for " __VA_ARGS__)

/* BS_INVALID(err, format, ...) fills *err and returns MDOT_INVALID_ARGUMENT. */
#define BS_INVALID(err, ...) mdot_fail(err, MDOT_INVALID_ARGUMENT, __VA_ARGS__)
