/* nvrtc.c — see nvrtc.h. */
#include "codegen/cuda/nvrtc.h"

#include "base/text.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_BYTES = 1024, MAX_KNOWN_SMS = 64, OLDEST_MAJOR = 12, OLDEST_MINOR = 1 };

/* Newest first. */
static const char *const library_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
enum { NAME_COUNT = sizeof library_names / sizeof library_names[0] };

static void *open_in(const char *folder, const char *subfolder)
{
    for (int i = 0; i < NAME_COUNT; i++) {
        char path[PATH_BYTES];
        int length = snprintf(path, sizeof path, "%s%s%s", folder, subfolder, library_names[i]);
        if (length < 0 || length >= PATH_BYTES) continue;
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library != NULL) return library;
    }
    return NULL;
}

/* A package of NVIDIA's for Debian and Ubuntu, or pip's on any system. */
#define ADVICE                                                                                                         \
    "install the CUDA toolkit's package cuda-nvrtc-13-0 (or another version from 12.1 on; NVRTC works without a GPU "  \
    "and a driver) or run `pip install nvidia-cuda-nvrtc`. If the dynamic loader does not find the library, set "      \
    "MDOT_NVRTC to its path"

static mdot_status open_library(void **out_library, mdot_error *err)
{
    const char *forced = secure_getenv("MDOT_NVRTC"), *cuda = secure_getenv("CUDA_HOME");
    if (forced != NULL && forced[0] != '\0') {
        *out_library = dlopen(forced, RTLD_NOW | RTLD_LOCAL);
        if (*out_library != NULL) return MDOT_OK;
        return mdot_fail(
            err, MDOT_TOOLCHAIN,
            "compiling for a GPU requires NVRTC, but the library in MDOT_NVRTC cannot be loaded (%s): " ADVICE,
            dlerror());
    }
    *out_library = open_in("", "");
    if (*out_library == NULL && cuda != NULL && cuda[0] != '\0') *out_library = open_in(cuda, "/lib64/");
    if (*out_library == NULL) *out_library = open_in("/usr/local/cuda", "/lib64/");
    if (*out_library != NULL) return MDOT_OK;
    return mdot_fail(err, MDOT_TOOLCHAIN, "compiling for a GPU requires NVRTC, but no libnvrtc.so was found: " ADVICE);
}

