// What the kernels below need of PTX, by the names that tests/cuda_host/device.h has for the emulator.

#pragma nv_diag_suppress 177 // loop variables that an expression does not read

extern __shared__ __align__(16) unsigned char shared_memory[];
__device__ __forceinline__ unsigned char *dynamic_shared()
{
    return shared_memory;
}

// Tells the compiler that a pointer is to global memory.
__device__ __forceinline__ void *global_address(void *at)
{
    __builtin_assume(__isGlobal(at));
    return at;
}

#define MMA(name, shape, a_registers, b_registers, ...) \
    __device__ __forceinline__ void name(float *d, const unsigned *a, const unsigned *b) \
    { \
        asm volatile("mma.sync.aligned." shape " {%0, %1, %2, %3}, {" a_registers "}, {" b_registers "}, {%0, %1, %2, %3};" \
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
                     : __VA_ARGS__); \
    }
#if __CUDA_ARCH__ >= 800
MMA(mma_m16n8k16_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32", "%4, %5, %6, %7", "%8, %9", "r"(a[0]), "r"(a[1]),
    "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#endif
MMA(mma_m16n8k8_f16, "m16n8k8.row.col.f32.f16.f16.f32", "%4, %5", "%6", "r"(a[0]), "r"(a[1]), "r"(b[0]))

__device__ __forceinline__ unsigned shared_address(const void *at)
{
    return (unsigned)__cvta_generic_to_shared(at);
}
__device__ __forceinline__ void ldmatrix_x4(unsigned *to, const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(shared_address(row))
                 : "memory");
}

#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ void cp_async_16(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(shared_address(to)), "l"(from) : "memory");
}
__device__ __forceinline__ void cp_async_wait_all()
{
    asm volatile("cp.async.wait_all;" : : : "memory");
}
#else
__device__ __forceinline__ void cp_async_16(void *to, const void *from)
{
    struct __align__(16) piece { unsigned word[4]; };
    *(piece *)to = *(const piece *)from;
}
__device__ __forceinline__ void cp_async_wait_all() {}
#endif

// All blocks of an item meet. The release makes what the block wrote visible to whoever acquires the count, and
// __syncthreads carries both to the block's other threads: causality order of the PTX memory model.
__device__ __forceinline__ void grid_barrier(unsigned *counter, unsigned target)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned count;
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" : : "l"(counter) : "memory");
        do
            asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
        while ((int)(count - target) < 0);
    }
    __syncthreads();
}

#if __CUDA_ARCH__ >= 900
// All blocks of a cluster meet, and see what the others wrote before, in shared and in global memory.
__device__ __forceinline__ void cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}
__device__ __forceinline__ int cluster_rank()
{
    unsigned rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return (int)rank;
}
// The element at the same place in the shared memory of a block of the cluster.
template <class T> __device__ __forceinline__ T &in_block(T &element, int block)
{
    T *there;
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(&element), "r"(block));
    return *there;
}
#endif

__device__ __forceinline__ void store_release_system(unsigned *flag, unsigned value)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" : : "l"(flag), "r"(value) : "memory");
}

__device__ __forceinline__ float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float divide_fast(float x, float y)
{
    return __fdividef(x, y);
}
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ unsigned pack_bf16(float low, float high)
{
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
#endif
__device__ __forceinline__ unsigned pack_f16(float low, float high)
{
    unsigned short first, second;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(first) : "f"(low));
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(second) : "f"(high));
    return first | (unsigned)second << 16;
}
