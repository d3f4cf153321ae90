/* device.h — the declarations that a kernel's source sees on the host, in place of CUDA's built-ins and the generator's
 * prelude. The compiler's command line includes it before the source. To add an intrinsic, write a function here with
 * CUDA's name. The last parameter `line` defaults to __builtin_LINE(), which is the caller's line. If it needs other
 * lanes or memory, add a function to device_calls.h and, in warp.c, the work that the last lane does for all. */
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tests/cuda_host/device_calls.h"

#define __global__
#define __device__
#define __host__
#define __constant__ static const
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __grid_constant__
#define __shared__ static __attribute__((section(CH_SHARED_SECTION)))

#define threadIdx (ch_position(CH_THREAD_INDEX))
#define blockIdx (ch_position(CH_BLOCK_INDEX))
#define blockDim (ch_position(CH_BLOCK_EXTENT))
#define gridDim (ch_position(CH_GRID_EXTENT))

/* ---- Synchronisation --------------------------------------------------------------------------------------------- */

static inline void __syncthreads(int line = __builtin_LINE()) { ch_syncthreads(line); }
static inline void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) { ch_syncwarp(mask, line); }

static inline void __threadfence(int line = __builtin_LINE()) { ch_threadfence(line); }

/* ---- Shuffles and votes ------------------------------------------------------------------------------------------ */

template <class T>
static inline T ch_shuffle_value(ch_shuffle how, unsigned mask, T value, unsigned operand, int width, int line)
{
    static_assert(sizeof(T) % sizeof(uint32_t) == 0, "shuffles move words of 32 bits");
    uint32_t words[sizeof(T) / sizeof(uint32_t)];
    memcpy(words, &value, sizeof words);
    for (uint32_t &word : words) word = ch_shfl(how, mask, word, operand, (unsigned)width, line);
    memcpy(&value, words, sizeof words);
    return value;
}
#define CH_SHUFFLE(name, how)                                                                                          \
    template <class T>                                                                                                 \
    static inline T name(unsigned mask, T value, unsigned operand, int width = 32, int line = __builtin_LINE())        \
    {                                                                                                                  \
        return ch_shuffle_value(how, mask, value, operand, width, line);                                               \
    }
CH_SHUFFLE(__shfl_sync, CH_SHUFFLE_IDX)
CH_SHUFFLE(__shfl_up_sync, CH_SHUFFLE_UP)
CH_SHUFFLE(__shfl_down_sync, CH_SHUFFLE_DOWN)
CH_SHUFFLE(__shfl_xor_sync, CH_SHUFFLE_XOR)

static inline unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE())
{
    return ch_ballot(mask, predicate, line);
}
static inline int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE())
{
    return ch_ballot(mask, predicate, line) != 0;
}
static inline int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE())
{
    return ch_ballot(mask, predicate, line) == mask;
}

/* ---- Atomics (relaxed, as CUDA's are) ---------------------------------------------------------------------------- */

static inline unsigned atomicAdd(unsigned *address, unsigned operand, int line = __builtin_LINE())
{
    return ch_atomic_rmw(CH_ATOMIC_ADD, CH_RELAXED, address, operand, line);
}
static inline int atomicAdd(int *address, int operand, int line = __builtin_LINE())
{
    return (int)ch_atomic_rmw(CH_ATOMIC_ADD, CH_RELAXED, (uint32_t *)address, (uint32_t)operand, line);
}
static inline float atomicAdd(float *address, float operand, int line = __builtin_LINE())
{
    uint32_t bits;
    memcpy(&bits, &operand, sizeof bits);
    bits = ch_atomic_rmw(CH_ATOMIC_ADD_F32, CH_RELAXED, (uint32_t *)address, bits, line);
    memcpy(&operand, &bits, sizeof bits);
    return operand;
}
static inline unsigned atomicMax(unsigned *address, unsigned operand, int line = __builtin_LINE())
{
    return ch_atomic_rmw(CH_ATOMIC_MAX_U32, CH_RELAXED, address, operand, line);
}
static inline unsigned atomicExch(unsigned *address, unsigned operand, int line = __builtin_LINE())
{
    return ch_atomic_rmw(CH_ATOMIC_EXCHANGE, CH_RELAXED, address, operand, line);
}

