/* encoder_patterns.h — encoders in the patterns of exporters and people.
 *
 * An encoder has layers with a norm, attention, a projection with the residual, a norm and a feed-forward network. A
 * case replaces one or two parts. The texts are in graph_notation.h's notation with named sizes, so tests use small
 * sizes and benchmarks/encoders.sh uses predictor sizes. */
#pragma once

#include <stdbool.h>

typedef struct encoder_pattern {
    const char *name, *text;
    const char *kernels; /* kernels of one layer, for example "attention linear4 nest2 norm2" */
} encoder_pattern;

extern const encoder_pattern encoder_patterns[];
extern const int encoder_pattern_count;

typedef struct encoder_form {
    int width, heads, inner; /* elements in a row, divided by the heads; number of heads; row elements in the
                              * feed-forward network */
    int layers;
    bool half; /* f16 in all layers */
} encoder_form;

/* The encoder in graph_notation.h's notation, malloc'ed. */
char *encoder_notation(const encoder_pattern *pattern, const encoder_form *form);
