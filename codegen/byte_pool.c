/* byte_pool.c — see byte_pool.h. A failure is sticky, so a builder checks once at the end. */
#include "codegen/byte_pool.h"

#include "mdot/mdot_abi.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_SLOTS = 64, FIRST_BYTES = 4096 };

static bool grow_bytes(cg_pool *pool, size_t needed)
{
    if (needed <= pool->capacity_bytes) return true;
    size_t capacity = pool->capacity_bytes < FIRST_BYTES ? FIRST_BYTES : pool->capacity_bytes;
    while (capacity < needed) {
        if (capacity > SIZE_MAX / 2) return false;
        capacity *= 2;
    }
    unsigned char *bytes = realloc(pool->bytes, capacity);
    if (bytes == NULL) return false;
    pool->bytes = bytes;
    pool->capacity_bytes = capacity;
    return true;
}

size_t cg_pool_reserve(cg_pool *pool, size_t size_bytes, size_t alignment)
{
    size_t padding = (alignment - pool->size_bytes % alignment) % alignment;
    size_t offset, end;
    if (pool->failed || __builtin_add_overflow(pool->size_bytes, padding, &offset) ||
        __builtin_add_overflow(offset, size_bytes, &end) || !grow_bytes(pool, end)) {
        pool->failed = true;
        return 0;
    }
    if (end > pool->size_bytes) memset(pool->bytes + pool->size_bytes, 0, end - pool->size_bytes);
    pool->size_bytes = end;
    return offset;
}

static bool grow_slots(cg_pool *pool)
{
    if (pool->used_count * 2 < pool->slot_count) return true;
    size_t count = pool->slot_count == 0 ? FIRST_SLOTS : pool->slot_count * 2;
    cg_pool_slot *slots = calloc(count, sizeof *slots);
    if (slots == NULL) return false;
    for (size_t i = 0; i < pool->slot_count; i++) {
        if (!pool->slots[i].used) continue;
        size_t target = pool->slots[i].hash & (count - 1);
        while (slots[target].used) target = (target + 1) & (count - 1);
        slots[target] = pool->slots[i];
    }
    free(pool->slots);
    pool->slots = slots;
    pool->slot_count = count;
    return true;
}

size_t cg_pool_intern(cg_pool *pool, const void *bytes, size_t size_bytes, size_t alignment)
{
    if (pool->failed || !grow_slots(pool)) {
        pool->failed = true;
        return 0;
    }
    uint64_t hash = mdot_abi_checksum(bytes, size_bytes, 0);
    size_t index = hash & (pool->slot_count - 1);
    for (; pool->slots[index].used; index = (index + 1) & (pool->slot_count - 1)) {
        const cg_pool_slot *slot = &pool->slots[index];
        if (slot->hash == hash && slot->size_bytes == size_bytes && slot->offset % alignment == 0 &&
            memcmp(pool->bytes + slot->offset, bytes, size_bytes) == 0)
            return slot->offset;
    }
    size_t offset = cg_pool_reserve(pool, size_bytes, alignment);
    if (pool->failed) return 0;
    memcpy(pool->bytes + offset, bytes, size_bytes);
    pool->slots[index] = (cg_pool_slot){hash, offset, size_bytes, true};
    pool->used_count++;
    return offset;
}

void cg_pool_done(cg_pool *pool)
{
    free(pool->bytes);
    free(pool->slots);
    *pool = (cg_pool){0};
}
