/* growth_models.c — see growth_models.h. */
#include "tests/growth/growth_models.h"

#include "tests/support/encoder_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 32, NAMES = 96 };

static onnx_builder *begin(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4,8");
    return b;
}

/* Names such as "A,B" get numbers appended. These models use them for nodes and values. */
static void add_node(onnx_builder *b, const char *op, const char *inputs, const char *output, int number)
{
    char name[NAME];
    snprintf(name, sizeof name, "%s%d", output, number);
    onnx_node(b, op, inputs, name);
}

/* Each constant differs, so that all nodes differ. */
static void add_constant(onnx_builder *b, int number)
{
    char name[NAME];
    const float value = 1 + (float)number;
    snprintf(name, sizeof name, "c%d", number);
    onnx_initializer(b, name, MDOT_DTYPE_F32, "", &value);
}

/* x + c0 + c1 + … */
static pb_buffer chain(int nodes)
{
    onnx_builder *b = begin();
    char inputs[NAMES];
    for (int i = 0; i < nodes; i++) {
        add_constant(b, i);
        if (i == 0)
            snprintf(inputs, sizeof inputs, "x,c0");
        else
            snprintf(inputs, sizeof inputs, "y%d,c%d", i - 1, i);
        add_node(b, "Add", inputs, "y", i);
    }
    snprintf(inputs, sizeof inputs, "y%d", nodes - 1);
    onnx_output(b, inputs);
    return onnx_finish(b);
}

/* y + y, and so on: all nodes have the same form, but different inputs. */
static pb_buffer doublings(int nodes)
{
    onnx_builder *b = begin();
    char inputs[NAMES] = "x,x", y[NAME] = "x";
    for (int i = 0; i < nodes; i++) {
        add_node(b, "Add", inputs, "y", i);
        snprintf(y, sizeof y, "y%d", i);
        snprintf(inputs, sizeof inputs, "%s,%s", y, y);
    }
    onnx_output(b, y);
    return onnx_finish(b);
}

/* Each node adds the two before it. Every value is read more than once, so it is not inlined into its reader. */
static pb_buffer fibonacci(int nodes)
{
    onnx_builder *b = begin();
    char inputs[NAMES], before[NAME] = "x", last[NAME] = "x";
    for (int i = 0; i < nodes; i++) {
        snprintf(inputs, sizeof inputs, "%s,%s", last, before);
        add_node(b, "Add", inputs, "y", i);
        memcpy(before, last, sizeof before);
        snprintf(last, sizeof last, "y%d", i);
    }
    onnx_output(b, last);
    return onnx_finish(b);
}

/* Matmuls with their own weights, and sums. Every call reads different data. */
static pb_buffer products(int nodes)
{
    onnx_builder *b = begin();
    char x[NAME] = "x", inputs[NAMES], name[NAME];
    float weight[64] = {0};
    for (int i = 0; i < nodes / 2; i++) {
        weight[0] = 1 + (float)i;
        snprintf(name, sizeof name, "layers.%d.weight", i);
        onnx_initializer(b, name, MDOT_DTYPE_F32, "8,8", weight);
        snprintf(inputs, sizeof inputs, "%s,%s", x, name);
        add_node(b, "MatMul", inputs, "m", i);
        snprintf(inputs, sizeof inputs, "m%d,%s", i, x);
        add_node(b, "Add", inputs, "r", i);
        snprintf(x, sizeof x, "r%d", i);
    }
    onnx_output(b, x);
    return onnx_finish(b);
}

/* Returns "PREFIX0,PREFIX1,…", malloc'ed. */
static char *name_all(const char *prefix, int count)
{
    size_t capacity = (size_t)count * NAME, used = 0;
    char *list = malloc(capacity);
    if (list == NULL) abort();
    for (int i = 0; i < count; i++)
        used += (size_t)snprintf(list + used, capacity - used, "%s%s%d", i > 0 ? "," : "", prefix, i);
    return list;
}

/* One value, replaced by simplification and read by all others. The last reader is far away. */
static pb_buffer readers(int nodes)
{
    onnx_builder *b = begin();
    onnx_node(b, "Identity", "x", "s");
    for (int i = 0; i < nodes; i++) {
        char inputs[NAMES];
        add_constant(b, i);
        snprintf(inputs, sizeof inputs, "s,c%d", i);
        add_node(b, "Mul", inputs, "y", i);
    }
    char *all = name_all("y", nodes);
    onnx_node(b, "Sum", all, "z");
    free(all);
    onnx_output(b, "z");
    return onnx_finish(b);
}

/* Values that are removed. Each is read once early and once after all others. */
static pb_buffer far(int nodes)
{
    onnx_builder *b = begin();
    for (int i = 0; i < nodes / 3; i++) {
        char inputs[NAMES];
        add_constant(b, i);
        snprintf(inputs, sizeof inputs, "x,c%d", i);
        add_node(b, "Mul", inputs, "m", i);
        snprintf(inputs, sizeof inputs, "m%d", i);
        add_node(b, "Identity", inputs, "s", i);
    }
    for (int i = nodes / 3; i-- > 0;) {
        char inputs[NAMES];
        if (i == nodes / 3 - 1)
            snprintf(inputs, sizeof inputs, "s%d,x", i);
        else
            snprintf(inputs, sizeof inputs, "s%d,y%d", i, i + 1);
        add_node(b, "Sub", inputs, "y", i);
    }
    onnx_output(b, "y0");
    return onnx_finish(b);
}

