/* literal.h — numbers as CUDA C writes them: the one printer for whatever number a model brings into the source. */
#ifndef CU_LITERAL_H
#define CU_LITERAL_H

#include "ir/arena.h"

#include <stdint.h>

/* An operand that is the f32 nearest to the value: "1.0f", "(-0.5f)", and by the names of common_source.c "INFINITE",
 * "-INFINITE" and "NOT_A_NUMBER". Denormals and the sign of zero are kept; the locale's decimal point doesn't matter.
 * NULL when memory is out. */
const char *cu_float_text(ir_arena *arena, double value);
/* An operand of type int where the value fits it, else of type long long. */
const char *cu_integer_text(ir_arena *arena, int64_t value);

#endif
