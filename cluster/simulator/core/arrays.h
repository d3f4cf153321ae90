/* arrays.h — arrays that grow, structs with arrays in one allocation, and comparisons for qsort. */
#ifndef SC_ARRAYS_H
#define SC_ARRAYS_H

#include "mdot/mdot_base.h"

#include <stddef.h>

/* A zeroed struct with arrays behind it in one allocation, which free() releases. `at` is the offset of an array's
 * pointer in the struct. */
typedef struct sc_array {
    size_t at, bytes;
} sc_array;

#define SC_ARRAY(type, field, count)                                                                                   \
    {                                                                                                                  \
        offsetof(type, field), (size_t)(count) * sizeof *((type *)NULL)->field                                         \
    }
#define SC_STATE(type, arrays, out_self, err)                                                                          \
    sc_state_create(sizeof(type), arrays, sizeof(arrays) / sizeof *(arrays), out_self, err)

mdot_status sc_state_create(size_t bytes, const sc_array *arrays, size_t count, void **out_self, mdot_error *err);

/* Reserves space for one more item behind `count` in the array to which `items` points; capacities are powers of two.
 * False if memory ran out; the array stays valid then. */
bool sc_grow(void *items, size_t count, size_t size);

/* Compare two uint32_t, and two double, in ascending order, for qsort. */
int sc_by_number(const void *left, const void *right);
int sc_by_value(const void *left, const void *right);

#endif
