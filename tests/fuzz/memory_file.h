/* memory_file.h — bytes as a file, for entry points that take a path. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the path of a regular file `name` with these bytes, valid until the next call. */
const char *memory_file(const uint8_t *data, size_t size, const char *name);
