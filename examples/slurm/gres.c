/* gres.c — see gres.h. */
#include "examples/slurm/gres.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GPUS = 1 << 20 };

/* One of the parts between commas: gpu[:TYPE][:COUNT], behind "gres:" or "gres/" or nothing. */
typedef struct part {
    const char *text, *behind; /* in the whole; `behind` is its comma or end */
    const char *name_end;      /* of "gpu"; NULL where it asks for something else */
    const char *type;
    size_t type_length; /* 0: of any type */
    int64_t count;
} part;

static part read_part(const char *text)
{
    part p = {.text = text, .behind = text + strcspn(text, ","), .count = 1};
    const char *name = text;
    if (strncmp(name, "gres:", 5) == 0 || strncmp(name, "gres/", 5) == 0) name += 5;
    if (strncmp(name, "gpu", 3) != 0 || strchr(":=,", name[3]) == NULL) return p; /* or its end, which strchr finds */
    p.name_end = name + 3;
    const char *at = p.name_end;
    if (*at == ':' && !isdigit((unsigned char)at[1])) {
        p.type = at + 1;
        p.type_length = strcspn(p.type, ":=,");
        at = p.type + p.type_length;
    }
    if (*at != ':' && *at != '=') return p;
    char *end;
    p.count = strtoll(at + 1, &end, 10);
    if (*end == 'k' || *end == 'K') p.count *= p.count < MOST_GPUS ? 1024 : 1;
    if (p.count < 0 || p.count > MOST_GPUS) p.count = MOST_GPUS;
    return p;
}

sl_gres sl_gres_read(const char *text)
{
    sl_gres all = {0};
    for (const char *at = text; at != NULL && *at != '\0';) {
        part p = read_part(at);
        at = *p.behind == ',' ? p.behind + 1 : p.behind;
        if (p.name_end == NULL || p.count == 0) continue;
        char type[SL_GRES_TYPE_BYTES];
        size_t length = p.type_length < sizeof type ? p.type_length : sizeof type - 1;
        for (size_t i = 0; i < length; i++) type[i] = (char)tolower((unsigned char)p.type[i]);
        type[length] = '\0';
        if (all.count > 0 && strcmp(all.type, type) != 0) all.is_mixed = true;
        if (all.count == 0) memcpy(all.type, type, length + 1);
        all.count += p.count;
        if (all.count > MOST_GPUS) all.count = MOST_GPUS;
    }
    return all;
}

char *sl_gres_with_type(const char *text, const char *type)
{
    char *out = NULL;
    size_t bytes;
    FILE *stream = open_memstream(&out, &bytes);
    if (stream == NULL) return NULL;
    for (const char *at = text; *at != '\0';) {
        part p = read_part(at);
        bool is_untyped = p.name_end != NULL && p.type_length == 0;
        const char *cut = is_untyped ? p.name_end : p.behind;
        fwrite(p.text, 1, (size_t)(cut - p.text), stream);
        if (is_untyped) fprintf(stream, ":%s", type);
        fwrite(cut, 1, (size_t)(p.behind - cut), stream);
        if (*p.behind == ',') fputc(',', stream);
        at = *p.behind == ',' ? p.behind + 1 : p.behind;
    }
    if (fclose(stream) == 0) return out;
    free(out);
    return NULL;
}
