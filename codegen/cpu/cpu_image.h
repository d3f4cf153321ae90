/* cpu_image.h — the images of an artefact's CPU targets, as data. */
#ifndef CG_CPU_IMAGE_H
#define CG_CPU_IMAGE_H

#include "codegen/byte_pool.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/weights.h"

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

/* Index in mdot_code of an image's function for a plan. Plans are counted through the entries. */
static inline int cg_cpu_code_number(const cg_cpu_images *images, int plan, int image)
{
    return plan * images->count + image;
}

#endif
