/* cpu_images.c — plans → an artefact's CPU images: runs the steps of cpu_images.h in order. */

#include "codegen/cpu/cpu_images.h"
#include "codegen/backend.h"
#include "codegen/byte_pool.h"
#include "codegen/codegen.h"

#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/object.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    mdot_cpu_isa isa;
    const char *name;
} isas[] = {
#define ISA(id, value, text) {MDOT_CPU_##id, text},
    MDOT_CPU_ISA_MAP(ISA)
#undef ISA
};
enum { ISA_COUNT = sizeof isas / sizeof isas[0] };

static void list_targets(bs_join *names)
{
    bs_join_add(names, "cpu, x86-64, aarch64");
    for (int i = 0; i < ISA_COUNT; i++) bs_join_add(names, "cpu:%s", isas[i].name);
}

/* The machine whose levels `name` means: "cpu" is the machine for which the compiler is built. NULL for others. */
static const cg_machine *machine_named(const char *name)
{
    static const cg_machine *const machines[] = {&cg_machine_x86_64, &cg_machine_aarch64};
#if defined(__aarch64__)
    const cg_machine *own = &cg_machine_aarch64;
#else
    const cg_machine *own = &cg_machine_x86_64;
#endif
    if (strcmp(name, "cpu") == 0) return own;
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
        if (strcmp(name, machines[i]->name) == 0) return machines[i];
    return NULL;
}

/* "cpu", "x86-64" and "aarch64" mean every ISA level of a machine, in the requested precision if the level supports
 * it, otherwise in f32. "cpu:x86-64-v4" means that level. */
static mdot_status parse(const char *name, cg_compute kernel_precision, cg_target out_targets[MDOT_ABI_MAX_IMAGES],
                         int *out_count, mdot_error *err)
{
    static const char prefix[] = "cpu:";
    const cg_machine *machine = machine_named(name);
    bool is_known = machine != NULL;
    const char *isa = strncmp(name, prefix, sizeof prefix - 1) == 0 ? name + sizeof prefix - 1 : "";
    int count = 0;
    for (int i = 0; i < ISA_COUNT; i++) {
        if (machine == NULL && strcmp(isa, isas[i].name) != 0) continue;
        is_known = true;
        const cg_cpu_target *row = cg_cpu_target_find(isas[i].isa, kernel_precision);
        if (row == NULL) row = cg_cpu_target_find(isas[i].isa, CG_FP32);
        if (row != NULL && machine != NULL && row->machine != machine) continue;
        if (row != NULL)
            out_targets[count++] = (cg_target){MDOT_IMAGE_CPU, row->isa, 0, row->kernel_precision};
        else if (machine == NULL)
            return BS_INVALID(err, "target %s does not support precision %s", name, cg_compute_name(kernel_precision));
    }
    if (!is_known) return MDOT_NOT_FOUND;
    *out_count = count;
    return MDOT_OK;
}

/* All targets must be of one machine, because an artefact is one file for one machine. */
static mdot_status take_targets(const cg_cpu_target *const *targets, int count, cg_cpu_images *images, mdot_error *err)
{
    if (count < 1 || count > MDOT_ABI_MAX_IMAGES)
        return BS_INVALID(err, "%d CPU targets: the number must be between 1 and %d", count, MDOT_ABI_MAX_IMAGES);
    for (int i = 0; i < count; i++) {
        if (images->machine != NULL && targets[i]->machine != images->machine)
            return BS_INVALID(err, "target %s is for another processor than the preceding targets (%s)",
                              targets[i]->name, images->machine->name);
        images->machine = targets[i]->machine;
        images->image[images->count++] = (cg_cpu_image){.target = targets[i]};
    }
    return MDOT_OK;
}

