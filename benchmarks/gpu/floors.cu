/* floors.cu — kernels that each do one thing. Their times are lower bounds for all kernels on the GPU.
 *
 * floors.c launches them and describes the measurements. gpu.sh pack compiles them with NVRTC, with floors.h in
 * front. They are launched like generated kernels (mdot_abi.h): the parameter begins with mdot_abi_cuda_call. Its
 * `length` is the number of repetitions, and the ticket in `done` signals that the output is complete. Times inside a
 * kernel are measured by block 0 for each round, in cycles. PTX: PTX ISA, "Memory Consistency Model", "Parallel
 * Synchronization and Communication".
 */
typedef unsigned int u32;
typedef unsigned long long u64;

struct floor_call { /* mdot_abi_cuda_call */
    u64 weights, scratch, input, output, barrier, done;
    u64 scratch_stride, input_stride, output_stride;
    long long length;
    u32 barrier_base, ticket, inline_input, reserved;
    u32 input_at[16], output_at[16];
};
static_assert(sizeof(floor_call) == 224, "the layout of mdot_abi_cuda_call");

template <int WORDS> struct floor_parameter {
    floor_call call;
    u32 words[WORDS];
};
static_assert(sizeof(floor_parameter<FLOOR_SMALL_WORDS>) <= 4096, "parameters of every driver");
static_assert(sizeof(floor_parameter<FLOOR_LARGE_WORDS>) <= 32764, "parameters from CUDA 12.1 on");

/* ---- Clocks and memory ------------------------------------------------------------------------------------------- */

static __device__ __forceinline__ u64 now_ns()
{
    u64 ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
    return ns;
}

static __device__ __forceinline__ u64 now_cycles()
{
    u64 cycles;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(cycles)::"memory");
    return cycles;
}

static __device__ __forceinline__ u32 load_acquire_gpu(const u32 *word)
{
    u32 value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ void store_release_gpu(u32 *word, u32 value)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

static __device__ __forceinline__ u32 load_acquire_sys(const u32 *word)
{
    u32 value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ void store_release_sys(u32 *word, u32 value)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

static __device__ __forceinline__ void add_release_gpu(u32 *word, u32 value)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

static __device__ void answer(const floor_call &c)
{
    store_release_sys((u32 *)c.done, c.ticket);
}

/* ---- Rounds timed inside a kernel -------------------------------------------------------------------------------- */

/* Stopwatch of one thread. The samples are in shared memory, so that storing a sample adds little to the next one. */
struct stopwatch {
    u64 start_ns, start_cycles, last_cycles;
    u32 rounds;
};

static __device__ __forceinline__ stopwatch stopwatch_start()
{
    u64 cycles = now_cycles();
    return {now_ns(), cycles, cycles, 0};
}

static __device__ __forceinline__ void stopwatch_lap(stopwatch &w, u32 *samples)
{
    u64 cycles = now_cycles();
    samples[w.rounds++] = (u32)(cycles - w.last_cycles);
    w.last_cycles = cycles;
}

/* Called by the one thread that owns the samples. */
static __device__ void report(const floor_call &c, const stopwatch &w, u64 end_ns, const u32 *samples, u32 check)
{
    floor_result *result = (floor_result *)(c.output + c.output_at[0]);
    for (u32 i = 0; i < w.rounds; i++) result->cycles[i] = samples[i];
    result->elapsed_ns = end_ns - w.start_ns;
    result->elapsed_cycles = w.last_cycles - w.start_cycles;
    result->rounds = w.rounds;
    result->check = check;
    answer(c);
}

/* ---- Launches ---------------------------------------------------------------------------------------------------- */

extern "C" __global__ void __launch_bounds__(FLOOR_THREADS) floor_empty(const __grid_constant__ floor_call c)
{
}

extern "C" __global__ void __launch_bounds__(FLOOR_THREADS) floor_answer(const __grid_constant__ floor_call c)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) answer(c);
}

/* Keeps the stream busy for `length` nanoseconds, so that work that is launched meanwhile starts without the host. */
extern "C" __global__ void __launch_bounds__(FLOOR_THREADS) floor_delay(const __grid_constant__ floor_call c)
{
    u64 start = now_ns();
    while (now_ns() - start < (u64)c.length) {
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) answer(c);
}

/* ---- Inputs: each word is read and counts ------------------------------------------------------------------------ */

