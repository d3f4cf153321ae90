/* growth_models.h — models with any number of nodes. Each has a shape that could make a reader, a pass or a planner
 * slow. */
#pragma once

#include "tests/support/onnx_builder.h"

typedef struct growth_model {
    const char *name, *what;
    /* builds about `nodes` nodes */
    pb_buffer (*build)(int nodes);
} growth_model;

extern const growth_model growth_models[];
extern const int growth_model_count;
