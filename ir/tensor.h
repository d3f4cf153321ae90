/* tensor.h — constant data, in two forms.
 *
 *   ir_tensor  as in a file or an artefact: elements of its dtype, dense, row-major, little-endian.
 *   ir_wide    for the reference evaluator: every floating type in double, every integer and bool in int64 (u64 in the
 *              same bits), so that the oracle rounds only where the model does.
 */
#pragma once

#include "ir/arena.h"
#include "mdot/mdot_base.h"

typedef struct ir_tensor {
    mdot_dtype dtype;
    int rank;
    int64_t dims[MDOT_MAX_RANK];
    int64_t count;    /* element count */
    const void *data; /* NULL: the content was not read (a job's weights) and only the shape is known */
} ir_tensor;

typedef struct ir_wide {
    mdot_dtype dtype; /* the nominal type; integers are wrapped to its width */
    int rank;
    int64_t dims[MDOT_MAX_RANK];
    int64_t count;
    double *f;  /* elements of floating types */
    int64_t *i; /* elements of integers and bool (0 or 1) */
} ir_wide;

typedef const ir_wide *const *ir_inputs; /* tensors of an evaluation, by input; an element is NULL if it is absent */

bool ir_dtype_is_float(mdot_dtype dtype);    /* f16, bf16, f32, f64 */
bool ir_dtype_is_unsigned(mdot_dtype dtype); /* u8 … u64, bool */

/* Product of the dims. -1 if one is negative or the product overflows int64. */
int64_t ir_count_elements(int rank, const int64_t *dims);

/* Are type, shape and data equal, byte by byte? False for strings, and without data. */
bool ir_tensor_equal(const ir_tensor *a, const ir_tensor *b);

/* Zeroed element storage in the arena. NULL: out of memory, or the count overflows. */
ir_wide *ir_wide_create(ir_arena *arena, mdot_dtype dtype, int rank, const int64_t *dims);
ir_wide *ir_wide_from_tensor(ir_arena *arena, const ir_tensor *tensor); /* requires data */
ir_tensor *ir_tensor_from_wide(ir_arena *arena, const ir_wide *wide);   /* rounds to the nominal dtype */

/* One element as a double, in either storage. */
double ir_wide_get(const ir_wide *wide, int64_t index);
/* One element of a tensor with data, possibly unaligned: floating, and integer or bool. */
double ir_tensor_real(const ir_tensor *tensor, int64_t index);
int64_t ir_tensor_integer(const ir_tensor *tensor, int64_t index);
/* Wraps an integer value to the range of `dtype`; floating types leave it unchanged. */
int64_t ir_wrap_integer(mdot_dtype dtype, int64_t value);
/* Like ONNX Cast from a floating type: truncates; NaN becomes 0, and values beyond the type's range saturate. Use it
 * where a model's decision becomes an integer, because C leaves a cast out of range undefined. */
int64_t ir_float_to_integer(mdot_dtype dtype, double value);

/* IEEE half and bfloat16 to and from float, round to nearest even. */
float ir_f16_to_f32(uint16_t bits);
uint16_t ir_f32_to_f16(float value);
float ir_bf16_to_f32(uint16_t bits);
uint16_t ir_f32_to_bf16(float value);
/* From double with one rounding; going through float would round twice. */
uint16_t ir_f64_to_f16(double value);
uint16_t ir_f64_to_bf16(double value);
