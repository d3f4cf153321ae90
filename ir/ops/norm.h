/* norm.h — what the normalisations share: norm.c (rows), norm_channels.c (channels), norm_fused.c (ONNX Runtime's). */
#ifndef IR_OPS_NORM_H
#define IR_OPS_NORM_H

#include "ir/ops/operands.h"

/* Mean and variance, the mean of the squares of what differs from it, of `count` adjacent numbers; 0 of none. */
void ir_norm_moments(const double *x, int64_t count, double *out_mean, double *out_variance);

/* out = (x - mean) / sqrt(variance + epsilon) of `count` adjacent numbers; returns what the mean and the divisor's
 * reciprocal were. `out` may be `x`. */
void ir_norm_row(const double *x, int64_t count, double epsilon, double *out, double *out_mean, double *out_inverse);

/* Multiplies by, or adds, a tensor that broadcasts to `out`. */
void ir_norm_multiply(ir_wide *out, const ir_wide *factor);
void ir_norm_add(ir_wide *out, const ir_wide *term);

/* Scale or bias: MALFORMED where operand i is given and does not broadcast to `type`, or is of integers. */
mdot_status ir_norm_need_parameter(const ir_operands *from, int i, const char *what, const ir_type *type);
/* The same for one number for each of `count`. */
mdot_status ir_norm_need_vector(const ir_operands *from, int i, const char *what, ir_dim count);

#endif
