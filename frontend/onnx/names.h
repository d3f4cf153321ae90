/* names.h — a map from names to small numbers, for the thousands of values and functions of a model. */
#pragma once

#include "ir/arena.h"

typedef struct fe_names fe_names;

/* NULL: out of memory. Keys are borrowed and must outlive the map. */
fe_names *fe_names_create(ir_arena *arena);
/* The number that `key` was added with; -1: absent. */
int fe_names_find(const fe_names *names, const char *key);
/* Adds a new key with a number of at least 0. The key must be absent from the map. False: out of memory. */
bool fe_names_add(fe_names *names, const char *key, int number);
