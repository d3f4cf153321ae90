/* arena.c — chunked bump allocation behind arena.h.
 *
 * Chunks come zeroed from calloc and each byte is used once, so allocations are zero without a memset. For large
 * chunks the operating system provides the zero pages lazily. Chunk sizes double up to a cap. An allocation that
 * would waste much of a chunk gets its own chunk, placed behind the current one so that small allocations continue to
 * fill that.
 */
#include "ir/arena.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SMALL_ALIGN = 16,
    LARGE_ALIGN = 64, /* one cache line, and the width of an AVX-512 register */
    FIRST_CHUNK_BYTES = 16 << 10,
    MAX_CHUNK_BYTES = 4 << 20
};

typedef struct ir_arena_chunk {
    struct ir_arena_chunk *next;
    unsigned char *begin; /* first byte after this header */
    size_t used, capacity;
} chunk;

typedef struct ir_arena_deferred {
    struct ir_arena_deferred *next;
    void (*release)(void *);
    void *object;
} deferred;

ir_arena *ir_arena_create(size_t limit_bytes)
{
    ir_arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL) return NULL;
    arena->limit_bytes = limit_bytes;
    arena->has_own_limit = limit_bytes > 0;
    arena->next_chunk_bytes = FIRST_CHUNK_BYTES;
    return arena;
}

void ir_arena_destroy(ir_arena *arena)
{
    if (arena == NULL) return;
    for (deferred *d = arena->deferred; d != NULL; d = d->next) d->release(d->object);
    for (chunk *c = arena->chunks; c != NULL;) {
        chunk *successor = c->next;
        free(c);
        c = successor;
    }
    free(arena);
}

/* Bytes to skip so that the next allocation from `c` is aligned. */
static size_t padding_for(const chunk *c, size_t align)
{
    return (size_t)(-(uintptr_t)(c->begin + c->used) & (align - 1));
}

static chunk *chunk_create(size_t capacity)
{
    if (capacity > SIZE_MAX - sizeof(chunk)) return NULL;
    chunk *c = calloc(1, sizeof *c + capacity);
    if (c == NULL) return NULL;
    c->begin = (unsigned char *)(c + 1);
    c->capacity = capacity;
    return c;
}

/* A chunk with at least `bytes` free bytes behind the padding for `align`. */
static chunk *chunk_for(ir_arena *arena, size_t bytes, size_t align)
{
    chunk *c = arena->chunks;
    if (c != NULL && bytes <= c->capacity - c->used) {
        size_t padding = padding_for(c, align);
        if (padding <= c->capacity - c->used - bytes) return c;
    }
    if (bytes > SIZE_MAX - align) return NULL;
    size_t needed = bytes + align;
    if (needed > arena->next_chunk_bytes / 4) {
        c = chunk_create(needed);
        if (c == NULL) return NULL;
        if (arena->chunks != NULL) {
            c->next = arena->chunks->next;
            arena->chunks->next = c;
        } else {
            arena->chunks = c;
        }
        return c;
    }
    c = chunk_create(arena->next_chunk_bytes);
    if (c == NULL) return NULL;
    if (arena->next_chunk_bytes < MAX_CHUNK_BYTES) arena->next_chunk_bytes *= 2;
    c->next = arena->chunks;
    arena->chunks = c;
    return c;
}

void *ir_arena_alloc(ir_arena *arena, size_t count, size_t size_bytes)
{
    if (size_bytes && count > SIZE_MAX / size_bytes) {
        arena->failed = true;
        return NULL;
    }
    size_t bytes = count * size_bytes;
    size_t align = bytes >= LARGE_ALIGN ? LARGE_ALIGN : SMALL_ALIGN;
    if (bytes == 0) bytes = 1; /* gives a distinct pointer, because NULL means failure */
    bool beyond = arena->used_bytes > arena->limit_bytes || bytes > arena->limit_bytes - arena->used_bytes;
    if (arena->limit_bytes && beyond) {
        arena->failed = arena->full = true;
        return NULL;
    }
    chunk *c = chunk_for(arena, bytes, align);
    if (c == NULL) {
        arena->failed = true;
        return NULL;
    }
    c->used += padding_for(c, align);
    void *memory = c->begin + c->used;
    c->used += bytes;
    arena->used_bytes += bytes;
    return memory;
}

char *ir_arena_strndup(ir_arena *arena, const char *text, size_t length)
{
    if (length == SIZE_MAX) {
        arena->failed = true;
        return NULL;
    }
    char *copy = ir_arena_alloc(arena, length + 1, 1);
    if (copy != NULL && length) memcpy(copy, text, length);
    return copy;
}

void *ir_arena_grow(ir_arena *arena, void *array, int count, int *io_capacity, size_t element_bytes)
{
    if (count < *io_capacity) return array;
    int larger = *io_capacity == 0 ? 32 : *io_capacity <= INT_MAX / 2 ? 2 * *io_capacity : INT_MAX;
    void *grown = count < larger ? ir_arena_alloc(arena, (size_t)larger, element_bytes) : NULL;
    if (grown == NULL) return NULL;
    if (count > 0) memcpy(grown, array, (size_t)count * element_bytes);
    *io_capacity = larger;
    return grown;
}

char *ir_arena_strdup(ir_arena *arena, const char *text) { return ir_arena_strndup(arena, text, strlen(text)); }

char *ir_arena_printf(ir_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    char *text = length < 0 ? NULL : ir_arena_alloc(arena, (size_t)length + 1, 1);
    if (text != NULL) vsnprintf(text, (size_t)length + 1, format, again);
    if (length < 0) arena->failed = true;
    va_end(again);
    va_end(args);
    return text;
}

bool ir_arena_defer(ir_arena *arena, void (*release)(void *), void *object)
{
    deferred *d = IR_NEW(arena, deferred);
    if (d == NULL) return false;
    *d = (deferred){arena->deferred, release, object};
    arena->deferred = d;
    return true;
}

void ir_arena_allow(ir_arena *arena, size_t bytes)
{
    if (arena->has_own_limit) return;
    size_t before = arena->limit_bytes ? arena->limit_bytes : arena->used_bytes;
    arena->limit_bytes = bytes < SIZE_MAX - before ? before + bytes : SIZE_MAX;
}

size_t ir_arena_limit_bytes(const ir_arena *arena) { return arena->limit_bytes; }

bool ir_arena_is_full(const ir_arena *arena) { return arena->full; }

bool ir_arena_failed(const ir_arena *arena) { return arena->failed; }
