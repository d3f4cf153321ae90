/* hash_map.c — see hash_map.h. */
#include "codegen/cpu/hash_map.h"

enum { FIRST_SLOTS = 64 };

static void put(cg_index *index, cg_indexed *entry)
{
    cg_indexed **slot = &index->slot[entry->hash & (index->slots - 1)];
    entry->next = *slot;
    *slot = entry;
}

static bool widen(cg_index *index)
{
    cg_index wider = *index;
    wider.slots = index->slots > 0 ? 4 * index->slots : FIRST_SLOTS;
    wider.slot = IR_NEW_ARRAY(index->arena, cg_indexed *, wider.slots);
    if (wider.slot == NULL) return false;
    for (size_t i = 0; i < wider.slots; i++) wider.slot[i] = NULL;
    for (size_t i = 0; i < index->slots; i++)
        for (cg_indexed *entry = index->slot[i], *next; entry != NULL; entry = next) {
            next = entry->next;
            put(&wider, entry);
        }
    *index = wider;
    return true;
}

bool cg_index_add(cg_index *index, uint64_t hash, const void *value)
{
    if (index->used == index->slots && !widen(index)) return false;
    cg_indexed *entry = IR_NEW(index->arena, cg_indexed);
    if (entry == NULL) return false;
    *entry = (cg_indexed){.hash = hash, .value = value};
    put(index, entry);
    index->used++;
    return true;
}

static const cg_indexed *first_of(const cg_indexed *entry, uint64_t hash)
{
    while (entry != NULL && entry->hash != hash) entry = entry->next;
    return entry;
}

const cg_indexed *cg_index_first(const cg_index *index, uint64_t hash)
{
    return index->slots > 0 ? first_of(index->slot[hash & (index->slots - 1)], hash) : NULL;
}

const cg_indexed *cg_index_next(const cg_indexed *entry)
{
    return first_of(entry->next, entry->hash);
}
