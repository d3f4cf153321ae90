/* fuzz_calibration.c — libFuzzer on calibrations, which may come from other people. Any bytes are refused with a
 * message, or become a calibration with finite corrections within bounds.
 *
 *     scripts/fuzz.sh 600 calibration */
#include "mdot/mdot.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(double factor, double interval)
{
    if (!(factor > 0 && factor < 100 && interval > 0 && interval < 100)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mdot_calibration *calibration = NULL;
    mdot_error err = {0};
    if (mdot_calibration_parse(data, size, &calibration, &err) != MDOT_OK) {
        if (err.message[0] == '\0' || calibration != NULL) abort();
        return 0;
    }
    mdot_calibration_info info = MDOT_INIT(mdot_calibration_info);
    mdot_calibration_get_info(calibration, &info);
    check(info.factor, info.interval);
    for (size_t i = 0; i < info.gpu_count; i++) {
        mdot_calibration_gpu gpu = MDOT_INIT(mdot_calibration_gpu);
        if (mdot_calibration_get_gpu(calibration, i, &gpu) != MDOT_OK) abort();
        check(gpu.factor, gpu.interval);
    }
    mdot_configuration c = MDOT_INIT(mdot_configuration);
    c.batch = 1;
    c.gpu = "A100";
    mdot_prediction p = MDOT_INIT(mdot_prediction);
    p.lower_ms = 1;
    p.step_ms = 2;
    p.upper_ms = 3;
    mdot_calibration_factors f = MDOT_INIT(mdot_calibration_factors);
    if (mdot_calibration_explain(calibration, &c, NULL, &p, &f, &err) != MDOT_OK) abort();
    check(f.factor, f.interval);
    mdot_calibration_destroy(calibration);
    return 0;
}