/* One placement per layout: images whose kernels read the same layouts share it. */
static mdot_status lay_out_weights(const cg_entry *entries, int entry_count, ir_arena *arena, cg_cpu_images *images,
                                   mdot_error *err)
{
    const cg_layout *layouts[MDOT_ABI_MAX_IMAGES];
    cg_placement *placements = IR_NEW_ARRAY(arena, cg_placement, MDOT_ABI_MAX_IMAGES);
    if (placements == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    int count = 0;
    for (int i = 0; i < images->count; i++) {
        int index = 0;
        while (index < count && layouts[index] != images->image[i].target->layout) index++;
        if (index == count) layouts[count++] = images->image[i].target->layout;
        images->image[i].placement = &placements[index];
    }
    return cg_lay_out_weights(entries, entry_count, layouts, count, &images->weights, placements, arena, err);
}

mdot_status cg_cpu_make_images_for(const cg_cpu_target *const *targets, int target_count, const cg_entry *entries,
                                   int entry_count, const cg_options *options, ir_arena *arena,
                                   cg_cpu_images *out_images, mdot_error *err)
{
    *out_images = (cg_cpu_images){.image = IR_NEW_ARRAY(arena, cg_cpu_image, MDOT_ABI_MAX_IMAGES)};
    if (out_images->image == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    BS_TRY(take_targets(targets, target_count, out_images, err));
    BS_TRY(lay_out_weights(entries, entry_count, arena, out_images, err));
    return cg_cpu_object(entries, entry_count, options, out_images, err);
}

mdot_status cg_cpu_make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                               cg_cpu_images *out_images, mdot_error *err)
{
    int count;
    const cg_target *targets = cg_targets_of(options, MDOT_IMAGE_CPU, &count);
    const cg_cpu_target *rows[MDOT_ABI_MAX_IMAGES];
    *out_images = (cg_cpu_images){0};
    for (int i = 0; i < count && i < MDOT_ABI_MAX_IMAGES; i++) {
        rows[i] = cg_cpu_target_find((mdot_cpu_isa)targets[i].number, targets[i].kernel_precision);
        if (rows[i] == NULL)
            return mdot_fail(err, MDOT_UNSUPPORTED, "CPU ISA level %u in %s is unknown", targets[i].number,
                             cg_compute_name(targets[i].kernel_precision));
    }
    return cg_cpu_make_images_for(rows, count, entries, entry_count, options, arena, out_images, err);
}

void cg_cpu_images_done(cg_cpu_images *images)
{
    cg_pool_done(&images->weights);
    free(images->code);
    *images = (cg_cpu_images){0};
}

static void end_images(void *images)
{
    if (images != NULL) cg_cpu_images_done(images);
}

static mdot_status make_images(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                               cg_image_set *out_set, mdot_error *err)
{
    cg_cpu_images *images = IR_NEW(arena, cg_cpu_images);
    const char *toolchain = ir_arena_printf(arena, "LLVM %s", cg_llvm_version());
    if (images == NULL || toolchain == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status = cg_cpu_make_images(entries, entry_count, options, arena, images, err);
    *out_set = (cg_image_set){.images = images,
                              .image_count = images->count,
                              .toolchain = toolchain,
                              .section = {{MDOT_ABI_SECTION_WEIGHTS, MDOT_ABI_SYMBOL_WEIGHTS, images->weights.bytes,
                                           images->weights.size_bytes, CG_PAGE_BYTES}},
                              .section_count = 1,
                              .machine = images->machine,
                              .code = images->code,
                              .code_bytes = images->code_bytes};
    return status;
}

/* Element n is the function of bucket n in image `number`. */
static uint32_t add_functions(const cg_cpu_images *images, int number, const cg_entry *entries, int entry_count,
                              cg_table *table)
{
    const cg_cpu_target *target = images->image[number].target;
    uint32_t index = cg_table_array(table, (int)table->bucket_count, sizeof(mdot_abi_cpu_function));
    for (int e = 0, bucket = 0; e < entry_count; e++)
        for (int i = 0; i < entries[e].plan_count; i++, bucket++) {
            mdot_abi_cpu_function record = {.code = (uint32_t)cg_cpu_code_number(images, bucket, number),
                                            .scratch_bytes =
                                                (uint64_t)cg_cpu_scratch_bytes(entries[e].plans[i], target),
                                            .worker_bytes = (uint64_t)cg_cpu_worker_bytes(entries[e].plans[i], target)};
            cg_table_put(table, index, bucket, &record, sizeof record);
        }
    return index;
}

static void describe(const void *own_images, const cg_entry *entries, int entry_count, cg_table *table, uint32_t index,
                     mdot_abi_table *head)
{
    const cg_cpu_images *images = own_images;
    for (int i = 0; i < images->count; i++) {
        const cg_cpu_image *image = &images->image[i];
        mdot_abi_image record = {.kind = MDOT_IMAGE_CPU,
                                 .number = image->target->isa,
                                 .target_at = cg_table_string(table, image->target->name),
                                 .compute_at = cg_table_string(table, cg_compute_name(image->target->kernel_precision)),
                                 .kernels_at = add_functions(images, i, entries, entry_count, table),
                                 .kernel_count = table->bucket_count,
                                 .code_bytes = image->code_bytes,
                                 .weights_offset = image->placement->first,
                                 .weights_bytes = image->placement->end - image->placement->first};
        cg_table_put(table, index, i, &record, sizeof record);
    }
    head->weights_bytes = images->weights.size_bytes;
    head->code_count = head->bucket_count * (uint32_t)images->count;
}

static const cg_dump dumps[] = {{.name = "llvm"}, {.name = "asm"}, {.name = NULL}};

const cg_backend cg_cpu_backend = {
    .name = "cpu",
    .example = "cpu:x86-64-v4",
    .kind = MDOT_IMAGE_CPU,
    .is_default = true,
    .dumps = dumps,
    .computes = {CG_FP32, CG_BF16},
    .compute_count = 2,
    .parse = parse,
    .list = list_targets,
    .make_images = make_images,
    .describe = describe,
    .done = end_images,
};
