/* seeds.c — see seeds.h. Each model is as small as its purpose allows. */
#include "tests/fuzz/seeds.h"
#include "ir/ops.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Nodes from an old opset, all upgraded. */
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

/* A training step with costs and repetitions, from which the job reader removes the backward pass. */
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

/* Bytes with scales and zero points: operators of ONNX and of com.microsoft. */
static pb_buffer quantised(void)
{
    static const float scale[] = {0.5f};
    static const unsigned char zero[] = {3};
    onnx_builder *b = onnx_begin(21);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "2,4,8,8");
    onnx_initializer(b, "s", MDOT_DTYPE_F32, "", scale);
    onnx_initializer(b, "z", MDOT_DTYPE_U8, "", zero);
    onnx_initializer(b, "w", MDOT_DTYPE_U8, "4,4,3,3", NULL);
    onnx_initializer(b, "m", MDOT_DTYPE_U8, "8,8", NULL);
    onnx_node(b, "QuantizeLinear", "x,s,z", "q");
    onnx_node(b, "QLinearConv", "q,s,z,w,s,z,s,z", "c");
    onnx_node(b, "QLinearMatMul", "c,s,z,m,s,z,s,z", "d");
    onnx_node(b, "com.microsoft:QLinearAdd", "d,s,z,d,s,z,s,z", "e");
    onnx_node(b, "com.microsoft:QLinearSigmoid", "e,s,z,s,z", "f");
    onnx_node(b, "com.microsoft:QLinearGlobalAveragePool", "f,s,z,s,z", "g");
    onnx_attr_int(b, "channels_last", 0);
    onnx_node(b, "DequantizeLinear", "g,s,z", "h");
    onnx_node(b, "DynamicQuantizeLinear", "x", "i,j,k");
    onnx_node(b, "MatMulInteger", "i,m,k,z", "l");
    onnx_node(b, "ConvInteger", "i,w,k,z", "n");
    onnx_output(b, "h");
    onnx_output(b, "l");
    onnx_output(b, "n");
    return onnx_finish(b);
}

/* ---- Graphs in attributes ---- */

static void add_names(pb_buffer *node, int field, const char *names)
{
    char copy[64], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest))
        pb_text(node, field, name);
}

static void add_node(pb_buffer *graph, const char *op, const char *inputs, const char *outputs)
{
    pb_buffer node = {0};
    add_names(&node, 1, inputs);
    add_names(&node, 2, outputs);
    pb_text(&node, 4, op);
    pb_message(graph, 1, &node);
}

static void add_values(pb_buffer *graph, int field, const char *names)
{
    char copy[64], *rest = NULL;
    snprintf(copy, sizeof copy, "%s", names);
    for (char *name = strtok_r(copy, ",", &rest); name != NULL; name = strtok_r(NULL, ",", &rest)) {
        pb_buffer value = {0};
        pb_text(&value, 1, name);
        pb_message(graph, field, &value);
    }
}

/* Adds the graph as an attribute of the current node, and frees it. */
static void add_graph(onnx_builder *b, const char *name, pb_buffer *graph)
{
    pb_buffer attribute = {0};
    pb_text(&attribute, 1, name);
    pb_int(&attribute, 20, 5);
    pb_text(graph, 2, name);
    pb_message(&attribute, 6, graph);
    onnx_attr_raw(b, &attribute);
}

