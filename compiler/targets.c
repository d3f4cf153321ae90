/* targets.c — names of targets, as --target takes them, into CPU levels and GPU architectures. */
#include "base/list.h"
#include "codegen/cuda/cuda.h"
#include "compiler/compiler.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    mdot_cpu_level level;
    const char *name;
} levels[] = {
#define LEVEL(id, value, text) {MDOT_CPU_##id, text},
    MDOT_CPU_LEVEL_MAP(LEVEL)
#undef LEVEL
};
enum { LEVEL_COUNT = sizeof levels / sizeof levels[0] };
/* mma.sync.m16n8k8 of f16 and ldmatrix came with sm_75 (PTX ISA, "Target ISA Notes" of each); a cubin names its
 * architecture in one byte. */
enum { LEAST_SM = 75, MOST_SM = 255 };

static mdot_status add_cuda(co_targets *targets, cg_cuda_target target, mdot_error *err)
{
    int at = 0;
    for (; at < targets->cuda_count; at++) {
        const cg_cuda_target *there = &targets->cuda[at];
        if (there->sm == target.sm && there->is_accelerated == target.is_accelerated) return MDOT_OK;
        if (there->sm > target.sm || (there->sm == target.sm && there->is_accelerated)) break;
    }
    if (targets->cuda_count == DR_MAX_CUDA_TARGETS)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "more than %d GPU architectures", DR_MAX_CUDA_TARGETS);
    for (int i = targets->cuda_count++; i > at; i--) targets->cuda[i] = targets->cuda[i - 1];
    targets->cuda[at] = target;
    return MDOT_OK;
}

/* "sm_90", "sm_90a" */
static bool parse_architecture(const char *name, cg_cuda_target *out_target)
{
    if (strncmp(name, "sm_", 3) != 0 || name[3] < '1' || name[3] > '9') return false;
    char *end;
    long sm = strtol(name + 3, &end, 10);
    bool is_accelerated = *end == 'a';
    if (sm < LEAST_SM || sm > MOST_SM || end[is_accelerated] != '\0') return false;
    *out_target = (cg_cuda_target){(int)sm, is_accelerated};
    return true;
}

static bool add_levels(const char *name, bool chosen[LEVEL_COUNT])
{
    bool every = strcmp(name, "cpu") == 0, known = every;
    for (int i = 0; i < LEVEL_COUNT; i++) {
        if (!every && (strncmp(name, "cpu:", 4) != 0 || strcmp(name + 4, levels[i].name) != 0)) continue;
        chosen[i] = known = true;
    }
    return known;
}

static mdot_status unknown(const char *name, mdot_error *err)
{
    char text[512];
    bs_list list;
    bs_list_begin(&list, text, sizeof text);
    bs_list_add(&list, "cpu");
    for (int i = 0; i < LEVEL_COUNT; i++) bs_list_add(&list, "cpu:%s", levels[i].name);
    bs_list_add(&list, "cuda");
    for (int i = 0; i < CU_TARGETS; i++)
        bs_list_add(&list, "sm_%d%s", cu_targets[i].sm, cu_targets[i].is_accelerated ? "a" : "");
    return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                     "there is no target \"%s\"; known are %s and other architectures from sm_%d on that NVRTC knows",
                     name, text, LEAST_SM);
}

mdot_status co_parse_targets(const char *const *targets, size_t count, co_targets *out_targets, mdot_error *err)
{
    co_targets parsed = {0};
    bool chosen[LEVEL_COUNT] = {false}, has_level = false;
    mdot_status status = MDOT_OK;
    for (size_t i = 0; i < count && status == MDOT_OK; i++) {
        cg_cuda_target target;
        if (parse_architecture(targets[i], &target)) {
            status = add_cuda(&parsed, target, err);
        } else if (strcmp(targets[i], "cuda") == 0) {
            for (int k = 0; k < CU_TARGETS && status == MDOT_OK; k++) status = add_cuda(&parsed, cu_targets[k], err);
        } else if (add_levels(targets[i], chosen)) {
            has_level = true;
        } else {
            status = unknown(targets[i], err);
        }
    }
    if (status != MDOT_OK) return status;
    for (int i = 0; i < LEVEL_COUNT; i++)
        if (chosen[i] || !has_level) parsed.levels[parsed.level_count++] = levels[i].level;
    *out_targets = parsed;
    return MDOT_OK;
}

mdot_status co_parse_compute(const char *compute, bool *out_fp32, mdot_error *err)
{
    bool fp32 = compute != NULL && strcmp(compute, "fp32") == 0;
    if (!fp32 && compute != NULL && strcmp(compute, "bf16") != 0)
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "there is no arithmetic \"%s\"; known are bf16, fp32", compute);
    *out_fp32 = fp32;
    return MDOT_OK;
}
