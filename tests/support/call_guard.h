/* call_guard.h — checks that a call allocates zero bytes and stays out of the kernel. Only one file in a program may
 * include it, because it replaces malloc. */
#pragma once

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

/* A sanitizer has a separate malloc. ThreadSanitizer also has a thread of its own, which makes system calls. */
#if defined(__SANITIZE_ADDRESS__)
#define OWN_MALLOC 1
#elif defined(__SANITIZE_THREAD__)
#define OWN_MALLOC 1
#define OWN_THREAD 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OWN_MALLOC 1
#elif __has_feature(thread_sanitizer)
#define OWN_MALLOC 1
#define OWN_THREAD 1
#endif
#endif

#ifndef OWN_MALLOC
/* glibc's functions under internal names, which interposition leaves alone. */
extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
static _Atomic size_t allocations;

void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}
void *calloc(size_t count, size_t bytes)
{
    allocations++;
    return __libc_calloc(count, bytes);
}
void *realloc(void *memory, size_t bytes)
{
    allocations++;
    return __libc_realloc(memory, bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes)
{
    allocations++;
    return __libc_memalign(alignment, bytes);
}
#endif

#ifndef OWN_THREAD
enum { CALLS_RIGHT = 0, CALLS_WRONG = 1, CALLS_UNGUARDED = 77, CALLS_KILLED = -1 };

/* Runs `calls` in a child where every system call except read, write and exit kills the process; even reporting the
 * call would. Returns CALLS_RIGHT if they return true, and CALLS_UNGUARDED if this kernel lacks strict mode. */
static int run_without_kernel(bool (*calls)(void))
{
    pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(CALLS_UNGUARDED);
        syscall(SYS_exit, calls() ? CALLS_RIGHT : CALLS_WRONG); /* _exit calls exit_group, which kills, too */
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child) return CALLS_UNGUARDED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : CALLS_KILLED;
}
#endif
