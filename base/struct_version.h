/* struct_version.h — growing structs in a library's interface: mdot_base.h, "How this interface grows".
 *
 * A library copies a received struct into its own form, and copies a result into the caller's form. This header holds
 * the rules once, for all libraries. */
#pragma once

#include "base/status.h"

typedef struct bs_struct_version {
    const char *name;
    size_t size_bytes;  /* size of the struct in this library */
    size_t least_bytes; /* size in version 0.2, the smallest from any program */
} bs_struct_version;

/* `last` is the struct's last field in its first release. It stays when fields are added. */
/* clang-format off */
#define BS_SIZED(type, last) {#type, sizeof(type), offsetof(type, last) + sizeof(((type *)NULL)->last)}
/* clang-format on */

/* A larger size, or one that would misalign an array's elements, means that the program has left the field unset. */
enum { BS_STRUCT_MAX_BYTES = 4096 };

/* Checks the struct's size. INVALID_ARGUMENT for an impossible size and for NULL. */
mdot_status bs_check_struct(const bs_struct_version *type, const void *caller_struct, mdot_error *err);

/* Copies a caller's struct into this library's form. Fields missing at the caller become zero. INVALID_ARGUMENT for an
 * impossible size, INCOMPATIBLE if it requests a feature unknown to this library. */
mdot_status bs_read_struct(const bs_struct_version *type, const void *caller_struct, void *out_library_struct,
                           mdot_error *err);

/* Fills a caller's struct whose size has been checked. Fields that this library does not know become zero. */
void bs_write_struct(const bs_struct_version *type, const void *library_struct, void *caller_struct,
                     size_t caller_bytes);
/* Like bs_write_struct, with a check of the size. */
mdot_status bs_fill_struct(const bs_struct_version *type, const void *library_struct, void *caller_struct,
                           mdot_error *err);

/* Element i of a caller's array, whose first element has been checked. */
static inline size_t bs_struct_bytes(const void *first) { return *(const size_t *)first; }
static inline void *bs_struct_at(const void *first, size_t i)
{
    return (char *)(uintptr_t)first + i * bs_struct_bytes(first);
}
/* Like bs_read_struct. It also compares the element's size with the first element's. */
mdot_status bs_read_element(const bs_struct_version *type, const void *first, size_t i, void *out_library_struct,
                            mdot_error *err);