/* Other operators of com.microsoft on bytes, and weights of four bits. */
static pb_buffer packed(void)
{
    static const float scale[] = {0.5f};
    static const unsigned char zero[] = {3};
    onnx_builder *b = onnx_begin(17);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "2,5,16");
    onnx_initializer(b, "s", MDOT_DTYPE_F32, "", scale);
    onnx_initializer(b, "z", MDOT_DTYPE_U8, "", zero);
    onnx_initializer(b, "w", MDOT_DTYPE_U8, "16,48", NULL);
    onnx_initializer(b, "c", MDOT_DTYPE_F32, "48", NULL);
    onnx_initializer(b, "bias", MDOT_DTYPE_I32, "48", NULL);
    onnx_input(b, "condition", MDOT_DTYPE_BOOL, "2,5,16");
    onnx_initializer(b, "four", MDOT_DTYPE_U8, "8,1,8", NULL);
    onnx_initializer(b, "scales", MDOT_DTYPE_F32, "8", NULL);
    onnx_initializer(b, "shape", MDOT_DTYPE_I64, "2", (const int64_t[]){10, 16});
    onnx_node(b, "QuantizeLinear", "x,s,z", "q");
    onnx_node(b, "com.microsoft:QAttention", "q,w,c,s,s,,z,z", "a");
    onnx_attr_int(b, "num_heads", 4);
    onnx_node(b, "com.microsoft:DynamicQuantizeMatMul", "a,w,s,z", "d");
    onnx_node(b, "com.microsoft:MatMulIntegerToFloat", "q,w,s,s,z,z,c", "m");
    onnx_node(b, "com.microsoft:QLinearConcat", "s,z,q,s,z,q,s,z", "k");
    onnx_attr_int(b, "axis", 1);
    onnx_node(b, "com.microsoft:QLinearWhere", "condition,q,s,z,q,s,z,s,z", "e");
    onnx_node(b, "com.microsoft:DequantizeLinear", "e,s,z", "f");
    onnx_node(b, "Reshape", "q,shape", "rows");
    onnx_node(b, "com.microsoft:QGemm", "rows,s,z,w,s,z,bias,s,z", "g");
    onnx_node(b, "com.microsoft:MatMulNBits", "x,four,scales", "n");
    onnx_attr_int(b, "K", 16);
    onnx_attr_int(b, "N", 8);
    onnx_attr_int(b, "bits", 4);
    onnx_attr_int(b, "block_size", 16);
    for (const char *outputs = "dmkfgn"; *outputs != '\0'; outputs++) onnx_output(b, (const char[]){*outputs, '\0'});
    return onnx_finish(b);
}

/* A Loop, a Scan, an If whose condition is known and one whose condition is an input. */
static pb_buffer loops(void)
{
    static const int64_t trips = 3;
    static const unsigned char yes = 1;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "4,8");
    onnx_input(b, "c", MDOT_DTYPE_BOOL, "");
    onnx_initializer(b, "trips", MDOT_DTYPE_I64, "", &trips);
    onnx_initializer(b, "yes", MDOT_DTYPE_BOOL, "", &yes);
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "8,8", NULL);
    pb_buffer body = {0}, scan = {0}, branches[4] = {{0}};
    add_node(&body, "MatMul", "h,w", "h2");
    add_node(&body, "Identity", "go", "go2");
    add_values(&body, 11, "i,go,h");
    add_values(&body, 12, "go2,h2,h2");
    onnx_node(b, "Loop", "trips,yes,x", "y,ys");
    add_graph(b, "body", &body);
    add_node(&scan, "Add", "sum,row", "sum2");
    add_values(&scan, 11, "sum,row");
    add_values(&scan, 12, "sum2,sum2");
    onnx_node(b, "Scan", "w,ys", "last,all");
    onnx_attr_int(b, "num_scan_inputs", 1);
    add_graph(b, "body", &scan);
    for (int i = 0; i < 4; i++) {
        add_node(&branches[i], i % 2 == 0 ? "Relu" : "Sigmoid", "y", "out");
        add_values(&branches[i], 12, "out");
    }
    onnx_node(b, "If", "yes", "p");
    add_graph(b, "then_branch", &branches[0]);
    add_graph(b, "else_branch", &branches[1]);
    onnx_node(b, "If", "c", "q");
    add_graph(b, "then_branch", &branches[2]);
    add_graph(b, "else_branch", &branches[3]);
    onnx_output(b, "p");
    onnx_output(b, "q");
    onnx_output(b, "all");
    return onnx_finish(b);
}

