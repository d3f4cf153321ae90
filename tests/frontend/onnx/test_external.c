/* test_external.c — external data, which may only be read from the model's folder, and invalid files. */
#include "tests/support/assertions.h"
#include "tests/support/frontend_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* A folder with model/, model/sub/weights.bin, and secret.bin beside model/. */
typedef struct sandbox {
    char root[64], model[96];
} sandbox;

static void write_floats(const char *folder, const char *name, int count)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (int i = 0; i < count; i++) {
        float value = (float)i;
        assert_int_equal(fwrite(&value, sizeof value, 1, file), 1);
    }
    assert_int_equal(fclose(file), 0);
}

static int make_sandbox(void **state)
{
    sandbox *s = calloc(1, sizeof *s);
    assert_non_null(s);
    strcpy(s->root, "/tmp/mdot-external-XXXXXX");
    assert_non_null(mkdtemp(s->root));
    snprintf(s->model, sizeof s->model, "%s/model", s->root);
    char path[256];
    assert_int_equal(mkdir(s->model, 0700), 0);
    snprintf(path, sizeof path, "%s/sub", s->model);
    assert_int_equal(mkdir(path, 0700), 0);
    write_floats(s->root, "secret.bin", 8);
    write_floats(s->model, "weights.bin", 8);
    write_floats(s->model, "sub/weights.bin", 8);
    *state = s;
    return 0;
}

static void remove_in(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (unlink(path) != 0) (void)rmdir(path);
}

static int remove_sandbox(void **state)
{
    sandbox *s = *state;
    static const char *const names[] = {"link.bin",    "hard.bin",        "folder-link", "pipe",
                                        "weights.bin", "sub/weights.bin", "sub"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) remove_in(s->model, names[i]);
    remove_in(s->root, "secret.bin");
    remove_in(s->root, "model");
    assert_int_equal(rmdir(s->root), 0);
    free(s);
    return 0;
}

static void put_entry(pb_buffer *tensor, const char *key, const char *value)
{
    pb_buffer entry = {0};
    pb_text(&entry, 1, key);
    pb_text(&entry, 2, value);
    pb_message(tensor, 13, &entry);
}

/* x + w, where w: f32[shape] is in another file. NULL omits the entry. */
static pb_buffer model_with(const char *shape, const char *location, const char *offset, const char *length)
{
    onnx_builder *b = onnx_begin(17);
    pb_buffer tensor = onnx_tensor_head("w", MDOT_DTYPE_F32, shape);
    if (location) put_entry(&tensor, "location", location);
    if (offset) put_entry(&tensor, "offset", offset);
    if (length) put_entry(&tensor, "length", length);
    pb_int(&tensor, 14, 1);
    onnx_graph_raw(b, 5, &tensor);
    onnx_input(b, "x", MDOT_DTYPE_F32, shape);
    onnx_node(b, "Add", "x,w", "y");
    onnx_output(b, "y");
    return onnx_finish(b);
}

static void expect_refusal(const char *folder, pb_buffer bytes, const char *part)
{
    imported m = import_bytes(bytes, folder, NULL);
    assert_int_equal(m.status, MDOT_MALFORMED);
    assert_non_null(strstr(m.err.message, "initializer 'w'"));
    if (!strstr(m.err.message, part)) fail_msg("\"%s\" lacks \"%s\"", m.err.message, part);
    release(&m);
}

static const float *weights_of(const imported *m)
{
    if (m->status != MDOT_OK) fail_msg("%s", m->err.message);
    return node_at(m->graph, 0)->inputs[1]->constant->data;
}

static void whole_file_is_read(void **state)
{
    sandbox *s = *state;
    imported m = import_bytes(model_with("8", "weights.bin", NULL, NULL), s->model, NULL);
    assert_compare(weights_of(&m)[7], ==, 7);
    release(&m);
}

static void part_of_a_file_in_a_subfolder_is_read(void **state)
{
    sandbox *s = *state;
    imported m = import_bytes(model_with("2", "sub/weights.bin", "12", "8"), s->model, NULL);
    assert_compare(weights_of(&m)[0], ==, 3);
    assert_compare(weights_of(&m)[1], ==, 4);
    release(&m);
}

static void unaligned_data_is_aligned(void **state)
{
    sandbox *s = *state;
    imported m = import_bytes(model_with("1", "weights.bin", "13", "4"), s->model, NULL);
    assert_int_equal((uintptr_t)weights_of(&m) % sizeof(float), 0);
    release(&m);
}

static void locations_outside_of_the_folder_are_refused(void **state)
{
    sandbox *s = *state;
    static const char *const locations[] = {
        "../secret.bin", "sub/../../secret.bin", "..", "./weights.bin", "sub//weights.bin", "sub/", ""};
    for (size_t i = 0; i < sizeof locations / sizeof *locations; i++) {
        expect_refusal(s->model, model_with("2", locations[i], NULL, NULL),
                       *locations[i] ? "move the file into the model's folder" : "location");
    }
    char absolute[256];
    snprintf(absolute, sizeof absolute, "%s/weights.bin", s->model);
    expect_refusal(s->model, model_with("2", absolute, NULL, NULL), "absolute");
}

static void symbolic_links_are_refused(void **state)
{
    sandbox *s = *state;
    char link[256];
    snprintf(link, sizeof link, "%s/link.bin", s->model);
    assert_int_equal(symlink("../secret.bin", link), 0);
    expect_refusal(s->model, model_with("2", "link.bin", NULL, NULL), "symbolic link");
    snprintf(link, sizeof link, "%s/folder-link", s->model);
    assert_int_equal(symlink("..", link), 0);
    expect_refusal(s->model, model_with("2", "folder-link/secret.bin", NULL, NULL), "symbolic link");
}

