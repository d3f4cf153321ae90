/* inject.c — makes one call in a program fail: call number n of a kind ("memory", "llvm", "read", "write", "start").
 * Only this call fails, because handling the failure may need the same function again. The calls are counted, so that a
 * test knows when each has failed once.
 *
 * Preloaded into `mdot`, it is configured by the environment: MDOT_FAULT is the kind, MDOT_FAULT_AT the number, and the
 * count goes to the file MDOT_FAULT_COUNT. Linked into a test, it is configured through inject.h.
 *
 *   memory   malloc and similar functions, called by mdot's own code, protobuf-c or libc's functions for them
 *   llvm     the same, called by LLVM or libstdc++
 *   read     open and functions that read, map or query files
 *   write    functions that write, synchronise, rename or create files
 *   start    functions that start processes and threads, and make pipes to them
 *
 * Memory and reads count from the program's first own allocation on, because mdot cannot handle failures in library
 * constructors. */
#include "tests/fault/inject.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

typedef enum kind { NONE, MEMORY, LLVM, READ, WRITE, START } kind;

enum { MAX_RANGES = 64 };

typedef struct range { /* address range of one library's code */
    uintptr_t begin, end;
    kind kind; /* its kind of allocation */
} range;

static kind failing;
static long fail_at;
static atomic_long *count; /* shared with the file and with children */
static bool program_runs;
static atomic_long live_memory, live_mappings;
static range ranges[MAX_RANGES];
static int range_count;

static kind kind_of_library(const char *path)
{
    if (path[0] == '\0' || strstr(path, "libprotobuf-c") != NULL || strstr(path, "/libc.so") != NULL) return MEMORY;
    return strstr(path, "libLLVM") != NULL || strstr(path, "libstdc++") != NULL ? LLVM : NONE;
}

static int note_library(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size, (void)user;
    for (int i = 0; i < info->dlpi_phnum && range_count < MAX_RANGES; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
        uintptr_t begin = info->dlpi_addr + p->p_vaddr;
        ranges[range_count++] = (range){begin, begin + p->p_memsz, kind_of_library(info->dlpi_name)};
    }
    return 0;
}

static kind kind_of_caller(const void *address)
{
    for (int i = 0; i < range_count; i++) {
        if ((uintptr_t)address < ranges[i].begin || (uintptr_t)address >= ranges[i].end) continue;
        if (i == 0) program_runs = true; /* the first entry is the program itself */
        return ranges[i].kind;
    }
    return NONE;
}

static void choose(const char *kind_name, long at)
{
    static const char *const names[] = {"", "memory", "llvm", "read", "write", "start"};
    if (range_count == 0) dl_iterate_phdr(note_library, NULL);
    fail_at = at;
    failing = NONE;
    for (int k = MEMORY; k <= START; k++)
        if (strcmp(kind_name, names[k]) == 0) failing = (kind)k;
}

/* Maps the counter as shared memory, so calls by children count, too. */
static void count_in(int descriptor)
{
    int flags = descriptor < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
    void *shared = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, flags, descriptor, 0);
    if (shared == MAP_FAILED) abort();
    count = shared;
}

void inject_arm(const char *kind_name, long at)
{
    if (count == NULL) count_in(-1);
    atomic_store(count, 0);
    program_runs = true;
    choose(kind_name, at);
}

long inject_disarm(void)
{
    failing = NONE;
    return atomic_load(count);
}

inject_held inject_get_held(void) { return (inject_held){atomic_load(&live_memory), atomic_load(&live_mappings)}; }

__attribute__((constructor)) static void begin(void)
{
    const char *kind_name = getenv("MDOT_FAULT"), *at = getenv("MDOT_FAULT_AT"), *file = getenv("MDOT_FAULT_COUNT");
    if (kind_name == NULL || at == NULL || file == NULL) return;
    if (strcmp(program_invocation_short_name, "mdot") != 0)
        return; /* failures in the linker started by mdot are outside mdot */
    int descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0 || ftruncate(descriptor, sizeof *count) != 0) abort();
    count_in(descriptor);
    close(descriptor);
    choose(kind_name, atol(at));
}

static bool is_the_one(kind k)
{
    if (count == NULL || failing != k || !program_runs) return false;
    return atomic_fetch_add(count, 1) + 1 == fail_at;
}

#define FAILS_FOR_MEMORY() is_the_one(kind_of_caller(__builtin_return_address(0)))

/* Set a breakpoint here to stop at the failing call. The attribute prevents inlining. */
__attribute__((noinline)) static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

static void *held(void *memory)
{
    live_memory += memory != NULL;
    return memory;
}

void *malloc(size_t size) { return FAILS_FOR_MEMORY() ? no_memory() : held(__libc_malloc(size)); }
void *calloc(size_t n, size_t size) { return FAILS_FOR_MEMORY() ? no_memory() : held(__libc_calloc(n, size)); }
void *realloc(void *memory, size_t size)
{
    if (FAILS_FOR_MEMORY()) return no_memory();
    return memory == NULL ? held(__libc_malloc(size)) : __libc_realloc(memory, size);
}
void *aligned_alloc(size_t alignment, size_t size)
{
    return FAILS_FOR_MEMORY() ? no_memory() : held(__libc_memalign(alignment, size));
}
int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (FAILS_FOR_MEMORY()) return ENOMEM;
    *out = held(__libc_memalign(alignment, size));
    return *out != NULL ? 0 : ENOMEM;
}
void free(void *memory)
{
    live_memory -= memory != NULL;
    __libc_free(memory);
}

