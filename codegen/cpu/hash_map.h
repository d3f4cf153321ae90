/* hash_map.h — a hash map of generated objects: kernels by their signatures, symbols by their names. */
#ifndef CG_CPU_HASH_MAP_H
#define CG_CPU_HASH_MAP_H

#include "ir/arena.h"

#include <stdint.h>

typedef struct cg_indexed {
    struct cg_indexed *next; /* next entry of its slot */
    uint64_t hash;
    const void *value;
} cg_indexed;

typedef struct cg_index { /* zero-initialised except for the arena: empty */
    ir_arena *arena;
    cg_indexed **slot; /* the number of slots is a power of two and at least the number of entries */
    size_t slots, used;
} cg_index;

/* Returns false if memory runs out. */
bool cg_index_add(cg_index *index, uint64_t hash, const void *value);
/* The first entry of a hash, and the next one after another entry; NULL if there is none. Different objects may
 * share a hash. */
const cg_indexed *cg_index_first(const cg_index *index, uint64_t hash);
const cg_indexed *cg_index_next(const cg_indexed *entry);

#endif
