/* encoder_patterns.h — encoders in the patterns that exporters and people use.
 *
 * An encoder has layers with a norm, attention, a projection with the residual, a norm and a feed-forward network. A
 * case replaces one or two of these parts. The texts are in graph_notation.h's notation and name their sizes, so that
 * tests use small sizes and benchmarks/encoders.sh uses the size of a predictor.
 */
#ifndef TEST_ENCODER_PATTERNS_H
#define TEST_ENCODER_PATTERNS_H

#include <stdbool.h>

typedef struct encoder_pattern {
    const char *name, *text;
    const char *kernels; /* kernels of one layer, for example "attention linear4 nest2 norm2" */
} encoder_pattern;

extern const encoder_pattern encoder_patterns[];
extern const int encoder_pattern_count;

typedef struct encoder_form {
    int width, heads, inner; /* elements of a row, which the heads divide; number of heads; elements of a row in the
                              * feed-forward network */
    int layers;
    bool half; /* f16 in all layers */
} encoder_form;

/* The encoder in graph_notation.h's notation, malloc'ed. */
char *encoder_notation(const encoder_pattern *pattern, const encoder_form *form);

#endif
