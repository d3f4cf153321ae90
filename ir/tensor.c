/* tensor.c — element formats: rounding, wrapping, and the two forms of constant data of tensor.h.
 *
 * Half precision is converted by integer arithmetic on the bit patterns (IEEE 754-2019, binary16; bfloat16 is the
 * upper half of a binary32). Therefore results are independent of the half support of compiler and machine.
 */
#include "ir/tensor.h"

#include <string.h>

bool ir_dtype_is_float(mdot_dtype dtype)
{
    return dtype == MDOT_DTYPE_F32 || dtype == MDOT_DTYPE_F64 || dtype == MDOT_DTYPE_F16 || dtype == MDOT_DTYPE_BF16;
}

bool ir_dtype_is_unsigned(mdot_dtype dtype)
{
    return dtype == MDOT_DTYPE_U8 || dtype == MDOT_DTYPE_U16 || dtype == MDOT_DTYPE_U32 || dtype == MDOT_DTYPE_U64 ||
           dtype == MDOT_DTYPE_BOOL;
}

int64_t ir_count_elements(int rank, const int64_t *dims)
{
    int64_t count = 1;
    bool empty = false;
    for (int i = 0; i < rank; i++) {
        if (dims[i] < 0) return -1;
        if (dims[i] == 0) empty = true;
    }
    if (empty) return 0;
    for (int i = 0; i < rank; i++)
        if (__builtin_mul_overflow(count, dims[i], &count)) return -1;
    return count;
}

bool ir_tensor_equal(const ir_tensor *a, const ir_tensor *b)
{
    size_t size = mdot_dtype_size_bytes(a->dtype);
    return a->dtype == b->dtype && size > 0 && a->rank == b->rank && a->data != NULL && b->data != NULL &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0 &&
           memcmp(a->data, b->data, (size_t)a->count * size) == 0;
}

ir_wide *ir_wide_create(ir_arena *arena, mdot_dtype dtype, int rank, const int64_t *dims)
{
    int64_t count = ir_count_elements(rank, dims);
    if (count < 0 || rank < 0 || rank > MDOT_MAX_RANK) return NULL;
    ir_wide *wide = IR_NEW(arena, ir_wide);
    if (wide == NULL) return NULL;
    wide->dtype = dtype;
    wide->rank = rank;
    for (int i = 0; i < rank; i++) wide->dims[i] = dims[i];
    wide->count = count;
    if (ir_dtype_is_float(dtype))
        wide->f = IR_NEW_ARRAY(arena, double, count);
    else
        wide->i = IR_NEW_ARRAY(arena, int64_t, count);
    return wide->f != NULL || wide->i != NULL ? wide : NULL;
}

double ir_wide_get(const ir_wide *wide, int64_t index)
{
    if (wide->f != NULL) return wide->f[index];
    return wide->dtype == MDOT_DTYPE_U64 ? (double)(uint64_t)wide->i[index] : (double)wide->i[index];
}

int64_t ir_wrap_integer(mdot_dtype dtype, int64_t value)
{
    switch (dtype) {
    case MDOT_DTYPE_U8: return (uint8_t)value;
    case MDOT_DTYPE_I8: return (int8_t)value;
    case MDOT_DTYPE_U16: return (uint16_t)value;
    case MDOT_DTYPE_I16: return (int16_t)value;
    case MDOT_DTYPE_U32: return (uint32_t)value;
    case MDOT_DTYPE_I32: return (int32_t)value;
    case MDOT_DTYPE_BOOL: return value != 0;
    default: return value;
    }
}

