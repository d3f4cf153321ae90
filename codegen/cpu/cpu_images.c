/* cpu_images.c — plans → an artefact's CPU images: what cpu.h promises, in order. */
#include "codegen/cpu/emit.h"

#include <stdlib.h>

/* The targets' rows, which must be of one machine, since one file is. */
static mdot_status find_targets(const cg_options *options, cg_cpu_images *images, mdot_error *err)
{
    if (options->level_count < 1 || options->level_count > MDOT_ABI_MAX_IMAGES)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%d CPU levels: from 1 to %d are possible", options->level_count,
                         MDOT_ABI_MAX_IMAGES);
    for (int i = 0; i < options->level_count; i++) {
        const cg_cpu_target *target = cg_cpu_target_find(options->levels[i]);
        if (target == NULL)
            return mdot_fail(err, MDOT_UNSUPPORTED, "CPU level number %d is unknown", (int)options->levels[i]);
        if (images->machine != NULL && target->machine != images->machine)
            return mdot_fail(err, MDOT_INVALID_ARGUMENT, "%s is not of %s, as the targets before it are", target->name,
                             images->machine->name);
        images->machine = target->machine;
        images->image[images->count++] = (cg_cpu_image){.target = target};
    }
    return MDOT_OK;
}

/* One placement a packing: images whose kernels read the same form share it. */
static mdot_status place_weights(const cg_entry *entries, int entry_count, ir_arena *arena, cg_cpu_images *images,
                                 mdot_error *err)
{
    const cg_packing *packings[MDOT_ABI_MAX_IMAGES];
    cg_placement *placements = IR_NEW_ARRAY(arena, cg_placement, MDOT_ABI_MAX_IMAGES);
    if (placements == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    int count = 0;
    for (int i = 0; i < images->count; i++) {
        int at = 0;
        while (at < count && packings[at] != images->image[i].target->packing) at++;
        if (at == count) packings[count++] = images->image[i].target->packing;
        images->image[i].placement = &placements[at];
    }
    return cg_place_weights(entries, entry_count, packings, count, &images->weights, placements, arena, err);
}

mdot_status cg_cpu_make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                               cg_cpu_images *out_images, mdot_error *err)
{
    *out_images = (cg_cpu_images){.image = IR_NEW_ARRAY(arena, cg_cpu_image, MDOT_ABI_MAX_IMAGES)};
    if (out_images->image == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, "memory ran out");
    mdot_status status = find_targets(options, out_images, err);
    if (status == MDOT_OK) status = place_weights(entries, entry_count, arena, out_images, err);
    if (status == MDOT_OK) status = cg_cpu_object(entries, entry_count, options, out_images, err);
    return status;
}

void cg_cpu_images_done(cg_cpu_images *images)
{
    cg_pool_done(&images->weights);
    free(images->code);
    *images = (cg_cpu_images){0};
}
