/* calibration.h — what a site's measurements say of a predictor's answers, shared by the files that fit, keep and apply
 * it. Private to runtime/job.
 *
 *   calibrate.c          measured steps → a calibration; a prediction → the calibrated one
 *   calibration_text.c   a calibration as text, and back
 */
#ifndef RT_CALIBRATION_H
#define RT_CALIBRATION_H

#include "mdot/mdot.h"

enum { RT_CALIBRATION_NAME_BYTES = 64, RT_CALIBRATION_MAX_GPUS = 64, RT_CALIBRATION_MAX_ROWS = 1 << 24 };

/* Name and text: what a step's shares are told apart by. The order is the file's: append only. */
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

/* Kernels of either have their own efficiency, so that measurements of one tell little of the other. */
typedef enum rt_precision_class { RT_PRECISION_FULL, RT_PRECISION_HALF, RT_PRECISION_CLASSES } rt_precision_class;

/* Times are multiplied by factor, an interval's logarithm by interval. */
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
    /* A step whose share of a part lies above the mean is multiplied by e to the slope, for all of a step above. */
    double mean_share[RT_CALIBRATION_PARTS], slope[RT_CALIBRATION_PARTS];
    rt_calibrated others;  /* GPUs of no row; no rows of its own */
    rt_calibrated several; /* beside a GPU's own: steps of several GPUs */
    rt_calibration_gpu gpus[RT_CALIBRATION_MAX_GPUS];
    size_t gpu_count;
};

/* No correction goes further, and no interval gets narrower or wider. */
#define RT_CALIBRATION_MOST_FACTOR 64.0
#define RT_CALIBRATION_MOST_SLOPE 64.0
#define RT_CALIBRATION_LEAST_INTERVAL 0.05
#define RT_CALIBRATION_MOST_INTERVAL 4.0

#endif
