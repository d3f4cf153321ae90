/* cpu_linear_winograd.h — linears over 3x3 windows by the transform F(2x2, 3x3) of Winograd. */
#ifndef CG_CPU_LINEAR_WINOGRAD_H
#define CG_CPU_LINEAR_WINOGRAD_H

#include "codegen/cpu/cpu_linear_block.h"

/* Are the weights packed as transformed taps (cg_pack_taps)? */
bool cg_has_transformed_taps(const pl_plan *plan, const pl_linear *k, const cg_cpu_target *target);

/* Emits the whole kernel; is_split: it computes the call's slice. l->stage is the scratch memory. */
void cg_linear_winograd(cg_emitter *e, cg_linear_block *l, bool is_split);
int64_t cg_linear_winograd_scratch(const pl_linear *k, const cg_cpu_target *target);

#endif
