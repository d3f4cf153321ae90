// ---- Words of 16-bit elements ----

struct __align__(16) fragment { unsigned word[4]; };
struct __align__(16) words_4 { unsigned word[4]; };
struct __align__(8) words_2 { unsigned word[2]; };
struct words_1 { unsigned word[1]; };

template <class T> __device__ __forceinline__ void load_words(T *to, const half_t *from)
{
    *to = *(const T *)from;
}
__device__ __forceinline__ half_t to_half(float x)
{
    return (half_t)pack_halves(x, 0.0f);
}
__device__ __forceinline__ void store_pair(half_t *to, float x, float y)
{
    *(unsigned *)to = pack_halves(x, y);
}
