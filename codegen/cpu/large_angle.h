/* large_angle.h — exact reduction of angles that are too large for sine and cosine's three parts of π/2. */
#ifndef CG_CPU_LARGE_ANGLE_H
#define CG_CPU_LARGE_ANGLE_H

#include "codegen/cpu/emit.h"

typedef struct cg_angle { /* quadrant · π/2 + rest, |rest| <= π/4 */
    LLVMValueRef quadrant, rest;
} cg_angle;

/* Replaces the angle of every lane of x (f64, a scalar or a vector) that is finite and at least 2^40 in magnitude. The
 * quadrant of such a lane is 0 to 3, and its rest has a relative error below 2^-51. Code without such a lane takes one
 * branch. */
void cg_reduce_large_angles(cg_emitter *e, LLVMValueRef x, cg_angle *angle);

#endif
