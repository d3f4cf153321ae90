/* table_builder.c — builds an artefact's table: one block with offsets rather than pointers. */
#include "codegen/byte_pool.h"

#include <string.h>

/* Offset 0 means the empty string. It is free for that, because the table starts with its head. */
uint32_t cg_table_string(cg_table *table, const char *text)
{
    if (text == NULL || text[0] == '\0') return 0;
    return (uint32_t)cg_pool_intern(&table->pool, text, strlen(text) + 1, 1);
}

uint32_t cg_table_array(cg_table *table, int count, size_t element_bytes)
{
    return (uint32_t)cg_pool_reserve(&table->pool, (size_t)count * element_bytes, sizeof(uint64_t));
}

uint32_t cg_table_intern(cg_table *table, const void *elements, int count, size_t element_bytes)
{
    return (uint32_t)cg_pool_intern(&table->pool, elements, (size_t)count * element_bytes, sizeof(uint64_t));
}

void cg_table_put(cg_table *table, uint32_t array_at, int index, const void *record, size_t element_bytes)
{
    if (table->pool.failed) return;
    memcpy(table->pool.bytes + array_at + (size_t)index * element_bytes, record, element_bytes);
}
