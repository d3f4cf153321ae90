/* widths.h — bytes per element of the tensors that belong to parameters. */
#ifndef RT_WIDTHS_H
#define RT_WIDTHS_H

#include "runtime/job/configuration.h"

typedef struct rt_widths {
    double weights;   /* weights that a GPU keeps from step to step */
    double master;    /* second, fp32 weights that the optimizer updates; 0: it updates the others */
    double compute;   /* weights that operators read, and that ZeRO stage 3 gathers */
    double gradients; /* gradients that a GPU keeps until the update */
    double reduced;   /* gradients as they are summed over GPUs */
    double state;     /* tensors of the optimizer's state that are neither factored nor quantised */
} rt_widths;

rt_widths rt_widths_of(const mdot_configuration *c);
/* Bytes of a frozen weight of a matmul; `unchanged` in its own type. Scales are included. */
double rt_frozen_width(const mdot_configuration *c, double unchanged);

#endif
