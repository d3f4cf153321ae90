/* table_builder.h — builds the table of an artefact (mdot_abi.h): names, arrays, records. */
#ifndef CG_TABLE_BUILDER_H
#define CG_TABLE_BUILDER_H

#include "codegen/byte_pool.h"

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

#endif
