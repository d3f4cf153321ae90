/* cuda_backend.h — plans → images for GPUs: a cubin for each architecture, weights for each precision. This is the folder's
 * interface. The other headers are internal, except nvrtc.h and cubin.h, which stand alone.
 *
 *   cuda_target.c     the architectures as data
 *   cuda_generate.h   plans → CUDA C and weights, one program per precision
 *   nvrtc.h           CUDA C → cubin; cubin.h reads the resources of its kernels
 *   cuda_images.c          runs all of it in order, architectures in parallel
 *
 * mdot_abi.h (mdot_abi_cuda_call) specifies how a kernel is launched.
 */
#ifndef CU_CUDA_BACKEND_H
#define CU_CUDA_BACKEND_H

#include "codegen/backend.h"
#include "codegen/byte_pool.h"
#include "codegen/cuda/cubin.h"

/* CG_BF16 uses mma.m16n8k16 on sm_80 and later. CG_FP16 uses mma.m16n8k8 on sm_75. CG_FP32 uses no tensor cores and
 * is for verification. */

/* ---- Targets: cg_target.number is 90 and variant 1 for sm_90a ---------------------------------------------------- */

typedef struct cu_target { /* {90, true} for sm_90a */
    uint32_t sm;
    bool is_accelerated;
} cu_target;

enum { CU_TARGETS = 7 };
extern const cu_target cu_targets[CU_TARGETS]; /* the targets of `--target cuda`, ascending */

size_t cu_shared_limit_bytes(uint32_t sm);
/* implement cg_backend.parse and .list */
mdot_status cu_parse(const char *name, cg_compute kernel_precision, cg_target out_targets[MDOT_ABI_MAX_IMAGES],
                     int *out_count, mdot_error *err);
void cu_list(bs_join *names);

/* ---- Programs: one persistent kernel for each bucket of each entry ----------------------------------------------- */

typedef struct cu_kernel {
    const char *name;  /* name of the function, a C identifier */
    int entry, bucket; /* entry and bucket of the kernel; kernels are ordered by mdot_abi_bucket.number */
    int threads;       /* threads per block */
    int tile_rows;     /* units of the length that a block takes at a time; 0 if the entry has no length */
    int grid_barriers; /* grid barriers in one launch */
    size_t dynamic_shared_bytes;
    size_t inline_input_bytes; /* part of the parameter after the call; 0: inputs are read from memory */
    size_t scratch_bytes;      /* per item */
} cu_kernel;

typedef struct cu_program {
    const char *prelude; /* the PTX wrappers that the source calls on the GPU */
    const char *source;
    cg_pool weights; /* data of mdot_abi_cuda_call.weights, 256-byte aligned */
    int kernel_count;
    cu_kernel *kernels; /* in the arena, as is all text */
} cu_program;

/* ---- Images ------------------------------------------------------------------------------------------------------ */

typedef struct cu_image {
    cg_target target;
    cu_cubin cubin;
    size_t image_offset;                  /* offset in cu_images.cubins */
    size_t weights_offset, weights_bytes; /* in cu_images.weights */
} cu_image;

typedef struct cu_images {        /* zero-initialised: empty */
    int nvrtc_major, nvrtc_minor; /* version of the compiler; drivers of an older major version refuse its code */
    int count;
    cu_image *image;                 /* in the order of the targets */
    cu_program program[CG_COMPUTES]; /* filled for the precisions of the images */
    cg_pool cubins, weights;         /* the artefact's sections */
} cu_images;

/* Makes images for the options' CUDA targets. If a plan is not encoder-shaped, it makes none and warns with the
 * reason. If a kernel exceeds a device's resources, that image is omitted with a warning. Returns TOOLCHAIN if NVRTC
 * is missing or refuses the source. Call cu_images_done in either case. */
mdot_status cu_make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                           cu_images *out_images, mdot_error *err);
void cu_images_done(cu_images *images);

/* Converts the images to the artefact writer's form. Returns OUT_OF_MEMORY on failure. The toolchain's name is in
 * the arena. */
mdot_status cu_hand_over(cu_images *images, ir_arena *arena, cg_made *out_made, mdot_error *err);
extern const cg_backend cu_backend;

#endif
