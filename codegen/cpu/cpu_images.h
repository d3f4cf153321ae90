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
#pragma once

#include "codegen/backend.h"
#include "codegen/byte_pool.h"
#include "codegen/codegen.h"
#include "codegen/cpu/cpu_target.h"

/* ---- weights.c: the constants of all plans in one block, as stored in the artefact's weights section ------------- */

/* Constant positions for the code of one layout. */
typedef struct cg_placement {
    const cg_layout *layout;
    int64_t **offset;  /* [plan][buffer], plans counted through the entries; bytes from `first` */
    size_t first, end; /* the constants' range in the block: multiples of MDOT_ABI_ALIGNMENT */
} cg_placement;

/* Packs every weight that a kernel may read for each of the layouts, equal bytes once, and records their positions.
 * The block ends at the alignment, because vectors of the last row may extend to it, and is at least one unit long.
 * The caller frees `weights` in either case; offsets are in the arena. */
mdot_status cg_lay_out_weights(const cg_entry *entries, int entry_count, const cg_layout *const *layouts,
                               int layout_count, cg_pool *weights, cg_placement *out_placements, ir_arena *arena,
                               mdot_error *err);

/* ---- the images of an artefact's CPU targets, as data ------------------------------------------------------------ */

typedef struct cg_cpu_image { /* image of one target */
    const cg_cpu_target *target;
    const cg_placement *placement; /* weight placement; offsets in the code are relative to placement->first */
    size_t code_bytes;             /* the functions' bytes */
} cg_cpu_image;

typedef struct cg_cpu_images { /* zero-initialised: empty */
    const cg_machine *machine; /* machine of all images */
    int count;
    cg_cpu_image *image; /* in the targets' order */
    cg_pool weights;     /* the artefact's section */
    void *code;          /* bytes of an object file */
    size_t code_bytes;
} cg_cpu_images;

/* Index in mdot_code of an image's function for a plan. Plans are counted through the entries. */
static inline int cg_cpu_code_number(const cg_cpu_images *images, int plan, int image)
{
    return plan * images->count + image;
}

/* ---- llvm_module.c: plans → one LLVM module → one object: kernels, entry functions, and the table of code -------- */

/* Generates images->code and sets the images' code_bytes. The code defines mdot_code, reaches weights only through
 * the call structure, and imports nothing. The targets and placements must be set. */
mdot_status cg_cpu_object(const cg_entry *entries, int entry_count, const cg_options *options, cg_cpu_images *images,
                          mdot_error *err);

/* Scratch bytes per call in a target's image: the plan's scratch, then the largest working memory of a kernel. */
int64_t cg_cpu_scratch_bytes(const pl_plan *plan, const cg_cpu_target *target);
/* That working memory; each further worker needs as much. */
int64_t cg_cpu_worker_bytes(const pl_plan *plan, const cg_cpu_target *target);

/* Makes an image for each of the options' CPU targets. Returns INVALID_ARGUMENT if there is none, or for targets of
 * several machines. Call cg_cpu_images_done in either case. */
mdot_status cg_cpu_make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                               cg_cpu_images *out_images, mdot_error *err);
/* The same for rows that may be outside the target table. options->targets is ignored. */
mdot_status cg_cpu_make_images_for(const cg_cpu_target *const *targets, int target_count, const cg_entry *entries,
                                   int entry_count, const cg_options *options, ir_arena *arena,
                                   cg_cpu_images *out_images, mdot_error *err);
void cg_cpu_images_done(cg_cpu_images *images);

extern const cg_backend cg_cpu_backend; /* the artefact writer's interface to all of it */
