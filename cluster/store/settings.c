/* settings.c — see settings.h. */
#include "store/settings.h"

#include <stdlib.h>
#include <string.h>

static bool is_listed(const char *const *names, const char *name, size_t length)
{
    for (; *names != NULL; names++)
        if (strlen(*names) == length && memcmp(name, *names, length) == 0) return true;
    return false;
}

bool st_is_reading_setting(const char *name, size_t length)
{
    static const char *const names[] = {"dim", "frozen", "trained", NULL};
    return is_listed(names, name, length);
}

bool st_is_field(const char *name, size_t length)
{
    static const char *const names[] = {"row", "job",      "name", "digest",    "gpu",  "batch",       "ms",
                                        "gib", "software", "host", "predictor", "note", "measured_at", NULL};
    return is_listed(names, name, length);
}

bool st_next_setting(const char **io_at, st_setting *out)
{
    const char *cursor = *io_at;
    while (*cursor == '\n') cursor++;
    size_t length = strcspn(cursor, "\n");
    const char *equals = memchr(cursor, '=', length);
    if (equals == NULL || equals == cursor) return false;
    *out = (st_setting){.name = cursor,
                        .name_length = (size_t)(equals - cursor),
                        .value = equals + 1,
                        .value_length = length - (size_t)(equals + 1 - cursor)};
    *io_at = cursor + length;
    return true;
}

static int compare(const void *left, const void *right)
{
    const st_setting *a = left, *b = right;
    size_t common = a->name_length < b->name_length ? a->name_length : b->name_length;
    int order = memcmp(a->name, b->name, common);
    return order != 0 ? order : (a->name_length > b->name_length) - (a->name_length < b->name_length);
}

static const char *fault_of(const st_setting *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (st_is_field(list[i].name, list[i].name_length)) return "a setting has the name of another column";
        for (size_t k = 0; k < list[i].name_length; k++) {
            unsigned char c = (unsigned char)list[i].name[k];
            if (c <= ' ' || c == ',' || c == '"' || c == '#' || c == 127)
                return "the name of a setting has blanks, commas, quotes or number signs";
        }
        for (size_t k = 0; k < list[i].value_length; k++)
            if (list[i].value[k] == '\r') return "a setting has more than one line";
        if (i > 0 && compare(&list[i - 1], &list[i]) == 0) return "a setting appears twice";
    }
    return NULL;
}

static char *join(const st_setting *list, size_t count, size_t size)
{
    char *text = malloc(size + 1), *target = text;
    if (text == NULL) return NULL;
    for (size_t i = 0; i < count; i++) {
        if (list[i].value_length == 0) continue;
        if (target > text) *target++ = '\n';
        size_t length = list[i].name_length + 1 + list[i].value_length;
        memcpy(target, list[i].name, length); /* name, '=' and value are adjacent */
        target += length;
    }
    *target = '\0';
    return text;
}

char *st_sort_settings(const char *settings, const char **out_fault)
{
    const char *cursor = settings != NULL ? settings : "";
    size_t size = strlen(cursor), maximum = 1, count = 0;
    for (const char *c = cursor; *c != '\0'; c++) maximum += *c == '\n';
    st_setting *list = malloc(maximum * sizeof *list);
    *out_fault = NULL;
    if (list == NULL) return NULL;
    while (st_next_setting(&cursor, &list[count])) count++;
    while (*cursor == '\n') cursor++;
    if (*cursor != '\0') {
        *out_fault = "a setting is not of the form name=value";
    } else {
        qsort(list, count, sizeof *list, compare);
        *out_fault = fault_of(list, count);
    }
    char *sorted = *out_fault == NULL ? join(list, count, size) : NULL;
    free(list);
    return sorted;
}

char *st_strip_reading(const char *settings)
{
    char *text = malloc(strlen(settings) + 1), *target = text;
    st_setting s;
    if (text == NULL) return NULL;
    for (const char *cursor = settings; st_next_setting(&cursor, &s);) {
        if (st_is_reading_setting(s.name, s.name_length)) continue;
        if (target > text) *target++ = '\n';
        size_t length = s.name_length + 1 + s.value_length;
        memcpy(target, s.name, length);
        target += length;
    }
    *target = '\0';
    return text;
}
