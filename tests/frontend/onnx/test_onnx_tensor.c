/* test_onnx_tensor.c — TensorProto's element types and data fields, and shapes contradicting the data. */
#include "tests/support/assertions.h"
#include "tests/support/frontend_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Field numbers of TensorProto's typed data. */
enum { FLOAT_DATA = 4, INT32_DATA = 5, STRING_DATA = 6, INT64_DATA = 7, DOUBLE_DATA = 10, UINT64_DATA = 11 };

/* A model whose initializer `w` is this tensor. */
static onnx_builder *model_with(pb_buffer tensor)
{
    onnx_builder *b = onnx_begin(17);
    onnx_graph_raw(b, 5, &tensor);
    onnx_node(b, "Identity", "w", "y");
    onnx_output(b, "y");
    return b;
}

static const ir_tensor *tensor_of(const imported *m)
{
    const ir_tensor *tensor = node_at(m->graph, 0)->inputs[0]->constant;
    assert_non_null(tensor);
    return tensor;
}

static void raw_data_is_read_for_every_type(void **state)
{
    (void)state;
    static const unsigned char bytes[16] = {1, 0, 1, 1, 0, 0, 0, 1, 9, 8, 7, 6, 5, 4, 3, 2};
    static const mdot_dtype dtypes[] = {MDOT_DTYPE_F32, MDOT_DTYPE_U8,  MDOT_DTYPE_I8,  MDOT_DTYPE_U16,
                                        MDOT_DTYPE_I16, MDOT_DTYPE_I32, MDOT_DTYPE_I64, MDOT_DTYPE_F16,
                                        MDOT_DTYPE_F64, MDOT_DTYPE_U32, MDOT_DTYPE_U64, MDOT_DTYPE_BF16};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        imported m = expect_imported(model_with(onnx_tensor("w", dtypes[i], "2", bytes)), NULL);
        const ir_tensor *tensor = tensor_of(&m);
        size_t size = mdot_dtype_size_bytes(dtypes[i]);
        assert_int_equal(tensor->dtype, dtypes[i]);
        assert_int_equal(tensor->count, 2);
        assert_int_equal((uintptr_t)tensor->data % size, 0);
        assert_memory_equal(tensor->data, bytes, 2 * size);
        release(&m);
    }
}

static void raw_bools_become_zero_and_one(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {0, 1, 2, 255}, expected[] = {0, 1, 1, 1};
    imported m = expect_imported(model_with(onnx_tensor("w", MDOT_DTYPE_BOOL, "4", bytes)), NULL);
    assert_memory_equal(tensor_of(&m)->data, expected, 4);
    release(&m);
}

/* Expects the low bytes of the element made from one or two integers in a typed field. */
static void expect_element(int dtype, int field, int64_t given, uint64_t expected)
{
    pb_buffer tensor = onnx_tensor_head("w", dtype, "1"), packed = {0};
    pb_varint(&packed, (uint64_t)given);
    pb_message(&tensor, field, &packed);
    imported m = expect_imported(model_with(tensor), NULL);
    uint64_t got = 0;
    memcpy(&got, tensor_of(&m)->data, mdot_dtype_size_bytes((mdot_dtype)dtype));
    if (got != expected) fail_msg("%s: %llx", mdot_dtype_name((mdot_dtype)dtype), (unsigned long long)got);
    release(&m);
}

static void typed_integers_are_read_for_every_type(void **state)
{
    (void)state;
    expect_element(MDOT_DTYPE_U8, INT32_DATA, 255, 255);
    expect_element(MDOT_DTYPE_I8, INT32_DATA, -128, 0x80);
    expect_element(MDOT_DTYPE_U16, INT32_DATA, 65535, 65535);
    expect_element(MDOT_DTYPE_I16, INT32_DATA, -2, 0xfffe);
    expect_element(MDOT_DTYPE_I32, INT32_DATA, INT32_MIN, 0x80000000);
    expect_element(MDOT_DTYPE_BOOL, INT32_DATA, 1, 1);
    expect_element(MDOT_DTYPE_F16, INT32_DATA, 0x3c00, 0x3c00);
    expect_element(MDOT_DTYPE_BF16, INT32_DATA, 0xbf80, 0xbf80);
    expect_element(MDOT_DTYPE_I64, INT64_DATA, INT64_MIN, UINT64_C(1) << 63);
    expect_element(MDOT_DTYPE_U32, UINT64_DATA, UINT32_MAX, UINT32_MAX);
    expect_element(MDOT_DTYPE_U64, UINT64_DATA, -1, UINT64_MAX);
}

