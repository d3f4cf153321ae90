/* reducer.h — the meaning of pl_reducer: identities and how two values combine. */
#ifndef CG_CPU_REDUCER_H
#define CG_CPU_REDUCER_H

#include "codegen/cpu/emit.h"

bool cg_reducer_is_arg(pl_reducer reducer);

/* SUM, PROD, MAX and MIN of a dtype, on scalars or vectors of its register type. MAX and MIN keep a NaN. */
cg_combine cg_reducer_combine(pl_reducer reducer, mdot_dtype dtype);

/* What combining starts from; an arg-reduction starts from the identity of its MAX or MIN, at index 0. */
LLVMValueRef cg_reducer_identity(cg_emitter *e, pl_reducer reducer, mdot_dtype dtype, int lanes);

/* Whether `value` takes the place of `best` in an arg-reduction that walks forward: i1, or a vector of it. The LAST
 * forms take equal values too. */
LLVMValueRef cg_reducer_prefers(cg_emitter *e, pl_reducer reducer, mdot_dtype dtype, LLVMValueRef value,
                                LLVMValueRef best);

#endif
