/* cubins.c — compiles the floor kernels' cubins on a machine with NVRTC: part of `gpu.sh pack`.
 *
 *     gpu_cubins FOLDER FLOORS.h FLOORS.cu sm_80,sm_90a,…
 *
 * It writes FOLDER/floors.sm_80.cubin and so on. A kernel with local memory is refused, because the measurement would
 * include that memory. */
#include "base/file.h"
#include "codegen/cuda/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTS = 2, MAX_NAME = 4096 };

/* Parses a target: "sm_90a" is 90, accelerated. */
static mdot_status parse_target(const char *target, int *out_sm, bool *out_is_accelerated, mdot_error *err)
{
    char *end = NULL;
    long sm = strncmp(target, "sm_", 3) == 0 ? strtol(target + 3, &end, 10) : 0;
    if (sm < 10 || sm > 999 || (strcmp(end, "") != 0 && strcmp(end, "a") != 0))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT, "\"%s\" is not a target; for example, sm_90a is one", target);
    *out_sm = (int)sm;
    *out_is_accelerated = *end == 'a';
    return MDOT_OK;
}

static mdot_status check_kernels(const cu_cubin *cubin, const char *target, mdot_error *err)
{
    for (int i = 0; i < cubin->kernel_count; i++)
        if (cubin->kernels[i].local_bytes > 0)
            return mdot_fail(err, MDOT_TOOLCHAIN, "%s, %s: %u bytes of local memory", target, cubin->kernels[i].name,
                             cubin->kernels[i].local_bytes);
    return MDOT_OK;
}

static mdot_status make_cubin(const cu_nvrtc *nvrtc, const char *const *parts, const char *folder, const char *target,
                              mdot_error *err)
{
    int sm = 0;
    bool is_accelerated = false;
    mdot_status status = parse_target(target, &sm, &is_accelerated, err);
    if (status != MDOT_OK) return status;
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    char path[MAX_NAME];
    cu_cubin cubin = {0};
    if (snprintf(path, sizeof path, "%s/floors.%s.cubin", folder, target) >= MAX_NAME)
        status = mdot_fail(err, MDOT_INVALID_ARGUMENT, "the path %s is too long", folder);
    if (status == MDOT_OK) status = cu_nvrtc_compile(nvrtc, parts, PARTS, sm, is_accelerated, arena, &cubin, err);
    if (status == MDOT_OK) status = check_kernels(&cubin, target, err);
    if (status == MDOT_OK) status = bs_write_file(path, cubin.bytes, cubin.size_bytes, err);
    if (status == MDOT_OK) printf("%s: %d kernels, %zu bytes\n", path, cubin.kernel_count, cubin.size_bytes);
    ir_arena_destroy(arena);
    return status;
}

int main(int argc, char **argv)
{
    if (argc != 5) return fprintf(stderr, "usage: gpu_cubins FOLDER FLOORS.h FLOORS.cu TARGET,…\n"), 2;
    mdot_error err = {0};
    cu_nvrtc nvrtc;
    unsigned char *texts[PARTS] = {0};
    mdot_status status = cu_nvrtc_load(&nvrtc, &err);
    for (int i = 0; i < PARTS && status == MDOT_OK; i++) {
        size_t size_bytes;
        status = bs_read_file(argv[2 + i], &texts[i], &size_bytes, &err);
    }
    const char *parts[PARTS] = {(const char *)texts[0], (const char *)texts[1]};
    for (char *target = strtok(argv[4], ","); status == MDOT_OK && target != NULL; target = strtok(NULL, ","))
        status = make_cubin(&nvrtc, parts, argv[1], target, &err);
    for (int i = 0; i < PARTS; i++) free(texts[i]);
    if (status != MDOT_OK) fprintf(stderr, "gpu_cubins: %s\n", err.message);
    return status == MDOT_OK ? 0 : 1;
}
