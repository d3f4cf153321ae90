/* literal.h — prints numbers as CUDA C: the only printer for the numbers that a model brings into the source. */
#ifndef CU_LITERAL_H
#define CU_LITERAL_H

#include "ir/arena.h"

#include <stdint.h>

/* An operand that is the f32 nearest to the value: "1.0f", "(-0.5f)", or the names "INFINITE", "-INFINITE" and
 * "NOT_A_NUMBER" of common_source.c. It keeps denormals and the sign of zero, and is independent of the locale. Returns
 * NULL if memory runs out. */
const char *cu_float_text(ir_arena *arena, double value);
/* An operand of type int if the value fits, otherwise long long. */
const char *cu_integer_text(ir_arena *arena, int64_t value);

#endif
