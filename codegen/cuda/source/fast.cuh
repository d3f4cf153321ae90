// x/2 (1 + erf(x/√2)), erf by Abramowitz and Stegun, "Handbook of Mathematical Functions", 7.1.26: within 1.5e-7.
__device__ __forceinline__ float gelu(float x)
{
    const float z = fabsf(x) * 0.707106781f, t = divide_fast(1.0f, 1.0f + 0.3275911f * z);
    const float p = t * (0.254829592f + t * (-0.284496736f + t * (1.421413741f + t * (-1.453152027f + t * 1.061405429f))));
    const float rest = p * exp2_fast(-1.44269504f * z * z); // 1 - erf(z)
    return 0.5f * x * (x < 0 ? rest : 2.0f - rest);
}