/* Integer minima and maxima; u64's maximum is handled separately. */
static void integer_bounds(mdot_dtype dtype, int64_t *out_min, int64_t *out_max)
{
    int bits = 8 * (int)mdot_dtype_size_bytes(dtype);
    if (ir_dtype_is_unsigned(dtype)) {
        *out_min = 0;
        *out_max = (int64_t)((UINT64_C(1) << bits) - 1);
    } else {
        *out_max = (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
        *out_min = -*out_max - 1;
    }
}

int64_t ir_float_to_integer(mdot_dtype dtype, double value)
{
    if (dtype == MDOT_DTYPE_BOOL) return value != 0;
    if (value != value) return 0;
    if (dtype == MDOT_DTYPE_U64) {
        if (value <= 0) return 0;
        return value >= 0x1p64 ? (int64_t)UINT64_MAX : (int64_t)(uint64_t)value;
    }
    int64_t min, max;
    integer_bounds(dtype, &min, &max);
    if (value <= (double)min) return min;
    return value >= (double)max ? max : (int64_t)value; /* (double)INT64_MAX is 2^63: out of range, so it saturates */
}

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* `value` shifted right by 1 ≤ shift ≤ 31, rounded to nearest, ties to even. */
static uint32_t shift_round(uint32_t value, int shift)
{
    uint32_t half = UINT32_C(1) << (shift - 1);
    uint32_t rest = value & (2 * half - 1);
    uint32_t quotient = value >> shift;
    return quotient + (rest > half || (rest == half && (quotient & 1)));
}

float ir_f16_to_f32(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = bits >> 10 & 0x1f;
    uint32_t fraction = bits & 0x3ff;
    if (exponent == 0x1f) return float_of(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) { /* zero and subnormals: fraction × 2^-24, exact in binary32 */
        float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return float_of(sign | (exponent + 127 - 15) << 23 | fraction << 13);
}

uint16_t ir_f32_to_f16(float value)
{
    uint32_t bits = bits_of(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00);  /* NaN */
    if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* 65520 and above round to infinity */
    if (magnitude < 0x33000000) return sign;                       /* below 2^-25, half the least subnormal */
    int exponent = (int)(magnitude >> 23) - 127;
    if (exponent < -14) { /* subnormal: count units of 2^-24 */
        uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
        return (uint16_t)(sign | shift_round(significand, -1 - exponent));
    }
    /* A carry out of the fraction correctly increments the exponent. */
    return (uint16_t)(sign | (shift_round(magnitude, 13) - ((uint32_t)(127 - 15) << 10)));
}

float ir_bf16_to_f32(uint16_t bits) { return float_of((uint32_t)bits << 16); }

uint16_t ir_f32_to_bf16(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40); /* a NaN stays a NaN */
    return (uint16_t)shift_round(bits, 16);
}

/* Converts a double to a float that rounds correctly when narrowed further: round to odd, after Boldo and Melquiond,
 * "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd" (2008). Thus halves are
 * rounded only once. */
static float round_to_odd(double value)
{
    float nearest = (float)value;
    if ((double)nearest == value || value != value || nearest - nearest != 0) return nearest;
    uint32_t bits = bits_of(nearest);
    if (bits & 1) return nearest;
    double magnitude = value < 0 ? -value : value;
    double rounded = nearest < 0 ? -(double)nearest : (double)nearest;
    return float_of(magnitude > rounded ? bits + 1 : bits - 1);
}

uint16_t ir_f64_to_f16(double value) { return ir_f32_to_f16(round_to_odd(value)); }

uint16_t ir_f64_to_bf16(double value) { return ir_f32_to_bf16(round_to_odd(value)); }

static const void *element_at(const ir_tensor *tensor, int64_t index)
{
    return (const unsigned char *)tensor->data + (size_t)index * mdot_dtype_size_bytes(tensor->dtype);
}

double ir_tensor_real(const ir_tensor *tensor, int64_t index)
{
    const void *element = element_at(tensor, index);
    float single;
    double whole;
    uint16_t half;
    switch (tensor->dtype) {
    case MDOT_DTYPE_F32: memcpy(&single, element, sizeof single); return single;
    case MDOT_DTYPE_F64: memcpy(&whole, element, sizeof whole); return whole;
    default:
        memcpy(&half, element, sizeof half);
        return tensor->dtype == MDOT_DTYPE_F16 ? ir_f16_to_f32(half) : ir_bf16_to_f32(half);
    }
}

int64_t ir_tensor_integer(const ir_tensor *tensor, int64_t index)
{
    int64_t value = 0; /* little-endian: the low bytes come first */
    memcpy(&value, element_at(tensor, index), mdot_dtype_size_bytes(tensor->dtype));
    return ir_wrap_integer(tensor->dtype, value);
}

ir_wide *ir_wide_from_tensor(ir_arena *arena, const ir_tensor *tensor)
{
    if (mdot_dtype_size_bytes(tensor->dtype) == 0) return NULL; /* strings have no wide form */
    ir_wide *wide = ir_wide_create(arena, tensor->dtype, tensor->rank, tensor->dims);
    if (wide == NULL || (tensor->data == NULL && wide->count)) return NULL;
    for (int64_t k = 0; k < wide->count; k++) {
        if (wide->f != NULL)
            wide->f[k] = ir_tensor_real(tensor, k);
        else
            wide->i[k] = ir_tensor_integer(tensor, k);
    }
    return wide;
}

ir_tensor *ir_tensor_from_wide(ir_arena *arena, const ir_wide *wide)
{
    size_t size = mdot_dtype_size_bytes(wide->dtype);
    ir_tensor *tensor = IR_NEW(arena, ir_tensor);
    unsigned char *data = ir_arena_alloc(arena, (size_t)wide->count, size);
    if (tensor == NULL || data == NULL || !size) return NULL;
    tensor->dtype = wide->dtype;
    tensor->rank = wide->rank;
    for (int i = 0; i < wide->rank; i++) tensor->dims[i] = wide->dims[i];
    tensor->count = wide->count;
    tensor->data = data;
    for (int64_t k = 0; k < wide->count; k++) {
        void *element = data + (size_t)k * size;
        switch (wide->dtype) {
        case MDOT_DTYPE_F64: memcpy(element, &wide->f[k], size); break;
        case MDOT_DTYPE_F32: memcpy(element, &(float){(float)wide->f[k]}, size); break;
        case MDOT_DTYPE_F16: memcpy(element, &(uint16_t){ir_f64_to_f16(wide->f[k])}, size); break;
        case MDOT_DTYPE_BF16: memcpy(element, &(uint16_t){ir_f64_to_bf16(wide->f[k])}, size); break;
        default: memcpy(element, &wide->i[k], size); break; /* little-endian: the low bytes come first */
        }
    }
    return tensor;
}
