/* emit.h — the small vector language of all CPU kernel emitters, over the LLVM C API.
 *
 * An emitter writes one function at a time. Loops carry values and test at the bottom. Only generic vector IR is
 * emitted, so one emitter serves every ISA level. emit.c lists the IR that LLVM turns into the intended
 * instructions. */
#pragma once

#include "codegen/cpu/cpu_target.h"
#include "plan/plan.h"

#include <llvm-c/Core.h>

enum { CG_MAX_CARRIED = 64, CG_MAX_POINTERS = 1024 };

typedef struct cg_emitter {
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef builder;
    const cg_cpu_target *target;
    LLVMValueRef function;
    LLVMValueRef length;                 /* run-time length in the current function, i64 */
    LLVMValueRef step;                   /* step of the recurrence being emitted, i64; NULL outside one */
    LLVMValueRef slice_begin, slice_end; /* the slice to compute, in fractions of 2^32, i64; NULL: all units */
    LLVMValueRef amx_tiles;              /* tiles of the current function if they are in memory: dot_products.h */
    LLVMTypeRef f16, bf16, f32, f64, i1, i8, i16, i32, i64, ptr;
} cg_emitter;

void cg_emitter_init(cg_emitter *e, LLVMModuleRef module, const cg_cpu_target *target);
void cg_emitter_done(cg_emitter *e);

/* Begins a void function with hidden visibility and the level's attributes. The caller sets e->length. */
void cg_begin_function(cg_emitter *e, const char *name, LLVMTypeRef *parameters, int count);
/* Begins `void name(ptr, …, const mdot_abi_call *call)` with up to CG_MAX_POINTERS pointers before the call, from which
 * it reads length and slice. */
LLVMValueRef cg_begin_kernel(cg_emitter *e, const char *name, int pointer_count);
/* A field of an mdot_abi_call. */
LLVMValueRef cg_call_field(cg_emitter *e, LLVMValueRef call, LLVMTypeRef type, size_t offset);
/* Begins an mdot_abi_function, whose only parameter is the call. The caller sets e->length. */
LLVMValueRef cg_begin_entry(cg_emitter *e, const char *name);
void cg_end_function(cg_emitter *e);               /* return */
LLVMValueRef cg_pointer(cg_emitter *e, int index); /* pointer parameter of the current function */

/* for (i = from; i < to; i += step) with carried values. begin leaves the builder in the body. end takes the values
 * for the next iteration, and out[] holds the last ones. A guarded loop may run zero times. */
typedef struct cg_loop {
    LLVMBasicBlockRef before, body, after;
    LLVMValueRef index, limit;
    int64_t step;
    int count;
    bool guarded;
    LLVMValueRef init[CG_MAX_CARRIED], carried[CG_MAX_CARRIED], out[CG_MAX_CARRIED];
} cg_loop;
void cg_loop_begin(cg_emitter *e, cg_loop *loop, LLVMValueRef from, LLVMValueRef to, int64_t step, int count,
                   const LLVMValueRef *init, bool guarded);
void cg_loop_end(cg_emitter *e, cg_loop *loop, const LLVMValueRef *next);

/* if (cond) { … }: begin leaves the builder in the guarded block, end after it. */
typedef struct cg_if {
    LLVMBasicBlockRef then, after;
} cg_if;
void cg_if_begin(cg_emitter *e, cg_if *block, LLVMValueRef cond);
void cg_if_end(cg_emitter *e, cg_if *block);

/* The same as a block of C, for the usual case: a loop without carried values, which may run zero times, or which runs
 * at least once; and a guarded block. Do not leave such a block by a jump.
 *
 *     CG_FOR (e, row, cg_int(e, 0), rows, 1) emit_row(e, row.index); */
#define CG_FOR(e, loop, from, to, step)                                                                                \
    for (cg_loop loop = cg_loop_over(e, from, to, step, true); loop.body != NULL; cg_loop_end(e, &loop, NULL))
#define CG_FOR_NONEMPTY(e, loop, from, to, step)                                                                       \
    for (cg_loop loop = cg_loop_over(e, from, to, step, false); loop.body != NULL; cg_loop_end(e, &loop, NULL))
#define CG_IF(e, cond) for (cg_if guard = cg_if_over(e, cond); guard.then != NULL; cg_if_end(e, &guard))
static inline cg_loop cg_loop_over(cg_emitter *e, LLVMValueRef from, LLVMValueRef to, int64_t step, bool guarded)
{
    cg_loop loop;
    cg_loop_begin(e, &loop, from, to, step, 0, NULL, guarded);
    return loop;
}
static inline cg_if cg_if_over(cg_emitter *e, LLVMValueRef cond)
{
    cg_if block;
    cg_if_begin(e, &block, cond);
    return block;
}

