/* allocator.c — the runtime's memory: the caller's functions if the options supply them, otherwise aligned_alloc and
 * free.
 *
 * Allocation happens only while opening and creating. Running allocates no memory.
 */
#include "runtime/core/objects.h"

#include <stdlib.h>
#include <string.h>

static void *libc_allocate(void *user, size_t bytes, size_t alignment) { return aligned_alloc(alignment, bytes); }

static void libc_release(void *user, void *memory) { free(memory); }

mdot_status rt_allocator_init(rt_allocator *allocator, const mdot_open_options *options, mdot_error *err)
{
    *allocator = (rt_allocator){libc_allocate, libc_release, NULL};
    if (options->allocate == NULL && options->release == NULL) return MDOT_OK;
    if (options->allocate == NULL || options->release == NULL)
        return BS_INVALID(err, "the options set only one of allocate and release: set both or neither");
    *allocator = (rt_allocator){options->allocate, options->release, options->user};
    return MDOT_OK;
}

void *rt_alloc_touched(const rt_allocator *allocator, size_t bytes, size_t touched)
{
    if (bytes > SIZE_MAX - MDOT_ABI_ALIGNMENT) return NULL;
    /* aligned_alloc requires a multiple of the alignment */
    size_t rounded = (bytes + MDOT_ABI_ALIGNMENT - 1) / MDOT_ABI_ALIGNMENT * MDOT_ABI_ALIGNMENT;
    if (rounded == 0) rounded = MDOT_ABI_ALIGNMENT;
    void *memory = allocator->allocate(allocator->user, rounded, MDOT_ABI_ALIGNMENT);
    if (memory != NULL) memset(memory, 0, touched < rounded ? touched : rounded);
    return memory;
}

void *rt_alloc(const rt_allocator *allocator, size_t bytes) { return rt_alloc_touched(allocator, bytes, SIZE_MAX); }

void rt_free(const rt_allocator *allocator, void *memory)
{
    if (memory != NULL) allocator->release(allocator->user, memory);
}
