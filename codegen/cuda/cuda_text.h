/* cuda_text.h — text that grows: the source that is being written. */
#ifndef CU_TEXT_H
#define CU_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct cu_text { /* zero: empty */
    char *bytes;         /* ends in NUL; NULL while empty */
    size_t size, capacity;
    bool failed; /* memory ran out: what was added since is missing */
} cu_text;

void cu_put(cu_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
const char *cu_text_get(const cu_text *text); /* "" where empty */
void cu_text_done(cu_text *text);

#endif
