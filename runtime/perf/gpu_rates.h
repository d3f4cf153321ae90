/* gpu_rates.h — the rates of a GPU in the precision of a configuration. */
#ifndef RT_GPU_RATES_H
#define RT_GPU_RATES_H

#include "runtime/job/configuration.h"
#include "runtime/perf/roofline_inputs.h"

#define RT_BYTES_PER_MS 1e6 /* bytes/ms of 1 GB/s */

typedef struct rt_rates {
    double flop_ms[RT_RATE_COUNT], byte_ms; /* ms per FLOP and per byte */
    double half; /* bytes relative to fp32 for tensors in half precision; 1 in full precision */
    double fp32; /* bytes relative to fp32 for tensors that autocast keeps in fp32 */
} rt_rates;

rt_rates rt_rates_of(const rt_configuration *configuration);

#endif
