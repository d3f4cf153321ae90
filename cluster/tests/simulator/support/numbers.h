/* numbers.h — an assertion on numbers of any type that prints both. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <stdio.h>

/* Fails unless both numbers are equal. Doubles hold integers below 2^53 exactly. */
#define expect_number(actual, wanted)                                                                                  \
    do {                                                                                                               \
        double actual_ = (double)(actual), wanted_ = (double)(wanted);                                                 \
        if (!(actual_ == wanted_)) fail_msg("%s is %.17g, not %.17g", #actual, actual_, wanted_);                      \
    } while (0)

#endif
