/* graph_onnx.c — see graph_onnx.h. */
#include "tests/support/graph_onnx.h"

#include "ir/ops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { OPSET = 23 };

/* Returns for example "1,L,16". */
static char *text_of_shape(const ir_type *type, const char *symbol)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (int i = 0; i < type->rank; i++) {
        if (i > 0) fputc(',', out);
        if (ir_dim_is_number(type->dim[i])) {
            fprintf(out, "%lld", (long long)type->dim[i].offset);
        } else {
            assert_true(ir_dim_equal(type->dim[i], ir_dim_affine(1, 0)));
            fputs(symbol, out);
        }
    }
    fclose(out);
    return text;
}

/* Returns for example "a,,b". */
static char *text_of_names(ir_value *const *values, int count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (int i = 0; i < count; i++) fprintf(out, "%s%s", i > 0 ? "," : "", values[i] != NULL ? values[i]->name : "");
    fclose(out);
    return text;
}

static void write_constant(onnx_builder *b, const ir_value *value)
{
    char *shape = text_of_shape(&value->type, NULL);
    onnx_initializer(b, value->name, value->type.dtype, shape, value->constant->data);
    free(shape);
}

static void write_attribute(onnx_builder *b, const ir_attr *attr)
{
    switch (attr->kind) {
    case IR_ATTR_INT: onnx_attr_int(b, attr->name, attr->i); break;
    case IR_ATTR_FLOAT: onnx_attr_float(b, attr->name, (float)attr->f); break;
    case IR_ATTR_STRING: onnx_attr_string(b, attr->name, attr->s); break;
    case IR_ATTR_INTS: onnx_attr_ints(b, attr->name, attr->count, attr->ints); break;
    default: fail_msg("attribute %s cannot be written as ONNX", attr->name);
    }
}

static void write_node(onnx_builder *b, const ir_node *node)
{
    char *inputs = text_of_names(node->inputs, node->input_count);
    char *outputs = text_of_names(node->outputs, node->output_count), type[128];
    snprintf(type, sizeof type, "%s%s%s", node->op->domain, *node->op->domain ? ":" : "", node->op->name);
    onnx_node(b, type, inputs, outputs);
    for (int i = 0; i < node->attr_count; i++) write_attribute(b, &node->attrs[i]);
    free(inputs);
    free(outputs);
}

pb_buffer graph_to_onnx(const ir_graph *graph)
{
    onnx_builder *b = onnx_begin(OPSET);
    onnx_import(b, "com.microsoft", 1);
    for (int i = 0; i < graph->input_count; i++) {
        const ir_value *input = graph->inputs[i];
        char *shape = text_of_shape(&input->type, graph->symbol);
        onnx_input(b, input->name, input->type.dtype, shape);
        free(shape);
    }
    bool *written = calloc((size_t)graph->value_count + 1, sizeof *written);
    assert_non_null(written);
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        for (int i = 0; i < node->input_count; i++) {
            const ir_value *value = node->inputs[i];
            if (value == NULL || value->constant == NULL || written[value->id]) continue;
            written[value->id] = true;
            write_constant(b, value);
        }
        write_node(b, node);
    }
    free(written);
    for (int i = 0; i < graph->output_count; i++) onnx_output(b, graph->outputs[i]->name);
    return onnx_finish(b);
}