static void hard_links_are_refused(void **state)
{
    sandbox *s = *state;
    char from[256], to[256];
    snprintf(from, sizeof from, "%s/secret.bin", s->root);
    snprintf(to, sizeof to, "%s/hard.bin", s->model);
    assert_int_equal(link(from, to), 0);
    expect_refusal(s->model, model_with("2", "hard.bin", NULL, NULL), "hard link");
}

static void irregular_files_are_refused(void **state)
{
    sandbox *s = *state;
    char path[256];
    snprintf(path, sizeof path, "%s/pipe", s->model);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_refusal(s->model, model_with("2", "pipe", NULL, NULL), "not a regular file");
    expect_refusal(s->model, model_with("2", "sub", NULL, NULL), "not a regular file");
    expect_refusal(s->model, model_with("2", "absent.bin", NULL, NULL),
                   "'absent.bin': the file is absent; put it into the model's folder");
    expect_refusal(s->model, model_with("2", "weights.bin/x", NULL, NULL), strerror(ENOTDIR));
}

static void ranges_beyond_the_file_are_refused(void **state)
{
    sandbox *s = *state;
    static const struct {
        const char *shape, *offset, *length, *part;
    } cases[] = {
        {"9", NULL, NULL, "the tensor has 36 bytes"},
        {"2", "28", "8", "of a file of 32 bytes"},
        {"2", "33", "8", "of a file of 32 bytes"},
        {"2", "9223372036854775807", "8", "of a file of 32 bytes"},
        {"2", "0", "12", "the tensor has 8 bytes, but the reference is to 12"},
        {"2", "9223372036854775808", "8", "instead of a number"},
        {"2", "-4", "8", "instead of a number"},
        {"2", "0x4", "8", "instead of a number"},
        {"2", "", "8", "instead of a number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_refusal(s->model, model_with(cases[i].shape, "weights.bin", cases[i].offset, cases[i].length),
                       cases[i].part);
    }
}

static void missing_location_is_refused(void **state)
{
    sandbox *s = *state;
    expect_refusal(s->model, model_with("2", NULL, NULL, NULL), "lacks a location");
}

static void model_without_a_folder_has_no_external_data(void **state)
{
    (void)state;
    expect_refusal(NULL, model_with("2", "weights.bin", NULL, NULL), "requires a model that is read from a file");
}

static void skipped_weights_need_no_file(void **state)
{
    (void)state;
    fe_options options = {.skip_weights = true};
    imported m = import_bytes(model_with("100", "absent.bin", NULL, NULL), NULL, &options);
    assert_null(weights_of(&m));
    assert_int_equal(node_at(m.graph, 0)->inputs[1]->constant->count, 100);
    release(&m);
}

static mdot_status import_path(const char *path, mdot_error *err)
{
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = NULL;
    mdot_status status = fe_import(path, NULL, arena, &graph, err);
    ir_arena_destroy(arena);
    return status;
}

static void model_file_is_read_with_its_folder(void **state)
{
    sandbox *s = *state;
    char path[256];
    snprintf(path, sizeof path, "%s/weights.onnx", s->model);
    pb_buffer bytes = model_with("8", "weights.bin", NULL, NULL);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
    assert_int_equal(fclose(file), 0);
    pb_free(&bytes);
    mdot_error err = {0};
    assert_int_equal(import_path(path, &err), MDOT_OK);
    assert_int_equal(unlink(path), 0);
}

static void files_of_other_types_are_refused(void **state)
{
    sandbox *s = *state;
    char path[256];
    mdot_error err = {0};
    assert_int_equal(import_path(s->model, &err), MDOT_IO);
    assert_non_null(strstr(err.message, "a directory"));
    snprintf(path, sizeof path, "%s/absent.onnx", s->model);
    assert_int_equal(import_path(path, &err), MDOT_NOT_FOUND);
    assert_non_null(strstr(err.message, "absent.onnx"));
    write_floats(s->model, "pipe", 0);
    snprintf(path, sizeof path, "%s/pipe", s->model);
    assert_int_equal(import_path(path, &err), MDOT_MALFORMED);
    assert_non_null(strstr(err.message, "empty"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(import_path(path, &err), MDOT_IO);
    assert_non_null(strstr(err.message, "not a regular file"));
    assert_int_equal(unlink(path), 0);
    write_floats(s->model, "pipe", 1);
    if (geteuid() != 0) { /* root may read every file */
        assert_int_equal(chmod(path, 0), 0);
        assert_int_equal(import_path(path, &err), MDOT_IO);
    }
}

#define IN_SANDBOX(test) cmocka_unit_test_setup_teardown(test, make_sandbox, remove_sandbox)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_SANDBOX(whole_file_is_read),
        IN_SANDBOX(part_of_a_file_in_a_subfolder_is_read),
        IN_SANDBOX(unaligned_data_is_aligned),
        IN_SANDBOX(locations_outside_of_the_folder_are_refused),
        IN_SANDBOX(symbolic_links_are_refused),
        IN_SANDBOX(hard_links_are_refused),
        IN_SANDBOX(irregular_files_are_refused),
        IN_SANDBOX(ranges_beyond_the_file_are_refused),
        IN_SANDBOX(missing_location_is_refused),
        cmocka_unit_test(model_without_a_folder_has_no_external_data),
        cmocka_unit_test(skipped_weights_need_no_file),
        IN_SANDBOX(model_file_is_read_with_its_folder),
        IN_SANDBOX(files_of_other_types_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
