/* byte_pool.c — see byte_pool.h. A failure is sticky, so a builder checks once at the end. */
#include "codegen/byte_pool.h"

#include "base/text.h"
#include "mdot/mdot_abi.h"

#include <stdlib.h>
#include <string.h>

size_t cg_pool_reserve(cg_pool *pool, size_t size_bytes, size_t alignment)
{
    size_t padding = (alignment - pool->size_bytes % alignment) % alignment;
    size_t more = 0;
    bool is_too_large = __builtin_add_overflow(padding, size_bytes, &more);
    unsigned char *bytes = NULL;
    if (!pool->failed && !is_too_large)
        bytes = bs_grow_bytes(pool->bytes, pool->size_bytes, more, &pool->capacity_bytes);
    pool->failed = bytes == NULL;
    if (pool->failed) return 0;
    pool->bytes = bytes;
    memset(bytes + pool->size_bytes, 0, more);
    pool->size_bytes += more;
    return pool->size_bytes - size_bytes;
}

/* A piece that cg_pool_intern added. */
typedef struct piece {
    size_t offset, size_bytes;
} piece;

static size_t add_piece(cg_pool *pool, uint64_t hash, const void *bytes, size_t size_bytes, size_t alignment)
{
    size_t offset = cg_pool_reserve(pool, size_bytes, alignment);
    piece *added = pool->failed ? NULL : IR_NEW(pool->pieces.arena, piece);
    pool->failed = added == NULL || !ir_hash_map_add(&pool->pieces, hash, added, 0);
    if (pool->failed) return 0;
    *added = (piece){offset, size_bytes};
    memcpy(pool->bytes + offset, bytes, size_bytes);
    return offset;
}

size_t cg_pool_intern(cg_pool *pool, const void *bytes, size_t size_bytes, size_t alignment)
{
    if (pool->pieces.arena == NULL) pool->pieces.arena = ir_arena_create(0);
    pool->failed = pool->failed || pool->pieces.arena == NULL;
    if (pool->failed) return 0;
    uint64_t hash = mdot_abi_checksum(bytes, size_bytes, 0);
    const ir_hash_entry *entry = ir_hash_map_first(&pool->pieces, hash);
    for (; entry != NULL; entry = ir_hash_map_next(entry)) {
        const piece *p = entry->key;
        if (p->size_bytes == size_bytes && p->offset % alignment == 0 &&
            memcmp(pool->bytes + p->offset, bytes, size_bytes) == 0)
            return p->offset;
    }
    return add_piece(pool, hash, bytes, size_bytes, alignment);
}

void cg_pool_done(cg_pool *pool)
{
    free(pool->bytes);
    ir_arena_destroy(pool->pieces.arena);
    *pool = (cg_pool){0};
}
