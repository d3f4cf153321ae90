/* cuda_host.h — runs CUDA C kernels on the CPU with checks, to test generated kernels on machines that have no GPU.
 *
 * A source is the generator's text except its prelude (the few functions that contain PTX), which device.h replaces.
 * The host's C++ compiler compiles it with the instrumentation of the thread sanitizer. The hooks are implemented
 * here (hooks.c), so that every access of a kernel passes memory.c before it happens. A launch runs every CUDA thread
 * of every block as a fiber, in an order that the seed decides, and stops at the first fault:
 *
 *   memory          an access outside every buffer; a write to a constant one; a misaligned access; a read of an
 *                   element that was never written
 *   data race       between two threads that no chain of barriers, __syncwarp or release → acquire orders. It is found
 *                   from the order alone (happens_before.c), for any schedule: a missing barrier is detected even if
 *                   the values are correct. Programs that are free of such races see sequential consistency, therefore
 *                   memory needs no weak model.
 *   barrier         threads of a block or cluster at different barriers, or finished while others wait
 *   cluster         an access to another block's shared memory outside the cluster, or after that block has finished
 *   collective      lanes at different calls, a mask without the caller, a shuffle from a lane outside the mask
 *   asynchronous    the destination of a cp.async is touched before its wait
 *   deadlock        every remaining thread waits
 *
 * Limits: the PTX of the real prelude, bank conflicts, occupancy and speed are outside the emulation. Two syncs on
 * one line are indistinguishable, because sites are identified by line. If several threads of a warp or block read an
 * element, the reads count for the whole warp or block. Therefore hand-written flags between parts of a block may be
 * reported as a race by mistake.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Source to code ---------------------------------------------------------------------------------------------- */

typedef struct cuda_host_module cuda_host_module;

/* Unchecked code is a few times faster. Collectives, barriers and late copies still work as below, but accesses are
 * unchecked. */
typedef enum cuda_host_mode { CUDA_HOST_CHECKED, CUDA_HOST_UNCHECKED } cuda_host_mode;

/* Whether a C++ compiler was found at build time. Tests are skipped if it is absent. */
bool cuda_host_available(void);
/* Returns NULL if compilation fails; `message` then has the compiler's output. */
cuda_host_module *cuda_host_compile(const char *source, cuda_host_mode mode, char *message, size_t message_size);
void cuda_host_unload(cuda_host_module *module);
/* Returns a kernel (extern "C" __global__) by name, or NULL if it is absent. */
void *cuda_host_symbol(const cuda_host_module *module, const char *name);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

typedef struct cuda_host_memory cuda_host_memory; /* the global buffers of launches */

cuda_host_memory *cuda_host_memory_create(void);
void cuda_host_memory_destroy(cuda_host_memory *memory);
/* Makes a buffer, 256-byte aligned, between guard zones. `element_bytes` (1, 2, 4) is the granularity of race
 * detection. If content is NULL, the buffer is poisoned, and reading an element before it is written is a fault. The
 * name is for reports. */
void *cuda_host_buffer(cuda_host_memory *memory, const char *name, const void *content, size_t bytes,
                       int element_bytes);
/* The same for a buffer that kernels may only read. The content is copied. If it is NULL, the caller fills the buffer
 * before the launch. */
void *cuda_host_constant(cuda_host_memory *memory, const char *name, const void *content, size_t bytes);
/* Poisons a buffer again: all elements count as unwritten. */
void cuda_host_poison(cuda_host_memory *memory, void *buffer);

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

typedef struct cuda_host_site { /* a synchronisation statement of the source */
    const char *what;
    int line;
    long count; /* how often threads reached it */
} cuda_host_site;

enum { CUDA_HOST_MAX_SITES = 512 };

/* Memory that the host reads after it has seen a flag. It must be written by then, and released with the flag. */
typedef struct cuda_host_published {
    const unsigned *flag;
    const void *begin;
    size_t bytes;
} cuda_host_published;

typedef struct cuda_host_launch {
    const cuda_host_module *module; /* module with the kernel called by `body` */
    unsigned grid[3], block[3];     /* 0 counts as 1; blocks are full warps */
    unsigned cluster;               /* blocks of a cluster along x; 0 counts as 1; divides grid[0] */
    size_t shared_bytes;            /* dynamic shared memory */
    unsigned seed;
    const cuda_host_published *published; /* list that ends with a NULL flag; NULL = empty */
    const char *skip; /* name of the synchronisation left out on skip_line, as if the statement were deleted */
    int skip_line;
} cuda_host_launch;

typedef struct cuda_host_report {
    bool faulted;
    unsigned block, thread; /* linear indices of the faulting thread */
    int line;               /* line of the source; 0 = unknown */
    char message[400];      /* also names all of these */
    int site_count;
    cuda_host_site sites[CUDA_HOST_MAX_SITES];
} cuda_host_report;

/* Runs `body(user)`, a kernel call with parameters, once per CUDA thread. Returns false if a thread faulted. */
bool cuda_host_run(cuda_host_memory *memory, const cuda_host_launch *launch, void (*body)(void *user), void *user,
                   cuda_host_report *report);
