/* pointer_map.h — a map from pointer to pointer, for walks over expressions that must visit a shared sub-tree once.
 *
 * It uses open addressing in a power of two of slots, at most half of them full. The first slots are in the
 * structure itself; more come from an arena. If memory runs out, new pairs are dropped: walks stay correct but
 * become slower, and the arena records the failure.
 */
#ifndef CG_CPU_POINTER_MAP_H
#define CG_CPU_POINTER_MAP_H

#include "ir/arena.h"

#include <stdint.h>

typedef struct cg_pointer_map_slot {
    const void *key; /* NULL: free */
    void *value;
} cg_pointer_map_slot;

enum { CG_POINTER_MAP_FIRST_SLOTS = 128 };

typedef struct cg_pointer_map {
    ir_arena *arena;
    size_t slots, used;
    cg_pointer_map_slot *slot;
    cg_pointer_map_slot first[CG_POINTER_MAP_FIRST_SLOTS];
} cg_pointer_map;

static inline void cg_pointer_map_init(cg_pointer_map *map, ir_arena *arena)
{
    map->arena = arena;
    map->slots = CG_POINTER_MAP_FIRST_SLOTS;
    map->used = 0;
    map->slot = map->first;
    for (int i = 0; i < CG_POINTER_MAP_FIRST_SLOTS; i++) map->first[i].key = NULL;
}

/* The key's slot, or the free slot where it belongs. */
static inline cg_pointer_map_slot *cg_pointer_map_find(cg_pointer_map_slot *slots, size_t count, const void *key)
{
    for (size_t i = (uintptr_t)key / 16 * UINT64_C(0x9E3779B97F4A7C15) >> 20;; i++) {
        cg_pointer_map_slot *slot = &slots[i & (count - 1)];
        if (slot->key == key || slot->key == NULL) return slot;
    }
}

static inline bool cg_pointer_map_get(const cg_pointer_map *map, const void *key, void **out_value)
{
    const cg_pointer_map_slot *slot = cg_pointer_map_find(map->slot, map->slots, key);
    if (slot->key == NULL) return false;
    *out_value = slot->value;
    return true;
}

static inline void cg_pointer_map_put(cg_pointer_map *map, const void *key, void *value)
{
    if (2 * map->used >= map->slots) {
        size_t slots = 4 * map->slots;
        cg_pointer_map_slot *larger = IR_NEW_ARRAY(map->arena, cg_pointer_map_slot, slots);
        if (larger == NULL) return;
        for (size_t i = 0; i < map->slots; i++)
            if (map->slot[i].key != NULL) *cg_pointer_map_find(larger, slots, map->slot[i].key) = map->slot[i];
        map->slots = slots;
        map->slot = larger;
    }
    *cg_pointer_map_find(map->slot, map->slots, key) = (cg_pointer_map_slot){key, value};
    map->used++;
}

#endif