/* Loops with a length as the number of steps: a dimension plus one, and at most seven. */
static pb_buffer counted_loops(void)
{
    static const int64_t at = 0, one = 1, most = 7;
    static const unsigned char yes = 1;
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,8");
    onnx_initializer(b, "at", MDOT_DTYPE_I64, "", &at);
    onnx_initializer(b, "one", MDOT_DTYPE_I64, "", &one);
    onnx_initializer(b, "most", MDOT_DTYPE_I64, "", &most);
    onnx_initializer(b, "yes", MDOT_DTYPE_BOOL, "", &yes);
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "8,8", NULL);
    onnx_node(b, "Shape", "x", "dims");
    onnx_node(b, "Gather", "dims,at", "length");
    onnx_node(b, "Add", "length,one", "longer");
    onnx_node(b, "Min", "longer,most", "trips");
    for (int i = 0; i < 2; i++) {
        pb_buffer body = {0};
        add_node(&body, "MatMul", "h,w", "h2");
        add_node(&body, "Less", "i,most", "go2");
        add_values(&body, 11, "i,go,h");
        add_values(&body, 12, "go2,h2,h2");
        onnx_node(b, "Loop", i == 0 ? "longer,yes,x" : "trips,yes,y0", i == 0 ? "y0,ys0" : "y1,ys1");
        add_graph(b, "body", &body);
    }
    onnx_output(b, "y1");
    onnx_output(b, "ys0");
    return onnx_finish(b);
}

/* Adds an entry to a tensor's external data. */
static void add_external(pb_buffer *tensor, const char *key, const char *value)
{
    pb_buffer entry = {0};
    pb_text(&entry, 1, key);
    pb_text(&entry, 2, value);
    pb_message(tensor, 13, &entry);
}

/* Weights in other files, which are absent. The first one has a location, because the reader refuses a model at
 * the first tensor without one. */
static pb_buffer external(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,16");
    pb_buffer part = onnx_tensor_head("part", 1, "32,4"); /* float */
    add_external(&part, "location", "weights.bin");
    add_external(&part, "offset", "4096");
    add_external(&part, "length", "512");
    pb_int(&part, 14, 1); /* data_location EXTERNAL */
    onnx_graph_raw(b, 5, &part);
    onnx_initializer_elsewhere(b, "w", MDOT_DTYPE_F32, "16,32");
    onnx_initializer_elsewhere(b, "bias", MDOT_DTYPE_BF16, "32");
    onnx_node(b, "Gemm", "x,w,bias", "h");
    onnx_node(b, "Relu", "h", "r");
    onnx_node(b, "MatMul", "r,part", "y");
    onnx_output(b, "y");
    return onnx_finish(b);
}

/* Recurrences: one direction and two. */
static pb_buffer recurrent(void)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "5,2,8");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "1,16,8", NULL);
    onnx_initializer(b, "r", MDOT_DTYPE_F32, "1,16,4", NULL);
    onnx_initializer(b, "w2", MDOT_DTYPE_F32, "2,12,4", NULL);
    onnx_initializer(b, "r2", MDOT_DTYPE_F32, "2,12,4", NULL);
    onnx_node(b, "LSTM", "x,w,r", "h");
    onnx_attr_int(b, "hidden_size", 4);
    onnx_node(b, "Squeeze", "h", "s");
    onnx_node(b, "GRU", "s,w2,r2", "y,last");
    onnx_attr_int(b, "hidden_size", 4);
    onnx_attr_string(b, "direction", "bidirectional");
    onnx_output(b, "y");
    return onnx_finish(b);
}

