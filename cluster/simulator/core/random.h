/* random.h — random numbers that are the same on every machine, based on splitmix64. */
#ifndef SC_RANDOM_H
#define SC_RANDOM_H

#include <stdint.h>

uint64_t sc_random_next(uint64_t *state);
double sc_random_unit(uint64_t *state);   /* above 0, below 1 */
double sc_random_normal(uint64_t *state); /* Box-Muller transform of two such numbers */

#endif