/* ---- Replacements for PTX ---------------------------------------------------------------------------------------- */

/* d += a b: mma.sync.m16n8k16 and m16n8k8. */
#define CH_MMA(name, element, k)                                                                                       \
    static inline void name(float *d, const unsigned *a, const unsigned *b, int line = __builtin_LINE())               \
    {                                                                                                                  \
        ch_mma(element, k, d, a, b, d, line);                                                                          \
    }
CH_MMA(mma_m16n8k16_bf16, CH_BF16, 16)
CH_MMA(mma_m16n8k16_f16, CH_F16, 16)
CH_MMA(mma_m16n8k8_bf16, CH_BF16, 8)
CH_MMA(mma_m16n8k8_f16, CH_F16, 8)

#define CH_LDMATRIX(name, matrices, transposed)                                                                        \
    static inline void name(unsigned *registers, const void *row, int line = __builtin_LINE())                         \
    {                                                                                                                  \
        ch_ldmatrix(registers, matrices, transposed, row, line);                                                       \
    }
CH_LDMATRIX(ldmatrix_x1, 1, 0)
CH_LDMATRIX(ldmatrix_x2, 2, 0)
CH_LDMATRIX(ldmatrix_x4, 4, 0)
CH_LDMATRIX(ldmatrix_x1_trans, 1, 1)
CH_LDMATRIX(ldmatrix_x2_trans, 2, 1)
CH_LDMATRIX(ldmatrix_x4_trans, 4, 1)

static inline void cp_async_16(void *to, const void *from, int line = __builtin_LINE())
{
    ch_copy_async(to, from, 16, 16, line);
}
static inline void cp_async_commit(int line = __builtin_LINE()) { ch_copy_commit(line); }
static inline void cp_async_wait(int pending_groups, int line = __builtin_LINE())
{
    ch_copy_wait(pending_groups, line);
}
static inline void cp_async_wait_all(int line = __builtin_LINE()) { ch_copy_wait_all(line); }

static inline unsigned char *dynamic_shared() { return (unsigned char *)ch_dynamic_shared(); }

static inline void *global_address(void *at) { return at; }

static inline void store_release_system(unsigned *flag, unsigned value, int line = __builtin_LINE())
{
    ch_store_flag(CH_RELEASE, flag, value, line);
}

static inline void grid_barrier(unsigned *counter, unsigned target, int line = __builtin_LINE())
{
    ch_grid_barrier(counter, target, line);
}

static inline void cluster_barrier(int line = __builtin_LINE()) { ch_cluster_barrier(line); }
static inline int cluster_rank() { return ch_cluster_rank(); }
template <class T> static inline T &in_block(T &element, int block, int line = __builtin_LINE())
{
    return *(T *)ch_in_block(&element, block, line);
}

/* ---- Mathematical and bit functions ------------------------------------------------------------------------------ */

template <class T> static inline T __ldg(const T *address) { return *address; }
static inline int min(int a, int b) { return a < b ? a : b; }
/* Selects four bytes out of eight in y:x by the low three bits in each selector (CUDA Math API, "Integer
 * Intrinsics"). */
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    uint64_t bytes = (uint64_t)y << 32 | x;
    unsigned result = 0;
    for (int k = 0; k < 4; k++) result |= (unsigned)(bytes >> (selector >> 4 * k & 7) * 8 & 0xff) << 8 * k;
    return result;
}
static inline unsigned pack_bf16(float low, float high) { return ch_pack(CH_BF16, low, high); }
static inline unsigned pack_f16(float low, float high) { return ch_pack(CH_F16, low, high); }
static inline float exp2_fast(float x) { return exp2f(x); }
static inline float divide_fast(float x, float y) { return x / y; }
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
#define __expf(x) expf(x) /* glibc already uses this name */
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __uint_as_float(unsigned bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline unsigned __float_as_uint(float value)
{
    unsigned bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}
