/* string_pool.h — the names of a job's types and modules, each stored once. */
#ifndef RT_STRING_POOL_H
#define RT_STRING_POOL_H

#include "mdot/mdot_predict.h"

typedef struct rt_string_pool {
    char *chars; /* each string once, in alphabetical order: comparing two addresses compares the strings */
    size_t bytes;
} rt_string_pool;

/* Copies the operators' types and modules into the empty pool, equal ones once, and lets the operators point there. The
 * caller frees out_pool->chars. Returns false if memory runs out. */
bool rt_pool_strings(mdot_job_operator *operators, size_t count, rt_string_pool *out_pool);

#endif
