typedef unsigned short half_t; // IEEE half: what matrix instructions multiply
__device__ __forceinline__ unsigned pack_halves(float low, float high)
{
    return pack_f16(low, high);
}
__device__ __forceinline__ void tensor_mma(float *d, const unsigned *a, const unsigned *b)
{
    mma_m16n8k8_f16(d, a, b);
    mma_m16n8k8_f16(d, a + 2, b + 1);
}
