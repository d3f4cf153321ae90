/* cpu.h — CPU code through the LLVM C API: kernels of a plan for one feature level, and the module that holds them.
 *
 *   cpu_target.c    the feature levels as data: vector width, register tile, LLVM cpu
 *   emit.c      the small vector language that every kernel emitter is written in
 *   math.c      exp, log, tanh, erf, … as polynomials over vectors, f32 and f64
 *   gelu.c      GELU, in forms of its own
 *   cpu_expr.c      pl_expr → vector or scalar IR: sharing, element access
 *   arith.c     its operators and conversions, for every element type
 *   reducer.c   what reductions and combining scatters do with two values
 *   vectorise.c which loop of a nest becomes vectors
 *   tile.c      the register tile: the inner loop of linear and attention
 *   cpu_linear.c cpu_attention.c cpu_norm.c cpu_nest.c cpu_sequential.c    one file a kernel kind
 *   attention_stream.c attention_small.c               the two forms of attention
 *   key.c       a kernel's specification as bytes, by which equal kernels are found
 *   module.c    plans → one LLVM module: kernels (shared when equal), entry functions, mdot_code
 *   object.c    LLVM module → object file
 */
#ifndef CG_CPU_H
#define CG_CPU_H

#include "codegen/codegen.h"

/* The object file's bytes, malloc'ed; the caller frees. It defines mdot_code, refers to mdot_weights through the call
 * structure only, and imports nothing. Entry e, plan p, level l is code number `first_code(e, p) + l`, first_code
 * counting plans in order times level_count. */
mdot_status cg_cpu_object(const cg_entry *entries, int entry_count, const cg_options *options, void **out_object,
                          size_t *out_bytes, mdot_error *err);

/* What one call of the plan's code needs on any of the levels: the plan's scratch, and behind it the working memory of
 * the kernel that needs most. */
int64_t cg_cpu_scratch_bytes(const pl_plan *plan, const cg_options *options);

/* "19.1.7" */
const char *cg_llvm_version(void);

#endif
