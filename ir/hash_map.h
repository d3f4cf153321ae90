/* hash_map.h — a hash map with chains in an arena: keys with a number each, for example names and pointers. */
#pragma once

#include "ir/arena.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct ir_hash_entry {
    struct ir_hash_entry *next; /* next entry in the slot */
    uint64_t hash;
    const void *key; /* borrowed */
    int number;
} ir_hash_entry;

typedef struct ir_hash_map { /* zero-initialised except for the arena: empty */
    ir_arena *arena;
    ir_hash_entry **slot; /* slot count: a power of two, at least the entry count */
    size_t slots, used;
} ir_hash_map;

uint64_t ir_hash_bytes(const void *data, size_t size);
/* Returns false if memory runs out. */
bool ir_hash_map_add(ir_hash_map *map, uint64_t hash, const void *key, int number);
/* The first entry of a hash, and the next one after another entry; NULL if there is none. Different keys may share a
 * hash. */
ir_hash_entry *ir_hash_map_first(const ir_hash_map *map, uint64_t hash);
ir_hash_entry *ir_hash_map_next(const ir_hash_entry *entry);
/* The same for a map whose keys are texts. */
bool ir_hash_map_add_text(ir_hash_map *map, const char *text, int number);
ir_hash_entry *ir_hash_map_find_text(const ir_hash_map *map, const char *text);
