/* numbers.h — assertions on numbers of any type that print both. */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <math.h>
#include <stdio.h>

/* Fails unless both numbers are equal. Doubles hold integers below 2^53 exactly. */
#define expect_number(actual, wanted)                                                                                  \
    do {                                                                                                               \
        double actual_ = (double)(actual), wanted_ = (double)(wanted);                                                 \
        if (!(actual_ == wanted_)) fail_msg("%s is %.17g, not %.17g", #actual, actual_, wanted_);                      \
    } while (0)

/* Fails unless the numbers differ by `tolerance` at most. Infinite ones fail; cmocka takes them for equal to any. */
#define expect_within(actual, wanted, tolerance)                                                                       \
    do {                                                                                                               \
        double actual_ = (actual), wanted_ = (wanted);                                                                 \
        if (!(fabs(actual_ - wanted_) <= (tolerance))) fail_msg("%s is %.17g, not %.17g", #actual, actual_, wanted_);  \
    } while (0)

#endif
