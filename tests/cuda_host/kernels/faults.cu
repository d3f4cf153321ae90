// faults.cu: small kernels for the emulator's own tests: right ones, and ones with a single fault on the line
// marked "FAULT <kernel>". All run with blocks of 64 threads; `out` has 64 floats a block, `in` 64.

extern "C" __global__ void reverse(const float *in, float *out)
{
    __shared__ float tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

extern "C" __global__ void reverse_without_barrier(const float *in, float *out)
{
    __shared__ float tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

// The second round's writes meet the first round's reads.
extern "C" __global__ void reused_without_barrier(const float *in, float *out)
{
    __shared__ float tile[64];
    for (int round = 0; round < 2; round++) {
        tile[threadIdx.x] = in[threadIdx.x] + round;
        __syncthreads();
        out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
    }
}

extern "C" __global__ void divergent_barrier(const float *in, float *out)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void barrier_missed_by_some(const float *in, float *out)
{
    if (threadIdx.x < 40) __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x];
}

extern "C" __global__ void exchange_in_warp(const float *in, float *out)
{
    __shared__ float tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    out[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x ^ 1];
}

// A shuffle brings lanes together but orders no memory.
extern "C" __global__ void shuffle_is_no_barrier(const float *in, float *out)
{
    __shared__ float tile[64];
    tile[threadIdx.x] = in[threadIdx.x];
    float other = __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 1);
    out[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x ^ 1] + other; // FAULT shuffle_is_no_barrier
}

extern "C" __global__ void sum_by_shuffles(const float *in, float *out)
{
    float sum = in[threadIdx.x];
    for (int step = 16; step; step >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    float first = __shfl_sync(0xffffffffu, sum, 0), below = __shfl_up_sync(0xffffffffu, sum, 1);
    unsigned odd = __ballot_sync(0xffffffffu, threadIdx.x & 1);
    out[blockIdx.x * 64 + threadIdx.x] = odd == 0xaaaaaaaau ? (sum + first + below) / 3 : 0;
}

extern "C" __global__ void shuffle_outside_mask(const float *in, float *out)
{
    float value = in[threadIdx.x];
    if ((threadIdx.x & 31) < 16) value = __shfl_xor_sync(0xffffu, value, 16); // FAULT shuffle_outside_mask
    out[blockIdx.x * 64 + threadIdx.x] = value;
}

extern "C" __global__ void shuffle_mask_without_caller(const float *in, float *out)
{
    float value = __shfl_xor_sync(0xffffu, in[threadIdx.x], 1); // FAULT shuffle_mask_without_caller
    out[blockIdx.x * 64 + threadIdx.x] = value;
}

extern "C" __global__ void shuffle_by_half_warp(const float *in, float *out)
{
    float value = in[threadIdx.x];
    if ((threadIdx.x & 31) < 16) value = __shfl_xor_sync(0xffffffffu, value, 1);
    out[blockIdx.x * 64 + threadIdx.x] = value;
}

extern "C" __global__ void read_beyond(const float *in, float *out)
{
    out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x + 1]; // FAULT read_beyond
}

extern "C" __global__ void write_constant(const float *in, float *out)
{
    out[blockIdx.x * 64 + threadIdx.x] = 0;
    const_cast<float *>(in)[threadIdx.x] = 1; // FAULT write_constant
}

extern "C" __global__ void shared_beyond(const float *in, float *out)
{
    float *tile = (float *)ch_dynamic_shared(); // 64 floats
    tile[threadIdx.x + 1] = in[threadIdx.x]; // FAULT shared_beyond
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x];
}

extern "C" __global__ void array_beyond(const float *in, float *out)
{
    float local[4] = {0, 1, 2, 3};
    out[blockIdx.x * 64 + threadIdx.x] = local[(threadIdx.x + (int)in[0]) % 5]; // FAULT array_beyond
}

struct __align__(16) four {
    float x, y, z, w;
};

extern "C" __global__ void misaligned(const float *in, float *out)
{
    four v = *(const four *)(in + 1); // FAULT misaligned
    out[blockIdx.x * 64 + threadIdx.x] = v.x + v.y + v.z + v.w;
}

extern "C" __global__ void unwritten(const float *in, float *out)
{
    float *tile = (float *)ch_dynamic_shared();
    if (threadIdx.x) tile[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x]; // FAULT unwritten
}

extern "C" __global__ void two_blocks_one_place(const float *in, float *out)
{
    out[threadIdx.x] = in[threadIdx.x]; // FAULT two_blocks_one_place
}

extern "C" __global__ void exit_during_collective(const float *in, float *out)
{
    if (threadIdx.x == 5) return;
    out[blockIdx.x * 64 + threadIdx.x] = __shfl_xor_sync(0xffffffffu, in[threadIdx.x], 1);
}

// A block that waits for a flag nobody sets.
extern "C" __global__ void flag_never_set(const float *in, float *out, unsigned *flag)
{
    while (ch_load_flag(CH_ACQUIRE, flag, 0) == 0) continue;
    out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x];
}

// Block 0 hands a row to the others: the lanes write, one of them releases, everybody acquires.
extern "C" __global__ void handed_over(const float *in, float *out, unsigned *flag, float *row)
{
    if (blockIdx.x == 0) {
        row[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) ch_store_flag(CH_RELEASE, flag, 1, __LINE__);
    }
    while (ch_load_flag(CH_ACQUIRE, flag, __LINE__) == 0) continue;
    out[blockIdx.x * 64 + threadIdx.x] = row[63 - threadIdx.x];
}

extern "C" __global__ void handed_over_relaxed(const float *in, float *out, unsigned *flag, float *row)
{
    if (blockIdx.x == 0) {
        row[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) ch_store_flag(CH_RELAXED, flag, 1, __LINE__);
    }
    while (ch_load_flag(CH_ACQUIRE, flag, __LINE__) == 0) continue;
    out[blockIdx.x * 64 + threadIdx.x] = row[63 - threadIdx.x]; // FAULT handed_over_relaxed
}

extern "C" __global__ void handed_over_unacquired(const float *in, float *out, unsigned *flag, float *row)
{
    if (blockIdx.x == 0) {
        row[threadIdx.x] = in[threadIdx.x];
        __syncthreads();
        if (threadIdx.x == 0) ch_store_flag(CH_RELEASE, flag, 1, __LINE__);
    }
    while (ch_load_flag(CH_RELAXED, flag, __LINE__) == 0) continue;
    out[blockIdx.x * 64 + threadIdx.x] = row[63 - threadIdx.x]; // FAULT handed_over_unacquired
}
