/* names.h — a map from names to small numbers, for the thousands of values and functions of a model. */
#ifndef FE_NAMES_H
#define FE_NAMES_H

#include "ir/arena.h"

typedef struct fe_names fe_names;

/* NULL when memory is out. Keys are lent to the map and must outlive it. */
fe_names *fe_names_create(ir_arena *arena);
/* The number that `key` was added with, -1 for none. */
int fe_names_find(const fe_names *names, const char *key);
/* Adds a key that is not in the map yet, with a number of at least 0; false when memory is out. */
bool fe_names_add(fe_names *names, const char *key, int number);

#endif
