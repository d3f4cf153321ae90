// stages.cu: two matmuls in one launch, for the test of deletions: c = (a b) b for 96 x 96 bf16 matrices. A block of
// two warps computes a 32 x 32 tile. cp.async loads slices of 32 columns into two buffers in turn. A grid barrier
// separates the matmuls. Rows are padded by 8 elements, so that the eight rows of an ldmatrix lie in different banks.

typedef unsigned short bf16;
enum { SIZE = 96, TILE = 32, PITCH = TILE + 8, WARPS = 2 };

__device__ unsigned short round_bf16(float x)
{
    unsigned bits = __float_as_uint(x);
    return (unsigned short)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Loads rows `row`… of a and columns `column`… of b, for slice k of the matmul.
__device__ void fetch(bf16 *tile_a, bf16 *tile_b, const bf16 *a, const bf16 *b, int row, int column, int k)
{
    for (int i = threadIdx.x; i < TILE * TILE / 8; i += WARPS * 32) {
        int r = i / (TILE / 8), c = i % (TILE / 8) * 8;
        cp_async_16(tile_a + r * PITCH + c, a + (row + r) * SIZE + k + c);
        cp_async_16(tile_b + r * PITCH + c, b + (k + r) * SIZE + column + c);
    }
    cp_async_commit();
}

__device__ void product(const bf16 *a, const bf16 *b, bf16 *c)
{
    __shared__ __align__(16) bf16 tile_a[2][TILE * PITCH], tile_b[2][TILE * PITCH];
    int row = blockIdx.x / (SIZE / TILE) * TILE, column = blockIdx.x % (SIZE / TILE) * TILE;
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float sum[TILE / 8][4] = {};
    fetch(tile_a[0], tile_b[0], a, b, row, column, 0);
    for (int k = 0; k < SIZE; k += TILE) {
        int now = k / TILE % 2;
        if (k + TILE < SIZE) {
            fetch(tile_a[!now], tile_b[!now], a, b, row, column, k + TILE);
            cp_async_wait(1);
        } else {
            cp_async_wait(0); // the last slice
        }
        __syncthreads(); // all threads see the slice
        for (int step = 0; step < TILE; step += 16) {
            unsigned fragment_a[4], fragment_b[4];
            ldmatrix_x4(fragment_a, tile_a[now] + (warp * 16 + lane % 16) * PITCH + step + lane / 16 * 8);
            for (int n = 0; n < TILE / 8; n += 2) {
                ldmatrix_x4_trans(fragment_b, tile_b[now] + (step + lane % 16) * PITCH + n * 8 + lane / 16 * 8);
                mma_m16n8k16_bf16(sum[n], fragment_a, fragment_b);
                mma_m16n8k16_bf16(sum[n + 1], fragment_a, fragment_b + 2);
            }
        }
        __syncthreads(); // the slice may be overwritten
    }
    for (int n = 0; n < TILE / 8; n++)
        for (int i = 0; i < 4; i++)
            c[(row + warp * 16 + lane / 4 + i / 2 * 8) * SIZE + column + n * 8 + lane % 4 * 2 + i % 2] =
                round_bf16(sum[n][i]);
}

// Returns the largest value of a warp's lanes, using shared memory.
__device__ float warp_largest(float value)
{
    __shared__ float lanes[WARPS][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    lanes[warp][lane] = value;
    __syncwarp(); // all lanes have written
    float largest = lanes[warp][0];
    for (int i = 1; i < 32; i++) largest = fmaxf(largest, lanes[warp][i]);
    __syncwarp(); // all lanes have read
    return largest;
}

extern "C" __global__ void stages(const bf16 *a, const bf16 *b, bf16 *middle, bf16 *c, unsigned *counter,
                                  float *largest)
{
    product(a, b, middle);
    grid_barrier(counter, gridDim.x);
    product(middle, b, c);
    grid_barrier(counter, 2 * gridDim.x); // c is complete
    if (blockIdx.x) return;
    float most = 0;
    for (int i = threadIdx.x % 32; i < SIZE * SIZE; i += 32)
        most = fmaxf(most, fabsf(__uint_as_float((unsigned)c[i] << 16)));
    float first = warp_largest(most), again = warp_largest(-most);
    __syncthreads(); // redundant
    if (threadIdx.x == 0) *largest = again <= first ? first : -1;
}