#define NEXT(function) ((__typeof__(&function))dlsym(RTLD_NEXT, #function))

/* Covers the program's own calls. Calls inside libc's stdio bypass these functions. */
static bool fails_with(kind k, int error)
{
    if (!is_the_one(k)) return false;
    errno = error;
    return true;
}

#define MODE_OF(flags, out)                                                                                            \
    do {                                                                                                               \
        va_list args;                                                                                                  \
        va_start(args, flags);                                                                                         \
        (out) = (flags)&O_CREAT ? va_arg(args, mode_t) : 0;                                                            \
        va_end(args);                                                                                                  \
    } while (0)

int open(const char *path, int flags, ...)
{
    mode_t mode;
    MODE_OF(flags, mode);
    if (fails_with((flags & O_ACCMODE) == O_RDONLY ? READ : WRITE, EMFILE)) return -1;
    return NEXT(open)(path, flags, mode);
}
int openat(int folder, const char *path, int flags, ...)
{
    mode_t mode;
    MODE_OF(flags, mode);
    if (fails_with((flags & O_ACCMODE) == O_RDONLY ? READ : WRITE, EMFILE)) return -1;
    return NEXT(openat)(folder, path, flags, mode);
}
FILE *fopen(const char *path, const char *mode)
{
    return fails_with(mode[0] == 'r' ? READ : WRITE, EMFILE) ? NULL : NEXT(fopen)(path, mode);
}
ssize_t read(int file, void *bytes, size_t size) { return fails_with(READ, EIO) ? -1 : NEXT(read)(file, bytes, size); }
ssize_t pread(int file, void *bytes, size_t size, off_t at)
{
    return fails_with(READ, EIO) ? -1 : NEXT(pread)(file, bytes, size, at);
}
size_t fread(void *bytes, size_t size, size_t n, FILE *file)
{
    return fails_with(READ, EIO) ? 0 : NEXT(fread)(bytes, size, n, file);
}
int fstat(int file, struct stat *out) { return fails_with(READ, EIO) ? -1 : NEXT(fstat)(file, out); }
int stat(const char *path, struct stat *out) { return fails_with(READ, EACCES) ? -1 : NEXT(stat)(path, out); }
void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset)
{
    if (fails_with(READ, ENOMEM)) return MAP_FAILED;
    void *memory = NEXT(mmap)(at, size, protection, flags, file, offset);
    live_mappings += memory != MAP_FAILED && !(flags & MAP_FIXED); /* MAP_FIXED replaces an existing mapping */
    return memory;
}
int munmap(void *at, size_t size)
{
    int result = NEXT(munmap)(at, size);
    live_mappings -= result == 0;
    return result;
}
int mprotect(void *at, size_t size, int protection)
{
    return fails_with(READ, ENOMEM) ? -1 : NEXT(mprotect)(at, size, protection);
}
ssize_t write(int file, const void *bytes, size_t size)
{
    return fails_with(WRITE, ENOSPC) ? -1 : NEXT(write)(file, bytes, size);
}
ssize_t pwrite(int file, const void *bytes, size_t size, off_t at)
{
    return fails_with(WRITE, ENOSPC) ? -1 : NEXT(pwrite)(file, bytes, size, at);
}
/* Applies to files only: streams in memory are exempt, and terminal output is flushed at the end. */
enum { ERROR_SEEN = 0x20 }; /* glibc's _IO_ERR_SEEN, which ferror returns */
size_t fwrite(const void *bytes, size_t size, size_t n, FILE *file)
{
    if (fileno(file) <= STDERR_FILENO || !fails_with(WRITE, ENOSPC)) return NEXT(fwrite)(bytes, size, n, file);
    file->_flags |= ERROR_SEEN;
    return 0;
}
int fclose(FILE *file)
{
    bool fails = fails_with(WRITE, ENOSPC);
    int result = NEXT(fclose)(file);
    if (fails) errno = ENOSPC;
    return fails ? EOF : result;
}
int fflush(FILE *file) { return fails_with(WRITE, ENOSPC) ? EOF : NEXT(fflush)(file); }
int fsync(int file) { return fails_with(WRITE, EIO) ? -1 : NEXT(fsync)(file); }
int ftruncate(int file, off_t size) { return fails_with(WRITE, ENOSPC) ? -1 : NEXT(ftruncate)(file, size); }
int rename(const char *from, const char *to) { return fails_with(WRITE, EACCES) ? -1 : NEXT(rename)(from, to); }
int mkdir(const char *path, mode_t mode) { return fails_with(WRITE, EACCES) ? -1 : NEXT(mkdir)(path, mode); }
char *mkdtemp(char *path) { return fails_with(WRITE, EACCES) ? NULL : NEXT(mkdtemp)(path); }
int memfd_create(const char *name, unsigned flags)
{
    return fails_with(WRITE, EMFILE) ? -1 : NEXT(memfd_create)(name, flags);
}

pid_t fork(void) { return fails_with(START, ENOMEM) ? -1 : NEXT(fork)(); }
int pipe2(int ends[2], int flags) { return fails_with(START, EMFILE) ? -1 : NEXT(pipe2)(ends, flags); }
int posix_spawnp(pid_t *out_process, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const environment[])
{
    if (is_the_one(START)) return EAGAIN;
    return NEXT(posix_spawnp)(out_process, file, actions, attributes, argv, environment);
}
int pthread_create(pthread_t *out_thread, const pthread_attr_t *attributes, void *(*function)(void *), void *argument)
{
    if (is_the_one(START)) return EAGAIN;
    return NEXT(pthread_create)(out_thread, attributes, function, argument);
}
