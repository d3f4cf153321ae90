/* hash_map.c — see signatures.h. */
#include "codegen/cpu/signatures.h"

enum { FIRST_SLOTS = 64 };

static void put(cg_hash_map *map, cg_hash_entry *entry)
{
    cg_hash_entry **slot = &map->slot[entry->hash & (map->slots - 1)];
    entry->next = *slot;
    *slot = entry;
}

static bool grow(cg_hash_map *map)
{
    cg_hash_map wider = *map;
    wider.slots = map->slots > 0 ? 4 * map->slots : FIRST_SLOTS;
    wider.slot = IR_NEW_ARRAY(map->arena, cg_hash_entry *, wider.slots);
    if (wider.slot == NULL) return false;
    for (size_t i = 0; i < wider.slots; i++) wider.slot[i] = NULL;
    for (size_t i = 0; i < map->slots; i++)
        for (cg_hash_entry *entry = map->slot[i], *successor; entry != NULL; entry = successor) {
            successor = entry->next;
            put(&wider, entry);
        }
    *map = wider;
    return true;
}

bool cg_hash_map_add(cg_hash_map *map, uint64_t hash, const void *value)
{
    if (map->used == map->slots && !grow(map)) return false;
    cg_hash_entry *entry = IR_NEW(map->arena, cg_hash_entry);
    if (entry == NULL) return false;
    *entry = (cg_hash_entry){.hash = hash, .value = value};
    put(map, entry);
    map->used++;
    return true;
}

static const cg_hash_entry *first_of(const cg_hash_entry *entry, uint64_t hash)
{
    while (entry != NULL && entry->hash != hash) entry = entry->next;
    return entry;
}

const cg_hash_entry *cg_hash_map_first(const cg_hash_map *map, uint64_t hash)
{
    return map->slots > 0 ? first_of(map->slot[hash & (map->slots - 1)], hash) : NULL;
}

const cg_hash_entry *cg_hash_map_next(const cg_hash_entry *entry) { return first_of(entry->next, entry->hash); }
