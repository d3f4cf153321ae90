/* calibration.h — the correction of a predictor's answers by a site's measurements, shared by the files that fit,
 * store and apply it.
 *
 *   calibrate.c          measured steps → a calibration; a prediction → the calibrated one
 *   calibration_text.c   a calibration as text, and back
 */
#ifndef RT_CALIBRATION_H
#define RT_CALIBRATION_H

#include "mdot/mdot.h"

enum { RT_CALIBRATION_NAME_BYTES = 64, RT_CALIBRATION_MAX_GPUS = 64, RT_CALIBRATION_MAX_ROWS = 1 << 24 };

/* Name and text of each part of a step. The file uses this order: append only. */
#define RT_CALIBRATION_PART_MAP(X)                                                                                     \
    X(FORWARD, "forward")                                                                                              \
    X(BACKWARD, "backward")                                                                                            \
    X(OPTIMIZER, "optimizer")                                                                                          \
    X(HOST, "host")                                                                                                    \
    X(COMMUNICATION, "communication")

enum {
#define RT_CALIBRATION_PART_ENUM(id, text) RT_CALIBRATION_##id,
    RT_CALIBRATION_PART_MAP(RT_CALIBRATION_PART_ENUM)
#undef RT_CALIBRATION_PART_ENUM
        RT_CALIBRATION_PARTS
};

/* Kernels of full and half precision have separate efficiencies, so measurements of one hardly inform the other. */
typedef enum rt_precision_class { RT_PRECISION_FULL, RT_PRECISION_HALF, RT_PRECISION_CLASSES } rt_precision_class;

/* Times are multiplied by `factor`, and the logarithm of an interval by `interval`. */
typedef struct rt_calibrated {
    size_t row_count;
    double factor, interval;
} rt_calibrated;

typedef struct rt_calibration_gpu {
    char name[RT_CALIBRATION_NAME_BYTES];
    rt_calibrated in[RT_PRECISION_CLASSES];
} rt_calibration_gpu;

struct mdot_calibration {
    char predictor[2 * RT_CALIBRATION_NAME_BYTES];
    size_t row_count;
    /* If a part's share of the step differs from the mean share by d, the step is multiplied by exp(slope * d). */
    double mean_share[RT_CALIBRATION_PARTS], slope[RT_CALIBRATION_PARTS];
    rt_calibrated others;  /* correction for GPUs that have zero rows; its row_count is 0 */
    rt_calibrated several; /* correction for steps of several GPUs, on top of the GPU's own */
    rt_calibration_gpu gpus[RT_CALIBRATION_MAX_GPUS];
    size_t gpu_count;
};

/* Limits of a correction and of an interval's factor. */
#define RT_CALIBRATION_MOST_FACTOR 64.0
#define RT_CALIBRATION_MOST_SLOPE 64.0
#define RT_CALIBRATION_LEAST_INTERVAL 0.05
#define RT_CALIBRATION_MOST_INTERVAL 4.0

#endif
