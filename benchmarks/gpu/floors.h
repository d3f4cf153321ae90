/* floors.h — constants shared by floors.cu and floors.c. NVRTC reads this file, too, so it includes no header and
 * defines only these macros. */
#ifndef GPU_FLOORS_H
#define GPU_FLOORS_H

enum {
    FLOOR_THREADS = 256, /* threads per block, as in generated kernels */
    FLOOR_ROUNDS = 1000, /* timed repetitions within a kernel */
    FLOOR_CHECKS = 8,    /* repetitions checked instead of timed */
    /* Parameters may take 4,096 bytes with every driver, and 32,764 from CUDA 12.1 on with sm_70 and later (CUDA C++
     * Programming Guide, "Function Parameters"). mdot_abi_cuda_call takes 224 of them. Number of 32-bit words, even: */
    FLOOR_SMALL_WORDS = (4096 - 224) / 8 * 2,
    FLOOR_LARGE_WORDS = (32764 - 224) / 8 * 2
};

#define FLOOR_STOP 0xFFFFFFFFu /* the request that ends the resident kernel */

/* Written by a kernel to its output before it answers. */
typedef struct floor_result {
    unsigned long long elapsed_ns, elapsed_cycles; /* over all rounds, by two clocks, for the cycle time */
    unsigned int rounds;
    unsigned int check; /* proof that the kernel did the measured work; floors.c knows the right number */
    unsigned int cycles[FLOOR_ROUNDS];
} floor_result;

#endif
