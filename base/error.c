/* error.c — mdot_base.h: tables of statuses and element types, error messages. It is the only public part of base/,
 * and only libmdot contains it.
 *
 * All functions here are stateless, so they may be called from any thread and before anything is opened.
 */
#include "base/text.h"
#include "mdot/mdot_base.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *mdot_status_name(mdot_status status)
{
    switch (status) {
#define STATUS_NAME(name, value, text)                                                                                 \
    case MDOT_##name: return "MDOT_" #name;
        MDOT_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
    }
    return "MDOT_?";
}

const char *mdot_status_text(mdot_status status)
{
    switch (status) {
#define STATUS_TEXT(name, value, text)                                                                                 \
    case MDOT_##name: return text;
        MDOT_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
    }
    return "not a status";
}

const char *mdot_dtype_name(mdot_dtype dtype)
{
    switch (dtype) {
    case MDOT_DTYPE_NONE: break;
#define DTYPE_NAME(name, value, size, text)                                                                            \
    case MDOT_DTYPE_##name: return text;
        MDOT_DTYPE_MAP(DTYPE_NAME)
#undef DTYPE_NAME
    }
    return "?";
}

size_t mdot_dtype_size_bytes(mdot_dtype dtype)
{
    switch (dtype) {
    case MDOT_DTYPE_NONE: break;
#define DTYPE_SIZE(name, value, size, text)                                                                            \
    case MDOT_DTYPE_##name: return size;
        MDOT_DTYPE_MAP(DTYPE_SIZE)
#undef DTYPE_SIZE
    }
    return 0;
}

/* Formats into a separate buffer first, because a caller that adds context passes err->message itself as an argument.
 * The result is then reduced to one printable line, because messages contain names from files and tool output. */
mdot_status mdot_fail(mdot_error *err, mdot_status status, const char *format, ...)
{
    if (err == NULL) return status;
    char text[sizeof err->message];
    va_list args;
    va_start(args, format);
    int needed = format != NULL ? vsnprintf(text, sizeof text, format, args) : -1;
    va_end(args);
    if (needed < 0) snprintf(text, sizeof text, "%s", mdot_status_text(status));
    if (needed >= (int)sizeof text) {
        size_t cut = sizeof text - sizeof "...";
        while (cut > 0 && ((unsigned char)text[cut] & 0xC0) == 0x80) cut--; /* cut before a whole character */
        memcpy(text + cut, "...", sizeof "...");
    }
    bs_make_printable(text);
    err->status = status;
    memcpy(err->message, text, sizeof text);
    return status;
}
