/* growth_models.h — models of any number of nodes, each of a shape that a reader, a pass or a planner could
 * be slow at. */
#ifndef TEST_GROWTH_MODELS_H
#define TEST_GROWTH_MODELS_H

#include "tests/support/onnx_builder.h"

typedef struct growth_model {
    const char *name, *what;
    /* About `nodes` nodes. */
    pb_buffer (*build)(int nodes);
} growth_model;

extern const growth_model growth_models[];
extern const int growth_model_count;

#endif
