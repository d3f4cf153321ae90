/* floors.h — what floors.cu and floors.c agree on. NVRTC reads it too: no other header, no macro but these. */
#ifndef GPU_FLOORS_H
#define GPU_FLOORS_H

enum {
    FLOOR_THREADS = 256, /* of a block, as generated kernels have */
    FLOOR_ROUNDS = 1000, /* of what a kernel repeats and times by itself */
    FLOOR_CHECKS = 8,    /* rounds of it that are checked instead of timed */
    /* Parameters may take 4,096 bytes with every driver, and 32,764 from CUDA 12.1 on with sm_70 and later (CUDA C++
     * Programming Guide, "Function Parameters"); 224 of them are mdot_abi_cuda_call. Words of 32 bits, an even count:
     */
    FLOOR_SMALL_WORDS = (4096 - 224) / 8 * 2,
    FLOOR_LARGE_WORDS = (32764 - 224) / 8 * 2
};

#define FLOOR_STOP 0xFFFFFFFFu /* the request that ends the resident kernel */

/* Written by a kernel to its output before it answers. */
typedef struct floor_result {
    unsigned long long elapsed_ns, elapsed_cycles; /* of all rounds, by two clocks: what a cycle takes */
    unsigned int rounds;
    unsigned int check; /* that it did what it measures; floors.c knows how much is right */
    unsigned int cycles[FLOOR_ROUNDS];
} floor_result;

#endif
