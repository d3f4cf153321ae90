// small.cu: small kernels for the emulator's own tests. Some are correct, others have a single fault on the line
// with the comment "FAULT <kernel>". All run with blocks of 64 threads; `out` has 64 floats per block, `in` has 64.

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

// The writes of the second round race with the reads of the first.
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

// A shuffle synchronises lanes but leaves memory unordered.
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

// A block waits for a flag that stays unset.
extern "C" __global__ void flag_never_set(const float *in, float *out, unsigned *flag)
{
    while (ch_load_flag(CH_ACQUIRE, flag, 0) == 0) continue;
    out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x];
}

// Block 0 passes a row to the others: its lanes write, one lane releases, all threads acquire.
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

// The same with fences around relaxed accesses, which is how CUDA's own atomics are used.
extern "C" __global__ void handed_over_by_fences(const float *in, float *out, unsigned *flag, float *row)
{
    if (blockIdx.x == 0) {
        row[threadIdx.x] = in[threadIdx.x];
        __threadfence();
        atomicAdd(flag, 1);
    }
    while (ch_load_flag(CH_RELAXED, flag, __LINE__) < 64) continue;
    __threadfence();
    out[blockIdx.x * 64 + threadIdx.x] = row[63 - threadIdx.x];
}

extern "C" __global__ void handed_over_without_second_fence(const float *in, float *out, unsigned *flag, float *row)
{
    if (blockIdx.x == 0) {
        row[threadIdx.x] = in[threadIdx.x];
        __threadfence();
        atomicAdd(flag, 1);
    }
    while (ch_load_flag(CH_RELAXED, flag, __LINE__) < 64) continue;
    out[blockIdx.x * 64 + threadIdx.x] = row[63 - threadIdx.x]; // FAULT handed_over_without_second_fence
}

// Several blocks read at different times, and then write.
extern "C" __global__ void shifted_by_grid_barriers(const float *in, float *out, unsigned *flag, float *row)
{
    if (blockIdx.x == 0) row[threadIdx.x] = in[threadIdx.x];
    grid_barrier(flag, gridDim.x);
    out[blockIdx.x * 64 + threadIdx.x] = row[threadIdx.x ^ 2];
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] -= row[threadIdx.x ^ 4];
    grid_barrier(flag, 2 * gridDim.x);
    if (blockIdx.x == 1) row[threadIdx.x] = row[threadIdx.x] * 0 + 1;
    grid_barrier(flag, 3 * gridDim.x);
    out[blockIdx.x * 64 + threadIdx.x] = row[63 - threadIdx.x];
}

extern "C" __global__ void shifted_without_second_barrier(const float *in, float *out, unsigned *flag, float *row)
{
    if (blockIdx.x == 0) row[threadIdx.x] = in[threadIdx.x];
    grid_barrier(flag, gridDim.x);
    out[blockIdx.x * 64 + threadIdx.x] = row[threadIdx.x ^ 2];
    if (blockIdx.x == 1) row[threadIdx.x] = 1;
}

// ldmatrix is compared with plain loads, and matmuls of depth 16 with two of depth 8 and with sums: 1 if all agree.
// Elements are 1 or 0, because bf16 and fp16 then differ only in the bits of 1.
extern "C" __global__ void fragments(const float *in, float *out)
{
    __shared__ __align__(16) unsigned short a[2][16][16], b[2][16][8];
    const unsigned short one[2] = {0x3f80, 0x3c00};
    for (int i = threadIdx.x; i < 512; i += 64)
        a[i / 256][i / 16 % 16][i % 16] = (int)in[i * 7 % 61] % 2 ? one[i / 256] : 0;
    for (int i = threadIdx.x; i < 256; i += 64)
        b[i / 128][i / 8 % 16][i % 8] = (int)in[i * 5 % 59] % 3 ? one[i / 128] : 0;
    __syncthreads();
    int lane = threadIdx.x % 32, group = lane / 4, pair = lane % 4 * 2;
    bool right = true;
    for (int kind = 0; kind < 2; kind++) {
        unsigned whole[4], quarter[4], wb[2], qb[2];
        ldmatrix_x4(whole, &a[kind][lane % 16][lane / 16 * 8]);
        ldmatrix_x2_trans(wb, &b[kind][lane % 16][0]);
        for (int j = 0; j < 4; j++) ldmatrix_x1(&quarter[j], &a[kind][lane % 8 + j % 2 * 8][j / 2 * 8]);
        for (int j = 0; j < 2; j++) ldmatrix_x1_trans(&qb[j], &b[kind][lane % 8 + 8 * j][0]);
        for (int j = 0; j < 4; j++) {
            const unsigned short *row = &a[kind][group + j % 2 * 8][j / 2 * 8 + pair];
            right = right && whole[j] == quarter[j] && whole[j] == (row[0] | (unsigned)row[1] << 16);
        }
        right = right && wb[0] == qb[0] && wb[1] == qb[1] &&
                wb[1] == (b[kind][8 + pair][group] | (unsigned)b[kind][9 + pair][group] << 16);
        float deep[4] = {1, 2, 3, 4}, flat[4] = {1, 2, 3, 4};
        if (kind) {
            mma_m16n8k16_f16(deep, whole, wb);
            mma_m16n8k8_f16(flat, whole, wb);
            mma_m16n8k8_f16(flat, whole + 2, wb + 1);
        } else {
            mma_m16n8k16_bf16(deep, whole, wb);
            mma_m16n8k8_bf16(flat, whole, wb);
            mma_m16n8k8_bf16(flat, whole + 2, wb + 1);
        }
        for (int i = 0; i < 4; i++) {
            float sum = i + 1;
            for (int k = 0; k < 16; k++) sum += a[kind][group + i / 2 * 8][k] && b[kind][k][pair + i % 2];
            right = right && deep[i] == sum && flat[i] == sum;
        }
    }
    out[blockIdx.x * 64 + threadIdx.x] = right;
}

