/* hash_map.c — see hash_map.h. */
#include "ir/hash_map.h"

#include <string.h>

enum { FIRST_SLOTS = 64 };

/* FNV-1a, 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv), folded so that its low bits depend on all bits. */
uint64_t ir_hash_bytes(const void *data, size_t size)
{
    const unsigned char *byte = data;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash ^ hash >> 32;
}

static void put(ir_hash_map *map, ir_hash_entry *entry)
{
    ir_hash_entry **slot = &map->slot[entry->hash & (map->slots - 1)];
    entry->next = *slot;
    *slot = entry;
}

static bool grow(ir_hash_map *map)
{
    ir_hash_map wider = *map;
    wider.slots = map->slots > 0 ? 4 * map->slots : FIRST_SLOTS;
    wider.slot = IR_NEW_ARRAY(map->arena, ir_hash_entry *, wider.slots);
    if (wider.slot == NULL) return false;
    for (size_t i = 0; i < wider.slots; i++) wider.slot[i] = NULL;
    for (size_t i = 0; i < map->slots; i++)
        for (ir_hash_entry *entry = map->slot[i], *successor; entry != NULL; entry = successor) {
            successor = entry->next;
            put(&wider, entry);
        }
    *map = wider;
    return true;
}

bool ir_hash_map_add(ir_hash_map *map, uint64_t hash, const void *key, int number)
{
    if (map->used == map->slots && !grow(map)) return false;
    ir_hash_entry *entry = IR_NEW(map->arena, ir_hash_entry);
    if (entry == NULL) return false;
    *entry = (ir_hash_entry){.hash = hash, .key = key, .number = number};
    put(map, entry);
    map->used++;
    return true;
}

static ir_hash_entry *first_of(ir_hash_entry *entry, uint64_t hash)
{
    while (entry != NULL && entry->hash != hash) entry = entry->next;
    return entry;
}

ir_hash_entry *ir_hash_map_first(const ir_hash_map *map, uint64_t hash)
{
    return map->slots > 0 ? first_of(map->slot[hash & (map->slots - 1)], hash) : NULL;
}

ir_hash_entry *ir_hash_map_next(const ir_hash_entry *entry) { return first_of(entry->next, entry->hash); }

bool ir_hash_map_add_text(ir_hash_map *map, const char *text, int number)
{
    return ir_hash_map_add(map, ir_hash_bytes(text, strlen(text)), text, number);
}

ir_hash_entry *ir_hash_map_find_text(const ir_hash_map *map, const char *text)
{
    ir_hash_entry *found = ir_hash_map_first(map, ir_hash_bytes(text, strlen(text)));
    while (found != NULL && strcmp(found->key, text) != 0) found = ir_hash_map_next(found);
    return found;
}
