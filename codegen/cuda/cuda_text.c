/* cuda_text.c — see cuda_text.h. A failure is sticky, so a writer checks once at the end. */
#include "codegen/cuda/cuda_text.h"

#include "base/text.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void cu_put(cu_text *text, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int size = vsnprintf(NULL, 0, format, args);
    char *bytes = NULL;
    if (size >= 0 && !text->failed) bytes = bs_grow_bytes(text->bytes, text->size, (size_t)size + 1, &text->capacity);
    text->failed = bytes == NULL;
    if (bytes != NULL) {
        text->bytes = bytes;
        vsnprintf(bytes + text->size, (size_t)size + 1, format, again);
        text->size += (size_t)size;
    }
    va_end(again);
    va_end(args);
}

void cu_put_template(cu_text *text, const char *source, const cu_term *terms)
{
    for (const char *mark; (mark = strchr(source, '@')) != NULL;) {
        size_t length = strcspn(mark + 1, "@");
        const cu_term *term = terms;
        while (term->name != NULL && (strlen(term->name) != length || memcmp(term->name, mark + 1, length) != 0))
            term++;
        assert(term->name != NULL);
        cu_put(text, "%.*s%s", (int)(mark - source), source, term->text != NULL ? term->text : "");
        source = mark + length + 2;
    }
    cu_put(text, "%s", source);
}

const char *cu_text_get(const cu_text *text) { return text->bytes != NULL ? text->bytes : ""; }

void cu_text_done(cu_text *text)
{
    free(text->bytes);
    *text = (cu_text){0};
}

char *cu_identifier(ir_arena *arena, const char *name)
{
    char *copy = ir_arena_strdup(arena, name);
    for (char *c = copy; c != NULL && *c != 0; c++)
        if (!cu_is_name_char(*c)) *c = '_';
    return copy;
}

/* A name may contain any byte. NVRTC takes byte 255 as the end of the source, and a backslash joins the next line. */
const char *cu_comment(ir_arena *arena, const char *name)
{
    char *copy = ir_arena_strdup(arena, name);
    if (copy == NULL) return "";
    bs_make_printable(copy);
    for (char *c = copy; *c; c++)
        if (*c == '\\') *c = '?';
    return copy;
}
