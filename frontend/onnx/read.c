/* read.c — maps files read-only: models, external data, tensors of test data sets.
 *
 * A mapping reads the file while it is in use. If another process truncates the file meanwhile, SIGBUS ends the
 * process, as with every mapped file.
 */
#include "frontend/onnx/read.h"

#include "base/file.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
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
    if (m == NULL || size_bytes > SIZE_MAX - lead) {
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

mdot_status fe_map_file(const char *path, ir_arena *arena, const void **out_bytes, size_t *out_size_bytes,
                        mdot_error *err)
{
    int fd;
    uint64_t size_bytes;
    mdot_status status = bs_open_file(path, &fd, &size_bytes, err);
    if (status != MDOT_OK) return status;
    const void *bytes = NULL;
    if (size_bytes == 0) {
        status = mdot_fail(err, MDOT_MALFORMED, "%s: empty", path);
    } else {
        bytes = fe_map_range(fd, 0, (size_t)size_bytes, arena);
        if (bytes == NULL)
            status = mdot_fail(err, errno == ENOMEM ? MDOT_OUT_OF_MEMORY : MDOT_IO, "%s: %s", path, strerror(errno));
    }
    close(fd);
    if (status != MDOT_OK) return status;
    *out_bytes = bytes;
    *out_size_bytes = (size_t)size_bytes;
    return MDOT_OK;
}
