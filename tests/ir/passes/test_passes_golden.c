/* test_passes_golden.c — every case of tests/golden/passes: a graph, the passes to run, and the expected graph. The
 * graphs before and after must also evaluate to the same values.
 *
 * A case reads
 *
 *   === title
 *   passes: norms                  (or `all`)
 *   tolerance: 1e-6                (optional; default 1e-9, for cases that round no constant to f32)
 *   … the graph in the notation of graph_notation.h
 *   ---
 *   … the graph afterwards, or the word `unchanged`
 *
 * Types are inferred first unless the passes begin with `infer` or `all`. If MDOT_UPDATE_GOLDEN is set, the test
 * rewrites the files with the current output of the passes.
 */
#include "ir/ops.h"
#include "ir/passes.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_CASES = 512, MAX_LENGTH = 16 };
#define FOLDER MDOT_SOURCE_DIR "/tests/golden/passes"

typedef struct golden {
    char *title, *passes, *graph, *expected, *made;
    double tolerance;
} golden;

static golden cases[MAX_CASES];
static char *file_texts[MAX_CASES];
static int case_count;

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = calloc(1, (size_t)size + 1);
    if (text && fread(text, 1, (size_t)size, file) != (size_t)size) text[0] = 0;
    fclose(file);
    return text;
}

/* Takes "key: value\n" from *at. */
static char *take_field(char **at, const char *key)
{
    size_t length = strlen(key);
    if (strncmp(*at, key, length) != 0) return NULL;
    char *value = *at + length;
    char *end = strchr(value, '\n');
    *end = 0;
    *at = end + 1;
    return value;
}

/* Splits a file in place. */
static void split_cases(char *text)
{
    char *at = strstr(text, "=== ");
    while (at && case_count < MAX_CASES) {
        golden *g = &cases[case_count++];
        char *next = strstr(at, "\n=== ");
        if (next) *next++ = 0;
        *g = (golden){.tolerance = 1e-9, .title = take_field(&at, "=== "), .passes = take_field(&at, "passes: ")};
        const char *tolerance = take_field(&at, "tolerance: ");
        if (tolerance) g->tolerance = strtod(tolerance, NULL);
        g->graph = at;
        g->expected = strstr(at, "---\n");
        if (g->expected) {
            *g->expected = 0;
            g->expected += 4;
        }
        at = next;
    }
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

static int is_case_file(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".txt") == 0;
}

static void run_passes(ir_graph *graph, const char *names)
{
    mdot_error err = {0};
    mdot_status status = MDOT_OK;
    char *copy = strdup(names), *rest;
    for (char *name = strtok_r(copy, " ", &rest); name && status == MDOT_OK; name = strtok_r(NULL, " ", &rest)) {
        bool changed;
        status = strcmp(name, "all") == 0 ? ir_run_passes(graph, NULL, &err) : ir_run_pass(graph, name, &changed, &err);
    }
    free(copy);
    if (status != MDOT_OK) fail_msg("%s", err.message);
}

static void check_case(void **state)
{
    golden *g = *state;
    mdot_error err = {0};
    assert_non_null(g->passes);
    assert_non_null(g->expected);
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation(g->graph, MAX_LENGTH, arena);
    bool infers_itself = strncmp(g->passes, "infer", 5) == 0 || strncmp(g->passes, "all", 3) == 0;
    if (!infers_itself && ir_infer(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    ir_graph *result = ir_graph_clone(graph, arena);
    const char *before = graph_to_golden(graph, arena);
    run_passes(result, g->passes);
    if (ir_graph_verify(result, &err) != MDOT_OK) fail_msg("%s", err.message);
    const char *made = graph_to_golden(result, arena);
    g->made = strdup(strcmp(before, made) == 0 ? "unchanged\n" : made);
    if (!getenv("MDOT_UPDATE_GOLDEN")) {
        size_t length = strlen(g->expected);
        while (length && g->expected[length - 1] == '\n') length--;
        g->expected[length] = 0;
        size_t made_length = strlen(g->made);
        while (made_length && g->made[made_length - 1] == '\n') g->made[--made_length] = 0;
        assert_string_equal(g->made, g->expected);
    }
    static const int64_t lengths[] = {1, 5, MAX_LENGTH};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        assert_same_values(graph, result, lengths[i], g->tolerance);
    }
    ir_arena_destroy(arena);
}

static void write_file(const char *path, int first, int end)
{
    FILE *file = fopen(path, "wb");
    if (!file) return;
    for (int i = first; i < end; i++) {
        const golden *g = &cases[i];
        fprintf(file, "%s=== %s\npasses: %s\n", i == first ? "" : "\n", g->title, g->passes);
        if (g->tolerance != 1e-9) fprintf(file, "tolerance: %g\n", g->tolerance);
        fprintf(file, "%s---\n%s", g->graph, g->made ? g->made : g->expected);
    }
    fclose(file);
}

int main(void)
{
    struct dirent **entries;
    static struct CMUnitTest tests[MAX_CASES];
    static char paths[MAX_CASES][512];
    int first_of[MAX_CASES + 1];
    int file_count = scandir(FOLDER, &entries, is_case_file, by_name);
    if (file_count < 1 || file_count > MAX_CASES) return 1;
    for (int i = 0; i < file_count; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", FOLDER, entries[i]->d_name);
        first_of[i] = case_count;
        file_texts[i] = read_text(paths[i]);
        if (!file_texts[i]) return 1;
        split_cases(file_texts[i]);
        free(entries[i]);
    }
    free(entries);
    first_of[file_count] = case_count;
    for (int i = 0; i < case_count; i++) {
        tests[i] = (struct CMUnitTest){.name = cases[i].title, .test_func = check_case, .initial_state = &cases[i]};
    }
    int failed = _cmocka_run_group_tests("passes", tests, (size_t)case_count, NULL, NULL);
    for (int i = 0; i < file_count; i++) {
        if (getenv("MDOT_UPDATE_GOLDEN")) write_file(paths[i], first_of[i], first_of[i + 1]);
    }
    for (int i = 0; i < case_count; i++) free(cases[i].made);
    for (int i = 0; i < file_count; i++) free(file_texts[i]);
    return failed;
}
