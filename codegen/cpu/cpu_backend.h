/* cpu_backend.h — plans → an artefact's CPU images: packed weights, and code through the LLVM C API.
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
 *   cpu_linear_amx.c cpu_linear_rows.c    linear with matrix tiles, and code shared by both forms of linear
 *   cpu_attention_stream.c cpu_attention_small.c cpu_attention_scores.c    the two forms of attention, and their shared code
 *   cpu_attention_bf16.c    the bf16 parts of the first form
 *   kernel_signature.c         a kernel's specification as bytes, to find equal kernels
 *   llvm_module.c      plans → one LLVM module: kernels (shared if equal), entry functions, mdot_code
 *   object.c      LLVM module → object file
 */
#ifndef CG_CPU_BACKEND_H
#define CG_CPU_BACKEND_H

#include "codegen/backend.h"
#include "codegen/cpu/weights.h"

/* ---- Targets ----------------------------------------------------------------------------------------------------- */

/* The factors that a target's matrix kernels (pl_is_matrix) multiply. Sums and all other operations are always f32. */
typedef enum cg_matmul_kind {
    CG_MATMUL_F32,     /* f32 by f32 */
    CG_MATMUL_WIDENED, /* f32 by f32; weights are bf16 in memory and widened before the multiplication */
    CG_MATMUL_BF16,    /* bf16 by bf16, two products per lane: vdpbf16ps */
    CG_MATMUL_AMX,     /* bf16 by bf16, tiles of 16 rows: AMX */
} cg_matmul_kind;

/* One ISA level in one precision. A register tile is tile_rows × tile_vectors accumulators. */
typedef struct cg_cpu_target {
    mdot_cpu_isa level;
    cg_compute kernel_precision;
    const char *name;   /* for example "x86-64-v3" */
    const char *suffix; /* unique suffix of symbol names, for example "v3" */
    cg_matmul_kind products;
    bool use_generic_vectors;          /* bf16 products use instructions that every level has; for tests */
    const cg_machine *machine;         /* machine of the module, shared by every level of an architecture */
    const cg_layout *layout;           /* layouts in which its linear kernels read constants */
    const char *cpu, *features, *tune; /* attributes of each function */
    int lanes;                         /* f32 elements per vector */
    int tile_rows, tile_vectors;
    bool permute16; /* a sixteen-entry table look-up is one instruction */
} cg_cpu_target;

/* Returns NULL if the target is unknown. */
const cg_cpu_target *cg_cpu_target_find(mdot_cpu_isa level, cg_compute kernel_precision);

/* The section of a target's functions in the object, for example ".text.v3". */
enum { CG_SECTION_NAME_BYTES = 32 };
void cg_code_section(const cg_cpu_target *target, char out_name[CG_SECTION_NAME_BYTES]);

/* ---- Images ------------------------------------------------------------------------------------------------------ */

typedef struct cg_cpu_image { /* image of one target */
    const cg_cpu_target *target;
    const cg_placement *placement; /* placement of its weights; offsets in its code are relative to placement->first */
    size_t code_bytes;             /* size of its functions */
} cg_cpu_image;

typedef struct cg_cpu_images { /* zero-initialised: empty */
    const cg_machine *machine; /* machine of all images */
    int count;
    cg_cpu_image *image; /* in the order of the targets */
    cg_pool weights;     /* the artefact's section */
    void *code;          /* bytes of an object file */
    size_t code_bytes;
} cg_cpu_images;

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

/* Generates images->code and sets the images' code_bytes. The code defines mdot_code, reaches weights only through
 * the call structure, and imports nothing. The targets and placements must be set. */
mdot_status cg_cpu_object(const cg_entry *entries, int entry_count, const cg_options *options, cg_cpu_images *images,
                          mdot_error *err);

/* Index in mdot_code of an image's function for a plan. Plans are counted through the entries. */
static inline int cg_cpu_code_number(const cg_cpu_images *images, int plan, int image)
{
    return plan * images->count + image;
}

/* Scratch bytes of one call of the plan's code in a target's image: the plan's scratch, followed by the working
 * memory of the kernel that needs the most. */
int64_t cg_cpu_scratch_bytes(const pl_plan *plan, const cg_cpu_target *target);
/* That working memory, which each further worker needs separately. */
int64_t cg_cpu_worker_bytes(const pl_plan *plan, const cg_cpu_target *target);
/* True if a kernel's work can be divided among calls (mdot_abi_call), on any target. */
bool cg_kernel_is_split(const pl_plan *plan, const pl_kernel *kernel);

/* For example "19.1.7". */
const char *cg_llvm_version(void);

#endif
