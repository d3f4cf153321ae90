/* write_tables.c — writes the files and file parts that come from the tables in C, or checks that they are up to date:
 *
 *     write_tables TREE [--check]
 *
 * With --check it changes nothing, and the exit status is 1 if a file differs. A part lies between a line with the
 * first mark and a line with the last mark; both lines stay. */
#include "scripts/tables/tables.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct part {
    const char *path;
    const char *first, *last; /* NULL: the whole file */
    void (*write)(FILE *out);
} part;

static const part parts[] = {
    {"docs/schema.json", NULL, NULL, tables_write_schema},
    {"docs/reference/configuration.md", NULL, NULL, tables_write_reference},
    {"docs/predict.schema.json", "\"required\": [\"gpu\",", "\"step_ms\", \"lower_ms\"", tables_write_json_required},
    {"docs/predict.schema.json", "the swept dimension's value; absent", "\"step_ms\": {", tables_write_json_members},
    {"bindings/python/mdot/options.py", NULL, NULL, tables_write_python},
    {"bindings/python/mdot/option_words.py", NULL, NULL, tables_write_python_words},
};

/* Pages whose marked figures come from weights/results (results.c). */
static const char *const pages[] = {
    "README.md",
    "weights/MODEL_CARD.md",
    "docs/explanation/accuracy.md",
    "docs/explanation/memory-accuracy.md",
    "docs/explanation/prediction.md",
    "docs/explanation/related-work.md",
    "docs/explanation/speed.md",
};

char *tables_read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) return NULL;
    char *text = NULL;
    size_t size = 0, used = 0, got = 1;
    while (got > 0) {
        if (used + 1 >= size) {
            size = size == 0 ? 1 << 16 : 2 * size;
            char *longer = realloc(text, size);
            if (longer == NULL) break;
            text = longer;
        }
        got = fread(text + used, 1, size - used - 1, file);
        used += got;
    }
    fclose(file);
    if (text != NULL) text[used] = '\0';
    return text;
}

/* Returns the text of the file with the part replaced; NULL if a mark is missing. The caller frees it. */
static char *replace(const char *old, const part *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL) return NULL;
    if (p->first == NULL) {
        p->write(out);
        fclose(out);
        return text;
    }
    const char *start = old != NULL ? strstr(old, p->first) : NULL;
    if (start != NULL) start = strchr(start, '\n');
    const char *end = start != NULL ? strstr(start, p->last) : NULL;
    while (end != NULL && end > start && end[-1] != '\n') end--;
    if (end != NULL) {
        fwrite(old, 1, (size_t)(start + 1 - old), out);
        p->write(out);
        fputs(end, out);
    }
    fclose(out);
    if (end != NULL) return text;
    free(text);
    return NULL;
}

static bool write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) return false;
    bool is_written = fputs(text, file) >= 0;
    return fclose(file) == 0 && is_written;
}

/* Returns false, with a message, if the file cannot be made, or differs where it is only checked. Without `p`, the file
 * is a page with marked figures. */
static bool update(const char *tree, const char *name, const part *p, bool only_checks)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", tree, name);
    char *old = tables_read_text(path);
    char *text = p != NULL ? replace(old, p) : old != NULL ? tables_replace_figures(tree, path, old) : NULL;
    bool is_current = old != NULL && text != NULL && strcmp(old, text) == 0, succeeds = is_current;
    if (text == NULL && p == NULL)
        fprintf(stderr, "write_tables: %s is unchanged\n", path);
    else if (text == NULL)
        fprintf(stderr, "write_tables: %s lacks the line \"%s\" or \"%s\"\n", path, p->first, p->last);
    else if (!is_current && only_checks)
        fprintf(stderr, "write_tables: %s differs from the tables; run scripts/write-tables.sh\n", path);
    else if (!is_current && !(succeeds = write_text(path, text)))
        perror(path);
    free(old);
    free(text);
    return succeeds;
}

int main(int argc, char **argv)
{
    bool only_checks = argc == 3 && strcmp(argv[2], "--check") == 0, succeeds = true;
    if (argc != 2 && !only_checks) {
        fprintf(stderr, "Usage: write_tables TREE [--check]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        succeeds &= update(argv[1], parts[i].path, &parts[i], only_checks);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) succeeds &= update(argv[1], pages[i], NULL, only_checks);
    return succeeds ? 0 : 1;
}
