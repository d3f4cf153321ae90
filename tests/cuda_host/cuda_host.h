/* cuda_host.h — runs CUDA C kernels on the CPU, checked: the test of generated kernels where there is no card.
 *
 * A source is the text that the generator writes without its prelude (the few functions that hold PTX); device.h stands
 * in for that. It is compiled by the host's C++ compiler with the thread sanitizer's instrumentation, whose hooks are
 * ours (hooks.c), so that every access of a kernel passes memory.c before it happens. A launch runs every CUDA thread
 * of every block as a fiber, in an order that the seed decides, and stops at the first fault:
 *
 *   memory          outside every buffer; a write to a constant one; misaligned; of an element that nothing wrote
 *   data race       between two threads that no chain of barriers, __syncwarp or release → acquire orders. It is found
 *                   from the order alone (happens_before.c), whatever the schedule: a missing barrier shows even where the
 *                   values are right. Programs without such races see sequential consistency, which is why memory needs
 *                   no weak model.
 *   barrier         threads of a block at different __syncthreads, or gone while others wait
 *   collective      lanes at different calls, a mask without the caller, a shuffle from a lane outside the mask
 *   asynchronous    the destination of a cp.async touched before its wait
 *   deadlock        nobody can go on
 *
 * What it can't see: the PTX of the real prelude; bank conflicts, occupancy and speed; ordering of two syncs on one
 * line (sites are known by line); reads by several threads of a warp or block count for all of it, so that
 * hand-rolled flags between parts of a block may be called a race where they aren't one.
 */
#ifndef CUDA_HOST_H
#define CUDA_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Source to code ---------------------------------------------------------------------------------------------- */

typedef struct cuda_host_module cuda_host_module;

/* Unchecked code is a few times faster: collectives, barriers and late copies still work as below, accesses pass
 * unseen. */
typedef enum cuda_host_mode { CUDA_HOST_CHECKED, CUDA_HOST_UNCHECKED } cuda_host_mode;

/* Whether a C++ compiler was found when this was built; without one tests skip. */
bool cuda_host_available(void);
/* NULL: it doesn't compile, and `message` has the compiler's words. */
cuda_host_module *cuda_host_compile(const char *source, cuda_host_mode mode, char *message, size_t message_size);
void cuda_host_unload(cuda_host_module *module);
/* A kernel (extern "C" __global__) by name; NULL: there is none. */
void *cuda_host_symbol(const cuda_host_module *module, const char *name);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

typedef struct cuda_host_memory cuda_host_memory; /* the global buffers of launches */

cuda_host_memory *cuda_host_memory_create(void);
void cuda_host_memory_destroy(cuda_host_memory *memory);
/* A buffer, 256-byte aligned, between guard zones. `element_bytes` (1, 2, 4) is the unit in which races are told apart.
 * Content NULL: it is poisoned, and reading what nothing wrote is a fault. The name is for reports. */
void *cuda_host_buffer(cuda_host_memory *memory, const char *name, const void *content, size_t bytes,
                       int element_bytes);
/* The same that kernels may not write; the content is copied, or NULL where the caller fills it in before the launch.
 */
void *cuda_host_constant(cuda_host_memory *memory, const char *name, const void *content, size_t bytes);
/* Poisons a buffer again: nothing in it is written. */
void cuda_host_poison(cuda_host_memory *memory, void *buffer);

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

typedef struct cuda_host_site { /* a synchronisation in the source */
    const char *what;
    int line;
    long count; /* how often threads came there */
} cuda_host_site;

enum { CUDA_HOST_MAX_SITES = 512 };

/* What the host reads once it has seen a flag: it must be written by then, and released with the flag. */
typedef struct cuda_host_published {
    const unsigned *flag;
    const void *begin;
    size_t bytes;
} cuda_host_published;

typedef struct cuda_host_launch {
    const cuda_host_module *module; /* whose kernel `body` calls */
    unsigned grid[3], block[3];     /* 0 stands for 1; blocks are full warps */
    size_t shared_bytes;            /* dynamic */
    unsigned seed;
    const cuda_host_published *published; /* ends with a NULL flag; NULL: nothing */
    const char *skip; /* leave out the synchronisation of this name on skip_line, as if the statement were deleted */
    int skip_line;
} cuda_host_launch;

typedef struct cuda_host_report {
    bool faulted;
    unsigned block, thread; /* linear, of the fault */
    int line;               /* in the source; 0: unknown */
    char message[400];      /* names all of that too */
    int site_count;
    cuda_host_site sites[CUDA_HOST_MAX_SITES];
} cuda_host_report;

/* Runs `body(user)`, which calls a kernel with its parameters, once a CUDA thread. False: it faulted. */
bool cuda_host_run(cuda_host_memory *memory, const cuda_host_launch *launch, void (*body)(void *user), void *user,
                   cuda_host_report *report);

#endif