extern "C" __global__ void copied(const float *in, float *out)
{
    __shared__ __align__(16) float tile[64];
    if (threadIdx.x < 16) cp_async_16(tile + threadIdx.x * 4, in + threadIdx.x * 4);
    cp_async_wait_all();
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

// A wait only covers the thread's own copies.
extern "C" __global__ void copied_without_barrier(const float *in, float *out)
{
    __shared__ __align__(16) float tile[64];
    if (threadIdx.x < 16) cp_async_16(tile + threadIdx.x * 4, in + threadIdx.x * 4);
    cp_async_wait_all();
    out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

extern "C" __global__ void copied_without_wait(const float *in, float *out)
{
    __shared__ __align__(16) float tile[64];
    if (threadIdx.x < 16) cp_async_16(tile + threadIdx.x * 4, in + threadIdx.x * 4);
    cp_async_commit();
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x]; // FAULT copied_without_wait
}

// Two groups. The wait covers all groups except the latest.
extern "C" __global__ void copied_latest_group_read(const float *in, float *out)
{
    __shared__ __align__(16) float tile[64];
    for (int half = 0; half < 2; half++) {
        if (threadIdx.x < 8) cp_async_16(tile + half * 32 + threadIdx.x * 4, in + half * 32 + threadIdx.x * 4);
        cp_async_commit();
    }
    cp_async_wait(1);
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x % 32];
    out[blockIdx.x * 64 + threadIdx.x] += tile[threadIdx.x % 32 + 32]; // FAULT copied_latest_group_read
}

extern "C" __global__ void copied_misaligned(const float *in, float *out)
{
    __shared__ __align__(16) float tile[64];
    if (threadIdx.x < 15) cp_async_16(tile + threadIdx.x * 4, in + 1 + threadIdx.x * 4); // FAULT copied_misaligned
    cp_async_wait_all();
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[threadIdx.x % 60];
}

// 1 + 2^-8 lies between two bf16 numbers and rounds to the even one. In f16 it is exact.
extern "C" __global__ void packed(const float *in, float *out)
{
    float x = 1.00390625f;
    bool right = pack_bf16(x, -2) == 0xc0003f80u && pack_f16(x, -2) == 0xc0003c04u;
    right = right && __byte_perm(0x33221100u, 0x77665544u, 0x5410) == 0x55441100u;
    right = right && __byte_perm(0x33221100u, 0x77665544u, 0x7632) == 0x77663322u;
    out[blockIdx.x * 64 + threadIdx.x] = right;
}

extern "C" __global__ void published(const float *in, float *out, unsigned *flag, float *row)
{
    out[blockIdx.x * 64 + threadIdx.x] = 1;
    if (blockIdx.x) return;
    row[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) store_release_system(flag, 1);
}

extern "C" __global__ void published_early(const float *in, float *out, unsigned *flag, float *row)
{
    out[blockIdx.x * 64 + threadIdx.x] = 1;
    if (blockIdx.x) return;
    row[threadIdx.x] = in[threadIdx.x];
    if (threadIdx.x == 0) store_release_system(flag, 1);
}

extern "C" __global__ void published_in_part(const float *in, float *out, unsigned *flag, float *row)
{
    out[blockIdx.x * 64 + threadIdx.x] = 1;
    if (blockIdx.x) return;
    if (threadIdx.x < 63) row[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) store_release_system(flag, 1);
}

// The three blocks of a cluster write one another's shared memory, in two rounds.
extern "C" __global__ void cluster_exchange(const float *in, float *out)
{
    float *const tile = (float *)dynamic_shared();
    for (int round = 0; round < 2; round++) {
        in_block(tile[threadIdx.x], (cluster_rank() + 1) % 3) = in[threadIdx.x];
        cluster_barrier();
        out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
        if (round == 0) cluster_barrier();
    }
}

extern "C" __global__ void cluster_without_barrier(const float *in, float *out)
{
    float *const tile = (float *)dynamic_shared();
    in_block(tile[threadIdx.x], (cluster_rank() + 1) % 3) = in[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}

extern "C" __global__ void cluster_reused_without_barrier(const float *in, float *out)
{
    float *const tile = (float *)dynamic_shared();
    for (int round = 0; round < 2; round++) {
        in_block(tile[threadIdx.x], (cluster_rank() + 1) % 3) = in[threadIdx.x];
        cluster_barrier();
        out[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
    }
}

extern "C" __global__ void cluster_beyond(const float *in, float *out)
{
    float *const tile = (float *)dynamic_shared();
    in_block(tile[threadIdx.x], cluster_rank() + 3) = in[threadIdx.x]; // FAULT cluster_beyond
}

extern "C" __global__ void cluster_missed_by_a_block(const float *in, float *out)
{
    if (cluster_rank() < 2) cluster_barrier();
    out[blockIdx.x * 64 + threadIdx.x] = in[threadIdx.x];
}
