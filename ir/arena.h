/* arena.h — the compiler's memory: everything of one compilation lives in one arena and goes at once.
 *
 * Not thread-safe; one arena a compilation. Allocation fails by returning NULL, which callers turn into
 * MDOT_OUT_OF_MEMORY; ir_arena_failed stays true afterwards, so that a builder may check once at the end.
 */
#ifndef IR_ARENA_H
#define IR_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct ir_arena ir_arena;

/* limit_bytes bounds what the arena hands out altogether (0: no bound). NULL when memory is out. */
ir_arena *ir_arena_create(size_t limit_bytes);
/* So many bytes more than before, the first time more than it has handed out, for what comes from files: their size
 * bounds what an arena may grow to. One created with a bound keeps that. */
void ir_arena_allow(ir_arena *arena, size_t bytes);
size_t ir_arena_limit_bytes(const ir_arena *arena); /* 0: none */
void ir_arena_destroy(ir_arena *arena);

/* Zeroed, 64-byte aligned when at least 64 bytes, else 16. NULL on overflow of count * size or when memory is out. */
void *ir_arena_alloc(ir_arena *arena, size_t count, size_t size_bytes);
char *ir_arena_strdup(ir_arena *arena, const char *text);
char *ir_arena_strndup(ir_arena *arena, const char *text, size_t length);
char *ir_arena_printf(ir_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Runs when the arena is destroyed, newest first: for mapped files and other things that are not memory. */
bool ir_arena_defer(ir_arena *arena, void (*release)(void *), void *object);

bool ir_arena_failed(const ir_arena *arena);
/* The bound, and not the machine, has refused memory. */
bool ir_arena_is_full(const ir_arena *arena);
size_t ir_arena_used_bytes(const ir_arena *arena);

#define IR_NEW(arena, type) ((type *)ir_arena_alloc(arena, 1, sizeof(type)))
#define IR_NEW_ARRAY(arena, type, count) ((type *)ir_arena_alloc(arena, (size_t)(count), sizeof(type)))

#endif
