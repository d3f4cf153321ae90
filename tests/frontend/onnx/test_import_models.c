/* test_import_models.c — published files from ../shared/onnx: each imports, or is refused with a message. */
#include "tests/support/assertions.h"
#include "tests/support/frontend_fixture.h"

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

typedef struct tally {
    int imported, refused;
} tally;

static void visit_model(const char *path, bool must_import, tally *counts)
{
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = NULL;
    mdot_error err = {0};
    if (fe_import(path, NULL, arena, &graph, &err) == MDOT_OK) {
        if (ir_graph_verify(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
        counts->imported++;
    } else {
        if (must_import) fail_msg("%s", err.message);
        assert_non_null(strstr(err.message, path));
        counts->refused++;
    }
    ir_arena_destroy(arena);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* Every .onnx file below `folder`. */
static void visit_folder(const char *folder, bool must_import, tally *counts)
{
    DIR *open_folder = opendir(folder);
    if (!open_folder) return;
    struct dirent *entry;
    while ((entry = readdir(open_folder))) {
        char path[1024];
        struct stat info;
        if (entry->d_name[0] == '.') continue;
        if (snprintf(path, sizeof path, "%s/%s", folder, entry->d_name) >= (int)sizeof path || stat(path, &info))
            continue;
        if (S_ISDIR(info.st_mode))
            visit_folder(path, must_import, counts);
        else if (ends_with(path, ".onnx"))
            visit_model(path, must_import, counts);
    }
    closedir(open_folder);
}

static tally visit(const char *name, bool must_import)
{
    char folder[1024];
    tally counts = {0};
    snprintf(folder, sizeof folder, "%s/%s", MDOT_SHARED_ONNX, name);
    if (access(folder, R_OK) != 0) {
        print_message("skipped: %s is absent\n", folder);
        skip();
    }
    visit_folder(folder, must_import, &counts);
    assert_compare(counts.imported + counts.refused, >, 0);
    return counts;
}

static void node_tests_import(void **state)
{
    (void)state;
    visit("node", true);
}

static void light_networks_import(void **state)
{
    (void)state;
    visit("light", true);
}

static void predictors_import(void **state)
{
    (void)state;
    visit("predictor", true);
}

static void real_models_import_or_report_the_reason(void **state)
{
    (void)state;
    static const char *const folders[] = {"real/cnn", "real/transformer", "real/training"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_compare(visit(folders[i], false).imported, >, 0);
}

static void hostile_files_are_refused(void **state)
{
    (void)state;
    assert_int_equal(visit("real/negative/gen", false).imported, 0);
    assert_compare(visit("real/negative", false).refused, >, 0);
}

static imported import_shared(const char *name, const fe_options *options)
{
    char path[1024];
    imported m = {.arena = ir_arena_create(0)};
    snprintf(path, sizeof path, "%s/%s", MDOT_SHARED_ONNX, name);
    if (access(path, R_OK) != 0) {
        ir_arena_destroy(m.arena);
        print_message("skipped: %s is absent\n", path);
        skip();
    }
    m.status = fe_import(path, options, m.arena, &m.graph, &m.err);
    if (m.status != MDOT_OK) fail_msg("%s", m.err.message);
    return m;
}

static void reference_predictor_has_its_length_and_inputs(void **state)
{
    (void)state;
    imported m = import_shared("predictor/reference_a/model.onnx", NULL);
    assert_string_equal(m.graph->symbol, "N");
    assert_int_equal(m.graph->input_count, 5);
    assert_string_equal(m.graph->outputs[0]->name, "latency");
    release(&m);
}

/* 185 local functions, and weights removed from the file, as in files for the job reader. */
static void functions_of_an_exporter_are_inlined(void **state)
{
    (void)state;
    fe_options options = {.skip_weights = true};
    imported m = import_shared("real/cnn/mobilenetv2_100_dynamo.onnx", &options);
    for (const ir_node *node = m.graph->first; node; node = node->next) assert_null(strstr(node->op_type, "pkg."));
    assert_compare(node_count(m.graph), >, 100);
    release(&m);
}

/* A real file, truncated at every 64th byte, is refused every time. */
static void truncated_real_model_is_refused(void **state)
{
    (void)state;
    char path[1024];
    snprintf(path, sizeof path, "%s/real/transformer/bert_toy_optimized.onnx", MDOT_SHARED_ONNX);
    FILE *file = fopen(path, "rb");
    if (!file) {
        print_message("skipped: %s is absent\n", path);
        skip();
    }
    static unsigned char bytes[1 << 16];
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (size_t cut = 0; cut < size; cut += 64) {
        unsigned char *copy = malloc(cut ? cut : 1);
        assert_non_null(copy);
        memcpy(copy, bytes, cut);
        ir_arena *arena = ir_arena_create(0);
        ir_graph *graph = NULL;
        mdot_error err = {0};
        assert_int_not_equal(fe_import_bytes(copy, cut, "cut", NULL, NULL, arena, &graph, &err), MDOT_OK);
        assert_non_null(strstr(err.message, "cut"));
        ir_arena_destroy(arena);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_tests_import),
        cmocka_unit_test(light_networks_import),
        cmocka_unit_test(predictors_import),
        cmocka_unit_test(real_models_import_or_report_the_reason),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(reference_predictor_has_its_length_and_inputs),
        cmocka_unit_test(functions_of_an_exporter_are_inlined),
        cmocka_unit_test(truncated_real_model_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
