/* artefact_copy.c — the artefact's bytes in memory that nobody else can change, and segments mapped from there.
 *
 * A mapping of the file itself would not do: who writes over it in place changes code that runs, and who truncates it
 * takes pages away (SIGBUS). The copy is a memfd: it takes neither /proc nor a folder, a noexec mount of the file does
 * not matter, and code is mapped as from any file, which is allowed where memory that was written may not become code
 * (systemd's MemoryDenyWriteExecute=). Where there is no memfd (seccomp, descriptors used up), or none of this size
 * (RLIMIT_FSIZE), it is ordinary memory.
 */
#include "base/file.h"
#include "runtime/core/predictor.h"

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
        /* EFAULT: a page of the copy could not be had */
        if (count < 0 && errno == EFAULT)
            return mdot_fail(err, MDOT_OUT_OF_MEMORY, "no memory for %zu bytes", size_bytes);
        if (count < 0) return mdot_fail(err, MDOT_IO, "reading failed: %s", strerror(errno));
        if (count == 0) return mdot_fail(err, MDOT_MALFORMED, "the file was truncated while it was read");
        have += (size_t)count;
    }
    return MDOT_OK;
}

/* A descriptor of memory of this size; -1: there is none to be had. */
static int make_memory(size_t size_bytes)
{
    /* A memfd is a file, too. Where the system does not tell, there is taken to be no limit: ordinary memory in its
     * place might not be allowed to become code. */
    if (!bs_is_within_limit(size_bytes)) return -1;
    int descriptor = memfd_create("predictor.mdot", MFD_CLOEXEC);
    if (descriptor < 0 || ftruncate(descriptor, (off_t)size_bytes) == 0) return descriptor;
    close(descriptor);
    return -1;
}

mdot_status rt_copy_make(int file, uint64_t size_bytes, rt_copy *out_copy, mdot_error *err)
{
    if (size_bytes == 0) return mdot_fail(err, MDOT_MALFORMED, "an empty file is not an artefact");
    /* what is no ELF file at all, a film by mistake, is not copied to say so */
    enum { ELF_HEADER_BYTES = 64 };
    char magic[4];
    bool is_elf = pread(file, magic, sizeof magic, 0) == sizeof magic && memcmp(magic, "\177ELF", sizeof magic) == 0;
    if (!is_elf && size_bytes > ELF_HEADER_BYTES) size_bytes = ELF_HEADER_BYTES;
    if (size_bytes > PTRDIFF_MAX) return mdot_fail(err, MDOT_MALFORMED, "the file is too large to be loaded");
    rt_copy copy = {.descriptor = make_memory((size_t)size_bytes), .size_bytes = (size_t)size_bytes};
    int flags = copy.descriptor >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    copy.bytes = mmap(NULL, copy.size_bytes, PROT_READ | PROT_WRITE, flags, copy.descriptor, 0);
    mdot_status status = copy.bytes == MAP_FAILED ? fail_memory("mapping failed", err) : MDOT_OK;
    if (status == MDOT_OK) status = read_all(file, copy.bytes, copy.size_bytes, err);
    if (status == MDOT_OK && mprotect(copy.bytes, copy.size_bytes, PROT_READ) != 0)
        status = fail_memory("protecting memory failed", err);
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

mdot_status rt_copy_map(const rt_copy *copy, uint64_t offset, size_t size_bytes, int protection, void *at,
                        mdot_error *err)
{
    if (copy->descriptor >= 0 &&
        mmap(at, size_bytes, protection, MAP_PRIVATE | MAP_FIXED, copy->descriptor, (off_t)offset) != MAP_FAILED)
        return MDOT_OK;
    if (mmap(at, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return fail_memory("mapping failed", err);
    uint64_t rest_bytes = copy->size_bytes - offset; /* the last page may go on behind the file's end */
    memcpy(at, copy->bytes + offset, size_bytes < rest_bytes ? size_bytes : (size_t)rest_bytes);
    if (mprotect(at, size_bytes, protection) != 0)
        return fail_memory("this process may not load code: making memory executable failed", err);
    return MDOT_OK;
}

/* Best effort: pages that stay cost memory and nothing else. */
void rt_copy_forget(const rt_copy *copy, uint64_t offset, size_t size_bytes, void *at)
{
    if (copy->descriptor >= 0)
        (void)!fallocate(copy->descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                         (off_t)size_bytes);
    madvise(at, size_bytes, MADV_DONTNEED);
}
