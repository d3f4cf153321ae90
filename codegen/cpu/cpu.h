/* cpu.h — plans → an artefact's CPU images: weights as their kernels want them, and code through the LLVM C API.
 *
 *   cpu_images.c  all of it in order
 *   cpu_target.c  the feature levels as data: vector width, register tile, packing of weights, LLVM cpu; and machines
 *   pack.c        a constant in the form in which kernels read it
 *   weights.c     the constants of all plans in one block, equal ones once
 *   emit.c        the small vector language that every kernel emitter is written in
 *   math.c        exp, log, tanh, erf, … as polynomials over vectors, f32 and f64
 *   gelu.c        GELU, in forms of its own
 *   cpu_expr.c    pl_expr → vector or scalar IR: sharing, element access
 *   arith.c       its operators and conversions, for every element type
 *   reducer.c     what reductions and combining scatters do with two values
 *   vectorise.c   which loop of a nest becomes vectors
 *   tile.c        the register tile: the inner loop of linear and attention
 *   cpu_linear.c cpu_attention.c cpu_norm.c cpu_nest.c cpu_sequential.c    one file a kernel kind
 *   cpu_attention_stream.c cpu_attention_small.c scores.c    the two forms of attention, and what they share
 *   key.c         a kernel's specification as bytes, by which equal kernels are found
 *   module.c      plans → one LLVM module: kernels (shared when equal), entry functions, mdot_code
 *   object.c      LLVM module → object file
 */
#ifndef CG_CPU_H
#define CG_CPU_H

#include "codegen/codegen.h"
#include "codegen/cpu/weights.h"
#include "codegen/machine.h"

/* ---- Targets ----------------------------------------------------------------------------------------------------- */

/* One feature level. A register tile is tile_rows × tile_vectors accumulators. */
typedef struct cg_cpu_target {
    mdot_cpu_level level;
    const char *name;                  /* "x86-64-v3" */
    const char *suffix;                /* "v3", of symbol names */
    const char *compute;               /* arithmetic of its matrix kernels: "fp32" */
    const cg_machine *machine;         /* of the module, shared by every level of an architecture */
    const cg_packing *packing;         /* the form in which its linear kernels read constants */
    const char *cpu, *features, *tune; /* attributes of each function */
    int lanes;                         /* f32 elements of a vector */
    int tile_rows, tile_vectors;
    bool permute16; /* sixteen-entry table look-up is one instruction */
} cg_cpu_target;

const cg_cpu_target *cg_cpu_target_find(mdot_cpu_level level);

/* ".text.v3": where a target's functions stand in the object. */
enum { CG_SECTION_NAME_BYTES = 32 };
void cg_code_section(const cg_cpu_target *target, char out_name[CG_SECTION_NAME_BYTES]);

/* ---- Images ------------------------------------------------------------------------------------------------------ */

typedef struct cg_cpu_image { /* of one feature level */
    const cg_cpu_target *target;
    const cg_placement *placement; /* of its weights; its code counts from placement->first */
    size_t code_bytes;             /* of its functions */
} cg_cpu_image;

typedef struct cg_cpu_images { /* zero: none */
    const cg_machine *machine; /* of all of them */
    int count;
    cg_cpu_image *image; /* in the order of options->levels */
    cg_pool weights;     /* the artefact's section */
    void *code;          /* an object file */
    size_t code_bytes;
} cg_cpu_images;

/* An image for each of options->levels. INVALID_ARGUMENT for none, or for targets of several machines. End with
 * cg_cpu_images_done in either case. */
mdot_status cg_cpu_make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                               cg_cpu_images *out_images, mdot_error *err);
void cg_cpu_images_done(cg_cpu_images *images);

/* Generates images->code, which defines mdot_code, reaches weights through the call structure only, and imports
 * nothing, and sets the images' code_bytes. Their targets and placements are there. */
mdot_status cg_cpu_object(const cg_entry *entries, int entry_count, const cg_options *options, cg_cpu_images *images,
                          mdot_error *err);

/* Where mdot_code has an image's function for a plan, plans counted through the entries. */
static inline int cg_cpu_code_number(const cg_cpu_images *images, int plan, int image)
{
    return plan * images->count + image;
}

/* What one call of the plan's code needs in a target's image: the plan's scratch, and behind it the working memory of
 * the kernel that needs most. */
int64_t cg_cpu_scratch_bytes(const pl_plan *plan, const cg_cpu_target *target);
/* That working memory, which each further worker has of its own. */
int64_t cg_cpu_worker_bytes(const pl_plan *plan, const cg_cpu_target *target);
/* Whether a kernel's work can be divided among calls (mdot_abi_call), on any target. */
bool cg_kernel_is_split(const pl_plan *plan, const pl_kernel *kernel);

/* "19.1.7" */
const char *cg_llvm_version(void);

#endif
