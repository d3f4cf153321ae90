/* refused_memory.h — allocations that fail on request, for one program. A sanitized program keeps the sanitizer's. */
#pragma once

#ifndef MDOT_SANITIZED
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);
static int allocations_left = -1; /* negative = unlimited */
static int refusals, live;

static bool is_refused(void)
{
    if (allocations_left == 0) {
        refusals++;
        return true;
    }
    if (allocations_left > 0) allocations_left--;
    live++;
    return false;
}

void *malloc(size_t bytes) { return is_refused() ? NULL : __libc_malloc(bytes); }

void *calloc(size_t count, size_t bytes) { return is_refused() ? NULL : __libc_calloc(count, bytes); }

void *aligned_alloc(size_t alignment, size_t bytes) { return is_refused() ? NULL : __libc_memalign(alignment, bytes); }

void *realloc(void *memory, size_t bytes)
{
    if (is_refused()) return NULL;
    live -= memory != NULL;
    return __libc_realloc(memory, bytes);
}

void free(void *memory)
{
    live -= memory != NULL;
    __libc_free(memory);
}
#endif
