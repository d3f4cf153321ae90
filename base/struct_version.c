/* struct_version.c — see struct_version.h. */
#include "base/struct_version.h"

#include <string.h>

mdot_status bs_check_struct(const bs_struct_version *type, const void *caller_struct, mdot_error *err)
{
    if (caller_struct == NULL) return BS_INVALID(err, "a %s is missing", type->name);
    size_t bytes = bs_struct_bytes(caller_struct);
    bool is_size = bytes >= type->least_bytes && bytes <= BS_STRUCT_MAX_BYTES && bytes % sizeof bytes == 0;
    if (is_size) return MDOT_OK;
    return BS_INVALID(err, "the struct_size of a %s is %zu instead of sizeof(%s)", type->name, bytes, type->name);
}

static bool is_zero(const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != 0) return false;
    return true;
}

mdot_status bs_read_struct(const bs_struct_version *type, const void *caller_struct, void *out_library_struct,
                           mdot_error *err)
{
    BS_TRY(bs_check_struct(type, caller_struct, err));
    size_t bytes = bs_struct_bytes(caller_struct);
    if (bytes > type->size_bytes && !is_zero((const char *)caller_struct + type->size_bytes, bytes - type->size_bytes))
        return mdot_fail(err, MDOT_INCOMPATIBLE,
                         "a %s of %zu bytes sets fields that mdot %s lacks: its struct has %zu bytes", type->name,
                         bytes, MDOT_VERSION_STRING, type->size_bytes);
    memset(out_library_struct, 0, type->size_bytes);
    memcpy(out_library_struct, caller_struct, bytes < type->size_bytes ? bytes : type->size_bytes);
    *(size_t *)out_library_struct = type->size_bytes;
    return MDOT_OK;
}

mdot_status bs_read_element(const bs_struct_version *type, const void *first, size_t i, void *out_library_struct,
                            mdot_error *err)
{
    const void *element = bs_struct_at(first, i);
    if (bs_struct_bytes(element) != bs_struct_bytes(first))
        return BS_INVALID(err, "the struct_size of %s %zu of an array is %zu, but that of the first one is %zu",
                          type->name, i, bs_struct_bytes(element), bs_struct_bytes(first));
    return bs_read_struct(type, element, out_library_struct, err);
}

void bs_write_struct(const bs_struct_version *type, const void *library_struct, void *caller_struct,
                     size_t caller_bytes)
{
    size_t known = caller_bytes < type->size_bytes ? caller_bytes : type->size_bytes;
    memcpy(caller_struct, library_struct, known);
    memset((char *)caller_struct + known, 0, caller_bytes - known);
    *(size_t *)caller_struct = caller_bytes;
}

mdot_status bs_fill_struct(const bs_struct_version *type, const void *library_struct, void *caller_struct,
                           mdot_error *err)
{
    mdot_status status = bs_check_struct(type, caller_struct, err);
    if (status == MDOT_OK) bs_write_struct(type, library_struct, caller_struct, bs_struct_bytes(caller_struct));
    return status;
}
