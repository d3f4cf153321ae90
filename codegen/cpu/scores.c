/* scores.c — what both forms of attention take a score to be: cpu_attention.h. */
#include "codegen/cpu/cpu_attention.h"

#include <float.h>
#include <math.h>

const double cg_log2_e = 1.4426950408889634;
const double cg_no_maximum = -FLT_MAX;

LLVMValueRef cg_scale_mask(cg_emitter *e, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef never = cg_const(e, type, -INFINITY);
    LLVMValueRef scaled = cg_fmul(e, value, cg_const(e, type, cg_log2_e));
    LLVMValueRef finite = cg_fmax(e, scaled, cg_const(e, type, 0.5 * cg_no_maximum));
    return cg_select(e, LLVMBuildFCmp(e->builder, LLVMRealOEQ, value, never, ""), never, finite);
}
