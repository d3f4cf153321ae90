/* encoder_patterns.h — encoders in the ways in which exporters and people write them.
 *
 * An encoder has layers with a norm, attention, a projection with the residual, a norm and a feed-forward network; a
 * case replaces one or two of these parts. The texts are in graph_notation.h's notation with sizes by name, so that
 * tests take them small and benchmarks/encoders.sh as large as a predictor is.
 */
#ifndef TEST_ENCODER_PATTERNS_H
#define TEST_ENCODER_PATTERNS_H

#include <stdbool.h>

typedef struct encoder_pattern {
    const char *name, *text;
    const char *kernels; /* of one layer: "attention linear4 nest2 norm2" */
} encoder_pattern;

extern const encoder_pattern encoder_patterns[];
extern const int encoder_pattern_count;

typedef struct encoder_form {
    int width, heads, inner; /* elements of a row, of which each head has its share; of a row in the feed-forward */
    int layers;
    bool half; /* in f16 throughout */
} encoder_form;

/* The encoder in graph_notation.h's notation, malloc'ed. */
char *encoder_notation(const encoder_pattern *spelling, const encoder_form *form);

#endif
