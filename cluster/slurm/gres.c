#include "slurm/partition.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GPUS = 1 << 20 };

/* A part between commas: gpu[:TYPE][:COUNT], possibly behind "gres:" or "gres/". */
typedef struct part {
    const char *text, *behind; /* pointers into the whole text; `behind` is the comma or the end of the part */
    const char *name_end;      /* end of "gpu"; NULL if the part asks for another resource */
    const char *type;
    size_t type_length; /* 0: any type */
    int64_t count;
} part;

/* Whether the rest of the part is a count. A type may begin with digits, for example 2080ti or 1g.10gb. */
static bool is_count(const char *text)
{
    size_t digits = strspn(text, "0123456789"), end = digits + (text[digits] == 'k' || text[digits] == 'K');
    return digits > 0 && (text[end] == '\0' || text[end] == ',');
}

static part read_part(const char *text)
{
    part p = {.text = text, .behind = text + strcspn(text, ","), .count = 1};
    const char *name = text;
    if (strncmp(name, "gres:", 5) == 0 || strncmp(name, "gres/", 5) == 0) name += 5;
    /* or the end of the text (found by strchr, too) */
    if (strncmp(name, "gpu", 3) != 0 || strchr(":=,", name[3]) == NULL) return p;
    p.name_end = name + 3;
    const char *cursor = p.name_end;
    if (*cursor == ':' && !is_count(cursor + 1)) {
        p.type = cursor + 1;
        p.type_length = strcspn(p.type, ":=,");
        cursor = p.type + p.type_length;
    }
    if (*cursor != ':' && *cursor != '=') return p;
    char *end;
    p.count = strtoll(cursor + 1, &end, 10);
    if (*end == 'k' || *end == 'K') p.count *= p.count < MOST_GPUS ? 1024 : 1;
    if (p.count < 0 || p.count > MOST_GPUS) p.count = MOST_GPUS;
    return p;
}

/* A text may name a type several times, for example by --gres and --gpus-per-node. Slurm then believes the last. */
sl_gres sl_gres_read(const char *text)
{
    enum { MOST_TYPES = 16 };
    sl_gres types[MOST_TYPES], sum = {0};
    size_t count = 0, asked = 0;
    for (const char *cursor = text; cursor != NULL && *cursor != '\0';) {
        part p = read_part(cursor);
        cursor = *p.behind == ',' ? p.behind + 1 : p.behind;
        if (p.name_end == NULL) continue;
        sum.is_given = true;
        char type[SL_GRES_TYPE_BYTES];
        size_t length = p.type_length < sizeof type ? p.type_length : sizeof type - 1, i = 0;
        for (size_t j = 0; j < length; j++) type[j] = (char)tolower((unsigned char)p.type[j]);
        type[length] = '\0';
        while (i < count && strcmp(types[i].type, type) != 0) i++;
        if (i == MOST_TYPES) continue;
        if (i == count) memcpy(types[count++].type, type, length + 1);
        types[i].count = p.count;
    }
    for (size_t i = 0; i < count; i++) {
        if (types[i].count == 0) continue;
        if (asked++ == 0) memcpy(sum.type, types[i].type, sizeof sum.type);
        sum.count = sum.count + types[i].count < MOST_GPUS ? sum.count + types[i].count : MOST_GPUS;
    }
    sum.is_mixed = asked > 1;
    return sum;
}

/* Appends a text and returns the position of the new NUL. */
static char *append(char *cursor, const char *text, size_t length)
{
    memcpy(cursor, text, length);
    cursor[length] = '\0';
    return cursor + length;
}

char *sl_gres_with_type(const char *text, const char *type)
{
    size_t parts = 1, type_length = strlen(type);
    for (const char *cursor = text; *cursor != '\0'; cursor++) parts += *cursor == ',';
    char *out = malloc(strlen(text) + parts * (1 + type_length) + 1), *end = out;
    if (out == NULL) return NULL;
    *end = '\0';
    for (const char *cursor = text; *cursor != '\0';) {
        part p = read_part(cursor);
        bool is_untyped = p.name_end != NULL && p.type_length == 0;
        const char *cut = is_untyped ? p.name_end : p.behind;
        end = append(end, p.text, (size_t)(cut - p.text));
        if (is_untyped) end = append(append(end, ":", 1), type, type_length);
        end = append(end, cut, (size_t)(p.behind - cut));
        cursor = p.behind;
        if (*cursor == ',') end = append(end, cursor++, 1);
    }
    return out;
}
