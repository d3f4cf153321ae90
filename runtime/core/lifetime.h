/* lifetime.h — the end of a predictor and of its device. */
#ifndef RT_LIFETIME_H
#define RT_LIFETIME_H

#include "runtime/core/core.h"

void rt_device_close(mdot_predictor *predictor);

#endif
