/* make_corpus.c — small models for fuzz_reader to start from, one file each, in the folder that is given. */
#include "tests/support/onnx_builder.h"

#include <stdio.h>
#include <sys/stat.h>

/* Nodes of an opset whose forms are all rewritten. */
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

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        pb_buffer (*make)(void);
    } seeds[] = {{"old_opset", old_opset}, {"new_opset", new_opset}, {"functions", functions}, {"tensors", tensors}};
    if (argc != 2) {
        fprintf(stderr, "usage: make_corpus FOLDER\n");
        return 2;
    }
    (void)mkdir(argv[1], 0777); /* may be there */
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        for (int options = 0; options < 4; options++) { /* fuzz_reader's first byte */
            char path[4096];
            pb_buffer model = seeds[i].make();
            snprintf(path, sizeof path, "%s/%s_%d", argv[1], seeds[i].name, options);
            FILE *file = fopen(path, "wb");
            bool written = file && fputc(options, file) != EOF && fwrite(model.data, 1, model.size, file) == model.size;
            if (!file || fclose(file) != 0 || !written) {
                perror(path);
                return 1;
            }
            pb_free(&model);
        }
    }
    return 0;
}
