/* cpu_values.h — values in registers: types, operators, expressions, reductions, and the loop that becomes vectors. */
#pragma once

#include "codegen/cpu/emit.h"

/* ---- arith.c: operators of expressions on values in registers: the lower half of cpu_expr.c ---------------------- */

/* Register type for the dtype: BOOL is i1, f16 and bf16 are f32. */
LLVMTypeRef cg_value_type(cg_emitter *e, mdot_dtype dtype);

/* Type of the same value in memory. */
LLVMTypeRef cg_storage_type(cg_emitter *e, mdot_dtype dtype);

/* Convert between the two, scalar or vector. */
LLVMValueRef cg_from_storage(cg_emitter *e, LLVMValueRef stored, mdot_dtype dtype);
LLVMValueRef cg_to_storage(cg_emitter *e, LLVMValueRef value, mdot_dtype dtype);

LLVMValueRef cg_convert(cg_emitter *e, LLVMValueRef value, mdot_dtype from, mdot_dtype to);

/* One operator with operands: args are the values of expr->arg, with equal lane counts. */
LLVMValueRef cg_operator(cg_emitter *e, const pl_expr *expr, const LLVMValueRef *args);

/* MIN and MAX of any dtype: NaN if either side is. */
LLVMValueRef cg_extreme(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, mdot_dtype dtype, bool max);

/* ---- cpu_expr.c: expressions of a plan as vector or scalar IR ---------------------------------------------------- */

/* An expression's inputs. Loop variables are i64 scalars. With lanes > 1, loop `vector_loop` represents lanes
 * consecutive values, and all dependent values become vectors. acc[k] is ACC k. `known` lists vector values for
 * sub-expressions, which are then not evaluated. */
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
    const pl_expr *rounded; /* the caller rounds this expression's value to bf16; NULL: none */
} cg_scope;
/* BOOL values are i1 (or vectors of it), f16 and bf16 are f32; loads and stores convert. With lanes > 1 the result
 * is always a vector. An accumulator may be a scalar or a vector of as many lanes. */
LLVMValueRef cg_expr(cg_emitter *e, const cg_scope *scope, const pl_plan *plan, const pl_expr *expr);
void cg_expr_stores(cg_emitter *e, const cg_scope *scope, const pl_plan *plan, const pl_store *stores, int count);

/* The extent of a kernel's loop at run time, which ends with the rows that are read. */
LLVMValueRef cg_loop_extent(cg_emitter *e, const pl_kernel *kernel, int loop, ir_dim extent,
                            const LLVMValueRef *buffers);

/* ---- reducer.c: the semantics of pl_reducer: identities and the combination of two values ------------------------ */

bool cg_reducer_is_arg(pl_reducer reducer);

/* SUM, PROD, MAX and MIN for a dtype, on scalars or vectors in registers. MAX and MIN keep a NaN. */
cg_combine cg_reducer_combine(pl_reducer reducer, mdot_dtype dtype);

/* A reduction's initial value. An arg-reduction starts from MAX's or MIN's identity, at index 0. */
LLVMValueRef cg_reducer_identity(cg_emitter *e, pl_reducer reducer, mdot_dtype dtype, int lanes);

/* True (i1, or a vector of it) if `value` replaces `best` in an arg-reduction that runs forward. The LAST forms also
 * replace equal values. A NaN is more extreme than every number and equal to other NaNs. */
LLVMValueRef cg_reducer_prefers(cg_emitter *e, pl_reducer reducer, mdot_dtype dtype, LLVMValueRef value,
                                LLVMValueRef best);

/* ---- vectorise.c: selects the loop of a nest that becomes vectors ------------------------------------------------ */

typedef struct cg_vectorisation {
    int loop;      /* -1: scalar code; below loop_count an output's loop, otherwise a reduction loop */
    int lanes;     /* 1 in scalar code */
    int block;     /* vectors kept at once by a reduction, to hide latency: a power of two */
    bool in_place; /* a store's buffer is also loaded, so each point must be computed only once */
} cg_vectorisation;

/* Is a buffer that the nest stores to also loaded by it? Then each point must be computed only once. */
bool cg_is_in_place(const pl_nest *nest);

/* Do all stores write adjacent elements along the loop? */
bool cg_stores_along(const pl_nest *nest, int loop);

cg_vectorisation cg_choose_vectorisation(const pl_plan *plan, const pl_nest *nest, const cg_cpu_target *target);
