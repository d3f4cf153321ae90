/* test_plan_golden.c — every case in tests/golden/plan: a graph and the expected plan.
 *
 * A case reads
 *
 *   === title
 *   … the graph in the notation of graph_notation.h
 *   ---
 *   … the plan's text
 *
 * The graph is inferred and planned without passes. The plan must also verify, and it must compute the graph's values
 * at several lengths. If MDOT_UPDATE_GOLDEN is set, the test rewrites the files with the current plans. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/ops.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"
#include "tests/support/plan_oracle.h"

enum { MAX_CASES = 256, MAX_FILES = 64, MAX_LENGTH = 16 };
#define FOLDER MDOT_SOURCE_DIR "/tests/golden/plan"

typedef struct golden {
    char *title, *graph, *expected, *made;
} golden;

static golden cases[MAX_CASES];
static int case_count;

static char *read_text(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    char *text = NULL;
    size_t size = 0;
    if (getdelim(&text, &size, 0, file) < 0) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

/* Cuts `text` at the next line beginning with `mark`. Returns the text after the mark, or NULL. */
static char *cut(char *text, const char *mark)
{
    char *at = strstr(text, mark);
    if (!at) return NULL;
    *at = 0;
    return at + strlen(mark);
}

static void split_cases(char *text)
{
    for (char *at = cut(text, "=== "); at && case_count < MAX_CASES;) {
        char *next = cut(at, "\n=== ");
        golden *g = &cases[case_count++];
        g->title = at;
        g->graph = cut(at, "\n");
        g->expected = g->graph ? cut(g->graph, "---\n") : NULL;
        at = next;
    }
}

static char *without_last_newlines(char *text)
{
    for (size_t length = strlen(text); length && text[length - 1] == '\n';) text[--length] = 0;
    return text;
}

static void check_case(void **state)
{
    golden *g = *state;
    mdot_error err = {0};
    pl_plan *plan;
    assert_non_null(g->expected);
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = graph_from_notation(g->graph, MAX_LENGTH, arena);
    if (ir_infer(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (pl_build(graph, arena, &plan, &err) != MDOT_OK) fail_msg("%s", err.message);
    g->made = without_last_newlines(strdup(pl_print(plan, arena)));
    if (!getenv("MDOT_UPDATE_GOLDEN")) assert_string_equal(g->made, without_last_newlines(g->expected));
    static const int64_t lengths[] = {1, 2, 5, MAX_LENGTH};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) assert_plan_agrees(graph, plan, lengths[i], 1e-9);
    ir_arena_destroy(arena);
}

static void write_file(const char *path, int first, int end)
{
    FILE *file = fopen(path, "wb");
    if (!file) return;
    for (int i = first; i < end; i++) {
        const golden *g = &cases[i];
        fprintf(file, "%s=== %s\n%s---\n%s\n", i == first ? "" : "\n", g->title, g->graph,
                g->made ? g->made : g->expected);
    }
    fclose(file);
}

static int is_case_file(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".txt") == 0;
}

int main(void)
{
    static struct CMUnitTest tests[MAX_CASES];
    static char paths[MAX_FILES][512];
    static char *texts[MAX_FILES];
    int first_of[MAX_FILES + 1];
    struct dirent **entries;
    int file_count = scandir(FOLDER, &entries, is_case_file, alphasort);
    if (file_count < 1 || file_count > MAX_FILES) return 1;
    for (int i = 0; i < file_count; i++) {
        snprintf(paths[i], sizeof paths[i], "%s/%s", FOLDER, entries[i]->d_name);
        free(entries[i]);
        first_of[i] = case_count;
        texts[i] = read_text(paths[i]);
        if (!texts[i]) return 1;
        split_cases(texts[i]);
    }
    free(entries);
    first_of[file_count] = case_count;
    for (int i = 0; i < case_count; i++)
        tests[i] = (struct CMUnitTest){.name = cases[i].title, .test_func = check_case, .initial_state = &cases[i]};
    int failed = _cmocka_run_group_tests("plan", tests, (size_t)case_count, NULL, NULL);
    for (int i = 0; i < file_count; i++)
        if (getenv("MDOT_UPDATE_GOLDEN")) write_file(paths[i], first_of[i], first_of[i + 1]);
    for (int i = 0; i < case_count; i++) free(cases[i].made);
    for (int i = 0; i < file_count; i++) free(texts[i]);
    return failed;
}