/* Functions of a value, and of two. */
typedef LLVMValueRef cg_unary_fn(cg_emitter *e, LLVMValueRef x);
typedef LLVMValueRef cg_combine_fn(cg_emitter *e, LLVMValueRef a, LLVMValueRef b);
typedef cg_combine_fn *cg_combine;

/* Integers are i64 */
LLVMValueRef cg_int(cg_emitter *e, int64_t value);
cg_combine_fn cg_iadd, cg_isub, cg_imul, cg_imin, cg_imax;
LLVMValueRef cg_dim(cg_emitter *e, ir_dim dim);                                  /* scale * length + offset */
LLVMValueRef cg_round_down(cg_emitter *e, LLVMValueRef a, int64_t power_of_two); /* a >= 0 */

/* A position moved back until a vector there ends at or before `end`. */
LLVMValueRef cg_vector_within(cg_emitter *e, LLVMValueRef position, LLVMValueRef end);

/* The range from … to - 1 of `units` (fewer than 2^31) that the current call computes. Adjacent slices give adjacent
 * ranges, and the whole slice gives all units. It takes two multiplications, because kernels are many and small and
 * a division would be noticeable. */
typedef struct cg_range {
    LLVMValueRef from, to;
} cg_range;
cg_range cg_slice_of(cg_emitter *e, LLVMValueRef units);
/* The same for 0 … count - 1 in units of `grain`: ranges begin at its multiples, and the last one ends at count. */
cg_range cg_slice_by_grain(cg_emitter *e, LLVMValueRef count, int64_t grain);

/* Values are scalars or vectors of any width. Alignment 0 means the element's own size, which is all that plan.h
 * guarantees for a buffer's rows. */
LLVMTypeRef cg_vector(cg_emitter *e, LLVMTypeRef element, int lanes); /* the element itself if lanes is 1 */
int cg_lanes(LLVMValueRef value);                                     /* 1 for a scalar */
LLVMTypeRef cg_element(LLVMTypeRef type);                             /* element type of a vector; a scalar's own
                                                                       * type */
LLVMTypeRef cg_with_element(LLVMTypeRef type, LLVMTypeRef element);   /* as many lanes with another element type */
LLVMValueRef cg_const(cg_emitter *e, LLVMTypeRef type, double value); /* scalar or splat, floating or integer */
static inline LLVMValueRef cg_like(cg_emitter *e, LLVMValueRef like, double value)
{
    return cg_const(e, LLVMTypeOf(like), value);
}
LLVMValueRef cg_const_int(LLVMTypeRef type, int64_t value);          /* the same for any 64-bit integer */
LLVMValueRef cg_iota(cg_emitter *e, LLVMTypeRef element, int lanes); /* 0, 1, 2, … */
LLVMValueRef cg_splat(cg_emitter *e, LLVMValueRef scalar, int lanes);
LLVMValueRef cg_at(cg_emitter *e, LLVMTypeRef element, LLVMValueRef base, LLVMValueRef index); /* &base[index] */
LLVMValueRef cg_load(cg_emitter *e, LLVMTypeRef type, LLVMValueRef address, unsigned alignment);
void cg_store(cg_emitter *e, LLVMValueRef value, LLVMValueRef address, unsigned alignment);
LLVMValueRef cg_fma(cg_emitter *e, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);
cg_combine_fn cg_fadd, cg_fsub, cg_fmul, cg_fdiv;
LLVMValueRef cg_fmin(cg_emitter *e, LLVMValueRef a, LLVMValueRef b); /* one instruction; returns b if either is NaN */
LLVMValueRef cg_fmax(cg_emitter *e, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef cg_fabs(cg_emitter *e, LLVMValueRef a);
LLVMValueRef cg_sqrt(cg_emitter *e, LLVMValueRef a); /* one instruction, correctly rounded */
LLVMValueRef cg_rint(cg_emitter *e, LLVMValueRef a); /* rounds half to even */
LLVMValueRef cg_select(cg_emitter *e, LLVMValueRef cond, LLVMValueRef yes, LLVMValueRef no);
LLVMValueRef cg_intrinsic(cg_emitter *e, const char *name, LLVMTypeRef overload, const LLVMValueRef *args, int count);
LLVMValueRef cg_intrinsic_overloaded(cg_emitter *e, const char *name, LLVMTypeRef *overloads, int overload_count,
                                     const LLVMValueRef *args, int count);
LLVMValueRef cg_reduce(cg_emitter *e, LLVMValueRef vector, cg_combine combine); /* horizontal, by halves */
LLVMValueRef cg_reduce_add(cg_emitter *e, LLVMValueRef vector);                 /* floating-point */
/* The first `lanes` lanes; lanes after the vector's own are `fill`. */
LLVMValueRef cg_resize(cg_emitter *e, LLVMValueRef vector, int lanes, double fill);
void cg_transpose(cg_emitter *e, LLVMValueRef *rows); /* lanes × lanes of f32, in place */
