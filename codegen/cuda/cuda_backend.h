/* cuda_backend.h — plans → images for GPUs: for each architecture a cubin, for each arithmetic its weights. The folder's
 * contract; the other headers here are its own, but nvrtc.h and cubin.h, which stand alone.
 *
 *   cuda_target.c     the architectures as data
 *   cuda_generate.h   plans → CUDA C and weights, a program an arithmetic
 *   nvrtc.h           CUDA C → cubin; cubin.h reads what its kernels need
 *   cuda_images.c          all of it in order, architectures side by side
 *
 * How a kernel is launched stands in mdot_abi.h (mdot_abi_cuda_call).
 */
#ifndef CU_CUDA_BACKEND_H
#define CU_CUDA_BACKEND_H

#include "codegen/backend.h"
#include "codegen/byte_pool.h"
#include "codegen/cuda/cubin.h"

/* CG_BF16 is mma.m16n8k16, sm_80 and later; CG_FP16 is mma.m16n8k8, sm_75; CG_FP32 takes no tensor cores and is for
 * verification. */

/* ---- Targets: cg_target.number is 90 and variant 1 for sm_90a ---------------------------------------------------- */

typedef struct cu_target { /* {90, true} for sm_90a */
    uint32_t sm;
    bool is_accelerated;
} cu_target;

enum { CU_TARGETS = 7 };
extern const cu_target cu_targets[CU_TARGETS]; /* what `--target cuda` stands for; ascending */

size_t cu_shared_limit_bytes(uint32_t sm);
/* cg_backend.parse and .list */
mdot_status cu_parse(const char *name, cg_compute kernel_precision, cg_target out_targets[MDOT_ABI_MAX_IMAGES],
                     int *out_count, mdot_error *err);
void cu_list(bs_join *names);

/* ---- Programs: one persistent kernel for each bucket of each entry ----------------------------------------------- */

typedef struct cu_kernel {
    const char *name;  /* of the function, a C identifier */
    int entry, bucket; /* whose it is; kernels come by mdot_abi_bucket.number */
    int threads;       /* of a block */
    int tile_rows;     /* units of the length that a block takes at a time; 0: the entry has no length */
    int grid_barriers; /* that one launch passes */
    size_t dynamic_shared_bytes;
    size_t inline_input_bytes; /* of the parameter behind the call; 0: inputs come through memory */
    size_t scratch_bytes;      /* of one item */
} cu_kernel;

typedef struct cu_program {
    const char *prelude; /* the PTX wrappers that the source calls, for the card */
    const char *source;
    cg_pool weights; /* what mdot_abi_cuda_call.weights points to, 256-byte aligned */
    int kernel_count;
    cu_kernel *kernels; /* in the arena, as all text is */
} cu_program;

/* ---- Images ------------------------------------------------------------------------------------------------------ */

typedef struct cu_image {
    cg_target target;
    cu_cubin cubin;
    size_t image_offset;                  /* in cu_images.cubins */
    size_t weights_offset, weights_bytes; /* in cu_images.weights */
} cu_image;

typedef struct cu_images {        /* zero: none */
    int nvrtc_major, nvrtc_minor; /* of what compiled them: drivers of an older major version refuse them */
    int count;
    cu_image *image;                 /* in the order of the targets */
    cu_program program[CG_COMPUTES]; /* those of an image's arithmetic are there */
    cg_pool cubins, weights;         /* the artefact's sections */
} cu_images;

/* Images for the options' CUDA targets. None, and a warning with the reason, when a plan is not encoder-shaped; one
 * less, and a warning, where a kernel takes more than a device has. TOOLCHAIN without NVRTC, or when it refuses the
 * source. End with cu_images_done in either case. */
mdot_status cu_make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                           cu_images *out_images, mdot_error *err);
void cu_images_done(cu_images *images);

/* The images as the writer of artefacts wants them. OUT_OF_MEMORY; the arena keeps the toolchain's name. */
mdot_status cu_hand_over(cu_images *images, ir_arena *arena, cg_made *out_made, mdot_error *err);
extern const cg_backend cu_backend;

#endif
