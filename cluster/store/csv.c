/* csv.c — see csv.h. */
#include "store/csv.h"

#include <stdlib.h>
#include <string.h>

st_csv st_csv_begin(const char *text, size_t size_bytes)
{
    return (st_csv){.at = text, .end = text + size_bytes};
}

void st_csv_end(st_csv *csv)
{
    free(csv->copy);
    csv->copy = NULL;
}

/* Copies the next line, which is terminated; false at the end or without memory. */
static bool take_line(st_csv *csv)
{
    if (csv->at == csv->end || csv->fault != NULL) return false;
    size_t rest = (size_t)(csv->end - csv->at);
    const char *newline = memchr(csv->at, '\n', rest);
    size_t length = newline != NULL ? (size_t)(newline - csv->at) : rest;
    if (length + 1 > csv->copy_size) {
        char *larger = realloc(csv->copy, 2 * length + 64);
        if (larger == NULL) {
            csv->fault = "no memory for a line";
            return false;
        }
        csv->copy = larger;
        csv->copy_size = 2 * length + 64;
    }
    memcpy(csv->copy, csv->at, length);
    csv->copy[length] = '\0';
    csv->at += length + (newline != NULL);
    csv->line++;
    if (memchr(csv->copy, '\0', length) != NULL) csv->fault = "the line has a zero byte";
    return true;
}

static const char *split(st_csv *csv)
{
    csv->count = 0;
    for (char *at = csv->copy;; at++) {
        if (csv->count == ST_MAX_CELLS) return "the line has too many cells";
        while (*at == ' ') at++;
        char *start = at, *to = at;
        bool is_quoted = *at == '"';
        if (is_quoted) at++;
        for (; *at != '\0' && (is_quoted || *at != ','); at++) {
            if (is_quoted && *at == '"') {
                if (at[1] != '"') break;
                at++;
            }
            *to++ = *at;
        }
        if (is_quoted && *at != '"') return "a quote is not closed";
        if (is_quoted) at++;
        while (*at == ' ' || *at == '\r') at++;
        bool is_last = *at == '\0';
        if (!is_last && *at != ',') return "characters follow a closing quote";
        while (!is_quoted && to > start && (to[-1] == ' ' || to[-1] == '\r')) to--;
        *to = '\0';
        csv->cell[csv->count++] = start;
        if (is_last) return NULL;
    }
}

bool st_csv_next(st_csv *csv)
{
    while (take_line(csv)) {
        bool is_empty = csv->copy[strspn(csv->copy, " \t\r")] == '\0' || *csv->copy == '#';
        if (csv->fault == NULL && is_empty) continue;
        if (csv->fault == NULL) csv->fault = split(csv);
        return true;
    }
    return csv->fault != NULL;
}
