/* byte_pool.h — a growing byte buffer that stores equal pieces once: an artefact's weights, and the names in its
 * table. */
#ifndef CG_BYTE_POOL_H
#define CG_BYTE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cg_pool_slot {
    uint64_t hash;
    size_t offset, size_bytes;
    bool used;
} cg_pool_slot;

typedef struct cg_pool { /* zero-initialised: empty */
    unsigned char *bytes;
    size_t size_bytes, capacity_bytes;
    cg_pool_slot *slots; /* open addressing; the count is a power of two */
    size_t slot_count, used_count;
    bool failed; /* memory ran out; pieces added since are missing */
} cg_pool;

/* Appends `size_bytes` zeroed bytes, aligned, and returns their offset. The next call invalidates pointers into the
 * pool. */
size_t cg_pool_reserve(cg_pool *pool, size_t size_bytes, size_t alignment);
/* The offset of bytes equal to these: those of an earlier cg_pool_intern, or a copy appended at the end. */
size_t cg_pool_intern(cg_pool *pool, const void *bytes, size_t size_bytes, size_t alignment);
void cg_pool_done(cg_pool *pool);

#endif
