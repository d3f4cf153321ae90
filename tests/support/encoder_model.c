/* encoder_model.c — see encoder_model.h. */
#include "tests/support/encoder_model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { D = ENCODER_WIDTH, HEADS = ENCODER_HEADS, HEAD = D / HEADS, NAME = 64 };

typedef struct writer {
    onnx_builder *b;
    uint32_t random;
    int next; /* number of the next anonymous value */
} writer;

/* The linear congruential generator from Numerical Recipes; the upper bits, scaled to ±limit. */
static float next_value(writer *w, float limit)
{
    w->random = w->random * UINT32_C(1664525) + UINT32_C(1013904223);
    return ((float)(w->random >> 8) / (float)(1 << 23) - 1) * limit;
}

static void weight(writer *w, const char *name, int rows, int columns, float center, float limit)
{
    int count = (rows > 0 ? rows : 1) * columns;
    float *data = malloc((size_t)count * sizeof *data);
    if (data == NULL) abort();
    for (int i = 0; i < count; i++) data[i] = center + next_value(w, limit);
    char shape[32];
    if (rows > 0)
        snprintf(shape, sizeof shape, "%d,%d", rows, columns);
    else
        snprintf(shape, sizeof shape, "%d", columns);
    onnx_initializer(w->b, name, MDOT_DTYPE_F32, shape, data);
    free(data);
}

/* Applies `op` to one or two inputs. The name of the result goes to `out`. */
static void apply(writer *w, const char *op, const char *a, const char *b, char *out)
{
    char inputs[3 * NAME], result[NAME];
    snprintf(inputs, sizeof inputs, "%s%s%s", a, b != NULL ? "," : "", b != NULL ? b : "");
    snprintf(result, sizeof result, "v%d", w->next++);
    onnx_node(w->b, op, inputs, result);
    snprintf(out, NAME, "%s", result);
}

static void scalar(writer *w, float value, char *out)
{
    snprintf(out, NAME, "s%d", w->next++);
    onnx_initializer(w->b, out, MDOT_DTYPE_F32, "", &value);
}

static void int_list(writer *w, int count, const int64_t *values, char *out)
{
    char shape[16];
    snprintf(out, NAME, "i%d", w->next++);
    snprintf(shape, sizeof shape, "%d", count);
    onnx_initializer(w->b, out, MDOT_DTYPE_I64, shape, values);
}

static void apply_scalar(writer *w, const char *op, const char *a, float value, char *out)
{
    char constant[NAME];
    scalar(w, value, constant);
    apply(w, op, a, constant, out);
}

