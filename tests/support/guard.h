/* guard.h — memory with enforced bounds: buffers that touch an inaccessible page, for tests of generated code.
 *
 * A buffer either starts right after such a page or ends right before one. The first kind detects accesses below the
 * buffer, the second accesses beyond it. The accessible rest of the pages holds a pattern that guard_intact checks. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

typedef enum guard_side { GUARD_BELOW, GUARD_BEYOND } guard_side;

typedef struct guarded {
    void *data;
    size_t bytes;
    unsigned char *mapping;
    size_t mapping_bytes;
} guarded;

/* Fills the buffer with a pattern that is a NaN in every floating type. Fails the running test if memory is
 * exhausted. */
guarded guard_create(size_t bytes, guard_side side);
bool guard_intact(const guarded *g);
void guard_destroy(guarded *g);
