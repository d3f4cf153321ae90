/* tensor.h — constant data, in two forms.
 *
 *   ir_tensor  as a file or an artefact holds it: elements of its dtype, dense, row-major, little-endian.
 *   ir_wide    as the reference evaluator computes with it: every floating type in double, every integer and bool in
 *              int64 (u64 in the same bits), so that the oracle does not round where the model does not.
 */
#ifndef IR_TENSOR_H
#define IR_TENSOR_H

#include "ir/arena.h"
#include "mdot/mdot_base.h"

typedef struct ir_tensor {
    mdot_dtype dtype;
    int rank;
    int64_t dims[MDOT_MAX_RANK];
    int64_t count;    /* elements */
    const void *data; /* NULL: the content was not read (a job's weights) and only the shape is known */
} ir_tensor;

typedef struct ir_wide {
    mdot_dtype dtype; /* the nominal type; integers are kept wrapped to its width */
    int rank;
    int64_t dims[MDOT_MAX_RANK];
    int64_t count;
    double *f;  /* floating types */
    int64_t *i; /* integers and bool (0 or 1) */
} ir_wide;

bool ir_dtype_is_float(mdot_dtype dtype);    /* f16, bf16, f32, f64 */
bool ir_dtype_is_unsigned(mdot_dtype dtype); /* u8 … u64, bool */

/* Product of the dims; -1 where one is negative or the product overflows int64. */
int64_t ir_count_elements(int rank, const int64_t *dims);

/* Zeroed element storage in the arena; NULL when memory is out or the count overflows. */
ir_wide *ir_wide_create(ir_arena *arena, mdot_dtype dtype, int rank, const int64_t *dims);
ir_wide *ir_wide_from_tensor(ir_arena *arena, const ir_tensor *tensor); /* data must be there */
ir_tensor *ir_tensor_from_wide(ir_arena *arena, const ir_wide *wide);   /* rounds to the nominal dtype */

/* One element as a double, whatever the storage. */
double ir_wide_get(const ir_wide *wide, int64_t index);
/* One element of a tensor that has data, which need not be aligned: of a floating type; of an integer type or bool. */
double ir_tensor_real(const ir_tensor *tensor, int64_t index);
int64_t ir_tensor_integer(const ir_tensor *tensor, int64_t index);
/* Value wrapped (integers) or unchanged (floats) to what `dtype` can hold. */
int64_t ir_wrap_integer(mdot_dtype dtype, int64_t value);
/* As ONNX Cast from a floating type: truncates; NaN is 0 and values beyond the type's range saturate. What a model
 * decides becomes an integer by this, since C says nothing of a cast that does not fit. */
int64_t ir_float_to_integer(mdot_dtype dtype, double value);

/* IEEE half and bfloat16 to and from float, round to nearest even. */
float ir_f16_to_f32(uint16_t bits);
uint16_t ir_f32_to_f16(float value);
float ir_bf16_to_f32(uint16_t bits);
uint16_t ir_f32_to_bf16(float value);
/* From double in one rounding, which going through float would make two. */
uint16_t ir_f64_to_f16(double value);
uint16_t ir_f64_to_bf16(double value);

#endif
