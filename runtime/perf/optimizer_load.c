/* optimizer_load.c — FLOPs and traffic of an optimizer's update. */
#include "mdot/mdot.h"

enum { FLOAT_BYTES = 4 };

/* FLOPs and traffic of a step for one parameter, as PyTorch's torch.optim defines the algorithms, or the paper:
 *   SGD with momentum and weight decay   g += wd w; m = mu m + g; w -= lr m
 *   SGD without momentum                 g += wd w; w -= lr g
 *   Adam without weight decay            m += (1 - b1)(g - m); v = b2 v + (1 - b2) g g; w -=
 *                                        lr' m / (sqrt(v) / c + eps)
 *   AdamW                                the same after w *= 1 - lr wd
 *   Adam with 8-bit states               the same, where m and v have 1 + 4 / 256 bytes and are converted before use
 *   Adafactor                            r, c = means of g g by row and by column; u = g / sqrt(r c);
 *                                        u /= max(1, rms(u)); w -= lr u. It reads g three times: for the means, rms(u)
 *                                        and the update
 *   Lion                                 u = sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g; w -= lr (u + wd w)
 *   Muon, without its matmuls            m = mu m + g; u = orthogonal(mu m + g); w -= lr (u + wd w) */
#define EIGHT_BIT (2 * (1 + 4.0 / 256) / FLOAT_BYTES) /* both states, in fp32 tensors */
static const struct {
    int flops;
    double read, written; /* numbers of parameter-sized tensors */
} steps[] = {
    [MDOT_OPTIMIZER_SGD] = {6, 3, 2},
    [MDOT_OPTIMIZER_ADAM] = {13, 4, 3},
    [MDOT_OPTIMIZER_ADAMW] = {14, 4, 3},
    [MDOT_OPTIMIZER_SGD_PLAIN] = {4, 2, 1},
    [MDOT_OPTIMIZER_ADAM8BIT] = {17, 2 + EIGHT_BIT, 1 + EIGHT_BIT},
    [MDOT_OPTIMIZER_ADAMW8BIT] = {18, 2 + EIGHT_BIT, 1 + EIGHT_BIT},
    [MDOT_OPTIMIZER_ADAFACTOR] = {12, 4, 1},
    [MDOT_OPTIMIZER_LION] = {10, 3, 2},
    [MDOT_OPTIMIZER_MUON] = {7, 4, 3},
    [MDOT_OPTIMIZER_ADAM_FUSED] = {13, 4, 3},
    [MDOT_OPTIMIZER_ADAMW_FUSED] = {14, 4, 3},
};

mdot_load mdot_optimizer_load(mdot_optimizer optimizer, double parameters)
{
    if ((size_t)optimizer >= sizeof steps / sizeof *steps) return (mdot_load){0};
    return (mdot_load){steps[optimizer].flops * parameters, FLOAT_BYTES * steps[optimizer].read * parameters,
                       FLOAT_BYTES * steps[optimizer].written * parameters};
}