/* The library stays open, because it keeps threads and exit handlers and the next compilation needs it anyway. */
mdot_status cu_nvrtc_load(cu_nvrtc *out_nvrtc, mdot_error *err)
{
    void *library = NULL;
    BS_TRY(open_library(&library, err));
    cu_nvrtc nvrtc = {0};
    void *address;
#define BIND(name, result, parameters)                                                                                 \
    address = dlsym(library, "nvrtc" #name);                                                                           \
    if (address == NULL) return mdot_fail(err, MDOT_TOOLCHAIN, "the NVRTC library lacks nvrtc" #name ": too old?");    \
    memcpy(&nvrtc.name, &address, sizeof address);
    CU_NVRTC_SYMBOL_MAP(BIND)
#undef BIND
    if (nvrtc.Version(&nvrtc.major, &nvrtc.minor) != 0)
        return mdot_fail(err, MDOT_TOOLCHAIN, "NVRTC does not report its version");
    if (nvrtc.major < OLDEST_MAJOR || (nvrtc.major == OLDEST_MAJOR && nvrtc.minor < OLDEST_MINOR))
        return mdot_fail(err, MDOT_TOOLCHAIN, "NVRTC %d.%d is too old: " ADVICE, nvrtc.major, nvrtc.minor);
    *out_nvrtc = nvrtc;
    return MDOT_OK;
}

static mdot_status check_architecture(const cu_nvrtc *nvrtc, int sm, mdot_error *err)
{
    int known[MAX_KNOWN_SMS], count = 0;
    if (nvrtc->GetNumSupportedArchs(&count) != 0 || count <= 0 || count > MAX_KNOWN_SMS ||
        nvrtc->GetSupportedArchs(known) != 0)
        return MDOT_OK; /* the compiler itself then checks the architecture */
    char text[8 * MAX_KNOWN_SMS];
    bs_join list;
    bs_join_begin(&list, text, sizeof text);
    for (int i = 0; i < count; i++) {
        if (known[i] == sm) return MDOT_OK;
        bs_join_add(&list, "%d", known[i]);
    }
    return mdot_fail(err, MDOT_TOOLCHAIN, "NVRTC %d.%d does not support sm_%d; it supports %s", nvrtc->major,
                     nvrtc->minor, sm, text);
}

/* Joins the parts into one text. Lines count from 1 in each part, so messages refer to the part's own lines. */
static char *join(const char *const *parts, int part_count, ir_arena *arena)
{
    size_t bytes = 1;
    for (int i = 0; i < part_count; i++) bytes += strlen(parts[i]) + strlen("\n#line 1\n");
    char *text = ir_arena_alloc(arena, bytes, 1), *end = text;
    for (int i = 0; text != NULL && i < part_count; i++) {
        if (i > 0) end = stpcpy(end, "\n#line 1\n");
        end = stpcpy(end, parts[i]);
    }
    return text;
}

static const char *read_log(const cu_nvrtc *nvrtc, cu_nvrtc_program program, ir_arena *arena)
{
    size_t bytes = 0;
    if (nvrtc->GetProgramLogSize(program, &bytes) != 0 || bytes == 0) return "";
    char *log = ir_arena_alloc(arena, bytes + 1, 1); /* zeroed, so the log is always NUL-terminated */
    if (log == NULL || nvrtc->GetProgramLog(program, log) != 0) return "";
    return log;
}

/* Quotes the log from the first error on ("error: …" by the compiler, "Error: …" by ptxas), because warnings may
 * precede it. The message is cut at its maximum length. */
static mdot_status refused(const cu_nvrtc *nvrtc, int result, const char *architecture, const char *log,
                           mdot_error *err)
{
    const char *first = strcasestr(log, "error");
    while (first != NULL && first > log && first[-1] != '\n') first--;
    if (first == NULL) first = log[0] != '\0' ? log : nvrtc->GetErrorString(result);
    return mdot_fail(err, MDOT_TOOLCHAIN, "NVRTC %d.%d, %s: %s", nvrtc->major, nvrtc->minor, architecture, first);
}

static mdot_status compile(const cu_nvrtc *nvrtc, cu_nvrtc_program program, const char *architecture, ir_arena *arena,
                           cu_cubin *out_cubin, mdot_error *err)
{
    /* 177: unused variable; generators declare all variables that a kernel kind may need */
    const char *const options[] = {architecture, "-std=c++17", "--diag-suppress=177", "--ptxas-options=-v"};
    int result = nvrtc->CompileProgram(program, sizeof options / sizeof options[0], options);
    const char *log = read_log(nvrtc, program, arena);
    if (result != 0) return refused(nvrtc, result, architecture, log, err);
    size_t bytes = 0;
    result = nvrtc->GetCUBINSize(program, &bytes);
    if (result != 0) return refused(nvrtc, result, architecture, "", err);
    char *cubin = ir_arena_alloc(arena, bytes + 1, 1);
    if (cubin == NULL) return BS_OUT_OF_MEMORY(err, "a cubin of %zu bytes", bytes);
    result = nvrtc->GetCUBIN(program, cubin);
    if (result != 0) return refused(nvrtc, result, architecture, "", err);
    return cu_cubin_read(cubin, bytes, log, arena, out_cubin, err);
}

mdot_status cu_nvrtc_compile(const cu_nvrtc *nvrtc, const char *const *parts, int part_count, int sm,
                             bool is_accelerated, ir_arena *arena, cu_cubin *out_cubin, mdot_error *err)
{
    BS_TRY(check_architecture(nvrtc, sm, err));
    const char *source = join(parts, part_count, arena);
    const char *architecture = ir_arena_printf(arena, "-arch=sm_%d%s", sm, is_accelerated ? "a" : "");
    if (source == NULL || architecture == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    cu_nvrtc_program program = NULL;
    int result = nvrtc->CreateProgram(&program, source, "kernels.cu", 0, NULL, NULL);
    if (result != 0) return refused(nvrtc, result, architecture, "", err);
    mdot_status status = compile(nvrtc, program, architecture, arena, out_cubin, err);
    nvrtc->DestroyProgram(&program);
    return status;
}
