/* cuda_text.h — text that grows: the source that is being written, and names from files that stand in it. */
#ifndef CU_TEXT_H
#define CU_TEXT_H

#include "ir/arena.h"

typedef struct cu_text { /* zero: empty */
    char *bytes;         /* ends in NUL; NULL while empty */
    size_t size, capacity;
    bool failed; /* memory ran out: what was added since is missing */
} cu_text;

void cu_put(cu_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *cu_text_get(const cu_text *text); /* "" where empty */
void cu_text_done(cu_text *text);

/* Whether a character may stand in an identifier. Not isalnum, which is the locale's. */
static inline bool cu_is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
/* A name from a file with '_' for what may not, and fit for a comment. The second is "" when memory is out, the first
 * NULL. */
char *cu_identifier(ir_arena *arena, const char *name);
const char *cu_comment(ir_arena *arena, const char *name);

#endif