/* Two blocks of attention, one decomposed and one as an operator, with a mixture of experts and a loss. */
static pb_buffer transformer(void)
{
    static const int64_t heads[] = {2, 6, 2, 4}, rows[] = {2, 6, 8}, order[] = {0, 2, 1, 3}, last[] = {0, 2, 3, 1},
                         k[] = {2};
    onnx_builder *b = onnx_begin(23);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "tokens", MDOT_DTYPE_I64, "2,6");
    onnx_input(b, "labels", MDOT_DTYPE_I64, "2,6");
    onnx_initializer(b, "table", MDOT_DTYPE_F32, "32,8", NULL);
    onnx_initializer(b, "scale", MDOT_DTYPE_F32, "8", NULL);
    onnx_initializer(b, "heads", MDOT_DTYPE_I64, "4", heads);
    onnx_initializer(b, "rows", MDOT_DTYPE_I64, "3", rows);
    onnx_initializer(b, "k", MDOT_DTYPE_I64, "1", k);
    onnx_node(b, "Gather", "table,tokens", "x0");
    for (int block = 0; block < 2; block++) {
        char in[16], inputs[32], name[32], w[16];
        snprintf(in, sizeof in, "x%d", block);
        snprintf(w, sizeof w, "w%d", block);
        onnx_initializer(b, w, MDOT_DTYPE_F32, "8,8", NULL);
        snprintf(inputs, sizeof inputs, "%s,scale,scale", in);
        onnx_node(b, "LayerNormalization", inputs, block == 0 ? "n0" : "n1");
        snprintf(name, sizeof name, "/layers.%d/norm", block);
        onnx_node_name(b, name);
        snprintf(inputs, sizeof inputs, "n%d,%s", block, w);
        onnx_node(b, "MatMul", inputs, block == 0 ? "m0" : "m1");
        snprintf(name, sizeof name, "/layers.%d/linear", block);
        onnx_node_name(b, name);
        if (block == 1) {
            onnx_node(b, "Attention", "m1,m1,m1", "x2");
            onnx_attr_int(b, "q_num_heads", 2);
            onnx_attr_int(b, "kv_num_heads", 2);
            onnx_node_name(b, "/layers.1/attention");
            continue;
        }
        onnx_node(b, "Reshape", "m0,heads", "h");
        onnx_node(b, "Transpose", "h", "q");
        onnx_attr_ints(b, "perm", 4, order);
        onnx_node(b, "Transpose", "h", "kt");
        onnx_attr_ints(b, "perm", 4, last);
        onnx_node(b, "MatMul", "q,kt", "scores");
        onnx_node(b, "Softmax", "scores", "p");
        onnx_attr_int(b, "axis", -1);
        onnx_node(b, "MatMul", "p,q", "a");
        onnx_node(b, "Transpose", "a", "t");
        onnx_attr_ints(b, "perm", 4, order);
        onnx_node(b, "Reshape", "t,rows", "x1");
    }
    onnx_node(b, "TopK", "x2,k", "values,picked");
    onnx_node(b, "MatMul", "x2,table_t", "logits");
    onnx_node(b, "Transpose", "table", "table_t");
    onnx_node(b, "com.microsoft:FastGelu", "logits", "g");
    onnx_node(b, "Einsum", "g,table", "e");
    onnx_attr_string(b, "equation", "bsv,vd->bsd");
    onnx_node(b, "Transpose", "g", "classes");
    onnx_attr_ints(b, "perm", 3, last);
    onnx_node(b, "SoftmaxCrossEntropyLoss", "classes,labels", "loss");
    onnx_output(b, "loss");
    onnx_output(b, "values");
    onnx_output(b, "e");
    return onnx_finish(b);
}

