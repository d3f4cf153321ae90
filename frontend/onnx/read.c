/* read.c — see source.h. */
#include "frontend/onnx/source.h"

#include "base/file.h"

#include <errno.h>
#include <limits.h>
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

/* Reserves memory outside the arena's chunks. It takes no pages until it is written. NULL and errno on failure. */
static unsigned char *reserve(size_t size_bytes, int flags, ir_arena *arena)
{
    mapping *m = IR_NEW(arena, mapping);
    if (m == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    m->size_bytes = size_bytes;
    m->begin = mmap(NULL, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    if (m->begin == MAP_FAILED) return NULL;
    if (!ir_arena_defer(arena, unmap, m)) {
        unmap(m);
        errno = ENOMEM;
        return NULL;
    }
    return m->begin;
}

/* Reads exactly so many bytes. On failure, sets errno, to 0 if the file is too short. */
static bool read_exactly(int fd, uint64_t offset, unsigned char *bytes, size_t size_bytes)
{
    for (size_t have = 0; have < size_bytes;) {
        ssize_t count = pread(fd, bytes + have, size_bytes - have, (off_t)(offset + have));
        if (count < 0 && errno == EINTR) continue;
        if (count == 0) errno = 0;
        if (count <= 0) return false;
        have += (size_t)count;
    }
    return true;
}

const void *fe_read_range(int fd, uint64_t offset, size_t size_bytes, ir_arena *arena)
{
    unsigned char *bytes = reserve(size_bytes, 0, arena);
    return bytes != NULL && read_exactly(fd, offset, bytes, size_bytes) ? bytes : NULL;
}

mdot_status fe_check_file_size(const char *file, uint64_t size_bytes, mdot_error *err)
{
    if (size_bytes > INT_MAX)
        return mdot_fail(err, MDOT_UNSUPPORTED,
                         "%s: %llu bytes exceed protobuf's limit of 2 GiB; store the weights as external data", file,
                         (unsigned long long)size_bytes);
    return size_bytes > 0 ? MDOT_OK : mdot_fail(err, MDOT_MALFORMED, "%s: empty; copy or export it again", file);
}

mdot_status fe_open_source(const char *path, ir_arena *arena, fe_source *out_source, mdot_error *err)
{
    enum { BITS = 64 };
    fe_source source = {.name = path};
    uint64_t size_bytes;
    BS_TRY(bs_open_file(path, &source.descriptor, &size_bytes, err));
    mdot_status status = fe_check_file_size(path, size_bytes, err);
    if (status == MDOT_OK) {
        source.size_bytes = (size_t)size_bytes;
        source.has_read = IR_NEW_ARRAY(arena, uint64_t, source.size_bytes / FE_CHUNK_BYTES / BITS + 1);
        source.bytes = reserve(source.size_bytes, MAP_NORESERVE, arena);
        if (source.has_read == NULL || source.bytes == NULL) status = BS_OUT_OF_MEMORY(err, "%s", path);
    }
    if (status == MDOT_OK)
        *out_source = source;
    else
        close(source.descriptor);
    return status;
}

void fe_close_source(fe_source *source)
{
    if (source->descriptor >= 0) close(source->descriptor);
    source->descriptor = -1;
}

static bool has_chunk(const fe_source *source, size_t chunk)
{
    return (source->has_read[chunk / 64] >> chunk % 64 & 1) != 0;
}

mdot_status fe_need(const fe_source *source, size_t offset, size_t size_bytes, mdot_error *err)
{
    if (source->descriptor < 0 || size_bytes == 0) return MDOT_OK;
    size_t end = (offset + size_bytes - 1) / FE_CHUNK_BYTES + 1;
    for (size_t chunk = offset / FE_CHUNK_BYTES; chunk < end; chunk++) {
        if (has_chunk(source, chunk)) continue;
        size_t last_index = chunk;
        while (last_index + 1 < end && !has_chunk(source, last_index + 1)) last_index++;
        size_t from = chunk * FE_CHUNK_BYTES, target = (last_index + 1) * FE_CHUNK_BYTES;
        if (target > source->size_bytes) target = source->size_bytes;
        if (!read_exactly(source->descriptor, from, (unsigned char *)(uintptr_t)source->bytes + from, target - from)) {
            if (errno == 0)
                return mdot_fail(err, MDOT_MALFORMED, "%s: the file was truncated while it was read", source->name);
            return mdot_fail(err, MDOT_IO, "%s: %s", source->name, strerror(errno));
        }
        for (; chunk <= last_index; chunk++) source->has_read[chunk / 64] |= UINT64_C(1) << chunk % 64;
        chunk = last_index;
    }
    return MDOT_OK;
}
