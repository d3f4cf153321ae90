/* arrays.c — allocates and compares. */
#include "simulator/core/arrays.h"

#include <stdlib.h>
#include <string.h>

mdot_status sc_state_create(size_t bytes, const sc_array *arrays, size_t count, void **out_self, mdot_error *err)
{
    enum { ALIGNMENT = 16 };
    size_t total = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, used = total;
    for (size_t i = 0; i < count; i++) total += (arrays[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    char *self = calloc(1, total);
    if (self == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < count; i++) {
        void *array = self + used;
        memcpy(self + arrays[i].at, &array, sizeof array);
        used += (arrays[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    *out_self = self;
    return MDOT_OK;
}

int sc_by_number(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return (a > b) - (a < b);
}

int sc_by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

bool sc_grow(void *items, size_t count, size_t size)
{
    void **position = items;
    if ((count & (count - 1)) != 0) return true;
    void *grown = count > SIZE_MAX / 2 / size ? NULL : realloc(*position, (count > 0 ? 2 * count : 1) * size);
    if (grown != NULL) *position = grown;
    return grown != NULL;
}