/* An image classifier: normalised convolutions, pooling, resizing, a head. */
static pb_buffer images(void)
{
    static const int64_t two[] = {2, 2};
    static const float scales[] = {1, 1, 2, 2};
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "batch,3,16,16");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "8,3,3,3", NULL);
    onnx_initializer(b, "d", MDOT_DTYPE_F32, "8,1,3,3", NULL);
    onnx_initializer(b, "v", MDOT_DTYPE_F32, "8", NULL);
    onnx_initializer(b, "head", MDOT_DTYPE_F32, "8,10", NULL);
    onnx_initializer(b, "scales", MDOT_DTYPE_F32, "4", scales);
    onnx_node(b, "Conv", "x,w", "a");
    onnx_attr_ints(b, "strides", 2, two);
    onnx_node(b, "BatchNormalization", "a,v,v,v,v", "n");
    onnx_node(b, "Relu", "n", "r");
    onnx_node(b, "Conv", "r,d", "c");
    onnx_attr_int(b, "group", 8);
    onnx_node(b, "MaxPool", "c", "p");
    onnx_attr_ints(b, "kernel_shape", 2, two);
    onnx_node(b, "Resize", "p,,scales", "u");
    onnx_attr_string(b, "mode", "nearest");
    onnx_node(b, "GlobalAveragePool", "u", "g");
    onnx_node(b, "Flatten", "g", "f");
    onnx_node(b, "Dropout", "f", "dropped");
    onnx_node(b, "Gemm", "dropped,head", "y");
    onnx_output(b, "y");
    return onnx_finish(b);
}

/* Every operator of the table once, with as many inputs as it needs. */
static pb_buffer all_operators(void)
{
    onnx_builder *b = onnx_begin(23);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "x", MDOT_DTYPE_F32, "2,3,8,8");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "3,3,8,8", NULL);
    for (int i = 0; i < IR_OP_COUNT; i++) {
        const ir_op *op = &ir_ops[i];
        char name[96], inputs[64] = "x", outputs[64], more[16];
        if (strcmp(op->domain, "mdot") == 0 || op->min_inputs == 0) continue; /* a Constant needs a value */
        snprintf(name, sizeof name, "%s%s%s", op->domain, op->domain[0] != '\0' ? ":" : "", op->name);
        for (int k = 1; k < op->min_inputs && k < 8; k++) strcat(inputs, ",w");
        snprintf(outputs, sizeof outputs, "y%d", i);
        onnx_output(b, outputs);
        for (int k = 1; k < op->min_outputs && k < 8; k++) {
            snprintf(more, sizeof more, ",y%d_%d", i, k);
            strcat(outputs, more);
        }
        onnx_node(b, name, inputs, outputs);
    }
    return onnx_finish(b);
}

const seed_model seed_models[] = {{"old_opset", old_opset},
                                  {"new_opset", new_opset},
                                  {"functions", functions},
                                  {"tensors", tensors},
                                  {"predictor", predictor},
                                  {"training", training},
                                  {"quantised", quantised},
                                  {"packed", packed},
                                  {"loops", loops},
                                  {"counted_loops", counted_loops},
                                  {"external", external},
                                  {"recurrent", recurrent},
                                  {"transformer", transformer},
                                  {"images", images},
                                  {"all_operators", all_operators},
                                  {NULL, NULL}};

const char seed_calibration[] =
    "mdot-calibration 5\n"
    "predictor predictor\n"
    "rows 3 1\n"
    "job 2b20dfe9d5dd0046 0 0 0 0 70 282 5 0 0 0 0 0 0 1501 5233 0 0 0 0 5 0 0 0 0 386 2519 0 0 0 0 0 0\n"
    "gpu 1 2 1 0 K80\n"
    "time 0.25 0.2\n"
    "memory 1 0\n"
    "step 2b20dfe9d5dd0046 0 0 204 1 0 1a5cbfbae8fb1dfe 32 0.927800294 1 0.262576709 0.165227101 0 0 0.192273209 0 0\n"
    "step 2b20dfe9d5dd0046 2 0 204 2 0 1a5cbfbae8fb1dfe 64 0.5 1 0.262576709 0.25 1.5 1 0.192273209 0.1 0\n"
    "step - 2 1 110 1 1 1a5cbfbae8fb1dfe 64 0.5 1 0.262576709 0.25 0 0 0.192273209 0 0\n"
    "gpu 0 0 0 1 V100-SXM-16GB\n"
    "time 1 0\n"
    "memory 1 0\n";
