typedef unsigned short half_t; // bfloat16: what matrix instructions multiply
__device__ __forceinline__ unsigned pack_halves(float low, float high)
{
    return pack_bf16(low, high);
}
__device__ __forceinline__ void tensor_mma(float *d, const unsigned *a, const unsigned *b)
{
    mma_m16n8k16_bf16(d, a, b);
}
