/* seeds.c — see seeds.h. Each model is as small as its purpose allows. */
#include "tests/fuzz/seeds.h"

#include <stddef.h>

/* Nodes of an old opset, all of which are upgraded. */
static pb_buffer old_opset(void)
{
    static const int64_t list[] = {0, 1};
    onnx_builder *b = onnx_begin(5);
    onnx_input(b, "x", MDOT_DTYPE_F32, "2,3,4");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "3", NULL);
    onnx_node(b, "Mul", "x,w", "a");
    onnx_attr_int(b, "broadcast", 1);
    onnx_attr_int(b, "axis", 1);
    onnx_node(b, "Softmax", "a", "b");
    onnx_node(b, "Slice", "b", "c");
    onnx_attr_ints(b, "starts", 2, list);
    onnx_attr_ints(b, "ends", 2, list);
    onnx_node(b, "Clip", "c", "d");
    onnx_attr_float(b, "min", -1);
    onnx_node(b, "PRelu", "d,w", "e");
    onnx_node(b, "ReduceMean", "e", "f");
    onnx_attr_ints(b, "axes", 1, list);
    onnx_node(b, "Pad", "f", "g");
    onnx_attr_ints(b, "pads", 2, list);
    onnx_node(b, "Cast", "g", "h");
    onnx_attr_string(b, "to", "FLOAT16");
    onnx_node(b, "Dropout", "h", "i,mask");
    onnx_output(b, "i");
    return onnx_finish(b);
}

/* Symbolic dimensions, constants, absent inputs, a tensor attribute. */
static pb_buffer new_opset(void)
{
    static const int64_t dims[] = {1, -1};
    static const float one = 1;
    onnx_builder *b = onnx_begin(21);
    onnx_input(b, "tokens", MDOT_DTYPE_I64, "batch,N");
    onnx_input(b, "mask", MDOT_DTYPE_BOOL, "batch,?");
    onnx_initializer(b, "table", MDOT_DTYPE_F32, "8,4", NULL);
    onnx_node(b, "Gather", "table,tokens", "a");
    onnx_node(b, "Constant", "", "s");
    onnx_attr_tensor(b, "value", MDOT_DTYPE_F32, "", &one);
    onnx_node(b, "Constant", "", "dims");
    onnx_attr_ints(b, "value_ints", 2, dims);
    onnx_node(b, "Clip", "a,,s", "c");
    onnx_node(b, "Reshape", "c,dims", "d");
    onnx_node(b, "com.microsoft:Gelu", "d", "y");
    onnx_output(b, "y");
    return onnx_finish(b);
}

/* Nested functions with attribute references, and a subgraph. */
static pb_buffer functions(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N");
    onnx_begin_function(b, "f:Inner", "a,b", "c", 12);
    onnx_function_attr_int(b, "axis", 0);
    onnx_node(b, "Add", "a,b", "s");
    onnx_node(b, "Softmax", "s", "c");
    onnx_attr_reference(b, "axis", "axis");
    onnx_end_function(b);
    onnx_begin_function(b, "f:Outer", "a", "a,c", 17);
    onnx_node(b, "f:Inner", "a,a", "h");
    onnx_node(b, "f:Inner", "a,h", "c");
    onnx_attr_int(b, "axis", -1);
    onnx_end_function(b);
    onnx_node(b, "f:Outer", "x", "p,q");
    onnx_node(b, "If", "q", "y");
    pb_buffer graph = {0}, attribute = {0};
    pb_text(&graph, 2, "branch");
    pb_text(&attribute, 1, "then_branch");
    pb_int(&attribute, 20, 5);
    pb_message(&attribute, 6, &graph);
    onnx_attr_raw(b, &attribute);
    onnx_output(b, "p");
    onnx_output(b, "y");
    return onnx_finish(b);
}

