/* images.h — plans → an artefact's CUDA images: for each architecture a cubin, for each arithmetic its weights.
 *
 *   cuda_target.c    the architectures as data
 *   cuda.h      plans → source and weights, a program an arithmetic
 *   nvrtc.h     source → cubin
 *   images.c    all of it in order, architectures side by side
 */
#ifndef CG_IMAGES_H
#define CG_IMAGES_H

#include "codegen/cuda/cubin.h"
#include "codegen/cuda/cuda.h"

enum { CG_CUDA_TARGETS = 7, CG_CUDA_MODES = CG_CUDA_F16 + 1 };
extern const cg_cuda_target cg_cuda_targets[CG_CUDA_TARGETS]; /* what `--target cuda` stands for; ascending */

size_t cg_cuda_shared_limit_bytes(cg_cuda_target target);
cg_cuda_mode cg_cuda_target_mode(cg_cuda_target target, bool fp32);

typedef struct cg_cuda_image {
    cg_cuda_target target;
    cg_cuda_mode mode;
    cg_cubin cubin;
    size_t image_offset;                  /* in cg_cuda_images.cubins */
    size_t weights_offset, weights_bytes; /* in cg_cuda_images.weights */
} cg_cuda_image;

typedef struct cg_cuda_images {   /* zero: none */
    int nvrtc_major, nvrtc_minor; /* of what compiled them: drivers of an older major version refuse them */
    int count;
    cg_cuda_image *image;                   /* in the order of options->cuda_targets */
    cg_cuda_program program[CG_CUDA_MODES]; /* those of an image's mode are there */
    cg_pool cubins, weights;                /* the artefact's sections */
} cg_cuda_images;

/* Images for options->cuda_targets. None, and a warning with the reason, when a plan is not encoder-shaped; one less,
 * and a warning, where a kernel takes more than a device has. TOOLCHAIN without NVRTC, or when it refuses the source.
 * End with cg_cuda_images_done in either case. */
mdot_status cg_cuda_make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                                cg_cuda_images *out_images, mdot_error *err);
void cg_cuda_images_done(cg_cuda_images *images);

#endif
