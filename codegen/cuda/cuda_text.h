/* cuda_text.h — a growing text buffer for the generated source, and conversion of names from files for use in it. */
#pragma once

#include "ir/arena.h"

#include <stdint.h>

typedef struct cu_text { /* zero-initialised: empty */
    char *bytes;         /* NUL-terminated; NULL while empty */
    size_t size, capacity;
    bool failed; /* memory ran out; text added since is missing */
} cu_text;

void cu_put(cu_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

typedef struct cu_term {
    const char *name, *text;
} cu_term;
/* Appends a template, with the terms' texts in place of @NAME@. The last term has no name. */
void cu_put_template(cu_text *text, const char *source, const cu_term *terms);

const char *cu_text_get(const cu_text *text); /* "" if empty */
void cu_text_done(cu_text *text);

/* True if a character may appear in an identifier. isalnum is unsuitable, because it depends on the locale. */
static inline bool cu_is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
/* A name from a file as an identifier, with '_' for invalid characters, and as a comment. If memory runs out, the
 * first returns NULL and the second "". */
char *cu_identifier(ir_arena *arena, const char *name);
const char *cu_comment(ir_arena *arena, const char *name);

/* ---- literal.c: prints numbers as CUDA C: the only printer for the numbers that a model brings into the source. */

/* The f32 operand nearest to the value: "1.0f", "(-0.5f)", or the names "INFINITE", "-INFINITE" and "NOT_A_NUMBER" from
 * source/common.cuh. Keeps denormals and the sign of zero, in every locale. Returns NULL if memory runs out. */
const char *cu_float_text(ir_arena *arena, double value);
/* An operand of type int if the value fits, otherwise long long. */
const char *cu_integer_text(ir_arena *arena, int64_t value);
