/* kernel_server.c — runs generated code on request: the other side of tests/support/remote_code.h. Each buffer lies
 * between inaccessible pages. An access beyond a buffer ends the process, which fails the client's test. */
#include "mdot/mdot_abi.h"
#include "tests/support/remote_protocol.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct buffer {
    remote_buffer about;
    unsigned char *mapping, *bytes, *data;
    size_t mapping_bytes;
} buffer;

static void stop(const char *reason)
{
    fprintf(stderr, "kernel_server: %s\n", reason);
    exit(1);
}

static void receive(void *to, size_t bytes)
{
    if (bytes > 0 && fread(to, 1, bytes, stdin) != bytes) stop("the request ends early");
}

static void map_buffer(buffer *b)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inside = ((size_t)b->about.bytes + page - 1) / page * page;
    b->mapping_bytes = inside + 2 * page;
    void *mapping = mmap(NULL, b->mapping_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) stop("no memory");
    b->mapping = mapping;
    if (inside > 0 && mprotect(b->mapping + page, inside, PROT_READ | PROT_WRITE) != 0) stop("mprotect failed");
    /* at the end of the pages, as far as artefact alignment permits */
    size_t slack = (inside - (size_t)b->about.bytes) / MDOT_ABI_ALIGNMENT * MDOT_ABI_ALIGNMENT;
    b->bytes = b->mapping + page + slack;
    b->data = b->bytes + b->about.data_at;
}

static void *load(const char *library)
{
    static char loaded[sizeof(((remote_call *)0)->library)];
    static void *handle;
    if (handle != NULL && strcmp(loaded, library) == 0) return handle;
    if (handle != NULL) dlclose(handle);
    snprintf(loaded, sizeof loaded, "%s", library);
    handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) stop(dlerror());
    return handle;
}

/* The first eight arguments are in registers, so a function ignores extra ones. */
static void call_function(void *symbol, const buffer *buffers, int64_t count, int64_t length)
{
    enum { ARGUMENTS = 8 };
    uintptr_t a[ARGUMENTS] = {0};
    if (count >= ARGUMENTS) stop("too many arguments");
    for (int64_t i = 0; i < count; i++) a[i] = (uintptr_t)buffers[i].data;
    a[count] = (uintptr_t)length;
    typedef void (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
    ((function)(uintptr_t)symbol)(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]);
}

static void call_artefact(const int64_t *code, const buffer *buffers, const remote_call *call)
{
    const void *inputs[REMOTE_MOST_BUFFERS];
    void *outputs[REMOTE_MOST_BUFFERS];
    const buffer *at = buffers;
    for (int64_t i = 0; i < call->input_count; i++) inputs[i] = (at++)->data;
    for (int64_t o = 0; o < call->output_count; o++) outputs[o] = (at++)->data;
    mdot_abi_function function = (mdot_abi_function)((uintptr_t)code + (uintptr_t)code[0]);
    for (int64_t s = 0; s < call->step_count; s++) {
        remote_step step;
        receive(&step, sizeof step);
        mdot_abi_call step_call = {.inputs = inputs,
                                   .outputs = outputs,
                                   .weights = at[0].data,
                                   .scratch = at[1].data,
                                   .length = call->length,
                                   .kernel_begin = step.kernel_begin,
                                   .kernel_end = step.kernel_end,
                                   .share_begin = step.share_begin,
                                   .share_end = step.share_end,
                                   .worker = step.worker};
        function(&step_call);
    }
}

static void serve(const remote_call *call)
{
    static buffer buffers[REMOTE_MOST_BUFFERS];
    if (call->buffer_count > REMOTE_MOST_BUFFERS) stop("too many buffers");
    for (int64_t b = 0; b < call->buffer_count; b++) {
        receive(&buffers[b].about, sizeof buffers[b].about);
        map_buffer(&buffers[b]);
        size_t bytes = (size_t)buffers[b].about.bytes;
        if (buffers[b].about.fill < 0)
            receive(buffers[b].bytes, bytes);
        else
            memset(buffers[b].bytes, (int)buffers[b].about.fill, bytes);
    }
    const char *name = call->function[0] != '\0' ? call->function : MDOT_ABI_SYMBOL_CODE;
    void *symbol = dlsym(load(call->library), name);
    if (symbol == NULL) stop(dlerror());
    if (call->function[0] != '\0')
        call_function(symbol, buffers, call->buffer_count, call->length);
    else
        call_artefact(symbol, buffers, call);
    for (int64_t b = 0; b < call->buffer_count; b++) {
        size_t bytes = (size_t)buffers[b].about.bytes;
        if (buffers[b].about.is_returned && fwrite(buffers[b].bytes, 1, bytes, stdout) != bytes) stop("cannot answer");
        munmap(buffers[b].mapping, buffers[b].mapping_bytes);
    }
    if (fflush(stdout) != 0) stop("cannot answer");
}

int main(void)
{
    remote_call call;
    while (fread(&call, sizeof call, 1, stdin) == 1) serve(&call);
    return 0;
}
