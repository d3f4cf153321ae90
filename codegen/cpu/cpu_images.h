/* cpu_images.h — plans → an artefact's CPU images: packed weights, and code through the LLVM C API. This is the
 * folder's interface for codegen/.
 *
 *   cpu_images.c  runs all of it in order
 *   cpu_target.c  the ISA levels as data: vector width, register tile, packing of weights, LLVM cpu; and machines
 *   pack.c        packs a constant in the layout that kernels read
 *   weights.c     the constants of all plans in one block, equal ones once
 *   emit.c        the small vector language that all kernel emitters use
 *   bf16.c        bfloat16: the buffers stored in it, conversions, bf16 dot products
 *   amx.c         matrix tiles: the few operations that kernels use on them
 *   math.c        exp, log, tanh, erf, … as polynomials over vectors, f32 and f64
 *   gelu.c        GELU, in approximations of its own
 *   cpu_expr.c    pl_expr → vector or scalar IR: common sub-expressions, element access
 *   arith.c       its operators and conversions, for every element type
 *   reducer.c     combines two values, for reductions and combining scatters
 *   vectorise.c   selects the loop of a nest that becomes vectors
 *   register_tile.c        the register tile: the inner loop of linear and attention
 *   cpu_linear.c cpu_attention.c cpu_norm.c cpu_nest.c cpu_sequential.c cpu_recurrence.c    one file per
 *                 kernel kind
 *   cpu_product.c cpu_transpose.c    forms of nests: products of two run-time matrices, and transposes
 *   cpu_linear_amx.c cpu_linear_rows.c    linear with matrix tiles, and code shared by both forms of linear
 *   cpu_attention_stream.c cpu_attention_small.c cpu_attention_scores.c    the two forms of attention, and their
 *                                                                          shared code
 *   cpu_attention_bf16.c    the bf16 parts of the first form
 *   kernel_signature.c         a kernel's specification as bytes, to find equal kernels
 *   llvm_module.c      plans → one LLVM module: kernels (shared if equal), entry functions, mdot_code
 *   object.c      LLVM module → object file
 */
#ifndef CG_CPU_IMAGES_H
#define CG_CPU_IMAGES_H

#include "codegen/backend.h"
#include "codegen/cpu/cpu_image.h"

/* Makes an image for each of the options' CPU targets. Returns INVALID_ARGUMENT if there is none, or for targets of
 * several machines. Call cg_cpu_images_done in either case. */
mdot_status cg_cpu_make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                               cg_cpu_images *out_images, mdot_error *err);
/* The same for these rows, which may be outside the table of targets. options->targets is ignored. */
mdot_status cg_cpu_make_images_for(const cg_cpu_target *const *targets, int target_count, const cg_entry *entries,
                                   int entry_count, const cg_options *options, ir_arena *arena,
                                   cg_cpu_images *out_images, mdot_error *err);
void cg_cpu_images_done(cg_cpu_images *images);

extern const cg_backend cg_cpu_backend; /* the artefact writer's interface to all of it */

#endif
