/* target.c — target lists in cg_options, and precision names. */
#include "codegen/backend.h"
#include "codegen/codegen.h"

const char *cg_compute_name(cg_compute kernel_precision)
{
    static const char *const names[CG_COMPUTES] = {[CG_FP32] = "fp32", [CG_BF16] = "bf16", [CG_FP16] = "fp16"};
    return names[kernel_precision];
}

/* Precisions are ignored: those of one target keep the requested order (mdot_abi_table.images_at). */
static bool is_before(const cg_target *a, const cg_target *b)
{
    if (a->kind != b->kind) return a->kind < b->kind;
    return a->number != b->number ? a->number < b->number : a->variant < b->variant;
}

mdot_status cg_add_target(cg_target *targets, int *count, cg_target target, mdot_error *err)
{
    int index = *count;
    while (index > 0 && is_before(&target, &targets[index - 1])) index--;
    for (int i = index - 1; i >= 0 && !is_before(&targets[i], &target); i--)
        if (targets[i].kernel_precision == target.kernel_precision) return MDOT_OK;
    if (*count == MDOT_ABI_MAX_IMAGES) return BS_INVALID(err, "at most %d targets are supported", MDOT_ABI_MAX_IMAGES);
    for (int i = (*count)++; i > index; i--) targets[i] = targets[i - 1];
    targets[index] = target;
    return MDOT_OK;
}

const cg_target *cg_targets_of(const cg_options *options, mdot_image_kind kind, int *out_count)
{
    int first = 0, end;
    while (first < options->target_count && options->targets[first].kind != kind) first++;
    for (end = first; end < options->target_count && options->targets[end].kind == kind;) end++;
    *out_count = end - first;
    return options->targets != NULL ? options->targets + first : NULL;
}
