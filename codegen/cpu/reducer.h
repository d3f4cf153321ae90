/* reducer.h — the semantics of pl_reducer: identities and the combination of two values. */
#ifndef CG_CPU_REDUCER_H
#define CG_CPU_REDUCER_H

#include "codegen/cpu/emit.h"

bool cg_reducer_is_arg(pl_reducer reducer);

/* SUM, PROD, MAX and MIN of a dtype, on scalars or vectors of its register type. MAX and MIN keep a NaN. */
cg_combine cg_reducer_combine(pl_reducer reducer, mdot_dtype dtype);

/* The initial value of a reduction. An arg-reduction starts from the identity of its MAX or MIN, at index 0. */
LLVMValueRef cg_reducer_identity(cg_emitter *e, pl_reducer reducer, mdot_dtype dtype, int lanes);

/* True (i1, or a vector of it) if `value` replaces `best` in an arg-reduction that runs forward. The LAST forms also
 * replace equal values. A NaN is more extreme than every number and equal to other NaNs. */
LLVMValueRef cg_reducer_prefers(cg_emitter *e, pl_reducer reducer, mdot_dtype dtype, LLVMValueRef value,
                                LLVMValueRef best);

#endif