/* As many outputs as nodes. */
static pb_buffer outputs(int nodes)
{
    onnx_builder *b = begin();
    for (int i = 0; i < nodes; i++) {
        char inputs[NAMES], output[NAME];
        add_constant(b, i);
        snprintf(inputs, sizeof inputs, "x,c%d", i);
        add_node(b, "Mul", inputs, "y", i);
        snprintf(output, sizeof output, "y%d", i);
        onnx_output(b, output);
    }
    return onnx_finish(b);
}

/* Nodes that are all equal, and merged. */
static pb_buffer equal(int nodes)
{
    onnx_builder *b = begin();
    for (int i = 0; i < nodes; i++) add_node(b, "Erf", "x", "y", i);
    char *all = name_all("y", nodes);
    onnx_node(b, "Sum", all, "z");
    free(all);
    onnx_output(b, "z");
    return onnx_finish(b);
}

/* Layout changes of layout changes. */
static pb_buffer layouts(int nodes)
{
    static const int64_t perm[] = {1, 0};
    onnx_builder *b = begin();
    char inputs[NAMES] = "x";
    for (int i = 0; i < nodes / 4; i++) {
        add_node(b, "Transpose", inputs, "t", i);
        onnx_attr_ints(b, "perm", 2, perm);
        snprintf(inputs, sizeof inputs, "t%d", i);
        add_node(b, "Erf", inputs, "e", i);
        snprintf(inputs, sizeof inputs, "e%d", i);
        add_node(b, "Transpose", inputs, "u", i);
        onnx_attr_ints(b, "perm", 2, perm);
        snprintf(inputs, sizeof inputs, "u%d", i);
        add_node(b, "Sin", inputs, "s", i);
        snprintf(inputs, sizeof inputs, "s%d", i);
    }
    onnx_output(b, inputs);
    return onnx_finish(b);
}

/* Calls of a local function. */
static pb_buffer calls(int nodes)
{
    onnx_builder *b = begin();
    onnx_begin_function(b, "f:Twice", "a", "c", 17);
    onnx_node(b, "Erf", "a", "h");
    onnx_node(b, "Sin", "h", "c");
    onnx_end_function(b);
    char inputs[NAMES] = "x";
    for (int i = 0; i < nodes / 2; i++) {
        add_node(b, "f:Twice", inputs, "y", i);
        snprintf(inputs, sizeof inputs, "y%d", i);
    }
    onnx_output(b, inputs);
    return onnx_finish(b);
}

/* A residual stream: matmuls with weights, normalisations, activations. */
static pb_buffer layers(int nodes)
{
    enum { NODES_OF_LAYER = 4 };
    onnx_builder *b = begin();
    onnx_initializer(b, "g", MDOT_DTYPE_F32, "8", NULL);
    char x[NAME] = "x", inputs[NAMES], name[NAME];
    for (int i = 0; i < nodes / NODES_OF_LAYER; i++) {
        snprintf(inputs, sizeof inputs, "%s,g,g", x);
        add_node(b, "LayerNormalization", inputs, "n", i);
        snprintf(name, sizeof name, "layers.%d.weight", i);
        onnx_initializer(b, name, MDOT_DTYPE_F32, "8,8", NULL);
        snprintf(inputs, sizeof inputs, "n%d,%s", i, name);
        add_node(b, "MatMul", inputs, "m", i);
        snprintf(inputs, sizeof inputs, "m%d", i);
        add_node(b, "Tanh", inputs, "a", i);
        snprintf(inputs, sizeof inputs, "%s,a%d", x, i);
        add_node(b, "Add", inputs, "r", i);
        snprintf(x, sizeof x, "r%d", i);
    }
    onnx_output(b, x);
    return onnx_finish(b);
}

/* A Transformer as PyTorch exports it, with computed shapes. */
static pb_buffer encoder(int nodes)
{
    enum { NODES_OF_LAYER = 62 };
    return encoder_model(nodes / NODES_OF_LAYER);
}

const growth_model growth_models[] = {
    {"chain", "additions, each of the one before", chain},
    {"doublings", "additions of a value to itself", doublings},
    {"fibonacci", "additions of the two values before", fibonacci},
    {"products", "products with weights, and additions", products},
    {"readers", "one value that all nodes read", readers},
    {"far", "values that are read once, far from where they are made", far},
    {"outputs", "as many outputs as nodes", outputs},
    {"equal", "equal nodes", equal},
    {"layouts", "transpositions back and forth", layouts},
    {"calls", "calls of a local function", calls},
    {"layers", "residual layers", layers},
    {"encoder", "a Transformer with computed shapes", encoder},
};
const int growth_model_count = (int)(sizeof growth_models / sizeof *growth_models);
