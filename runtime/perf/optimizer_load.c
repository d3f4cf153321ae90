/* optimizer_load.c — FLOPs and traffic of an optimizer's update. */
#include "mdot/mdot.h"

enum { FLOAT_BYTES = 4 };

/* FLOPs and traffic of a step for one parameter, as PyTorch's torch.optim defines the algorithms:
 *   SGD with momentum and weight decay   g += wd w; m = mu m + g; w -= lr m
 *   Adam without weight decay            m += (1 - b1)(g - m); v = b2 v + (1 - b2) g g; w -=
 *                                        lr' m / (sqrt(v) / c + eps)
 *   AdamW                                the same after w *= 1 - lr wd */
static const struct {
    int flops, read, written; /* read and written: numbers of tensors of the parameters' size */
} steps[] = {
    [MDOT_OPTIMIZER_SGD] = {6, 3, 2},
    [MDOT_OPTIMIZER_ADAM] = {13, 4, 3},
    [MDOT_OPTIMIZER_ADAMW] = {14, 4, 3},
};

mdot_load mdot_optimizer_load(mdot_optimizer optimizer, double parameters)
{
    if ((size_t)optimizer >= sizeof steps / sizeof *steps) return (mdot_load){0};
    return (mdot_load){steps[optimizer].flops * parameters, FLOAT_BYTES * steps[optimizer].read * parameters,
                       FLOAT_BYTES * steps[optimizer].written * parameters};
}
