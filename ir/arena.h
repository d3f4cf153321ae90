/* arena.h — the compiler's memory: everything of one compilation lives in one arena and is freed at once.
 *
 * Use one arena per compilation; it is not thread-safe. If allocation fails, it returns NULL, which callers convert
 * into MDOT_OUT_OF_MEMORY. ir_arena_failed stays true afterwards, so a builder may check once at the end. */
#pragma once

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* The members belong to arena.c. Tests read used_bytes. */
typedef struct ir_arena {
    struct ir_arena_chunk *chunks; /* small allocations fill the first chunk */
    struct ir_arena_deferred *deferred;
    size_t next_chunk_bytes;
    size_t used_bytes, limit_bytes;
    bool failed, full;
    bool has_own_limit;
} ir_arena;

/* limit_bytes bounds the total allocation (0: unlimited). NULL: out of memory. */
ir_arena *ir_arena_create(size_t limit_bytes);
/* Raises the limit by `bytes`; the first call sets it to that much above the current use. It serves content from
 * files, whose size bounds the growth of the arena. An arena created with a limit keeps that limit. */
void ir_arena_allow(ir_arena *arena, size_t bytes);
size_t ir_arena_limit_bytes(const ir_arena *arena); /* 0: unlimited */
void ir_arena_destroy(ir_arena *arena);

/* Zeroed memory, 64-byte aligned if it is at least 64 bytes, else 16-byte aligned. NULL: out of memory, or count *
 * size overflows. */
void *ir_arena_alloc(ir_arena *arena, size_t count, size_t size_bytes);
/* The array with space for one more element: itself, or a copy in twice the space, while the old one remains in the
 * arena. NULL: out of memory. */
void *ir_arena_grow(ir_arena *arena, void *array, int count, int *io_capacity, size_t element_bytes);
char *ir_arena_strdup(ir_arena *arena, const char *text);
char *ir_arena_strndup(ir_arena *arena, const char *text, size_t length);
char *ir_arena_printf(ir_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Registers a function that runs when the arena is destroyed, newest first: for mapped files and other resources. */
bool ir_arena_defer(ir_arena *arena, void (*release)(void *), void *object);

bool ir_arena_failed(const ir_arena *arena);
/* Was memory refused by the arena's limit rather than by the machine? */
bool ir_arena_is_full(const ir_arena *arena);

#define IR_NEW(arena, type) ((type *)ir_arena_alloc(arena, 1, sizeof(type)))
#define IR_NEW_ARRAY(arena, type, count) ((type *)ir_arena_alloc(arena, (size_t)(count), sizeof(type)))
