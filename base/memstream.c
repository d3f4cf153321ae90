/* memstream.c — see text.h: a growing buffer behind a custom FILE, whose stdio error flag records failures. */
#include "base/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>

void *bs_grow_bytes(void *bytes, size_t used, size_t more, size_t *io_capacity)
{
    enum { FIRST_BYTES = 4096 };
    size_t capacity = *io_capacity > 0 ? *io_capacity : FIRST_BYTES;
    if (more > SIZE_MAX / 4 - used) return NULL;
    while (capacity - used < more) capacity *= 2;
    if (capacity == *io_capacity) return bytes;
    void *larger = realloc(bytes, capacity);
    if (larger != NULL) *io_capacity = capacity;
    return larger;
}

static bool make_room(bs_memstream *s, size_t more_bytes)
{
    char *bytes = bs_grow_bytes(s->bytes, s->size_bytes, more_bytes + 1, &s->capacity_bytes); /* with the NUL */
    if (bytes != NULL) s->bytes = bytes;
    return bytes != NULL;
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
