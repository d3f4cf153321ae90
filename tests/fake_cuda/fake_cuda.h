/* fake_cuda.h — a libcuda for machines without one: its functions, as far as the runtime calls them, over ordinary
 * memory.
 *
 * The library stands in for libcuda.so.1 where MDOT_LIBCUDA names it. It takes any bytes for a cubin. A kernel is a C
 * function that a test registers under the kernel's name; one that nobody registered answers without computing, which
 * is enough to try out everything around it. A test that links the library too says here what the machine is like, what
 * fails and how launches end, and asks afterwards what was called and what is left over.
 *
 *   machine.c   the state: objects, faults, counts       driver.c   the functions of libcuda       launch.c   kernels
 *
 * Device addresses are no pointers of the host, and the device's address of mapped memory is another than the host's:
 * to mix them up is found. So is everything else that a real driver forbids but may let pass; fake_cuda_complaint has
 * it.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include "mdot/mdot_abi.h"

#define FAKE_CUDA_API __attribute__((visibility("default")))

typedef struct fake_cuda_machine {
    int device_count, major, minor, multiprocessors;
    int blocks_per_multiprocessor; /* of any kernel */
    bool is_not_cooperative;
    size_t memory_bytes; /* of a device; 0: more than anybody asks for */
} fake_cuda_machine;

/* A machine anew: nothing is alive, registered, scripted or counted. */
FAKE_CUDA_API void fake_cuda_reset(const fake_cuda_machine *machine);

/* What a kernel computes for one item; tensors in the entry's order. Called with the library's lock held. */
typedef void fake_cuda_body(void *user, int64_t length, const unsigned char *weights, const void *const *inputs,
                            void *const *outputs);

/* `abi` has the kernel's needs, which launches are held to. */
FAKE_CUDA_API void fake_cuda_register(const char *name, const mdot_abi_cuda_kernel *abi, fake_cuda_body *body,
                                      void *user);

typedef struct fake_cuda_grid {
    uint32_t blocks, items, threads, shared_bytes;
} fake_cuda_grid;

/* What runs whole kernels instead, registered ones too: their parameter, whose addresses are the host's. */
typedef void fake_cuda_launcher(void *user, const char *name, const fake_cuda_grid *grid,
                                const mdot_abi_cuda_call *parameter);
FAKE_CUDA_API void fake_cuda_set_launcher(fake_cuda_launcher *launcher, void *user);

/* Called with each image that is loaded, before its kernels are asked for: for who learns only then what to register.
 * With the library's lock held. */
FAKE_CUDA_API void fake_cuda_on_load(void (*loaded)(const void *image));

/* The call number `call`, from 1, of `function` ("cuMemAlloc") does nothing and returns `result`. Sticky: so does every
 * later call of any function, except that what frees still frees. */
FAKE_CUDA_API void fake_cuda_fail(const char *function, int call, int result, bool is_sticky);

/* Calls of `function`, from number `call` on, do not return until it is called again with NULL. */
FAKE_CUDA_API void fake_cuda_block(const char *function, int call);

typedef enum fake_cuda_end {
    FAKE_CUDA_AT_ONCE,
    FAKE_CUDA_LATE,   /* while the host asks for the second time how the stream does, and hears that it goes on */
    FAKE_CUDA_ASKED,  /* while it asks for the first time, and hears that all has ended */
    FAKE_CUDA_SILENT, /* ended, without tickets */
    FAKE_CUDA_NEVER   /* neither ends nor answers */
} fake_cuda_end;

/* How launches from now on end, except for their first `answered` items, which are answered at once. */
FAKE_CUDA_API void fake_cuda_end_launches(fake_cuda_end end, uint32_t answered);
/* Lets every launch that has not ended end, with its answers. */
FAKE_CUDA_API void fake_cuda_end_now(void);

/* ---- What happened ----------------------------------------------------------------------------------------------- */

FAKE_CUDA_API int fake_cuda_calls(const char *function);

typedef struct fake_cuda_launch {
    int count; /* since the reset */
    /* of the last one: */
    uint32_t blocks, items;
    bool is_inline;
} fake_cuda_launch;
FAKE_CUDA_API fake_cuda_launch fake_cuda_last_launch(void);

/* The first byte of the image that was loaded last. */
FAKE_CUDA_API unsigned char fake_cuda_image_byte(void);

/* Objects alive: references to contexts, modules, streams, allocations. */
FAKE_CUDA_API int fake_cuda_alive(void);

/* The first misuse since the reset, NULL when there was none. */
FAKE_CUDA_API const char *fake_cuda_complaint(void);

#endif