static void linear(writer *w, const char *x, const char *name, int rows, int columns, char *out)
{
    char matrix[NAME], bias[NAME];
    snprintf(matrix, sizeof matrix, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    weight(w, matrix, rows, columns, 0, 1.7f / sqrtf((float)rows));
    weight(w, bias, 0, columns, 0, 0.1f);
    apply(w, "MatMul", x, matrix, out);
    apply(w, "Add", bias, out, out);
}

static void norm(writer *w, const char *x, const char *name, char *out)
{
    char inputs[4 * NAME], gamma[NAME], beta[NAME];
    snprintf(gamma, sizeof gamma, "%s.weight", name);
    snprintf(beta, sizeof beta, "%s.bias", name);
    weight(w, gamma, 0, D, 1, 0.2f);
    weight(w, beta, 0, D, 0, 0.2f);
    snprintf(inputs, sizeof inputs, "%s,%s,%s", x, gamma, beta);
    snprintf(out, NAME, "v%d", w->next++);
    onnx_node(w->b, "LayerNormalization", inputs, out);
    onnx_attr_int(w->b, "axis", -1);
    onnx_attr_float(w->b, "epsilon", 1e-5f);
}

static void gelu(writer *w, const char *x, char *out)
{
    char t[NAME];
    apply_scalar(w, "Div", x, 1.41421354f, t);
    apply(w, "Erf", t, NULL, t);
    apply_scalar(w, "Add", t, 1, t);
    apply(w, "Mul", x, t, t);
    apply_scalar(w, "Mul", t, 0.5f, out);
}

static void transpose(writer *w, const char *x, const int64_t *perm, char *out)
{
    apply(w, "Transpose", x, NULL, out);
    onnx_attr_ints(w->b, "perm", 4, perm);
}

/* Reshape to [1, N, HEADS, HEAD], with a shape computed from the shape of x, then Transpose to put heads first. */
static void split_heads(writer *w, const char *x, const int64_t *perm, char *out)
{
    static const int64_t first[] = {0}, second[] = {1}, heads[] = {HEADS}, head[] = {HEAD};
    char shape[NAME], index[NAME], batch[NAME], length[NAME], h[NAME], d[NAME], joined[NAME], inputs[5 * NAME];
    apply(w, "Shape", x, NULL, shape);
    int_list(w, 1, first, index);
    apply(w, "Gather", shape, index, batch);
    int_list(w, 1, second, index);
    apply(w, "Gather", shape, index, length);
    int_list(w, 1, heads, h);
    int_list(w, 1, head, d);
    snprintf(inputs, sizeof inputs, "%s,%s,%s,%s", batch, length, h, d);
    snprintf(joined, sizeof joined, "v%d", w->next++);
    onnx_node(w->b, "Concat", inputs, joined);
    onnx_attr_int(w->b, "axis", 0);
    apply(w, "Reshape", x, joined, out);
    transpose(w, out, perm, out);
}

static void attention(writer *w, const char *x, const char *bias, int layer, char *out)
{
    static const int64_t heads_first[] = {0, 2, 1, 3}, keys[] = {0, 2, 3, 1}, merged[] = {0, -1, D};
    char q[NAME], k[NAME], v[NAME], scores[NAME], shape[NAME], name[NAME];
    snprintf(name, sizeof name, "layer%d.q", layer);
    linear(w, x, name, D, D, q);
    snprintf(name, sizeof name, "layer%d.k", layer);
    linear(w, x, name, D, D, k);
    snprintf(name, sizeof name, "layer%d.v", layer);
    linear(w, x, name, D, D, v);
    split_heads(w, q, heads_first, q);
    split_heads(w, k, keys, k);
    split_heads(w, v, heads_first, v);
    apply(w, "MatMul", q, k, scores);
    apply_scalar(w, "Mul", scores, 1 / sqrtf(HEAD), scores);
    apply(w, "Add", scores, bias, scores);
    apply(w, "Softmax", scores, NULL, scores);
    onnx_attr_int(w->b, "axis", -1);
    apply(w, "MatMul", scores, v, out);
    transpose(w, out, heads_first, out);
    int_list(w, 3, merged, shape);
    apply(w, "Reshape", out, shape, out);
    snprintf(name, sizeof name, "layer%d.o", layer);
    linear(w, out, name, D, D, out);
}

static void encoder_layer(writer *w, int layer, const char *bias, char *x)
{
    char t[NAME], name[NAME];
    snprintf(name, sizeof name, "layer%d.n1", layer);
    norm(w, x, name, t);
    attention(w, t, bias, layer, t);
    apply(w, "Add", x, t, x);
    snprintf(name, sizeof name, "layer%d.n2", layer);
    norm(w, x, name, t);
    snprintf(name, sizeof name, "layer%d.f1", layer);
    linear(w, t, name, D, ENCODER_HIDDEN, t);
    gelu(w, t, t);
    snprintf(name, sizeof name, "layer%d.f2", layer);
    linear(w, t, name, ENCODER_HIDDEN, D, t);
    apply(w, "Add", x, t, x);
}

pb_buffer encoder_model(int layers)
{
    static const int64_t middle[] = {1, 2}, last[] = {-1}, rows[] = {1};
    writer w = {.b = onnx_begin(17), .random = 1};
    char x[NAME], t[NAME], m[NAME], bias[NAME], axes[NAME], count[NAME];
    onnx_input(w.b, "type", MDOT_DTYPE_I64, "1,N");
    onnx_input(w.b, "load", MDOT_DTYPE_F32, "1,N,5");
    onnx_input(w.b, "mask", MDOT_DTYPE_BOOL, "1,N");

    weight(&w, "table", ENCODER_TYPES, D, 0, 1);
    apply(&w, "Gather", "table", "type", x);
    linear(&w, "load", "load", ENCODER_FEATURES, D, t);
    apply(&w, "Add", x, t, x);

    apply(&w, "Cast", "mask", NULL, m);
    onnx_attr_int(w.b, "to", MDOT_DTYPE_F32);
    scalar(&w, 1, t);
    apply(&w, "Sub", t, m, bias);
    apply_scalar(&w, "Mul", bias, -1e9f, bias);
    int_list(&w, 2, middle, axes);
    apply(&w, "Unsqueeze", bias, axes, bias);
    for (int layer = 0; layer < layers; layer++) encoder_layer(&w, layer, bias, x);

    norm(&w, x, "final", x);
    int_list(&w, 1, last, axes);
    apply(&w, "Unsqueeze", m, axes, t);
    apply(&w, "Mul", x, t, x);
    int_list(&w, 1, rows, axes);
    apply(&w, "ReduceSum", x, axes, x);
    onnx_attr_int(w.b, "keepdims", 0);
    apply(&w, "ReduceSum", m, axes, count);
    onnx_attr_int(w.b, "keepdims", 1);
    apply(&w, "Div", x, count, x);
    linear(&w, x, "head1", D, 16, x);
    gelu(&w, x, x);
    weight(&w, "head2.weight", 16, 1, 0, 0.5f);
    weight(&w, "head2.bias", 0, 1, 3, 0.1f);
    char inputs[4 * NAME];
    snprintf(inputs, sizeof inputs, "%s,head2.weight,head2.bias", x);
    onnx_node(w.b, "Gemm", inputs, "latency");
    onnx_output(w.b, "latency");
    return onnx_finish(w.b);
}

char *write_model(const char *folder, const char *name, pb_buffer bytes)
{
    char *path = NULL;
    if (asprintf(&path, "%s/%s", folder, name) < 0) abort();
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(bytes.data, 1, bytes.size, file) != bytes.size || fclose(file) != 0) abort();
    pb_free(&bytes);
    return path;
}
