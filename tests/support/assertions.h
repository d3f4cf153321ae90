/* assertions.h — assertions about numbers that print both sides. They compare in the types of the arguments. */
#pragma once

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* assert_compare(count, <=, 3). After a failure the arguments are evaluated again, for the message. */
#define assert_compare(left, relation, right)                                                                          \
    do {                                                                                                               \
        if (!((left)relation(right)))                                                                                  \
            fail_msg("%s %s %s: the sides are %.18Lg and %.18Lg", #left, #relation, #right, (long double)(left),       \
                     (long double)(right));                                                                            \
    } while (0)

/* |value - expected| < tolerance */
#define assert_within(value, expected, tolerance)                                                                      \
    do {                                                                                                               \
        if (!(fabs((value) - (expected)) < (tolerance)))                                                               \
            fail_msg("%s is %.18Lg, but %s is %.18Lg; the tolerance is %.3Lg", #value, (long double)(value),           \
                     #expected, (long double)(expected), (long double)(tolerance));                                    \
    } while (0)
