/* arith.h — operators of expressions on values in registers: the lower half of cpu_expr.c. */
#ifndef CG_CPU_ARITH_H
#define CG_CPU_ARITH_H

#include "codegen/cpu/emit.h"

/* Type of a value of the dtype in registers: BOOL is i1, f16 and bf16 are f32. */
LLVMTypeRef cg_value_type(cg_emitter *e, mdot_dtype dtype);

/* Type of the same value in memory. */
LLVMTypeRef cg_storage_type(cg_emitter *e, mdot_dtype dtype);

/* Convert between the two, scalar or vector. */
LLVMValueRef cg_from_storage(cg_emitter *e, LLVMValueRef stored, mdot_dtype dtype);
LLVMValueRef cg_to_storage(cg_emitter *e, LLVMValueRef value, mdot_dtype dtype);

LLVMValueRef cg_convert(cg_emitter *e, LLVMValueRef value, mdot_dtype from, mdot_dtype to);

/* One operator with operands: args are the values of expr->arg, all with the same number of lanes. */
LLVMValueRef cg_operator(cg_emitter *e, const pl_expr *expr, const LLVMValueRef *args);

/* MIN and MAX of any dtype: NaN if either side is. */
LLVMValueRef cg_extreme(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, mdot_dtype dtype, bool max);

#endif
