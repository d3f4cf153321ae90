/* fake_cuda.h — a libcuda for machines that lack one: the functions that the runtime calls, implemented over ordinary
 * memory.
 *
 * The library replaces libcuda.so.1 if MDOT_LIBCUDA names it. It accepts any bytes as a cubin. A kernel is a C
 * function that a test registers under the kernel's name. A kernel that is not registered answers without computing,
 * which suffices to test everything around it. A test that also links the library configures the machine, the
 * failures and the ends of launches here. Afterwards it can query the calls and the remaining objects.
 *
 *   machine.c   the state: objects, faults, counts       driver.c   the functions of libcuda       launch.c   kernels
 *
 * Device addresses differ from host pointers, and the device address of mapped memory differs from its host address,
 * so that a mix-up is detected. Other misuse that a real driver forbids but may let pass is detected, too;
 * fake_cuda_complaint returns it.
 */
#pragma once

#include "mdot/mdot_abi.h"

#define FAKE_CUDA_API __attribute__((visibility("default")))

typedef struct fake_cuda_machine {
    int device_count, major, minor, multiprocessors;
    int blocks_per_multiprocessor; /* for every kernel */
    bool is_not_cooperative;
    size_t memory_bytes; /* of a device; 0 = more than any test needs */
} fake_cuda_machine;

/* Resets the machine: objects, registrations, scripted faults and counts are cleared. */
FAKE_CUDA_API void fake_cuda_reset(const fake_cuda_machine *machine);

/* Computes one item of a kernel. Tensors have the entry's order. The library's lock is held during the call. */
typedef void fake_cuda_body(void *user, int64_t length, const unsigned char *weights, const void *const *inputs,
                            void *const *outputs);

/* `abi` has the kernel's requirements, with which launches are compared. */
FAKE_CUDA_API void fake_cuda_register(const char *name, const mdot_abi_cuda_kernel *abi, fake_cuda_body *body,
                                      void *user);

typedef struct fake_cuda_grid {
    uint32_t blocks, items, threads, shared_bytes;
} fake_cuda_grid;

/* Runs whole kernels instead, including registered ones. The parameter contains host addresses. */
typedef void fake_cuda_launcher(void *user, const char *name, const fake_cuda_grid *grid,
                                const mdot_abi_cuda_call *parameter);
FAKE_CUDA_API void fake_cuda_set_launcher(fake_cuda_launcher *launcher, void *user);

/* Called with each loaded image before looking up kernels, for tests that can register kernels only then. The library's
 * lock is held. */
FAKE_CUDA_API void fake_cuda_on_load(void (*loaded)(const void *image));

/* Call number `call` (from 1) of `function` (for example "cuMemAlloc") does nothing and returns `result`. If sticky,
 * every later call of any function fails in the same way, but functions that free memory still free it. */
FAKE_CUDA_API void fake_cuda_fail(const char *function, int call, int result, bool is_sticky);

/* Calls of `function`, from number `call` on, hang until fake_cuda_block is called again with NULL. */
FAKE_CUDA_API void fake_cuda_block(const char *function, int call);

typedef enum fake_cuda_end {
    FAKE_CUDA_AT_ONCE,
    FAKE_CUDA_LATE,     /* ends during the second stream query, which still returns "running" */
    FAKE_CUDA_AT_QUERY, /* ends during the first stream query, which returns "ended" */
    FAKE_CUDA_SILENT,   /* ends, but leaves out the tickets */
    FAKE_CUDA_NEVER     /* hangs, and gives no answer */
} fake_cuda_end;

/* Sets how subsequent launches end. Their first `answered` items are answered at once. */
FAKE_CUDA_API void fake_cuda_end_launches(fake_cuda_end end, uint32_t answered);
/* Ends all pending launches with their answers. */
FAKE_CUDA_API void fake_cuda_end_now(void);

/* ---- Queries ----------------------------------------------------------------------------------------------------- */

FAKE_CUDA_API int fake_cuda_calls(const char *function);

typedef struct fake_cuda_launch {
    int count; /* since the reset */
    /* values of the last launch: */
    uint32_t blocks, items;
    bool is_inline;
} fake_cuda_launch;
FAKE_CUDA_API fake_cuda_launch fake_cuda_last_launch(void);

/* The first byte of the last loaded image. */
FAKE_CUDA_API unsigned char fake_cuda_image_byte(void);

/* Objects alive: references to contexts, modules, streams, allocations. */
FAKE_CUDA_API int fake_cuda_alive(void);

/* The first misuse since the reset; NULL = none. */
FAKE_CUDA_API const char *fake_cuda_complaint(void);
