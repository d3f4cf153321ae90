#define INFINITE __uint_as_float(0x7f800000u)
#define NOT_A_NUMBER __uint_as_float(0x7fc00000u)

// mdot_abi_cuda_call of mdot_abi.h.
struct cuda_call {
    unsigned long long weights, scratch, input, output, barrier, done, scratch_stride, input_stride, output_stride;
    long long length;
    unsigned barrier_base, ticket, inline_input, reserved, input_at[16], output_at[16];
};

// What a step works on: units of length from the first on, so many, of so many altogether.
struct tile {
    int first, count, length;
};

// Where the item's memory is. In shared memory, so that a step is called with offsets alone and nothing stays in
// registers from step to step.
struct item_memory {
    const unsigned char *weights;
    unsigned char *scratch, *output;
};
__shared__ item_memory item;
__device__ __forceinline__ const unsigned char *weights_memory()
{
    return (const unsigned char *)global_address((void *)item.weights);
}
__device__ __forceinline__ unsigned char *scratch_memory()
{
    return (unsigned char *)global_address(item.scratch);
}
__device__ __forceinline__ unsigned char *output_memory()
{
    return (unsigned char *)global_address(item.output);
}

// ---- Elements ----

struct __align__(8) pair { float x, y; };

__device__ __forceinline__ void store_pair(float *to, float x, float y)
{
    pair both = {x, y};
    *(pair *)to = both;
}
// Where element e lies behind rows of `width` elements that have `pad` more each.
__device__ __forceinline__ int padded(int e, int width, int pad)
{
    return e + e / width * pad;
}

// ---- Lanes ----

__device__ __forceinline__ float warp_sum(float x)
{
    for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
    return x;
}
__device__ __forceinline__ float warp_max(float x)
{
    for (int distance = 16; distance > 0; distance /= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, distance));
    return x;
}
// Of the four lanes that share a row of a fragment.
__device__ __forceinline__ float quad_sum(float x)
{
    for (int distance = 1; distance < 4; distance *= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
    return x;
}
__device__ __forceinline__ float quad_max(float x)
{
    for (int distance = 1; distance < 4; distance *= 2) x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, distance));
    return x;
}

// ---- Scalar operators, as plan/expr.h means them ----

__device__ __forceinline__ float exp_fast(float x)
{
    return exp2_fast(x * 1.44269504f);
}
__device__ __forceinline__ bool is_nan(float x)
{
    return x != x;
}
__device__ __forceinline__ bool is_inf(float x)
{
    return fabsf(x) == INFINITE;
}
__device__ __forceinline__ float round_f16(float x)
{
    const unsigned half = pack_f16(x, 0.0f), sign = (half & 0x8000u) << 16, rest = (half & 0x7fffu) << 13;
    const float magnitude = __uint_as_float(rest) * 5.19229686e33f; // 2^112: the difference of the exponents' biases
    return __uint_as_float(sign | (rest >= 0x0f800000u ? rest | 0x7f800000u : __float_as_uint(magnitude)));
}
__device__ __forceinline__ float round_bf16(float x)
{
    const unsigned bits = __float_as_uint(x);
    return is_nan(x) ? x : __uint_as_float((bits + 0x7fffu + (bits >> 16 & 1u)) & 0xffff0000u);
}
__device__ __forceinline__ float absolute(float x)
{
    return fabsf(x);
}
__device__ __forceinline__ float sign(float x)
{
    return is_nan(x) ? x : (float)((x > 0) - (x < 0));
}
__device__ __forceinline__ float sigmoid(float x)
{
    const float power = expf(x > 40.0f ? 40.0f : x); // denormal results are correct, unlike those of 1 / (1 + e^-x)
    return power / (1.0f + power);
}
// 32 bits of 2/π, the highest first
__device__ __forceinline__ unsigned two_over_pi(int k)
{
    return k == 0 ? 0xa2f9836eu : k == 1 ? 0x4e441529u : k == 2 ? 0xfc2757d1u : k == 3 ? 0xf534ddc0u : k == 4 ? 0xdb629599u
        : k == 5 ? 0x3c439041u : 0xfe5163abu;
}
// The rest of |x| >= 2^40 after quadrants of π/2, by Payne and Hanek. x = m 2^e, and the bits of 2/π before the one whose
// weight is 2 after the shift by e give multiples of 4 quadrants.
__device__ __forceinline__ double large_angle(float x, double *quadrant)
{
    const unsigned bits = __float_as_uint(x), shift = (bits >> 23 & 255u) - 152u, at = shift >> 5, by = shift & 31u;
    const unsigned long long m = (bits & 0x7fffffu) | 0x800000u;
    unsigned long long word[3];
    for (int i = 0; i < 3; i++) {
        const unsigned long long both = (unsigned long long)two_over_pi((int)at + i) << 32 | two_over_pi((int)at + i + 1);
        word[i] = both << by >> 32;
    }
    const unsigned long long turns = (m * word[0] << 32) + m * word[1] + (m * word[2] >> 32); // in 2^-62 quadrants
    const double rest = (double)(long long)(turns << 2) * 8.5153039502163873e-20; // π / 2^65
    *quadrant = (double)((turns + (1ull << 61)) >> 62 & 3ull) * (x < 0 ? -1.0 : 1.0);
    return x < 0 ? -rest : rest;
}
// sin(x + quadrants π/2): in double as far as the remainder of π/2, then Taylor's series to 1e-9. (CUDA's own keeps a
// table on the stack.) The rounding of x 2/π moves k visibly from 2^45 on.
__device__ __forceinline__ float sine(float x, int quadrants = 0)
{
    double k = rint((double)x * 0.63661977236758138);
    double rest = fma(k, -6.123233995736766e-17, fma(k, -1.5707963267948966, (double)x));
    if (fabsf(x) >= 1.09951163e12f && fabsf(x) < INFINITE) rest = large_angle(x, &k);
    const float r = (float)rest, z = r * r;
    const float place = (float)(k + quadrants - 4.0 * floor((k + quadrants) * 0.25));
    const float s = r + r * z * (-1.66666667e-1f + z * (8.33333333e-3f + z * (-1.98412698e-4f + z * 2.75573192e-6f)));
    const float c = 1.0f - 0.5f * z + z * z * (4.16666667e-2f + z * (-1.38888889e-3f + z * (2.48015873e-5f - z * 2.75573192e-7f)));
    const float value = place == 1.0f || place == 3.0f ? c : s;
    return x == 0 && quadrants == 0 ? x : place >= 2.0f ? -value : value;
}
__device__ __forceinline__ float cosine(float x)
{
    return sine(x, 1);
}
__device__ __forceinline__ float gelu_tanh(float x)
{
    return 0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
}
__device__ __forceinline__ float least(float x, float y)
{
    return x < y || is_nan(x) ? x : y;
}
__device__ __forceinline__ float largest(float x, float y)
{
    return x > y || is_nan(x) ? x : y;
}
__device__ __forceinline__ float floordiv(float x, float y)
{
    return floorf(x / y);
}
__device__ __forceinline__ float remainder_of(float x, float y)
{
    return fmodf(x, y);
}
__device__ __forceinline__ float floormod(float x, float y)
{
    const float m = fmodf(x, y);
    return m != 0 && (m < 0) != (y < 0) ? m + y : m;
}
__device__ __forceinline__ float power(float x, float y)
{
    return powf(x, y);
}
// Saturates; NaN becomes 0.
__device__ __forceinline__ int to_int(float x)
{
    return is_nan(x) ? 0 : x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : (int)x;
}
__device__ __forceinline__ long long to_long(float x)
{
    const long long most = 9223372036854775807LL;
    return is_nan(x) ? 0 : x >= 9223372036854775808.0f ? most : x < -9223372036854775808.0f ? -most - 1 : (long long)x;
}

