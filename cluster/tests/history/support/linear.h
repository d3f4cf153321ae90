/* linear.h — compiled artefacts whose answer is a row times a matrix plus a row, for tests of row models. */
#ifndef TEST_HISTORY_LINEAR_H
#define TEST_HISTORY_LINEAR_H

#include "history/row_model.h"

enum { LINEAR_MOST = 16 };

typedef struct linear {
    hs_row row;
    float factors[LINEAR_MOST][LINEAR_MOST], sums[LINEAR_MOST]; /* answer j: sums[j] + numbers[i] factors[i][j] */
    const char *last;                                           /* operator on the answers; NULL: none */
} linear;

/* Compiles the network to `path`, which ends in ".mdot", in an existing folder. */
void linear_compile(const linear *network, const char *path);

/* Returns a number between the limits; equal sequences of calls give equal numbers. */
double linear_random(double least, double most);

#endif
