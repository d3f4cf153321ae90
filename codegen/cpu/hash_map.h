/* hash_map.h — what has been made, found by a hash: kernels by their keys, symbols by their names. */
#ifndef CG_CPU_HASH_MAP_H
#define CG_CPU_HASH_MAP_H

#include "ir/arena.h"

#include <stdint.h>

typedef struct cg_indexed {
    struct cg_indexed *next; /* in its slot */
    uint64_t hash;
    const void *value;
} cg_indexed;

typedef struct cg_index { /* zero but for the arena: empty */
    ir_arena *arena;
    cg_indexed **slot; /* their number is a power of two, as many as there are entries at least */
    size_t slots, used;
} cg_index;

/* False when memory is out. */
bool cg_index_add(cg_index *index, uint64_t hash, const void *value);
/* The first entry of a hash, and the one after another; NULL: there is none. Different things may have one hash. */
const cg_indexed *cg_index_first(const cg_index *index, uint64_t hash);
const cg_indexed *cg_index_next(const cg_indexed *entry);

#endif
