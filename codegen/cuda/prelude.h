/* prelude.h — what a kernel's source begins with. */
#ifndef CU_PRELUDE_H
#define CU_PRELUDE_H

extern const char cu_prelude[];          /* for the card */
extern const char cu_common[];           /* portable, for every mode */
extern const char cu_bf16[], cu_f16[];   /* the 16-bit type and its product … */
extern const char cu_halves[];           /* … and what follows from them */
extern const char cu_exact[], cu_fast[]; /* functions for f32 and for 16-bit modes */

#endif
