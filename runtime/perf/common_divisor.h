/* common_divisor.h — greatest common divisor. */
#ifndef RT_COMMON_DIVISOR_H
#define RT_COMMON_DIVISOR_H

#include <stdint.h>

/* Every number divides 0. */
static inline uint64_t rt_common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

#endif
