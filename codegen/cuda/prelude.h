/* prelude.h — the fixed text at the start of a kernel's source. */
#ifndef CU_PRELUDE_H
#define CU_PRELUDE_H

extern const char cu_prelude[];          /* for the GPU */
extern const char cu_common[];           /* portable, for every mode */
extern const char cu_bf16[], cu_f16[];   /* the 16-bit type and its matrix instruction */
extern const char cu_half_functions[];   /* functions on the 16-bit type */
extern const char cu_exact[], cu_fast[]; /* functions for f32 and for 16-bit modes */

#endif
