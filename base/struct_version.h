/* struct_version.h — structs that cross the border of a library and may grow: mdot_base.h, "How this interface grows".
 *
 * A library copies what it is handed into its own form of the struct, and what it hands out into the caller's. The
 * rules stand here once, for all libraries.
 */
#ifndef BS_STRUCT_VERSION_H
#define BS_STRUCT_VERSION_H

#include "mdot/mdot_base.h"

typedef struct bs_struct_version {
    const char *name;
    size_t size_bytes;  /* as this library knows the struct */
    size_t least_bytes; /* as version 0.2 did: no program says less */
} bs_struct_version;

/* `last` is the last field that the struct had when it first appeared in a release. It stays when fields are added. */
/* clang-format off */
#define BS_SIZED(type, last) {#type, sizeof(type), offsetof(type, last) + sizeof(((type *)NULL)->last)}
/* clang-format on */

/* A program that claims more has not set the size; nor one whose elements of an array would not be aligned. */
enum { BS_SIZED_MOST_BYTES = 4096 };

/* Whether the struct's size can be one: INVALID_ARGUMENT otherwise, also where there is no struct. */
mdot_status bs_check_struct(const bs_struct_version *type, const void *theirs, mdot_error *err);

/* A caller's struct in this library's form: fields that the caller does not know are zero. INVALID_ARGUMENT for its
 * size, INCOMPATIBLE where it asks for something that this library does not know. */
mdot_status bs_read_struct(const bs_struct_version *type, const void *theirs, void *out_mine, mdot_error *err);

/* Fills a caller's struct, whose size has been checked: fields that this library does not know become zero. */
void bs_write_struct(const bs_struct_version *type, const void *mine, void *theirs, size_t their_bytes);
/* The same, the size checked here. */
mdot_status bs_fill_struct(const bs_struct_version *type, const void *mine, void *theirs, mdot_error *err);

/* Element i of a caller's array, whose first one has been checked. */
static inline size_t bs_struct_bytes(const void *first)
{
    return *(const size_t *)first;
}
static inline void *bs_struct_at(const void *first, size_t i)
{
    return (char *)(uintptr_t)first + i * bs_struct_bytes(first);
}
/* The same as bs_read_struct, and that the element says the array's size. */
mdot_status bs_read_element(const bs_struct_version *type, const void *first, size_t i, void *out_mine,
                            mdot_error *err);

#endif
