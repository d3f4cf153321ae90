/* memstream.h — text that is written into memory as into a file. open_memstream does the same, but where memory runs out
 * glibc's drops what it had no room for, and neither ferror nor fclose tells.
 */
#ifndef BS_MEMSTREAM_H
#define BS_MEMSTREAM_H

#include <stdbool.h>
#include <stdio.h>

typedef struct bs_memstream {
    FILE *file; /* to write to, with all of stdio */
    char *bytes;
    size_t size_bytes, capacity_bytes;
} bs_memstream;

/* False, with file NULL, when memory is out. The stream stays where it is until it is closed. */
bool bs_memstream_open(bs_memstream *s);

/* Closes it: the whole text, NUL behind it, which the caller frees; its length where out_size_bytes is not NULL. NULL
 * when memory ran out on the way, or at opening. */
char *bs_memstream_close(bs_memstream *s, size_t *out_size_bytes);

#endif
