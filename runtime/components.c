/* components.c — the only file that knows every component of the runtime, and its entry point, mdot_predictor_open.
 * core.h defines how the components connect. */
#include "runtime/core/core.h"
#include "runtime/cuda/cuda.h"
#include "runtime/predict/predict_extension.h"

static const rt_device_ops *const devices[] = {&rt_cuda_ops, NULL};
static const rt_extension *const extensions[] = {&rt_predict_extension, NULL};
static const rt_components rooms = {devices, extensions};

mdot_status mdot_predictor_open(const char *path, const mdot_open_options *options, mdot_predictor **out_predictor,
                                mdot_error *err)
{
    return rt_predictor_open(&rooms, path, options, out_predictor, err);
}
