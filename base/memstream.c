/* memstream.c — see text.h: a growing buffer behind a custom FILE, whose stdio error flag records failures. */
#include "base/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 4096 };

static bool make_room(bs_memstream *s, size_t more_bytes)
{
    size_t capacity_bytes = s->capacity_bytes > 0 ? s->capacity_bytes : FIRST_BYTES;
    if (more_bytes >= SIZE_MAX / 4 - s->size_bytes) return false;
    while (capacity_bytes <= s->size_bytes + more_bytes) capacity_bytes *= 2; /* including the NUL */
    if (capacity_bytes == s->capacity_bytes) return true;
    char *bytes = realloc(s->bytes, capacity_bytes);
    if (bytes == NULL) return false;
    s->bytes = bytes;
    s->capacity_bytes = capacity_bytes;
    return true;
}

/* A cookie's writer reports failure by returning 0. */
static ssize_t take(void *cookie, const char *bytes, size_t size_bytes)
{
    bs_memstream *s = cookie;
    if (!make_room(s, size_bytes)) {
        errno = ENOMEM;
        return 0;
    }
    memcpy(s->bytes + s->size_bytes, bytes, size_bytes);
    s->size_bytes += size_bytes;
    return (ssize_t)size_bytes;
}

bool bs_memstream_open(bs_memstream *s)
{
    *s = (bs_memstream){0};
    if (make_room(s, 0)) s->file = fopencookie(s, "w", (cookie_io_functions_t){.write = take});
    if (s->file != NULL) __fsetlocking(s->file, FSETLOCKING_BYCALLER); /* one thread writes */
    return s->file != NULL;
}

char *bs_memstream_close(bs_memstream *s, size_t *out_size_bytes)
{
    bool is_whole = s->file != NULL && fflush(s->file) == 0 && !ferror(s->file);
    if (s->file != NULL) is_whole = fclose(s->file) == 0 && is_whole;
    s->file = NULL;
    if (!is_whole) {
        free(s->bytes);
        return NULL;
    }
    s->bytes[s->size_bytes] = '\0';
    if (out_size_bytes != NULL) *out_size_bytes = s->size_bytes;
    return s->bytes;
}
