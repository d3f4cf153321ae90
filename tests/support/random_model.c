/* random_model.c — see random_model.h. Values are stored with their shapes, so every new node is valid. They stay
 * within a few units of zero, so f32 sums lose few digits compared with double precision. */
#include "tests/support/random_model.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_VALUES = 24, MAX_AXES = 4, MAX_NODES = 16, NAME = 16, NAMES = 4 * NAME, LENGTH = -1 };

typedef struct shape {
    int rank;
    int dim[MAX_AXES]; /* LENGTH means the model's length */
} shape;

typedef struct maker {
    onnx_builder *b;
    const uint8_t *at, *end;
    int value_count, next;
    shape values[MAX_VALUES]; /* named v0, v1, … */
    bool is_read[MAX_VALUES];
} maker;

/* Returns the next byte below `bound`, or 0 if the bytes are used up. */
static int draw(maker *m, int bound) { return m->at < m->end ? *m->at++ % bound : 0; }

static bool is_same(const shape *a, const shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static int last(const shape *s) { return s->dim[s->rank - 1]; }

/* Adds a node whose first input is value `v`; `more` are further inputs. Its result is the next value. */
static void node(maker *m, const char *op, int v, const char *more, const shape *result)
{
    char inputs[NAMES + 2 * NAME], output[NAME];
    snprintf(inputs, sizeof inputs, "v%d%s%s", v, more[0] != '\0' ? "," : "", more);
    snprintf(output, sizeof output, "v%d", m->value_count);
    onnx_node(m->b, op, inputs, output);
    m->is_read[v] = true;
    m->values[m->value_count++] = *result;
}

/* Adds numbers between -0.5 and 0.5 that differ from constant to constant, and returns the name. */
static void add_weight(maker *m, const char *shape_text, int count, float around, char name[NAME])
{
    float data[64 * 16];
    uint32_t random = 12345u + 77u * (uint32_t)m->next;
    for (int i = 0; i < count; i++) {
        random = random * UINT32_C(1664525) + UINT32_C(1013904223); /* constants from Numerical Recipes */
        data[i] = around + (float)(random >> 8) / (float)(1 << 24) - 0.5f;
    }
    snprintf(name, NAME, "w%d", m->next++);
    onnx_initializer(m->b, name, MDOT_DTYPE_F32, shape_text, data);
}

static void add_list(maker *m, int count, const int64_t *values, char name[NAME])
{
    char text[NAME];
    snprintf(text, sizeof text, "%d", count);
    snprintf(name, NAME, "w%d", m->next++);
    onnx_initializer(m->b, name, MDOT_DTYPE_I64, text, values);
}

static void unary(maker *m, int v)
{
    static const char *const ops[] = {"Relu", "Sigmoid", "Tanh", "Abs",      "Neg",       "Erf",
                                      "Elu",  "Gelu",    "Mish", "Softplus", "HardSwish", "LeakyRelu"};
    const shape s = m->values[v];
    node(m, ops[draw(m, sizeof ops / sizeof *ops)], v, "", &s);
}

/* Combines the value with another value of the same shape, or with a constant for each channel. */
static void binary(maker *m, int v)
{
    static const char *const ops[] = {"Add", "Sub", "Max", "Min", "Mul"};
    const char *op = ops[draw(m, sizeof ops / sizeof *ops)];
    const shape s = m->values[v];
    int other = draw(m, m->value_count);
    char name[NAME], text[NAME];
    if (other != v && is_same(&m->values[other], &s)) { /* x - x would only leave rounding errors */
        snprintf(name, sizeof name, "v%d", other);
        m->is_read[other] = true;
    } else if (last(&s) > 0) {
        snprintf(text, sizeof text, "%d", last(&s));
        add_weight(m, text, last(&s), 0, name);
    } else {
        add_weight(m, "", 1, 0, name);
    }
    node(m, op, v, name, &s);
    node(m, "Tanh", m->value_count - 1, "", &s); /* keeps products from growing with each node */
}

static void matmul(maker *m, int v)
{
    static const int widths[] = {4, 8, 16, 3};
    shape s = m->values[v];
    if (s.rank < 2 || last(&s) == LENGTH || last(&s) > 64) return;
    int columns = widths[draw(m, 4)];
    char name[NAME], text[2 * NAME];
    snprintf(text, sizeof text, "%d,%d", last(&s), columns);
    add_weight(m, text, last(&s) * columns, 0, name);
    s.dim[s.rank - 1] = columns;
    node(m, "MatMul", v, name, &s);
    node(m, "Tanh", m->value_count - 1, "", &s);
}

static void normalise(maker *m, int v)
{
    const shape s = m->values[v];
    char gamma[NAME], beta[NAME], names[NAMES], text[NAME];
    if (draw(m, 2) == 0 || last(&s) == LENGTH) {
        node(m, draw(m, 3) == 0 ? "LogSoftmax" : "Softmax", v, "", &s);
        onnx_attr_int(m->b, "axis", -1);
        return;
    }
    snprintf(text, sizeof text, "%d", last(&s));
    add_weight(m, text, last(&s), 1, gamma);
    add_weight(m, text, last(&s), 0, beta);
    snprintf(names, sizeof names, "%s,%s", gamma, beta);
    node(m, "LayerNormalization", v, names, &s);
    onnx_attr_int(m->b, "axis", -1);
    onnx_attr_float(m->b, "epsilon", 0.01f); /* keeps the noise of constant rows small */
}

static void reduce(maker *m, int v)
{
    static const char *const ops[] = {"ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2"};
    shape s = m->values[v];
    int axis = draw(m, s.rank);
    const int64_t axes[] = {axis};
    const char *op = ops[draw(m, 4)];
    s.dim[axis] = 1;
    char name[NAME];
    add_list(m, 1, axes, name);
    node(m, op, v, name, &s);
    onnx_attr_int(m->b, "keepdims", 1);
}

static void transpose(maker *m, int v)
{
    shape s = m->values[v], out = s;
    int64_t perm[MAX_AXES];
    int turn = 1 + draw(m, s.rank);
    for (int d = 0; d < s.rank; d++) {
        perm[d] = (d + turn) % s.rank;
        out.dim[d] = s.dim[perm[d]];
    }
    node(m, "Transpose", v, "", &out);
    onnx_attr_ints(m->b, "perm", s.rank, perm);
}

static void concat(maker *m, int v)
{
    shape s = m->values[v];
    if (last(&s) == LENGTH || last(&s) > 16) return;
    char name[NAME];
    snprintf(name, sizeof name, "v%d", v);
    s.dim[s.rank - 1] *= 2;
    node(m, "Concat", v, name, &s);
    onnx_attr_int(m->b, "axis", -1);
}

static void slice(maker *m, int v)
{
    shape s = m->values[v];
    int size = last(&s);
    if (size == LENGTH || size < 2) return;
    const int64_t from[] = {draw(m, size)}, to[] = {size}, axes[] = {s.rank - 1};
    char starts[NAME], ends[NAME], axis[NAME], names[NAMES];
    add_list(m, 1, from, starts);
    add_list(m, 1, to, ends);
    add_list(m, 1, axes, axis);
    snprintf(names, sizeof names, "%s,%s,%s", starts, ends, axis);
    s.dim[s.rank - 1] = size - (int)from[0];
    node(m, "Slice", v, names, &s);
}

static void lift(maker *m, int v)
{
    shape s = m->values[v], out = {.rank = s.rank + 1};
    if (s.rank == MAX_AXES) return;
    int axis = draw(m, s.rank + 1);
    const int64_t axes[] = {axis};
    for (int d = 0, from = 0; d < out.rank; d++) out.dim[d] = d == axis ? 1 : s.dim[from++];
    char name[NAME];
    add_list(m, 1, axes, name);
    node(m, "Unsqueeze", v, name, &out);
}

static void cumulate(maker *m, int v)
{
    const shape s = m->values[v];
    const int64_t axis[] = {draw(m, s.rank)};
    char name[NAME];
    snprintf(name, sizeof name, "w%d", m->next++);
    onnx_initializer(m->b, name, MDOT_DTYPE_I64, "", axis);
    node(m, "CumSum", v, name, &s);
    node(m, "Tanh", m->value_count - 1, "", &s);
}

static void (*const makers[])(maker *m, int v) = {unary,  binary,    binary, matmul, matmul, normalise,
                                                  reduce, transpose, concat, slice,  lift,   cumulate};

pb_buffer random_model(const uint8_t *bytes, size_t count)
{
    enum { MOST_A_STEP = 2, KINDS = sizeof makers / sizeof *makers };
    maker m = {.b = onnx_begin(20), .at = bytes, .end = bytes + count};
    onnx_input(m.b, "x", MDOT_DTYPE_F32, "N,8");
    onnx_input(m.b, "y", MDOT_DTYPE_F32, "2,N,8");
    onnx_node(m.b, "Tanh", "x", "v0");
    onnx_node(m.b, "Tanh", "y", "v1");
    m.values[m.value_count++] = (shape){2, {LENGTH, 8}};
    m.values[m.value_count++] = (shape){3, {2, LENGTH, 8}};
    for (int i = 0; i < MAX_NODES && m.at < m.end && m.value_count + MOST_A_STEP <= MAX_VALUES; i++) {
        int kind = draw(&m, KINDS), back = draw(&m, m.value_count);
        makers[kind](&m, m.value_count - 1 - back / 2); /* mostly reads the latest values */
    }
    for (int v = 0; v < m.value_count; v++) {
        char name[NAME];
        snprintf(name, sizeof name, "v%d", v);
        if (!m.is_read[v]) onnx_output(m.b, name);
    }
    return onnx_finish(m.b);
}