// Integers wrap; what is divided by zero is zero.
#define INTEGER_OPERATORS(T, U) \
    __device__ __forceinline__ T wrap_add(T x, T y) { return (T)((U)x + (U)y); } \
    __device__ __forceinline__ T wrap_sub(T x, T y) { return (T)((U)x - (U)y); } \
    __device__ __forceinline__ T wrap_mul(T x, T y) { return (T)((U)x * (U)y); } \
    __device__ __forceinline__ T wrap_neg(T x) { return (T)(0 - (U)x); } \
    __device__ __forceinline__ T absolute(T x) { return x < 0 ? wrap_neg(x) : x; } \
    __device__ __forceinline__ T sign(T x) { return (x > 0) - (x < 0); } \
    __device__ __forceinline__ T least(T x, T y) { return x < y ? x : y; } \
    __device__ __forceinline__ T largest(T x, T y) { return x < y ? y : x; } \
    __device__ __forceinline__ T divide(T x, T y) { return y == 0 ? 0 : y == -1 ? wrap_neg(x) : x / y; } \
    __device__ __forceinline__ T remainder_of(T x, T y) { return y == 0 || y == -1 ? 0 : x % y; } \
    __device__ __forceinline__ T floordiv(T x, T y) \
    { \
        const T m = remainder_of(x, y); \
        return divide(x, y) - (m != 0 && (m < 0) != (y < 0)); \
    } \
    __device__ __forceinline__ T floormod(T x, T y) \
    { \
        const T m = remainder_of(x, y); \
        return m != 0 && (m < 0) != (y < 0) ? m + y : m; \
    } \
    __device__ __forceinline__ T shift_left(T x, T y) { return (U)y < 64 ? (T)((unsigned long long)x << y) : 0; } \
    __device__ __forceinline__ T shift_right(T x, T y) { return (U)y < 64 ? (T)((unsigned long long)x >> y) : 0; } \
    __device__ __forceinline__ T power(T x, T y) \
    { \
        if (y < 0) return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0; \
        U result = 1, square = (U)x; \
        for (; y > 0; y >>= 1, square *= square) \
            if (y & 1) result *= square; \
        return (T)result; \
    }
INTEGER_OPERATORS(int, unsigned)
INTEGER_OPERATORS(long long, unsigned long long)
__device__ __forceinline__ bool least(bool x, bool y)
{
    return x && y;
}
__device__ __forceinline__ bool largest(bool x, bool y)
{
    return x || y;
}

// ---- Along an axis ----

template <class T> __device__ __forceinline__ T plus(T x, T y)
{
    return wrap_add(x, y);
}
__device__ __forceinline__ double plus(double x, double y)
{
    return x + y;
}
// The sum of the warp's lanes below this one.
template <class T> __device__ __forceinline__ T sum_below(T x)
{
    const int lane = threadIdx.x % 32;
    for (int distance = 1; distance < 32; distance *= 2) {
        const T below = __shfl_up_sync(0xffffffffu, x, distance);
        if (lane >= distance) x = plus(below, x);
    }
    const T before = __shfl_up_sync(0xffffffffu, x, 1);
    return lane == 0 ? (T)0 : before;
}
// The order of TopK: NaN is above all numbers.
template <class T> __device__ __forceinline__ bool ranks_above(T x, T y)
{
    return y < x;
}
__device__ __forceinline__ bool ranks_above(float x, float y)
{
    return y < x || (is_nan(x) && !is_nan(y));
}
// An index from data: a negative one counts from the end, and one outside is clamped.
__device__ __forceinline__ int data_index(long long i, int extent)
{
    return (int)largest(least(i < 0 ? i + extent : i, (long long)extent - 1), 0LL);
}
