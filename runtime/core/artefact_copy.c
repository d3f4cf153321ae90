/* artefact_copy.c — a private copy of the artefact's bytes, and segments mapped from it.
 *
 * A mapping of the file itself is unsafe: a process that overwrites the file in place changes running code, and
 * truncation removes pages (SIGBUS). The copy is a memfd. A memfd needs neither /proc nor a folder, and a noexec mount
 * of the file is irrelevant to it. Code is mapped from it as from any file. This is allowed even where written memory
 * must not become executable (systemd's MemoryDenyWriteExecute=). The copy is ordinary memory if a memfd is unavailable
 * (seccomp, descriptors used up) or limited to a smaller size (RLIMIT_FSIZE). */
#include "base/file.h"
#include "runtime/core/loader.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static mdot_status fail_memory(const char *what, mdot_error *err)
{
    mdot_status status = errno == ENOMEM || errno == ENOSPC ? MDOT_OUT_OF_MEMORY : MDOT_IO;
    return mdot_fail(err, status, "%s: %s", what, strerror(errno));
}

static mdot_status read_all(int file, unsigned char *bytes, size_t size_bytes, mdot_error *err)
{
    size_t have = 0;
    while (have < size_bytes) {
        ssize_t count = pread(file, bytes + have, size_bytes - have, (off_t)have);
        if (count < 0 && errno == EINTR) continue;
        /* EFAULT: a page of the copy could not be allocated */
        if (count < 0 && errno == EFAULT) return BS_OUT_OF_MEMORY(err, "%zu bytes", size_bytes);
        if (count < 0) return mdot_fail(err, MDOT_IO, "reading failed: %s", strerror(errno));
        if (count == 0) return mdot_fail(err, MDOT_MALFORMED, "the file was truncated while it was read");
        have += (size_t)count;
    }
    return MDOT_OK;
}

/* A memory descriptor with this size, or -1 if it is unavailable. */
static int make_memory(size_t size_bytes)
{
    /* A memfd counts as a file under RLIMIT_FSIZE. If the limit is unknown, it is taken to be unlimited, because the
     * alternative, ordinary memory, may be refused as executable code. */
    if (!bs_is_within_limit(size_bytes)) return -1;
    int descriptor = memfd_create("predictor.mdot", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, (off_t)size_bytes) == 0) return descriptor;
    close(descriptor);
    return -1;
}

mdot_status rt_copy_make(int file, uint64_t size_bytes, rt_copy *out_copy, mdot_error *err)
{
    if (size_bytes == 0) return mdot_fail(err, MDOT_MALFORMED, "the file is empty");
    /* a file of another format, for example a film opened by mistake, is refused without copying all of it */
    enum { ELF_HEADER_BYTES = 64 };
    char magic[4];
    bool is_elf = pread(file, magic, sizeof magic, 0) == sizeof magic && memcmp(magic, "\177ELF", sizeof magic) == 0;
    if (!is_elf && size_bytes > ELF_HEADER_BYTES) size_bytes = ELF_HEADER_BYTES;
    if (size_bytes > PTRDIFF_MAX) return mdot_fail(err, MDOT_MALFORMED, "the file is too large");
    rt_copy copy = {.descriptor = make_memory((size_t)size_bytes), .size_bytes = (size_t)size_bytes};
    int flags = copy.descriptor >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    copy.bytes = mmap(NULL, copy.size_bytes, PROT_READ | PROT_WRITE, flags, copy.descriptor, 0);
    mdot_status status = copy.bytes == MAP_FAILED ? fail_memory("mapping failed", err) : MDOT_OK;
    if (status == MDOT_OK) status = read_all(file, copy.bytes, copy.size_bytes, err);
    if (status == MDOT_OK && mprotect(copy.bytes, copy.size_bytes, PROT_READ) != 0)
        status = fail_memory("write-protecting memory failed", err);
    if (status != MDOT_OK) {
        rt_copy_free(&copy);
        return status;
    }
    *out_copy = copy;
    return MDOT_OK;
}

void rt_copy_free(rt_copy *copy)
{
    if (copy->bytes != NULL && copy->bytes != MAP_FAILED) munmap(copy->bytes, copy->size_bytes);
    if (copy->descriptor >= 0) close(copy->descriptor);
    *copy = (rt_copy){.descriptor = -1};
}

mdot_status rt_copy_map(const rt_copy *copy, uint64_t offset, size_t size_bytes, int protection, void *address,
                        mdot_error *err)
{
    if (copy->descriptor >= 0 &&
        mmap(address, size_bytes, protection, MAP_PRIVATE | MAP_FIXED, copy->descriptor, (off_t)offset) != MAP_FAILED)
        return MDOT_OK;
    if (mmap(address, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return fail_memory("mapping failed", err);
    uint64_t rest_bytes = copy->size_bytes - offset; /* the last page may extend beyond the file's end */
    memcpy(address, copy->bytes + offset, size_bytes < rest_bytes ? size_bytes : (size_t)rest_bytes);
    if (mprotect(address, size_bytes, protection) != 0)
        return fail_memory("making memory executable failed: the system forbids this process to load code", err);
    return MDOT_OK;
}

/* Errors are ignored, because pages that remain only cost memory. */
void rt_copy_forget(const rt_copy *copy, uint64_t offset, size_t size_bytes, void *address)
{
    if (copy->descriptor >= 0)
        (void)!fallocate(copy->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                         (off_t)size_bytes);
    madvise(address, size_bytes, MADV_DONTNEED);
}
