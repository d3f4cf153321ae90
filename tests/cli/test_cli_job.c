/* test_cli_job.c — invalid jobs from the user's view: both `mdot extract` and `mdot predict` refuse each with its name
 * and the reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "tests/support/assertions.h"
#include "tests/support/encoder_model.h"
#include "tests/support/process.h"

enum { FAILED = 1, USAGE = 2 };

typedef struct fixture {
    char *folder;
    process_result result;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL) return -1;
    f->folder = process_make_folder();
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    process_remove_folder(f->folder);
    free(f);
    return 0;
}

/* Both commands end with `status`, print nothing to stdout, and their messages contain `first` and `second`. `extra`
 * may be NULL. */
static void expect_refused(fixture *f, const char *job, const char *extra, int status, const char *first,
                           const char *second)
{
    const char *const extract[] = {MDOT_CLI, "extract", job, extra, NULL};
    const char *const predict[] = {MDOT_CLI, "predict", "--gpu=T4", job, extra, NULL};
    const char *const *const lines[] = {extract, predict};
    for (int i = 0; i < 2; i++) {
        process_run(lines[i], &f->result);
        if (f->result.status != status) fail_msg("mdot %s: exit status %d", lines[i][1], f->result.status);
        assert_string_equal(f->result.out, "");
        expect_contains(f->result.err, first);
        expect_contains(f->result.err, second);
        if (strchr(f->result.err, '\n') != strrchr(f->result.err, '\n')) fail_msg("several lines:\n%s", f->result.err);
    }
}

static pb_buffer linear(const char *shape)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, shape);
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "64,10", NULL);
    onnx_node(b, "MatMul", "x,w", "y");
    onnx_output(b, "y");
    return onnx_finish(b);
}

/* The bytes of a file, malloc'ed. */
static unsigned char *read_bytes(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    *out_size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*out_size);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *out_size, file), *out_size);
    fclose(file);
    return bytes;
}

static char *write_bytes(const char *folder, const char *name, const void *bytes, size_t size)
{
    char *path = NULL;
    assert_compare(asprintf(&path, "%s/%s", folder, name), >, 0);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    return path;
}

static void a_missing_file_is_named(void **state)
{
    expect_refused(*state, "/nonexistent.onnx", NULL, FAILED, "/nonexistent.onnx", strerror(ENOENT));
    expect_refused(*state, "/nonexistent.job", NULL, FAILED, "/nonexistent.job", strerror(ENOENT));
}

static void open_dimensions_are_listed(void **state)
{
    fixture *f = *state;
    char *job = write_model(f->folder, "open.onnx", linear("N,T,64"));
    expect_refused(f, job, NULL, FAILED, "open.onnx", "'T'");
    expect_refused(f, job, "--dim=T=0", USAGE, "--dim", "\"0\"");
    expect_refused(f, job, "--dim=T", USAGE, "--dim", "\"T\"");
    free(job);
}

static void a_graph_without_operators_is_refused(void **state)
{
    fixture *f = *state;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,64");
    onnx_output(b, "x");
    char *job = write_model(f->folder, "nothing.onnx", onnx_finish(b));
    expect_refused(f, job, NULL, FAILED, "nothing.onnx", "operator");
    free(job);
}

static void other_file_types_are_refused(void **state)
{
    fixture *f = *state;
    char *text = write_bytes(f->folder, "text.onnx", "This is no model.\n", 18);
    char *empty = write_bytes(f->folder, "empty.onnx", "", 0);
    expect_refused(f, text, NULL, FAILED, "text.onnx", "ONNX");
    expect_refused(f, empty, NULL, FAILED, "empty.onnx", "empty");
    free(text);
    free(empty);
}

/* The content decides, whatever the name. */
static void files_of_other_frameworks_get_a_remedy(void **state)
{
    static const struct {
        const char *name, *content, *kind, *remedy;
        size_t size;
    } files[] = {
        {"config.json", "{\n  \"architectures\": [\n    \"LlamaForCausalLM\"\n  ]}", "config.json",
         "model_type is missing", 50},
        {"model.safetensors", "\x40\0\0\0\0\0\0\0{\"w\":{}}", "a safetensors file", "mdot.Job.from_transformers(", 16},
        {"model.gguf", "GGUF\3\0\0\0", "a GGUF file", "mdot.Job.from_transformers(", 8},
        {"model.pt", "PK\3\4data", "a file of torch.save", "mdot.Job.from_torch(", 8},
        {"pytorch_model.bin", "\x80\2ctorch", "a file of torch.save", "torch.onnx.export(", 8},
        {"net.job", "PK\3\4data", "a file of torch.save", "mdot.Job.from_torch(", 8},
        {"lfs.onnx", "version https://git-lfs.github.com/spec/v1\n", "a pointer of Git LFS", "git lfs pull", 43},
    };
    fixture *f = *state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char *path = write_bytes(f->folder, files[i].name, files[i].content, files[i].size);
        expect_refused(f, path, NULL, FAILED, files[i].kind, files[i].remedy);
        assert_non_null(strstr(f->result.err, files[i].name));
        free(path);
    }
}

