/* names.c — open addressing with linear probing; the table doubles at a load of one half. */
#include "frontend/onnx/names.h"

#include <stdint.h>
#include <string.h>

typedef struct entry {
    const char *key; /* NULL: free */
    uint64_t hash;
    int number;
} entry;

struct fe_names {
    ir_arena *arena;
    entry *table;
    size_t capacity; /* a power of two */
    size_t count;
};

enum { FIRST_CAPACITY = 16 };

/* FNV-1a, 64 bits. The upper half is folded into the lower one, because the table uses the low bits. */
static uint64_t hash_of(const char *key)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *key; key++) hash = (hash ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* The entry of `key`, or the free entry where it belongs. */
static entry *slot_of(entry *table, size_t capacity, const char *key, uint64_t hash)
{
    for (size_t i = hash & (capacity - 1);; i = (i + 1) & (capacity - 1)) {
        entry *e = &table[i];
        if (e->key == NULL || (e->hash == hash && strcmp(e->key, key) == 0)) return e;
    }
}

fe_names *fe_names_create(ir_arena *arena)
{
    fe_names *names = IR_NEW(arena, fe_names);
    entry *table = IR_NEW_ARRAY(arena, entry, FIRST_CAPACITY);
    if (names == NULL || table == NULL) return NULL;
    *names = (fe_names){.arena = arena, .table = table, .capacity = FIRST_CAPACITY};
    return names;
}

int fe_names_find(const fe_names *names, const char *key)
{
    const entry *e = slot_of(names->table, names->capacity, key, hash_of(key));
    return e->key != NULL ? e->number : -1;
}

static bool grow(fe_names *names)
{
    size_t capacity = 2 * names->capacity;
    entry *table = IR_NEW_ARRAY(names->arena, entry, capacity);
    if (table == NULL) return false;
    for (size_t i = 0; i < names->capacity; i++) {
        const entry *old = &names->table[i];
        if (old->key != NULL) *slot_of(table, capacity, old->key, old->hash) = *old;
    }
    names->table = table;
    names->capacity = capacity;
    return true;
}

bool fe_names_add(fe_names *names, const char *key, int number)
{
    if (2 * (names->count + 1) > names->capacity && !grow(names)) return false;
    uint64_t hash = hash_of(key);
    *slot_of(names->table, names->capacity, key, hash) = (entry){key, hash, number};
    names->count++;
    return true;
}
