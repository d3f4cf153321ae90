/* results.c — measured figures in documents. They stand in weights/results/FILE.csv, whose first column is the key:
 *
 *     <!--=FILE.KEY.COLUMN-->8.5<!--/-->            one value
 *     <!--rows FILE: | {COLUMN} | {COLUMN} % |-->   a table: two lines of head, which stay, and one line for each row
 *     <!--/-->
 */
#include "scripts/tables/tables.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_MAX = 32, NAME_SIZE = 64 };
static const char end_mark[] = "<!--/-->";

/* One line of a file. Cells have neither quotes nor line ends inside. */
typedef struct line {
    char *cells[CELLS_MAX];
    size_t count;
} line;

/* Divides the line at `cursor`, in place. A cell with a comma is in quotes. Returns the start of the next line. */
static char *divide(char *cursor, line *out)
{
    *out = (line){0};
    for (bool is_last = false; !is_last && out->count < CELLS_MAX;) {
        bool is_quoted = *cursor == '"';
        char *cell = cursor + is_quoted;
        cursor = cell + strcspn(cell, is_quoted ? "\"\n" : ",\n");
        out->cells[out->count++] = cell;
        if (is_quoted && *cursor == '"') *cursor++ = '\0';
        is_last = *cursor != ',';
        if (*cursor != '\0') *cursor++ = '\0';
    }
    return cursor;
}

static const char *find_cell(const line *head, const line *row, const char *column, size_t length)
{
    for (size_t i = 0; i < head->count && i < row->count; i++)
        if (strlen(head->cells[i]) == length && strncmp(head->cells[i], column, length) == 0) return row->cells[i];
    return NULL;
}

static char *read_results(const char *tree, const char *name, size_t length)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/weights/results/%.*s.csv", tree, (int)length, name);
    return tables_read_text(path);
}

/* Writes the value that "FILE.KEY.COLUMN" names. */
static bool write_value(const char *tree, const char *name, size_t length, FILE *out)
{
    char key[4 * NAME_SIZE];
    if (length >= sizeof key) return false;
    memcpy(key, name, length);
    key[length] = '\0';
    char *row_name = strchr(key, '.'), *column = row_name != NULL ? strrchr(row_name + 1, '.') : NULL;
    if (column == NULL) return false;
    *row_name++ = *column++ = '\0';
    char *text = read_results(tree, key, strlen(key));
    if (text == NULL) return false;
    line head, row;
    const char *value = NULL;
    for (char *cursor = divide(text, &head); *cursor != '\0' && value == NULL;) {
        cursor = divide(cursor, &row);
        if (strcmp(row.cells[0], row_name) == 0) value = find_cell(&head, &row, column, strlen(column));
    }
    if (value != NULL) fputs(value, out);
    free(text);
    return value != NULL;
}

static bool write_row(const char *template, size_t length, const line *head, const line *row, FILE *out)
{
    for (const char *cursor = template; cursor < template + length; cursor++) {
        if (*cursor != '{') {
            fputc(*cursor, out);
            continue;
        }
        size_t name_length = strcspn(++cursor, "}");
        const char *value = find_cell(head, row, cursor, name_length);
        if (value == NULL) return false;
        fputs(value, out);
        cursor += name_length;
    }
    fputc('\n', out);
    return true;
}

/* Writes the rows that "rows FILE: TEMPLATE" names. */
static bool write_rows(const char *tree, const char *name, size_t length, FILE *out)
{
    size_t name_length = strcspn(name, ":");
    if (name_length + 2 >= length) return false;
    char *text = read_results(tree, name, name_length);
    if (text == NULL) return false;
    line head, row;
    bool succeeds = true;
    for (char *cursor = divide(text, &head); *cursor != '\0' && succeeds;) {
        cursor = divide(cursor, &row);
        succeeds = write_row(name + name_length + 2, length - name_length - 2, &head, &row, out);
    }
    free(text);
    return succeeds;
}

/* The two lines after the mark: the head of a table. */
static size_t head_length(const char *text)
{
    size_t length = 0;
    for (int i = 0; i < 3 && text[length] != '\0'; i++) length += strcspn(text + length, "\n") + 1;
    return length;
}

/* Writes the part from the mark at `begin` to the end mark with today's figures. Returns the text behind, or NULL. */
static const char *write_marked(const char *tree, const char *begin, FILE *out)
{
    static const char rows[] = "rows ";
    const char *name = begin + strlen("<!--"), *close = strstr(name, "-->");
    const char *end = close != NULL ? strstr(close, end_mark) : NULL;
    if (end == NULL) return NULL;
    bool is_table = strncmp(name, rows, strlen(rows)) == 0;
    name += is_table ? strlen(rows) : 1;
    size_t kept = is_table ? head_length(close) : strlen("-->");
    fwrite(begin, 1, (size_t)(close - begin) + kept, out);
    bool succeeds = (is_table ? write_rows : write_value)(tree, name, (size_t)(close - name), out);
    return succeeds ? end : NULL;
}

char *tables_replace_figures(const char *tree, const char *page, const char *old)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    const char *cursor = old;
    for (const char *begin = old; cursor != NULL && (begin = strstr(begin, "<!--")) != NULL;) {
        if (begin[4] != '=' && strncmp(begin + 4, "rows ", 5) != 0) {
            begin += 4;
            continue;
        }
        fwrite(cursor, 1, (size_t)(begin - cursor), out);
        bool breaks_line =
            begin[4] == '=' && (begin == old || begin[-1] == '\n'); /* Markdown would take the line as HTML */
        cursor = breaks_line ? NULL : write_marked(tree, begin, out);
        if (cursor == NULL)
            fprintf(stderr, "write_tables: %s: no result for %.60s\n", page, begin);
        else
            begin = cursor;
    }
    if (cursor != NULL) fputs(cursor, out);
    fclose(out);
    if (cursor != NULL) return text;
    free(text);
    return NULL;
}