static void models_of_other_frameworks_are_not_compiled(void **state)
{
    fixture *f = *state;
    char *path = write_bytes(f->folder, "model.pt", "PK\3\4data", 8), *out = NULL;
    assert_compare(asprintf(&out, "%s/model.mdot", f->folder), >, 0);
    process_run((const char *const[]){MDOT_CLI, "compile", path, "-o", out, NULL}, &f->result);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "a file of torch.save");
    expect_contains(f->result.err, "torch.onnx.export(model, (example,), \"model.onnx\")");
    free(path);
    free(out);
}

static void a_truncated_model_is_refused(void **state)
{
    fixture *f = *state;
    pb_buffer whole = linear("N,64");
    char *job = write_bytes(f->folder, "cut.onnx", whole.data, whole.size / 2);
    pb_free(&whole);
    expect_refused(f, job, NULL, FAILED, "cut.onnx", "byte ");
    free(job);
}

static void damaged_job_files_are_refused(void **state)
{
    fixture *f = *state;
    char *model = write_model(f->folder, "net.onnx", linear("N,64")), *saved = NULL;
    assert_compare(asprintf(&saved, "%s/net.job", f->folder), >, 0);
    process_run((const char *const[]){MDOT_CLI, "extract", model, "-o", saved, NULL}, &f->result);
    assert_int_equal(f->result.status, 0);
    size_t size;
    unsigned char *bytes = read_bytes(saved, &size);

    char *cut = write_bytes(f->folder, "cut.job", bytes, size / 2);
    bytes[size / 2] ^= 0x10;
    char *flipped = write_bytes(f->folder, "flipped.job", bytes, size);
    char *other = write_bytes(f->folder, "other.job", "This is no job.\n", 16);
    expect_refused(f, cut, NULL, FAILED, "cut.job", "it is truncated");
    expect_refused(f, flipped, NULL, FAILED, "flipped.job", "checksum");
    expect_refused(f, other, NULL, FAILED, "other.job", "no ONNX or .job file");
    expect_refused(f, saved, "--dim=T=5", FAILED, "net.job", "'T'");
    free(bytes);
    free(cut);
    free(flipped);
    free(other);
    free(saved);
    free(model);
}

/* Commands take a ready job by its name, which `mdot jobs` lists. */
static void ready_jobs_are_listed_and_read(void **state)
{
    fixture *f = *state;
    process_run((const char *const[]){MDOT_CLI, "jobs", "llama-3", NULL}, &f->result);
    assert_int_equal(f->result.status, 0);
    expect_contains(f->result.out, "llama-3-8b                          8.03G    2048  Llama 3 8B");
    if (strstr(f->result.out, "gpt2") != NULL) fail_msg("%s", f->result.out);
    process_run((const char *const[]){MDOT_CLI, "jobs", "--json", "llama-3-8b", NULL}, &f->result);
    expect_contains(f->result.out, "\"parameters\": 8030261248, \"length\": 2048");
    process_run((const char *const[]){MDOT_CLI, "jobs", "no-such-network", NULL}, &f->result);
    assert_int_equal(f->result.status, FAILED);
    expect_contains(f->result.err, "mdot export");
    process_run((const char *const[]){MDOT_CLI, "jobs", "a", "b", NULL}, &f->result);
    assert_int_equal(f->result.status, USAGE);
    process_run((const char *const[]){MDOT_CLI, "extract", "llama-3-8b", "--dim=length=8192", NULL}, &f->result);
    assert_int_equal(f->result.status, 0);
    expect_contains(f->result.out, "queries=8192");
    expect_refused(f, "llama-3-8bb", NULL, FAILED, "llama-3-8b,", "mdot jobs");
    expect_refused(f, "llama-3-8b", "--dim=T=5", FAILED, "llama-3-8b", "'T'");
    expect_refused(f, f->folder, NULL, FAILED, f->folder, "config.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_missing_file_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(open_dimensions_are_listed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_graph_without_operators_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_file_types_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_of_other_frameworks_get_a_remedy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(models_of_other_frameworks_are_not_compiled, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_truncated_model_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_job_files_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ready_jobs_are_listed_and_read, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
