/* linear.c — writes ONNX files by hand: each protobuf field is a number (type 0) or bytes (type 2). */
#include "tests/history/support/linear.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/process.h"

typedef struct message {
    unsigned char bytes[4096];
    size_t count;
} message;

static void put_varint(message *m, uint64_t value)
{
    for (; value >= 128; value /= 128) m->bytes[m->count++] = (unsigned char)(value % 128 + 128);
    m->bytes[m->count++] = (unsigned char)value;
}

static void put_number(message *m, unsigned field, uint64_t value)
{
    put_varint(m, field * 8);
    put_varint(m, value);
}

static void put_bytes(message *m, unsigned field, const void *bytes, size_t count)
{
    put_varint(m, field * 8 + 2);
    put_varint(m, count);
    assert_true(m->count + count < sizeof m->bytes);
    memcpy(m->bytes + m->count, bytes, count);
    m->count += count;
}

static void put_text(message *m, unsigned field, const char *text) { put_bytes(m, field, text, strlen(text)); }

static void put_node(message *graph, const char *operator, const char * left, const char *right, const char *out)
{
    message node = {.count = 0};
    put_text(&node, 1, left);
    if (right != NULL) put_text(&node, 1, right);
    put_text(&node, 2, out);
    put_text(&node, 4, operator);
    put_bytes(graph, 1, node.bytes, node.count);
}

static void put_tensor(message *graph, const char *name, int rows, int columns, const float *values, size_t stride)
{
    message tensor = {.count = 0};
    float dense[LINEAR_MOST * LINEAR_MOST];
    for (int i = 0; i < rows; i++)
        memcpy(dense + i * columns, values + (size_t)i * stride, (size_t)columns * sizeof *dense);
    put_number(&tensor, 1, (uint64_t)rows);
    put_number(&tensor, 1, (uint64_t)columns);
    put_number(&tensor, 2, 1);
    put_text(&tensor, 8, name);
    put_bytes(&tensor, 9, dense, (size_t)(rows * columns) * sizeof *dense);
    put_bytes(graph, 5, tensor.bytes, tensor.count);
}

/* A graph's input (field 11) or output (12): f32 [1, columns]. */
static void put_value(message *graph, unsigned field, const char *name, int columns)
{
    message dim = {.count = 0}, shape = {.count = 0}, tensor = {.count = 0}, type = {.count = 0}, value = {.count = 0};
    put_number(&dim, 1, 1);
    put_bytes(&shape, 1, dim.bytes, dim.count);
    dim.count = 0;
    put_number(&dim, 1, (uint64_t)columns);
    put_bytes(&shape, 1, dim.bytes, dim.count);
    put_number(&tensor, 1, 1);
    put_bytes(&tensor, 2, shape.bytes, shape.count);
    put_bytes(&type, 1, tensor.bytes, tensor.count);
    put_text(&value, 1, name);
    put_bytes(&value, 2, type.bytes, type.count);
    put_bytes(graph, field, value.bytes, value.count);
}

void linear_compile(const linear *n, const char *path)
{
    message graph = {.count = 0}, opset = {.count = 0}, model = {.count = 0};
    put_node(&graph, "MatMul", n->row.input, "factors", "products");
    put_node(&graph, "Add", "products", "sums", n->last != NULL ? "linear" : n->row.output);
    if (n->last != NULL) put_node(&graph, n->last, "linear", NULL, n->row.output);
    put_text(&graph, 2, "g");
    put_tensor(&graph, "factors", n->row.numbers, n->row.answers, n->factors[0], LINEAR_MOST);
    put_tensor(&graph, "sums", 1, n->row.answers, n->sums, LINEAR_MOST);
    put_value(&graph, 11, n->row.input, n->row.numbers);
    put_value(&graph, 12, n->row.output, n->row.answers);
    put_number(&opset, 2, 17);
    put_number(&model, 1, 8);
    put_bytes(&model, 7, graph.bytes, graph.count);
    put_bytes(&model, 8, opset.bytes, opset.count);
    char *onnx = NULL;
    process_result result;
    assert_true(asprintf(&onnx, "%s.onnx", path) > 0);
    FILE *file = fopen(onnx, "wb");
    assert_non_null(file);
    assert_true(fwrite(model.bytes, 1, model.count, file) == model.count);
    assert_int_equal(fclose(file), 0);
    process_run((const char *const[]){MDOT_CLI, "compile", onnx, "-o", path, "-q", NULL}, &result);
    if (result.status != 0) fail_msg("%s", result.err);
    free(onnx);
}

double linear_random(double least, double most)
{
    static uint64_t seed = 1;
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return least + (most - least) * (double)(seed >> 11) / 9007199254740992.0;
}
