/* join.h — names joined into a buffer of fixed size, with a clean cut: "a, b, c … and 12 more". */
#ifndef BS_JOIN_H
#define BS_JOIN_H

#include <stddef.h>

typedef struct bs_join {
    char *text;            /* always a whole string */
    const char *separator; /* ", "; another may be set before the first item */
    size_t size, used, count;
    size_t safe_used, safe_count; /* up to here there is room to say how many are left out */
    size_t left_out;
} bs_join;

/* An empty list in a buffer of at least BS_LIST_LEAST bytes. */
enum { BS_LIST_LEAST = 40 };
void bs_join_begin(bs_join *list, char *buffer, size_t size);

/* Appends an item, after the separator where it is not the first. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void
bs_join_add(bs_join *list, const char *format, ...);

/* An item that is known but not to be shown: counts as left out, as all after it do. */
void bs_join_omit(bs_join *list);

#endif
