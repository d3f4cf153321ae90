/* reducer.c — implements pl_reducer, for nests and for combining scatters. */
#include "codegen/cpu/cpu_values.h"

#include "codegen/cpu/emit.h"

#include <assert.h>
#include <math.h>

static LLVMValueRef add(cg_emitter *e, LLVMValueRef a, LLVMValueRef b) { return LLVMBuildAdd(e->builder, a, b, ""); }

static LLVMValueRef multiply(cg_emitter *e, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildMul(e->builder, a, b, "");
}

#define EXTREME(name, dtype, max)                                                                                      \
    static LLVMValueRef name(cg_emitter *e, LLVMValueRef a, LLVMValueRef b) { return cg_extreme(e, a, b, dtype, max); }
EXTREME(float_max, MDOT_DTYPE_F32, true)
EXTREME(float_min, MDOT_DTYPE_F32, false)
EXTREME(signed_max, MDOT_DTYPE_I64, true)
EXTREME(signed_min, MDOT_DTYPE_I64, false)
EXTREME(unsigned_max, MDOT_DTYPE_U64, true)
EXTREME(unsigned_min, MDOT_DTYPE_U64, false)
#undef EXTREME

typedef enum number_class { REAL, SIGNED, UNSIGNED, NUMBER_CLASS_COUNT } number_class;

static number_class class_of(mdot_dtype dtype)
{
    return ir_dtype_is_float(dtype) ? REAL : ir_dtype_is_unsigned(dtype) ? UNSIGNED : SIGNED;
}

cg_combine cg_reducer_combine(pl_reducer reducer, mdot_dtype dtype)
{
    static const cg_combine combines[][NUMBER_CLASS_COUNT] = {
        [PL_REDUCE_SUM] = {cg_fadd, add, add},
        [PL_REDUCE_PROD] = {cg_fmul, multiply, multiply},
        [PL_REDUCE_MAX] = {float_max, signed_max, unsigned_max},
        [PL_REDUCE_MIN] = {float_min, signed_min, unsigned_min},
    };
    assert(reducer >= PL_REDUCE_SUM && reducer <= PL_REDUCE_MIN);
    return combines[reducer][class_of(dtype)];
}

bool cg_reducer_is_arg(pl_reducer reducer) { return reducer >= PL_REDUCE_ARGMAX_FIRST; }

LLVMValueRef cg_reducer_identity(cg_emitter *e, pl_reducer reducer, mdot_dtype dtype, int lanes)
{
    LLVMTypeRef element = cg_value_type(e, dtype), type = cg_vector(e, element, lanes);
    if (reducer == PL_REDUCE_SUM || reducer == PL_REDUCE_PROD) return cg_const(e, type, reducer == PL_REDUCE_PROD);
    bool minimum = reducer == PL_REDUCE_MAX || reducer == PL_REDUCE_ARGMAX_FIRST || reducer == PL_REDUCE_ARGMAX_LAST;
    if (ir_dtype_is_float(dtype)) return cg_const(e, type, minimum ? -INFINITY : INFINITY);
    if (ir_dtype_is_unsigned(dtype)) return cg_const_int(type, minimum ? 0 : -1);
    int64_t greatest = (int64_t)(UINT64_MAX >> (65 - LLVMGetIntTypeWidth(element)));
    return cg_const_int(type, minimum ? -greatest - 1 : greatest);
}

LLVMValueRef cg_reducer_prefers(cg_emitter *e, pl_reducer reducer, mdot_dtype dtype, LLVMValueRef value,
                                LLVMValueRef best)
{
    static const struct {
        LLVMRealPredicate real;
        LLVMIntPredicate with_sign, without_sign;
    } predicates[] = {
        [PL_REDUCE_ARGMAX_FIRST] = {LLVMRealUGT, LLVMIntSGT, LLVMIntUGT},
        [PL_REDUCE_ARGMAX_LAST] = {LLVMRealOGE, LLVMIntSGE, LLVMIntUGE},
        [PL_REDUCE_ARGMIN_FIRST] = {LLVMRealULT, LLVMIntSLT, LLVMIntULT},
        [PL_REDUCE_ARGMIN_LAST] = {LLVMRealOLE, LLVMIntSLE, LLVMIntULE},
    };
    assert(cg_reducer_is_arg(reducer));
    switch (class_of(dtype)) {
    case REAL: { /* FIRST: an unordered comparison, which holds for a NaN, unless `best` is one already */
        LLVMValueRef better = LLVMBuildFCmp(e->builder, predicates[reducer].real, value, best, "");
        if (reducer == PL_REDUCE_ARGMAX_LAST || reducer == PL_REDUCE_ARGMIN_LAST)
            return LLVMBuildOr(e->builder, better, LLVMBuildFCmp(e->builder, LLVMRealUNO, value, value, ""), "");
        return LLVMBuildAnd(e->builder, better, LLVMBuildFCmp(e->builder, LLVMRealORD, best, best, ""), "");
    }
    case SIGNED: return LLVMBuildICmp(e->builder, predicates[reducer].with_sign, value, best, "");
    default: return LLVMBuildICmp(e->builder, predicates[reducer].without_sign, value, best, "");
    }
}
