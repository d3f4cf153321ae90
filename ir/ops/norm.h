/* norm.h — functions that the normalisations share: norm.c (rows), norm_channels.c (channels), norm_fused.c (ONNX
 * Runtime's). */
#ifndef IR_OPS_NORM_H
#define IR_OPS_NORM_H

#include "ir/ops/operands.h"

/* out = (x - mean) / sqrt(variance + epsilon) of `count` adjacent numbers. Returns the mean and the reciprocal of the
 * divisor. `out` may be `x`. */
void ir_norm_row(const double *x, int64_t count, double epsilon, double *out, double *out_mean, double *out_inverse);

/* Multiply by, and add, a tensor that broadcasts to `out`. */
void ir_norm_multiply(ir_wide *out, const ir_wide *factor);
void ir_norm_add(ir_wide *out, const ir_wide *term);

/* Checks a scale or bias: MALFORMED if operand i is present and does not broadcast to `type`, or holds integers. */
mdot_status ir_norm_need_parameter(const ir_operands *from, int i, const char *what, const ir_type *type);
/* Checks a vector with one number for each of `count`. */
mdot_status ir_norm_need_vector(const ir_operands *from, int i, const char *what, ir_dim count);

#endif