/* Each typed data field once, and external data. */
static pb_buffer tensors(void)
{
    static const struct {
        int dtype, field;
    } typed[] = {{MDOT_DTYPE_U8, 5}, {MDOT_DTYPE_F16, 5}, {MDOT_DTYPE_I64, 7}, {MDOT_DTYPE_U32, 11}};
    onnx_builder *b = onnx_begin(17);
    char name[] = "a";
    for (size_t i = 0; i < sizeof typed / sizeof *typed; i++, name[0]++) {
        pb_buffer tensor = onnx_tensor_head(name, typed[i].dtype, "2"), packed = {0};
        pb_varint(&packed, 1);
        pb_varint(&packed, 255);
        pb_message(&tensor, typed[i].field, &packed);
        onnx_graph_raw(b, 5, &tensor);
    }
    pb_buffer tensor = onnx_tensor_head("w", MDOT_DTYPE_F32, "2"), entry = {0};
    pb_text(&entry, 1, "location");
    pb_text(&entry, 2, "../w.bin");
    pb_message(&tensor, 13, &entry);
    pb_int(&tensor, 14, 1);
    onnx_graph_raw(b, 5, &tensor);
    onnx_node(b, "Concat", "a,a", "y");
    onnx_attr_int(b, "axis", 0);
    onnx_output(b, "y");
    return onnx_finish(b);
}

/* A predictor: a length, weights, columns with defaults. */
static pb_buffer predictor(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "gpu", MDOT_DTYPE_F32, "10");
    onnx_input(b, "operator_position", MDOT_DTYPE_F32, "L,5");
    onnx_input(b, "configuration", MDOT_DTYPE_F32, "2");
    onnx_node(b, "Neg", "configuration", "unread");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "5,3", NULL);
    onnx_initializer(b, "rows", MDOT_DTYPE_I64, "1", NULL);
    onnx_node(b, "MatMul", "operator_position,w", "h");
    onnx_node(b, "Softmax", "h", "p");
    onnx_node(b, "ReduceSum", "p,rows", "step_ms");
    onnx_attr_int(b, "keepdims", 0);
    onnx_node(b, "ReduceMax", "gpu", "outside_training");
    onnx_output(b, "step_ms");
    onnx_output(b, "outside_training");
    onnx_metadata(b, "mdot.defaults.gpu", "0.5");
    onnx_metadata(b, "mdot.reads.configuration", "torch, batch");
    return onnx_finish(b);
}

/* A training step, from which the job reader removes the backward pass, and which has costs and repetitions. */
static pb_buffer training(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "2,3,8,8");
    onnx_initializer(b, "w1", MDOT_DTYPE_F32, "3,3,3,3", NULL);
    onnx_initializer(b, "w2", MDOT_DTYPE_F32, "3,3,3,3", NULL);
    onnx_node(b, "Conv", "x,w1", "a");
    onnx_node(b, "Relu", "a", "b");
    onnx_node(b, "Conv", "b,w2", "c");
    onnx_node(b, "Relu", "c", "d");
    onnx_node(b, "com.microsoft:ReluGrad", "d,c", "c_grad");
    onnx_node(b, "com.microsoft:AdamWOptimizer", "w2,c_grad", "updated");
    onnx_output(b, "d");
    onnx_output(b, "updated");
    return onnx_finish(b);
}

const seed_model seed_models[] = {{"old_opset", old_opset},
                                  {"new_opset", new_opset},
                                  {"functions", functions},
                                  {"tensors", tensors},
                                  {"predictor", predictor},
                                  {"training", training},
                                  {NULL, NULL}};

const char seed_calibration[] =
    "mdot-calibration 3\n"
    "predictor predictor\n"
    "rows 3 1\n"
    "job 2b20dfe9d5dd0046 0 0 0 0 70 282 5 0 0 0 0 0 0 1501 5233 0 0 0 0 5 0 0 0 0 386 2519 0 0 0 0 0 0\n"
    "gpu 1 2 1 K80\n"
    "time 0.25 0.2\n"
    "memory 1 0\n"
    "step 2b20dfe9d5dd0046 0 0 204 1 1a5cbfbae8fb1dfe 32 0.927800294 1 0.262576709 0.165227101 0 0 0.192273209 0 0\n"
    "step 2b20dfe9d5dd0046 2 0 204 2 1a5cbfbae8fb1dfe 64 0.5 1 0.262576709 0.25 1.5 1 0.192273209 0.1 0\n"
    "step - 2 1 110 1 1a5cbfbae8fb1dfe 64 0.5 1 0.262576709 0.25 0 0 0.192273209 0 0\n"
    "gpu 0 0 0 V100-SXM-16GB\n"
    "time 1 0\n"
    "memory 1 0\n";
