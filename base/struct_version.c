/* struct_version.c — see struct_version.h. */
#include "base/struct_version.h"

#include <string.h>

mdot_status bs_check_struct(const bs_struct_version *type, const void *theirs, mdot_error *err)
{
    if (theirs == NULL) return mdot_fail(err, MDOT_INVALID_ARGUMENT, "a %s is missing", type->name);
    size_t bytes = bs_struct_bytes(theirs);
    bool is_size = bytes >= type->least_bytes && bytes <= BS_STRUCT_MAX_BYTES && bytes % sizeof bytes == 0;
    if (is_size) return MDOT_OK;
    return mdot_fail(err, MDOT_INVALID_ARGUMENT, "the struct_size of a %s is %zu instead of sizeof(%s)", type->name,
                     bytes, type->name);
}

static bool is_zero(const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0) return false;
    return true;
}

mdot_status bs_read_struct(const bs_struct_version *type, const void *theirs, void *out_mine, mdot_error *err)
{
    mdot_status status = bs_check_struct(type, theirs, err);
    if (status != MDOT_OK) return status;
    size_t bytes = bs_struct_bytes(theirs);
    if (bytes > type->size_bytes && !is_zero((const char *)theirs + type->size_bytes, bytes - type->size_bytes))
        return mdot_fail(err, MDOT_INCOMPATIBLE,
                         "a %s of %zu bytes sets fields that mdot %s lacks: its struct has %zu bytes", type->name,
                         bytes, MDOT_VERSION_STRING, type->size_bytes);
    memset(out_mine, 0, type->size_bytes);
    memcpy(out_mine, theirs, bytes < type->size_bytes ? bytes : type->size_bytes);
    *(size_t *)out_mine = type->size_bytes;
    return MDOT_OK;
}

mdot_status bs_read_element(const bs_struct_version *type, const void *first, size_t i, void *out_mine, mdot_error *err)
{
    const void *element = bs_struct_at(first, i);
    if (bs_struct_bytes(element) != bs_struct_bytes(first))
        return mdot_fail(err, MDOT_INVALID_ARGUMENT,
                         "the struct_size of %s %zu of an array is %zu, but that of the first one is %zu", type->name,
                         i, bs_struct_bytes(element), bs_struct_bytes(first));
    return bs_read_struct(type, element, out_mine, err);
}

void bs_write_struct(const bs_struct_version *type, const void *mine, void *theirs, size_t their_bytes)
{
    size_t known = their_bytes < type->size_bytes ? their_bytes : type->size_bytes;
    memcpy(theirs, mine, known);
    memset((char *)theirs + known, 0, their_bytes - known);
    *(size_t *)theirs = their_bytes;
}

mdot_status bs_fill_struct(const bs_struct_version *type, const void *mine, void *theirs, mdot_error *err)
{
    mdot_status status = bs_check_struct(type, theirs, err);
    if (status == MDOT_OK) bs_write_struct(type, mine, theirs, bs_struct_bytes(theirs));
    return status;
}