static void typed_floats_are_read(void **state)
{
    (void)state;
    static const float floats[] = {1.5f, -0.0f};
    static const double doubles[] = {1e300, -2};
    pb_buffer tensor = onnx_tensor_head("w", MDOT_DTYPE_F32, "2");
    pb_bytes(&tensor, FLOAT_DATA, floats, sizeof floats);
    imported m = expect_imported(model_with(tensor), NULL);
    assert_memory_equal(tensor_of(&m)->data, floats, sizeof floats);
    release(&m);
    tensor = onnx_tensor_head("w", MDOT_DTYPE_F64, "2");
    pb_bytes(&tensor, DOUBLE_DATA, doubles, sizeof doubles);
    m = expect_imported(model_with(tensor), NULL);
    assert_memory_equal(tensor_of(&m)->data, doubles, sizeof doubles);
    release(&m);
}

/* Parsers must accept both forms of a repeated number. */
static void unpacked_elements_are_read(void **state)
{
    (void)state;
    static const float expected[] = {2, 3};
    pb_buffer tensor = onnx_tensor_head("w", MDOT_DTYPE_F32, "2");
    for (int i = 0; i < 2; i++) pb_float(&tensor, FLOAT_DATA, expected[i]);
    imported m = expect_imported(model_with(tensor), NULL);
    assert_memory_equal(tensor_of(&m)->data, expected, sizeof expected);
    release(&m);
}

static void elements_outside_the_range_of_their_type_are_refused(void **state)
{
    (void)state;
    static const struct {
        int dtype, field;
        int64_t value;
    } cases[] = {
        {MDOT_DTYPE_U8, INT32_DATA, 256},
        {MDOT_DTYPE_U8, INT32_DATA, -1},
        {MDOT_DTYPE_I8, INT32_DATA, 128},
        {MDOT_DTYPE_I16, INT32_DATA, 32768},
        {MDOT_DTYPE_BOOL, INT32_DATA, 2},
        {MDOT_DTYPE_F16, INT32_DATA, 65536},
        {MDOT_DTYPE_U32, UINT64_DATA, INT64_C(1) << 32},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pb_buffer tensor = onnx_tensor_head("w", cases[i].dtype, "1");
        pb_int(&tensor, cases[i].field, cases[i].value);
        expect_refused(model_with(tensor), NULL, MDOT_MALFORMED, "initializer 'w'", "range", NULL);
    }
}

static void wrong_amount_of_raw_data_is_refused(void **state)
{
    (void)state;
    pb_buffer tensor = onnx_tensor_head("w", MDOT_DTYPE_F32, "2");
    pb_bytes(&tensor, 9, "1234567", 7);
    expect_refused(model_with(tensor), NULL, MDOT_MALFORMED, "initializer 'w'", "7 bytes", "requires 8", NULL);
}

static void wrong_amount_of_typed_data_is_refused(void **state)
{
    (void)state;
    pb_buffer tensor = onnx_tensor_head("w", MDOT_DTYPE_I64, "3");
    pb_int(&tensor, INT64_DATA, 1);
    expect_refused(model_with(tensor), NULL, MDOT_MALFORMED, "has 1 elements of i64", "requires 3", NULL);
    /* Data in the field of another type is ignored. */
    tensor = onnx_tensor_head("w", MDOT_DTYPE_I64, "1");
    pb_float(&tensor, FLOAT_DATA, 1);
    expect_refused(model_with(tensor), NULL, MDOT_MALFORMED, "has 0 elements of i64", NULL);
}

static void invalid_shapes_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *part;
        mdot_status status;
    } cases[] = {
        {"-1", "negative", MDOT_MALFORMED},
        {"4611686018427387904,4", "too large", MDOT_MALFORMED},
        {"9223372036854775807", "bytes", MDOT_MALFORMED},
        {"1,1,1,1,1,1,1,1,1", "rank 9", MDOT_UNSUPPORTED},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pb_buffer tensor = onnx_tensor_head("w", MDOT_DTYPE_F32, cases[i].shape);
        expect_refused(model_with(tensor), NULL, cases[i].status, "initializer 'w'", cases[i].part, NULL);
    }
}

static void unsupported_types_are_refused(void **state)
{
    (void)state;
    static const int dtypes[] = {0, 14, 17, 22, 99, -1}; /* undefined, complex64, float8, int4, unknown */
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        pb_buffer tensor = onnx_tensor_head("w", dtypes[i], "1");
        expect_refused(model_with(tensor), NULL, MDOT_UNSUPPORTED, "initializer 'w'", "element type",
                       "store it as f32, f16, bf16 or integers of at least 8 bits", NULL);
    }
}