static __device__ void sum_words(const floor_call &c, const u32 *words, u32 count)
{
    __shared__ u32 partial[FLOOR_THREADS / 32];
    u32 sum = 0;
    for (u32 i = threadIdx.x; i < count; i += FLOOR_THREADS) sum += words[i];
    for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xFFFFFFFFu, sum, offset);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0) return;
    for (int i = 1; i < FLOOR_THREADS / 32; i++) sum += partial[i];
    floor_result *result = (floor_result *)(c.output + c.output_at[0]);
    result->check = sum;
    answer(c);
}

extern "C" __global__ void __launch_bounds__(FLOOR_THREADS)
    floor_small_parameter(const __grid_constant__ floor_parameter<FLOOR_SMALL_WORDS> p)
{
    sum_words(p.call, p.words, FLOOR_SMALL_WORDS);
}

extern "C" __global__ void __launch_bounds__(FLOOR_THREADS)
    floor_large_parameter(const __grid_constant__ floor_parameter<FLOOR_LARGE_WORDS> p)
{
    sum_words(p.call, p.words, FLOOR_LARGE_WORDS);
}

/* Reads either device memory that was the target of a copy, or mapped memory of the host. */
extern "C" __global__ void __launch_bounds__(FLOOR_THREADS) floor_memory_input(const __grid_constant__ floor_call c)
{
    sum_words(c, (const u32 *)(c.input + c.input_at[0]), (u32)c.length);
}

/* ---- A kernel that stays ----------------------------------------------------------------------------------------- */

/* Echoes the requests that the host writes to `input`. It ends at FLOOR_STOP, or when `length` nanoseconds pass
 * without a request, because it must also end if the host process dies. */
extern "C" __global__ void __launch_bounds__(32) floor_resident(const __grid_constant__ floor_call c)
{
    if (threadIdx.x != 0) return;
    u32 last = 0, request;
    u64 since = now_ns();
    do {
        request = load_acquire_sys((const u32 *)c.input);
        if (request == last) continue;
        store_release_sys((u32 *)c.done, request);
        last = request;
        since = now_ns();
    } while (last != FLOOR_STOP && now_ns() - since < (u64)c.length);
}

/* ---- Blocks that wait for one another ---------------------------------------------------------------------------- */

/* The barrier of generated kernels: all memory accesses before it, in any block, are visible behind it in every
 * block. */
static __device__ __forceinline__ void grid_barrier(u32 *counter, u32 base, u32 &passed)
{
    __syncthreads();
    passed += gridDim.x;
    if (threadIdx.x == 0) {
        add_release_gpu(counter, 1);
        while ((int)(load_acquire_gpu(counter) - base - passed) < 0) {
        }
    }
    __syncthreads();
}

/* Scratch memory: one word per block, followed by one word that starts as zero. */
extern "C" __global__ void __launch_bounds__(FLOOR_THREADS) floor_grid_barrier(const __grid_constant__ floor_call c)
{
    __shared__ u32 samples[FLOOR_ROUNDS];
    u32 *counter = (u32 *)c.barrier, passed = 0, right = 0;
    volatile u32 *words = (volatile u32 *)c.scratch;
    stopwatch w = stopwatch_start();
    for (long long i = 0; i < c.length; i++) {
        grid_barrier(counter, c.barrier_base, passed);
        if (threadIdx.x == 0) stopwatch_lap(w, samples);
    }
    u64 end_ns = now_ns();
    for (u32 i = 1; i <= FLOOR_CHECKS; i++) {
        if (threadIdx.x == 0) words[blockIdx.x] = i;
        grid_barrier(counter, c.barrier_base, passed);
        if (threadIdx.x == 0) right += words[(blockIdx.x + 1) % gridDim.x] == i;
        grid_barrier(counter, c.barrier_base, passed);
    }
    if (threadIdx.x == 0) add_release_gpu((u32 *)words + gridDim.x, right);
    grid_barrier(counter, c.barrier_base, passed);
    if (blockIdx.x == 0 && threadIdx.x == 0) report(c, w, end_ns, samples, words[gridDim.x]);
}

/* A word goes from block 0 to block 1 and another one comes back, both through L2. A round has two such transfers. */
extern "C" __global__ void __launch_bounds__(32) floor_flag(const __grid_constant__ floor_call c)
{
    __shared__ u32 samples[FLOOR_ROUNDS];
    if (threadIdx.x != 0) return;
    u32 *to_one = (u32 *)c.scratch, *to_zero = to_one + 64; /* in separate cache lines */
    u32 right = 0;
    stopwatch w = stopwatch_start();
    for (u32 i = 1; i <= c.length; i++) {
        if (blockIdx.x == 0) {
            store_release_gpu(to_one, i);
            while (load_acquire_gpu(to_zero) != i) {
            }
            right++;
            stopwatch_lap(w, samples);
        } else {
            while (load_acquire_gpu(to_one) != i) {
            }
            store_release_gpu(to_zero, i);
        }
    }
    if (blockIdx.x == 0) report(c, w, now_ns(), samples, right);
}

