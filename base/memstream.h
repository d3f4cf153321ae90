/* memstream.h — text that is written into memory through a FILE. open_memstream is similar, but if memory runs out,
 * glibc's version drops the rest, and both ferror and fclose report success. */
#ifndef BS_MEMSTREAM_H
#define BS_MEMSTREAM_H

#include <stdbool.h>
#include <stdio.h>

typedef struct bs_memstream {
    FILE *file; /* for writing, with all of stdio */
    char *bytes;
    size_t size_bytes, capacity_bytes;
} bs_memstream;

/* Returns false, with `file` NULL, if memory ran out. Keep the struct at its address until it is closed. */
bool bs_memstream_open(bs_memstream *s);

/* Closes the stream. Returns the whole text with a NUL behind it, which the caller frees; *out_size_bytes is the length
 * unless the pointer is NULL. Returns NULL if memory ran out at opening or later. */
char *bs_memstream_close(bs_memstream *s, size_t *out_size_bytes);

#endif