static void tensor_in_segments_is_refused(void **state)
{
    (void)state;
    pb_buffer tensor = onnx_tensor_head("w", MDOT_DTYPE_F32, "1"), segment = {0};
    pb_message(&tensor, 3, &segment);
    expect_refused(model_with(tensor), NULL, MDOT_UNSUPPORTED, "segments", NULL);
}

static void empty_and_scalar_tensors_are_read(void **state)
{
    (void)state;
    static const float one = 1;
    imported m = expect_imported(model_with(onnx_tensor_head("w", MDOT_DTYPE_F32, "3,0")), NULL);
    assert_int_equal(tensor_of(&m)->count, 0);
    release(&m);
    m = expect_imported(model_with(onnx_tensor("w", MDOT_DTYPE_F32, "", &one)), NULL);
    assert_int_equal(tensor_of(&m)->rank, 0);
    assert_int_equal(tensor_of(&m)->count, 1);
    release(&m);
}

static void strings_keep_their_shape_only(void **state)
{
    (void)state;
    pb_buffer tensor = onnx_tensor_head("w", MDOT_DTYPE_STRING, "2");
    pb_text(&tensor, STRING_DATA, "a");
    pb_text(&tensor, STRING_DATA, "b");
    imported m = expect_imported(model_with(tensor), NULL);
    assert_int_equal(tensor_of(&m)->dtype, MDOT_DTYPE_STRING);
    assert_int_equal(tensor_of(&m)->count, 2);
    assert_null(tensor_of(&m)->data);
    release(&m);
}

static void skipping_leaves_large_tensors_unread_and_small_ones_read(void **state)
{
    (void)state;
    fe_options options = {.skip_weights = true};
    imported m = expect_imported(model_with(onnx_tensor("w", MDOT_DTYPE_I64, "257", NULL)), &options);
    assert_null(tensor_of(&m)->data);
    assert_int_equal(tensor_of(&m)->dims[0], 257);
    release(&m);
    m = expect_imported(model_with(onnx_tensor("w", MDOT_DTYPE_I64, "256", NULL)), &options);
    assert_non_null(tensor_of(&m)->data);
    release(&m);
    /* the data may have been removed from the file */
    m = expect_imported(model_with(onnx_tensor_head("w", MDOT_DTYPE_F32, "32")), &options);
    assert_int_equal(tensor_of(&m)->count, 32);
    assert_null(tensor_of(&m)->data);
    release(&m);
}

static void tensor_file_is_read(void **state)
{
    (void)state;
    static const int64_t values[] = {5, 6};
    pb_buffer bytes = onnx_tensor("input", MDOT_DTYPE_I64, "2,1", values);
    char path[] = "/tmp/mdot-tensor-XXXXXX";
    int fd = mkstemp(path);
    assert_compare(fd, >=, 0);
    assert_int_equal(write(fd, bytes.data, bytes.size), (ssize_t)bytes.size);
    ir_arena *arena = ir_arena_create(0);
    ir_tensor *tensor = NULL;
    const char *name = NULL;
    mdot_error err = {0};
    assert_int_equal(fe_read_tensor(path, arena, &tensor, &name, &err), MDOT_OK);
    assert_string_equal(name, "input");
    assert_int_equal(tensor->rank, 2);
    assert_memory_equal(tensor->data, values, sizeof values);
    ir_arena_destroy(arena);

    assert_int_equal(ftruncate(fd, (off_t)bytes.size - 1), 0);
    arena = ir_arena_create(0);
    tensor = NULL;
    assert_int_equal(fe_read_tensor(path, arena, &tensor, &name, &err), MDOT_MALFORMED);
    assert_null(tensor);
    assert_non_null(strstr(err.message, path));
    ir_arena_destroy(arena);
    close(fd);
    unlink(path);
    pb_free(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raw_data_is_read_for_every_type),
        cmocka_unit_test(raw_bools_become_zero_and_one),
        cmocka_unit_test(typed_integers_are_read_for_every_type),
        cmocka_unit_test(typed_floats_are_read),
        cmocka_unit_test(unpacked_elements_are_read),
        cmocka_unit_test(elements_outside_the_range_of_their_type_are_refused),
        cmocka_unit_test(wrong_amount_of_raw_data_is_refused),
        cmocka_unit_test(wrong_amount_of_typed_data_is_refused),
        cmocka_unit_test(invalid_shapes_are_refused),
        cmocka_unit_test(unsupported_types_are_refused),
        cmocka_unit_test(tensor_in_segments_is_refused),
        cmocka_unit_test(empty_and_scalar_tensors_are_read),
        cmocka_unit_test(strings_keep_their_shape_only),
        cmocka_unit_test(skipping_leaves_large_tensors_unread_and_small_ones_read),
        cmocka_unit_test(tensor_file_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
