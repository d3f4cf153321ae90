/* out_of_memory.h — one wording for lack of memory: "memory ran out for a job of 12 operators". Without a subject,
 * pass NULL as the format of mdot_fail. */
#ifndef BS_OUT_OF_MEMORY_H
#define BS_OUT_OF_MEMORY_H

#include "mdot/mdot_base.h"

/* BS_OUT_OF_MEMORY(err, subject, ...) fills *err and returns MDOT_OUT_OF_MEMORY. `subject` is a string literal, a
 * format as in printf. */
#define BS_OUT_OF_MEMORY(err, ...) mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out for " __VA_ARGS__)

#endif
