/* seeds.h — the initial inputs of fuzzing, in memory. */
#pragma once

#include "tests/support/onnx_builder.h"

typedef struct seed_model {
    const char *name;
    pb_buffer (*make)(void); /* returns an ONNX file */
} seed_model;

/* The list ends with a NULL name. "predictor" predicts, "training" is a job, "tensors" is neither. Some models fail
 * to compile. */
extern const seed_model seed_models[];

/* As mdot_calibration_save writes it. */
extern const char seed_calibration[];
