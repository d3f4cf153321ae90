/* cuda_images.h — plans → images for GPUs: a cubin for each architecture, weights for each precision. This is the
 * folder's interface. The other headers are internal, except nvrtc.h, which stands alone.
 *
 *   cuda_target.c   the architectures as data
 *   cuda_program.h  plans → CUDA C and weights, one program per precision and schedule
 *   nvrtc.h         CUDA C → cubin, and the resources of its kernels
 *   cuda_images.c   runs all of it in order, architectures in parallel
 *
 * mdot_abi.h (mdot_abi_cuda_call) specifies how a kernel is launched.
 */
#pragma once

#include "codegen/backend.h"
#include "codegen/cuda/cuda_program.h"
#include "codegen/cuda/nvrtc.h"

typedef struct cu_image {
    cg_target target;
    cu_cubin cubin;
    size_t image_offset;                  /* offset in cu_images.cubins */
    size_t weights_offset, weights_bytes; /* in cu_images.weights */
} cu_image;

typedef struct cu_images {        /* zero-initialised: empty */
    int nvrtc_major, nvrtc_minor; /* compiler version; drivers with an older major version refuse the code */
    int count;
    cu_image *image; /* in the targets' order */
    /* with one block per tile, and with clusters; filled for the precisions of the images */
    cu_program program[2][CG_COMPUTES];
    cg_pool cubins, weights; /* the artefact's sections */
} cu_images;

/* Converts the images to the artefact writer's form. Returns OUT_OF_MEMORY on failure. The toolchain's name is in the
 * arena. */
mdot_status cu_export_images(cu_images *images, ir_arena *arena, cg_image_set *out_set, mdot_error *err);
extern const cg_backend cu_backend;
