/* hash_map.h — a hash map of generated objects: kernels by their signatures, symbols by their names. */
#ifndef CG_CPU_HASH_MAP_H
#define CG_CPU_HASH_MAP_H

#include "ir/arena.h"

#include <stdint.h>

typedef struct cg_hash_entry {
    struct cg_hash_entry *next; /* next entry of its slot */
    uint64_t hash;
    const void *value;
} cg_hash_entry;

typedef struct cg_hash_map { /* zero-initialised except for the arena: empty */
    ir_arena *arena;
    cg_hash_entry **slot; /* the number of slots is a power of two and at least the number of entries */
    size_t slots, used;
} cg_hash_map;

/* Returns false if memory runs out. */
bool cg_hash_map_add(cg_hash_map *map, uint64_t hash, const void *value);
/* The first entry of a hash, and the next one after another entry; NULL if there is none. Different objects may
 * share a hash. */
const cg_hash_entry *cg_hash_map_first(const cg_hash_map *map, uint64_t hash);
const cg_hash_entry *cg_hash_map_next(const cg_hash_entry *entry);

#endif
