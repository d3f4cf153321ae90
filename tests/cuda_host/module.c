/* module.c — compiles source text to a loaded shared object, and maps code addresses to lines. */
#include "tests/cuda_host/machine.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cuda_host_module {
    char folder[64];
    void *library;
    bool checked;
    ch_section statics;
};

/* Contraction is off, so both compilers round alike. nvcc contracts, which only makes results more accurate. */
static const char COMPILE[] = "cd '%s' && %s -std=c++17 -O1 -g -fPIC -fno-exceptions -fno-rtti -fno-strict-aliasing "
                              "-ffp-contract=off %s -I '%s' -include tests/cuda_host/device.h -c kernel.cpp 2>&1 && "
                              "%s -shared -o kernel.so kernel.o '%s' 2>&1"; /* the sanitizers' libraries are left out */
static const char INSTRUMENT[] = "-fsanitize=thread,alignment,bounds";

bool cuda_host_available(void) { return CUDA_HOST_CXX[0] != '\0' && access(CUDA_HOST_CXX, X_OK) == 0; }

static bool write_source(const cuda_host_module *m, const char *source)
{
    char path[96];
    snprintf(path, sizeof path, "%s/kernel.cpp", m->folder);
    FILE *file = fopen(path, "w");
    if (!file) return false;
    bool written = fputs(source, file) >= 0;
    return fclose(file) == 0 && written;
}

static bool run_compiler(const char *command, char *message, size_t message_size)
{
    FILE *pipe = popen(command, "r");
    if (!pipe) return false;
    size_t got = fread(message, 1, message_size - 1, pipe);
    message[got] = '\0';
    char rest[256];
    while (fread(rest, 1, sizeof rest, pipe) > 0) continue;
    return pclose(pipe) == 0;
}

cuda_host_module *cuda_host_compile(const char *source, cuda_host_mode mode, char *message, size_t message_size)
{
    cuda_host_module *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->checked = mode == CUDA_HOST_CHECKED;
    strcpy(m->folder, "/tmp/cuda_host_XXXXXX");
    char command[2048], path[96];
    message[0] = '\0';
    if (!mkdtemp(m->folder) || !write_source(m, source)) goto fail;
    snprintf(command, sizeof command, COMPILE, m->folder, CUDA_HOST_CXX, m->checked ? INSTRUMENT : "", MDOT_SOURCE_DIR,
             CUDA_HOST_CXX, CUDA_HOST_HOOKS);
    if (!run_compiler(command, message, message_size)) goto fail;
    snprintf(path, sizeof path, "%s/kernel.so", m->folder);
    m->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!m->library) {
        snprintf(message, message_size, "%s", dlerror());
        goto fail;
    }
    void (*section)(ch_section * out);
    *(void **)&section = dlsym(m->library, "ch_module_section");
    section(&m->statics);
    return m;
fail:
    cuda_host_unload(m);
    return NULL;
}

void cuda_host_unload(cuda_host_module *m)
{
    if (!m) return;
    char path[96];
    if (m->library) dlclose(m->library);
    static const char *const files[] = {"kernel.cpp", "kernel.o", "kernel.so"};
    for (int k = 0; k < 3; k++) {
        snprintf(path, sizeof path, "%s/%s", m->folder, files[k]);
        unlink(path);
    }
    rmdir(m->folder);
    free(m);
}

void *cuda_host_symbol(const cuda_host_module *m, const char *name) { return dlsym(m->library, name); }

bool ch_is_checked(void) { return ch.launch->module->checked; }

ch_section ch_static_shared(void) { return ch.launch->module->statics; }

bool ch_in_module(const void *address)
{
    Dl_info info, own;
    void *section = dlsym(ch.launch->module->library, "ch_module_section");
    return dladdr(address, &info) && dladdr(section, &own) && info.dli_fbase == own.dli_fbase;
}

/* Returns the line in the source, also for code that was inlined from device.h. */
int ch_line_of(const void *pc)
{
    Dl_info info;
    char command[512], text[512];
    int line = 0;
    if (!dladdr(pc, &info)) return 0;
    snprintf(command, sizeof command, "addr2line -i -e '%s' %zx 2>/dev/null", info.dli_fname,
             (size_t)((const char *)pc - (const char *)info.dli_fbase) - 1);
    FILE *pipe = popen(command, "r");
    if (!pipe) return 0;
    while (fgets(text, sizeof text, pipe)) {
        const char *at = strstr(text, "kernel.cpp:");
        if (at && !line) line = atoi(at + strlen("kernel.cpp:"));
    }
    pclose(pipe);
    return line;
}
