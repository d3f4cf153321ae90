/* test_matmul_nbits.c — packed weights with a few bits become a MatMul matrix; other forms are refused with the
 * reason. */
#include "tests/support/assertions.h"
#include "tests/support/frontend_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { K = 20, N = 3, BLOCK = 16, BLOCKS = 2, MOST_BYTES = N * BLOCKS * BLOCK };

static const float scales[N * BLOCKS] = {0.5F, 2, 1, 0.25F, 4, 8};

/* The element of row k and column n: any number below 2^bits. */
static int element(int k, int n, int bits) { return (7 * k + 5 * n + 3) % (1 << bits); }

static int zero(int block, int n, int bits) { return (3 * block + 2 * n + 1) % (1 << bits); }

/* Writes `value` as number `at` in a row of packed numbers. */
static void put(uint8_t *row, int at, int bits, int value)
{
    for (int i = 0; i < bits; i++)
        if (value >> i & 1) row[(at * bits + i) / 8] |= (uint8_t)(1 << (at * bits + i) % 8);
}

/* Zero points: none, packed or floats. */
typedef enum zeros { NONE, PACKED, FLOATS } zeros;

static void sizes(onnx_builder *b, int k, int bits, int block)
{
    onnx_attr_int(b, "K", k);
    onnx_attr_int(b, "N", N);
    onnx_attr_int(b, "bits", bits);
    onnx_attr_int(b, "block_size", block);
}

static onnx_builder *begin(int bits, zeros form)
{
    uint8_t packed[MOST_BYTES] = {0}, packed_zeros[N * BLOCKS] = {0};
    float zero_points[N * BLOCKS];
    static const float bias[N] = {1, 2, 3};
    static const int32_t groups[K] = {1, 0, 1, 0, 1};
    int bytes = BLOCK * bits / 8, zero_bytes = (BLOCKS * bits + 7) / 8;
    char shape[64];
    onnx_builder *b = onnx_begin(21);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,20");
    for (int n = 0; n < N; n++) {
        for (int k = 0; k < K; k++) put(packed + n * BLOCKS * bytes, k, bits, element(k, n, bits));
        for (int i = 0; i < BLOCKS; i++) {
            put(packed_zeros + n * zero_bytes, i, bits, zero(i, n, bits));
            zero_points[n * BLOCKS + i] = (float)zero(i, n, bits) + 0.5F;
        }
    }
    snprintf(shape, sizeof shape, "%d,%d,%d", N, BLOCKS, bytes);
    onnx_initializer(b, "w", MDOT_DTYPE_U8, shape, packed);
    onnx_initializer(b, "s", MDOT_DTYPE_F32, "6", scales);
    onnx_initializer(b, "bias", MDOT_DTYPE_F32, "3", bias);
    onnx_initializer(b, "g", MDOT_DTYPE_I32, "20", groups);
    snprintf(shape, sizeof shape, "%d", N * zero_bytes);
    if (form == PACKED) onnx_initializer(b, "z", MDOT_DTYPE_U8, shape, packed_zeros);
    if (form == FLOATS) onnx_initializer(b, "z", MDOT_DTYPE_F32, "6", zero_points);
    return b;
}

static void expect_weights(const ir_tensor *tensor, int bits, zeros form, bool has_groups)
{
    assert_non_null(tensor);
    assert_int_equal(tensor->rank, 2);
    assert_int_equal(tensor->dims[0], K);
    assert_int_equal(tensor->dims[1], N);
    for (int k = 0; k < K; k++) {
        for (int n = 0; n < N; n++) {
            int block = has_groups ? k < 5 && k % 2 == 0 : k / BLOCK;
            double z = form == NONE ? 1 << (bits - 1) : zero(block, n, bits) + (form == FLOATS ? 0.5 : 0);
            double wanted = (element(k, n, bits) - z) * (double)scales[n * BLOCKS + block];
            assert_compare(ir_tensor_real(tensor, k * N + n), ==, wanted);
        }
    }
}

static void weights_are_unpacked_with_scale_and_zero_point_of_their_block(void **state)
{
    (void)state;
    for (int bits = 2; bits <= 8; bits *= 2) {
        for (zeros form = NONE; form <= FLOATS; form++) {
            onnx_builder *b = begin(bits, form);
            onnx_node(b, "com.microsoft:MatMulNBits", form == NONE ? "x,w,s" : "x,w,s,z", "y");
            sizes(b, K, bits, BLOCK);
            onnx_output(b, "y");
            imported m = expect_imported(b, NULL);
            assert_int_equal(node_count(m.graph), 1);
            expect_weights(node_of(m.graph, IR_OP_MatMul)->inputs[1]->constant, bits, form, false);
            release(&m);
        }
    }
}

static void rows_take_the_block_that_g_idx_names(void **state)
{
    (void)state;
    onnx_builder *b = begin(4, PACKED);
    onnx_node(b, "com.microsoft:MatMulNBits", "x,w,s,z,g,bias", "y");
    sizes(b, K, 4, BLOCK);
    onnx_output(b, "y");
    imported m = expect_imported(b, NULL);
    expect_weights(node_of(m.graph, IR_OP_MatMul)->inputs[1]->constant, 4, PACKED, true);
    assert_string_equal(node_of(m.graph, IR_OP_Add)->inputs[1]->name, "bias");
    release(&m);
}

static void expect_given_up(const char *inputs, int k, int bits, int block, const char *reason)
{
    onnx_builder *b = begin(4, PACKED);
    onnx_input(b, "computed", MDOT_DTYPE_U8, "3,2,8");
    onnx_node(b, "com.microsoft:MatMulNBits", inputs, "y");
    sizes(b, k, bits, block);
    onnx_output(b, "y");
    imported m = expect_imported(b, NULL);
    assert_null(m.graph->last->op);
    if (strstr(m.graph->last->op_type, reason) == NULL) fail_msg("%s: lacks \"%s\"", m.graph->last->op_type, reason);
    release(&m);
}

static void other_forms_are_refused_with_the_reason(void **state)
{
    (void)state;
    expect_given_up("x,w,s", 0, 4, 16, "K and N");
    expect_given_up("x,w,s", 1 << 29, 4, 16, "split the model"); /* 3 · 2^29 weights */
    expect_given_up("x,w,s", K, 3, 16, "2, 4 or 8 bits");
    expect_given_up("x,w,s", K, 4, 24, "power of two");
    expect_given_up("x,computed,s", K, 4, 16, "store them as initializers");
    expect_given_up("x,w,s", 2 * K, 4, 16, "the weights must be u8");
    expect_given_up("x,w,bias", K, 4, 16, "the scales must be floats");
    expect_given_up("x,w,s,bias", K, 4, 16, "the zero points");
    expect_given_up("x,w,s,z,s", K, 4, 16, "g_idx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_are_unpacked_with_scale_and_zero_point_of_their_block),
        cmocka_unit_test(rows_take_the_block_that_g_idx_names),
        cmocka_unit_test(other_forms_are_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
