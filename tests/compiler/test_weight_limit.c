/* test_weight_limit.c — a model with too many weights for CPU code is refused before its weights are read. */
#include "mdot/mdotc.h"
#include "tests/support/assertions.h"
#include "tests/support/onnx_builder.h"
#include "tests/support/process.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 32768, COLUMNS = 9216 }; /* two such matrices of f32 take 2.25 GiB */
#define MATRIX_BYTES ((int64_t)4 * ROWS * COLUMNS)

static void put_entry(pb_buffer *tensor, const char *key, const char *value)
{
    pb_buffer entry = {0};
    pb_text(&entry, 1, key);
    pb_text(&entry, 2, value);
    pb_message(tensor, 13, &entry);
}

static void add_weights(onnx_builder *b, const char *name, const char *shape, int64_t offset)
{
    char text[32];
    pb_buffer tensor = onnx_tensor_head(name, MDOT_DTYPE_F32, shape);
    put_entry(&tensor, "location", "weights.bin");
    snprintf(text, sizeof text, "%lld", (long long)offset);
    put_entry(&tensor, "offset", text);
    pb_int(&tensor, 14, 1);
    onnx_graph_raw(b, 5, &tensor);
}

/* Writes a model with two matmuls and weights in a sparse file of `data_bytes`, and compiles it. */
static mdot_status compile_with(const char *folder, int64_t data_bytes, mdot_error *err)
{
    char *model = process_in_folder(folder, "model.onnx"), *data = process_in_folder(folder, "weights.bin");
    char *artefact = process_in_folder(folder, "model.mdot");
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,32768");
    add_weights(b, "w", "32768,9216", 0);
    add_weights(b, "v", "9216,32768", MATRIX_BYTES);
    onnx_node(b, "MatMul", "x,w", "h");
    onnx_node(b, "MatMul", "h,v", "y");
    onnx_output(b, "y");
    pb_buffer bytes = onnx_finish(b);
    FILE *file = fopen(model, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes.data, 1, bytes.size, file), bytes.size);
    assert_int_equal(fclose(file), 0);
    pb_free(&bytes);
    int fd = open(data, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_compare(fd, >=, 0);
    assert_int_equal(ftruncate(fd, (off_t)data_bytes), 0);
    assert_int_equal(close(fd), 0);
    const mdotc_entry entry = {.struct_size = sizeof entry, .name = "run", .model_path = model};
    mdot_status status = mdotc_compile(&entry, 1, artefact, NULL, err);
    free(artefact);
    free(data);
    free(model);
    return status;
}

/* Bytes read by this process so far, from files of every kind; -1 if the kernel does not count them. */
static long long bytes_read(void)
{
    long long count = -1;
    FILE *file = fopen("/proc/self/io", "r");
    if (file == NULL) return -1;
    if (fscanf(file, "rchar: %lld", &count) != 1) count = -1;
    (void)fclose(file);
    return count;
}

static void expect_limit(const mdot_error *err)
{
    expect_contains(err->message,
                    "model.onnx: the weights take at least 2.25 GiB, but CPU code reaches less than 2 GiB");
    expect_contains(err->message, "compile with --kernel-precision bf16 alone");
}

static void weights_beyond_the_limit_stay_unread(void **state)
{
    (void)state;
    enum { OTHER_BYTES = 1 << 20 };
    char *folder = process_make_folder();
    mdot_error err = {0};
    long long before = bytes_read();
    assert_int_equal(compile_with(folder, 2 * MATRIX_BYTES, &err), MDOT_UNSUPPORTED);
    expect_limit(&err);
    if (before >= 0) assert_compare(bytes_read() - before, <, OTHER_BYTES);
    process_remove_folder(folder);
}

/* A read of the second matrix would end in a message about the file's size. */
static void limit_is_checked_before_the_files(void **state)
{
    (void)state;
    char *folder = process_make_folder();
    mdot_error err = {0};
    assert_int_equal(compile_with(folder, 2 * MATRIX_BYTES - 1, &err), MDOT_UNSUPPORTED);
    expect_limit(&err);
    assert_int_equal(compile_with(folder, 0, &err), MDOT_UNSUPPORTED);
    expect_limit(&err);
    process_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_beyond_the_limit_stay_unread),
        cmocka_unit_test(limit_is_checked_before_the_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
