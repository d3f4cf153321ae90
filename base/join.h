/* join.h — names joined into a buffer of fixed size, with a clean cut: "a, b, c … and 12 more". */
#ifndef BS_JOIN_H
#define BS_JOIN_H

#include <stddef.h>

typedef struct bs_join {
    char *text;            /* always a complete string */
    const char *separator; /* ", "; another may be set before the first item */
    size_t size, used, count;
    size_t safe_used, safe_count; /* state at the last point where the count of omitted items still fits */
    size_t omitted;
} bs_join;

/* Starts an empty list in a buffer of at least BS_JOIN_MIN_BYTES bytes. */
enum { BS_JOIN_MIN_BYTES = 40 };
void bs_join_begin(bs_join *list, char *buffer, size_t size);

/* Appends an item, after the separator unless it is the first. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void
bs_join_add(bs_join *list, const char *format, ...);

/* Counts an item as omitted without showing it. All later items are omitted, too. */
void bs_join_omit(bs_join *list);

#endif
