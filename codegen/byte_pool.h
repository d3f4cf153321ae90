/* byte_pool.h — a growing byte buffer that stores equal pieces once: an artefact's weights, and the names in its
 * table. */
#pragma once

#include "ir/hash_map.h"

#include <stddef.h>
#include <stdint.h>

typedef struct cg_pool { /* zero-initialised: empty */
    unsigned char *bytes;
    size_t size_bytes, capacity_bytes;
    ir_hash_map pieces; /* those of cg_pool_intern, by hash */
    bool failed;        /* memory ran out; pieces added since are missing */
} cg_pool;

/* Appends `size_bytes` zeroed bytes, aligned, and returns their offset. The next call invalidates pointers into the
 * pool. */
size_t cg_pool_reserve(cg_pool *pool, size_t size_bytes, size_t alignment);
/* The offset of equal bytes: from an earlier cg_pool_intern, or a copy appended at the end. */
size_t cg_pool_intern(cg_pool *pool, const void *bytes, size_t size_bytes, size_t alignment);
void cg_pool_done(cg_pool *pool);

/* ---- table_builder.c: builds the table of an artefact (mdot_abi.h): names, arrays, records ----------------------- */

typedef struct cg_table {
    cg_pool pool; /* the table's bytes; pool.failed: memory ran out */
    uint32_t bucket_count;
} cg_table;

/* Each returns an offset in the table. Equal strings share one offset. */
uint32_t cg_table_string(cg_table *table, const char *text); /* 0 for NULL and "" */
uint32_t cg_table_array(cg_table *table, int count, size_t element_bytes);
/* Adds a finished array, or reuses an equal one that was shared before. */
uint32_t cg_table_intern(cg_table *table, const void *elements, int count, size_t element_bytes);
/* Fills an array's element. Records are built separately, because adding a name may move the table. */
void cg_table_put(cg_table *table, uint32_t array_at, int index, const void *record, size_t element_bytes);