#if __CUDA_ARCH__ >= 900 /* clusters, st.async */

static __device__ __forceinline__ u32 cluster_rank()
{
    u32 rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ void cluster_barrier()
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n\t"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

static __device__ __forceinline__ u32 shared_address(const void *pointer)
{
    return (u32)__cvta_generic_to_shared(pointer);
}

/* Returns the address of the same variable in another block of the cluster. */
static __device__ __forceinline__ u32 address_in(u32 address, u32 rank)
{
    u32 mapped;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
    return mapped;
}

static __device__ __forceinline__ u32 load_cluster(u32 address)
{
    u32 value;
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

template <u32 BLOCKS> static __device__ void time_cluster_barrier(const floor_call &c)
{
    __shared__ u32 samples[FLOOR_ROUNDS];
    __shared__ u32 word;
    u32 next = address_in(shared_address(&word), (cluster_rank() + 1) % BLOCKS), right = 0;
    cluster_barrier();
    stopwatch w = stopwatch_start();
    for (long long i = 0; i < c.length; i++) {
        cluster_barrier();
        if (threadIdx.x == 0) stopwatch_lap(w, samples);
    }
    u64 end_ns = now_ns();
    for (u32 i = 1; i <= FLOOR_CHECKS; i++) {
        if (threadIdx.x == 0) word = i;
        cluster_barrier();
        right += load_cluster(next) == i;
        cluster_barrier();
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) report(c, w, end_ns, samples, right);
}

extern "C" __global__ void __cluster_dims__(8, 1, 1) __launch_bounds__(FLOOR_THREADS)
    floor_cluster_barrier_8(const __grid_constant__ floor_call c)
{
    time_cluster_barrier<8>(c);
}

extern "C" __global__ void __cluster_dims__(16, 1, 1) __launch_bounds__(FLOOR_THREADS)
    floor_cluster_barrier_16(const __grid_constant__ floor_call c)
{
    time_cluster_barrier<16>(c);
}

/* Pushes sixteen bytes into another block's shared memory. That block's mbarrier counts the bytes that arrive. */
static __device__ __forceinline__ void push(u32 to, u32 to_barrier, u32 value)
{
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%2, %2, %2, %2}, [%1];" ::"r"(to),
                 "r"(to_barrier), "r"(value)
                 : "memory");
}

static __device__ __forceinline__ void expect_push(u32 barrier)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void await_push(u32 barrier, u32 parity)
{
    u32 is_there;
    do {
        asm volatile("{\n\t"
                     ".reg .pred p;\n\t"
                     "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\t"
                     "selp.u32 %0, 1, 0, p;\n\t"
                     "}"
                     : "=r"(is_there)
                     : "r"(barrier), "r"(parity)
                     : "memory");
    } while (!is_there);
}

/* A round trip between the first and the last block of a cluster: two pushes per round. */
extern "C" __global__ void __cluster_dims__(8, 1, 1) __launch_bounds__(FLOOR_THREADS)
    floor_push(const __grid_constant__ floor_call c)
{
    enum { LAST = 7 };
    __shared__ u32 samples[FLOOR_ROUNDS];
    __shared__ __align__(16) volatile u32 box[4];
    __shared__ __align__(8) u64 barrier;
    u32 rank = cluster_rank(), own = shared_address(&barrier), right = 0;
    u32 to = address_in(shared_address((const void *)box), LAST - rank), to_barrier = address_in(own, LAST - rank);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(own) : "memory");
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cluster_barrier();
    stopwatch w = stopwatch_start();
    if (threadIdx.x == 0 && (rank == 0 || rank == LAST)) {
        for (u32 i = 0; i < c.length; i++) {
            expect_push(own);
            if (rank == 0) push(to, to_barrier, i);
            await_push(own, i & 1);
            if (rank == LAST) push(to, to_barrier, box[3] + 1);
            if (rank == 0) {
                right += box[0] == i + 1;
                stopwatch_lap(w, samples);
            }
        }
    }
    u64 end_ns = now_ns();
    cluster_barrier(); /* a block must stay alive while another one may push into it */
    if (blockIdx.x == 0 && threadIdx.x == 0) report(c, w, end_ns, samples, right);
}

#endif
