/* guard.h — memory whose bounds are enforced: buffers that touch an inaccessible page, for tests of generated code.
 *
 * A buffer either starts right behind such a page or ends right before one, so that one kind finds reads and writes
 * below, the other beyond. The accessible rest of its pages holds a pattern that guard_intact checks.
 */
#ifndef GUARD_H
#define GUARD_H

#include <stdbool.h>
#include <stddef.h>

typedef enum guard_side { GUARD_BELOW, GUARD_BEYOND } guard_side;

typedef struct guarded {
    void *data;
    size_t bytes;
    unsigned char *mapping;
    size_t mapping_bytes;
} guarded;

/* Filled with a pattern that is a NaN in every floating type. Fails the running test when memory is out. */
guarded guard_create(size_t bytes, guard_side side);
bool guard_intact(const guarded *g);
void guard_destroy(guarded *g);

#endif
