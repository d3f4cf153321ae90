/* random.c — splitmix64, and normal numbers by the Box-Muller transform. */
#include "simulator/core/workload.h"

#include <math.h>

uint64_t sc_random_next(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

double sc_random_unit(uint64_t *state) { return ((double)(sc_random_next(state) >> 11) + 0.5) * 0x1p-53; }

double sc_random_normal(uint64_t *state)
{
    double radius = sqrt(-2 * log(sc_random_unit(state)));
    return radius * cos(2 * acos(-1) * sc_random_unit(state));
}
