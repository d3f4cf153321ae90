/* read.c — files as read-only mapped bytes: models, external data, tensors of test data sets.
 *
 * A mapping reads a file while it is used; cutting the file short meanwhile ends the process with SIGBUS, as with every
 * mapped file.
 */
#include "frontend/onnx/context.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct mapping {
    void *begin;
    size_t size_bytes;
} mapping;

static void unmap(void *object)
{
    mapping *m = object;
    munmap(m->begin, m->size_bytes);
}

const void *fe_map_range(int fd, uint64_t offset, size_t size_bytes, ir_arena *arena)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    size_t lead = (size_t)(offset % page);
    mapping *m = IR_NEW(arena, mapping);
    if (!m || size_bytes > SIZE_MAX - lead) {
        errno = ENOMEM;
        return NULL;
    }
    m->size_bytes = lead + size_bytes;
    m->begin = mmap(NULL, m->size_bytes, PROT_READ, MAP_PRIVATE, fd, (off_t)(offset - lead));
    if (m->begin == MAP_FAILED) return NULL;
    if (!ir_arena_defer(arena, unmap, m)) {
        unmap(m);
        errno = ENOMEM;
        return NULL;
    }
    return (const unsigned char *)m->begin + lead;
}

static mdot_status map_open_file(int fd, const char *path, ir_arena *arena, const void **out_bytes,
                                 size_t *out_size_bytes, mdot_error *err)
{
    struct stat info;
    if (fstat(fd, &info) != 0) return mdot_fail(err, MDOT_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode)) return mdot_fail(err, MDOT_IO, "%s: a directory, not a file", path);
    if (!S_ISREG(info.st_mode)) return mdot_fail(err, MDOT_IO, "%s: not a regular file", path);
    if (info.st_size == 0) return mdot_fail(err, MDOT_MALFORMED, "%s: empty", path);
    const void *bytes = fe_map_range(fd, 0, (size_t)info.st_size, arena);
    if (!bytes) {
        return mdot_fail(err, errno == ENOMEM ? MDOT_OUT_OF_MEMORY : MDOT_IO, "%s: %s", path, strerror(errno));
    }
    *out_bytes = bytes;
    *out_size_bytes = (size_t)info.st_size;
    return MDOT_OK;
}

mdot_status fe_map_file(const char *path, ir_arena *arena, const void **out_bytes, size_t *out_size_bytes,
                        mdot_error *err)
{
    /* NONBLOCK: opening a FIFO must not wait for its writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        bool missing = errno == ENOENT || errno == ENOTDIR;
        return mdot_fail(err, missing ? MDOT_NOT_FOUND : MDOT_IO, "%s: %s", path, strerror(errno));
    }
    mdot_status status = map_open_file(fd, path, arena, out_bytes, out_size_bytes, err);
    close(fd);
    return status;
}

mdot_status fe_out_of_memory(const fe_context *context)
{
    bool bounded = context->scratch && ir_arena_failed(context->scratch);
    return mdot_fail(context->err, MDOT_OUT_OF_MEMORY, "%s: %s", context->file,
                     bounded ? "takes more memory to read than a model of its size may" : "memory ran out");
}

void fe_warn_to(void (*warning)(void *user, const char *message), void *user, const char *format, va_list args)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, args);
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == '\x7f') *c = ' ';
    }
    warning(user, text);
}

void fe_warn(const fe_context *context, const char *format, ...)
{
    if (!context->options->warning) return;
    va_list args;
    va_start(args, format);
    fe_warn_to(context->options->warning, context->options->user, format, args);
    va_end(args);
}
