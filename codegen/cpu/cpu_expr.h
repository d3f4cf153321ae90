/* cpu_expr.h — expressions of a plan as vector or scalar IR. */
#ifndef CG_CPU_EXPR_H
#define CG_CPU_EXPR_H

#include "codegen/cpu/emit.h"

/* The inputs of an expression. Loop variables are i64 scalars. With lanes > 1, loop `vector_loop`
 * represents lanes consecutive values, and all values that depend on it become vectors. acc[k] is the value of ACC
 * k. `known` lists vector values of sub-expressions, which are then not evaluated. */
typedef struct cg_known_value {
    const pl_expr *expr;
    LLVMValueRef value;
} cg_known_value;

typedef struct cg_scope {
    const LLVMValueRef *buffers; /* pointer of plan buffer b; NULL if the kernel does not use it */
    LLVMValueRef loops[PL_MAX_LOOPS];
    int vector_loop, lanes;
    LLVMValueRef acc[4];
    const cg_known_value *known;
    int known_count;
} cg_scope;
/* BOOL values are i1 (or vectors of it), f16 and bf16 are f32; loads and stores convert. With lanes > 1 the result
 * is always a vector. An accumulator may be a scalar or a vector of as many lanes. */
LLVMValueRef cg_expr(cg_emitter *e, const cg_scope *scope, const pl_plan *plan, const pl_expr *expr);
void cg_expr_stores(cg_emitter *e, const cg_scope *scope, const pl_plan *plan, const pl_store *stores, int count);

#endif
