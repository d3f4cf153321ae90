/* stated_weights.c — see flat.h. */
#include "frontend/onnx/flat.h"

#include "frontend/onnx/import_context.h"
#include "frontend/onnx/names.h"

#include <string.h>

/* 0 for a shape refused later by the import, with another message. */
static double float_elements(const Onnx__TensorProto *proto)
{
    if (proto == NULL || proto->n_dims > MDOT_MAX_RANK || !ir_dtype_is_float((mdot_dtype)proto->data_type)) return 0;
    int64_t count = ir_count_elements((int)proto->n_dims, proto->dims);
    return count > 0 ? (double)count : 0;
}

/* The tensor of a node Constant. NULL for other nodes and for a Constant of another form. */
static const Onnx__TensorProto *constant_tensor(const fe_node *node)
{
    bool is_constant = !*node->domain && strcmp(node->op_type, "Constant") == 0 && node->attribute_count == 1 &&
                       node->output_count == 1 && node->outputs[0] != FE_NO_VALUE;
    return is_constant ? node->attributes[0].proto->t : NULL;
}

mdot_status fe_count_stated_weights(const fe_context *context, const Onnx__GraphProto *graph, const fe_flat *flat,
                                    double *out_elements)
{
    bool *is_read = IR_NEW_ARRAY(context->scratch, bool, flat->value_count + 1);
    if (is_read == NULL) return fe_out_of_memory(context);
    for (int i = 0; i < flat->node_count; i++) {
        const fe_node *node = &flat->nodes[i];
        for (int k = 0; node->branch == NULL && k < node->input_count; k++)
            if (node->inputs[k] != FE_NO_VALUE) is_read[node->inputs[k]] = true;
    }
    double elements = 0;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        int value = fe_names_find(flat->names, graph->initializer[i]->name) - 1;
        if (value >= 0 && is_read[value]) elements += float_elements(graph->initializer[i]);
    }
    for (int i = 0; i < flat->node_count; i++) {
        const Onnx__TensorProto *tensor = constant_tensor(&flat->nodes[i]);
        if (tensor != NULL && is_read[flat->nodes[i].outputs[0]]) elements += float_elements(tensor);
    }
    *out_elements = elements;
    return MDOT_OK;
}
