/* device.h — where a predictor's calls run. */
#ifndef RT_DEVICE_H
#define RT_DEVICE_H

#include "runtime/core/core.h"

/* Sets predictor->device according to options->device, after all other parts are open. On failure it holds no
 * resources. */
mdot_status rt_device_open(mdot_predictor *predictor, const mdot_open_options *options, mdot_error *err);

#endif
