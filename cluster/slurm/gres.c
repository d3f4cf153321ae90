#include "slurm/partition.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GPUS = 1 << 20 };

/* One of the parts between commas: gpu[:TYPE][:COUNT], possibly behind "gres:" or "gres/". */
typedef struct part {
    const char *text, *behind; /* pointers into the whole text; `behind` is the comma or the end of the part */
    const char *name_end;      /* end of "gpu"; NULL if the part asks for another resource */
    const char *type;
    size_t type_length; /* 0: any type */
    int64_t count;
} part;

static part read_part(const char *text)
{
    part p = {.text = text, .behind = text + strcspn(text, ","), .count = 1};
    const char *name = text;
    if (strncmp(name, "gres:", 5) == 0 || strncmp(name, "gres/", 5) == 0) name += 5;
    /* or the end of the text, which strchr finds, too */
    if (strncmp(name, "gpu", 3) != 0 || strchr(":=,", name[3]) == NULL) return p;
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

/* Appends a text and returns the position of the new NUL. */
static char *append(char *at, const char *text, size_t length)
{
    memcpy(at, text, length);
    at[length] = '\0';
    return at + length;
}

char *sl_gres_with_type(const char *text, const char *type)
{
    size_t parts = 1, type_length = strlen(type);
    for (const char *at = text; *at != '\0'; at++) parts += *at == ',';
    char *out = malloc(strlen(text) + parts * (1 + type_length) + 1), *to = out;
    if (out == NULL) return NULL;
    *to = '\0';
    for (const char *at = text; *at != '\0';) {
        part p = read_part(at);
        bool is_untyped = p.name_end != NULL && p.type_length == 0;
        const char *cut = is_untyped ? p.name_end : p.behind;
        to = append(to, p.text, (size_t)(cut - p.text));
        if (is_untyped) to = append(append(to, ":", 1), type, type_length);
        to = append(to, cut, (size_t)(p.behind - cut));
        at = p.behind;
        if (*at == ',') to = append(to, at++, 1);
    }
    return out;
}
