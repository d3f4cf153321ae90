/* cpu_backend.h — plans → an artefact's CPU images: weights as their kernels want them, and code through the LLVM C API.
 *
 *   cpu_images.c  all of it in order
 *   cpu_target.c  the feature levels as data: vector width, register tile, packing of weights, LLVM cpu; and machines
 *   pack.c        a constant in the form in which kernels read it
 *   weights.c     the constants of all plans in one block, equal ones once
 *   emit.c        the small vector language that every kernel emitter is written in
 *   bf16.c        bfloat16: what of a plan is kept in it, conversions, products of pairs
 *   amx.c         matrix tiles: the few operations by which kernels reach them
 *   math.c        exp, log, tanh, erf, … as polynomials over vectors, f32 and f64
 *   gelu.c        GELU, in forms of its own
 *   cpu_expr.c    pl_expr → vector or scalar IR: sharing, element access
 *   arith.c       its operators and conversions, for every element type
 *   reducer.c     what reductions and combining scatters do with two values
 *   vectorise.c   which loop of a nest becomes vectors
 *   register_tile.c        the register tile: the inner loop of linear and attention
 *   cpu_linear.c cpu_attention.c cpu_norm.c cpu_nest.c cpu_sequential.c cpu_recurrence.c    one file a
 *                 kernel kind
 *   cpu_linear_amx.c cpu_linear_rows.c    linear with matrix tiles, and what it shares with the other
 *   cpu_attention_stream.c cpu_attention_small.c cpu_attention_scores.c    the two forms of attention, and what they share
 *   cpu_attention_bf16.c    what the first does otherwise in bf16
 *   kernel_signature.c         a kernel's specification as bytes, by which equal kernels are found
 *   llvm_module.c      plans → one LLVM module: kernels (shared when equal), entry functions, mdot_code
 *   object.c      LLVM module → object file
 */
#ifndef CG_CPU_BACKEND_H
#define CG_CPU_BACKEND_H

#include "codegen/backend.h"
#include "codegen/cpu/weights.h"

/* ---- Targets ----------------------------------------------------------------------------------------------------- */

/* What the matrix kernels (pl_is_matrix) of a target multiply. Sums are f32 in all, and so is everything else. */
typedef enum cg_matmul_kind {
    CG_MATMUL_F32,     /* f32 by f32 */
    CG_MATMUL_WIDENED, /* the same; weights are bf16 in memory, and widened before they are multiplied */
    CG_MATMUL_BF16,    /* bf16 by bf16, two products to a lane: vdpbf16ps */
    CG_MATMUL_AMX,     /* bf16 by bf16, tiles of 16 rows: AMX */
} cg_matmul_kind;

/* One feature level in one arithmetic. A register tile is tile_rows × tile_vectors accumulators. */
typedef struct cg_cpu_target {
    mdot_cpu_isa level;
    cg_compute kernel_precision;
    const char *name;   /* "x86-64-v3" */
    const char *suffix; /* "v3", of symbol names: its own */
    cg_matmul_kind products;
    bool use_generic_vectors;          /* products of bf16 in instructions that every level has: for tests */
    const cg_machine *machine;         /* of the module, shared by every level of an architecture */
    const cg_layout *layout;           /* the forms in which its linear kernels read constants */
    const char *cpu, *features, *tune; /* attributes of each function */
    int lanes;                         /* f32 elements of a vector */
    int tile_rows, tile_vectors;
    bool permute16; /* sixteen-entry table look-up is one instruction */
} cg_cpu_target;

/* NULL: there is none. */
const cg_cpu_target *cg_cpu_target_find(mdot_cpu_isa level, cg_compute kernel_precision);

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
    cg_cpu_image *image; /* in the order of the targets */
    cg_pool weights;     /* the artefact's section */
    void *code;          /* an object file */
    size_t code_bytes;
} cg_cpu_images;

/* An image for each of the options' CPU targets. INVALID_ARGUMENT for none, or for targets of several machines. End
 * with cg_cpu_images_done in either case. */
mdot_status cg_cpu_make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                               cg_cpu_images *out_images, mdot_error *err);
/* The same for these rows, whether or not they stand in the table of targets; options->targets is not read. */
mdot_status cg_cpu_make_images_for(const cg_cpu_target *const *targets, int target_count, const cg_entry *entries,
                                   int entry_count, const cg_options *options, ir_arena *arena,
                                   cg_cpu_images *out_images, mdot_error *err);
void cg_cpu_images_done(cg_cpu_images *images);

extern const cg_backend cg_cpu_backend; /* all of it as the writer of artefacts wants it */

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
