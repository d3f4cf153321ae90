/* make_corpus.c — seeds for the fuzz targets, in a folder for each: small models for the reader (behind the byte that
 * chooses its options) and as jobs, the same jobs as `.job` files, graphs as text, artefacts, a calibration, the
 * simulator's tables.
 *
 *     make_corpus FOLDER
 */
#include "frontend/onnx/onnx.h"
#include "ir/text.h"
#include "mdot/mdotc.h"
#include "mdot/mdotjob.h"
#include "tests/support/onnx_builder.h"

#include <stdio.h>
#include <string.h>
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

/* What predicts: a length, weights, columns with defaults. */
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
    pb_buffer note = {0};
    pb_text(&note, 1, "mdot.defaults.gpu");
    pb_text(&note, 2, "0.5");
    onnx_model_raw(b, 14, &note);
    pb_buffer names = {0};
    pb_text(&names, 1, "mdot.reads.configuration");
    pb_text(&names, 2, "torch, batch");
    onnx_model_raw(b, 14, &names);
    return onnx_finish(b);
}

/* A step of training: what the reader of jobs cuts, prices and repeats. */
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

/* ---- Files ------------------------------------------------------------------------------------------------------- */

typedef struct corpus {
    const char *folder;
    int failed;
} corpus;

static void name_file(char path[4096], const corpus *c, const char *target, const char *name, const char *suffix)
{
    snprintf(path, 4096, "%s/%s/%s%s", c->folder, target, name, suffix);
}

/* The second part may be empty. */
static void save(corpus *c, const char *path, const void *first, size_t first_bytes, const void *second,
                 size_t second_bytes)
{
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && fwrite(first, 1, first_bytes, file) == first_bytes &&
                   fwrite(second, 1, second_bytes, file) == second_bytes;
    if (file == NULL || fclose(file) != 0 || !written) {
        perror(path);
        c->failed = 1;
    }
}

static void save_model(corpus *c, const char *name, const pb_buffer *model)
{
    char path[4096], suffix[] = "_0";
    for (unsigned char options = 0; options < 4; options++, suffix[1]++) {
        name_file(path, c, "reader", name, suffix);
        save(c, path, &options, 1, model->data, model->size);
    }
    name_file(path, c, "job", name, ".onnx");
    save(c, path, model->data, model->size, NULL, 0);
}

/* Some seeds are no jobs, some no graphs that compile. */
static void save_job(corpus *c, const char *name, const pb_buffer *model)
{
    mdot_job *job = NULL;
    char path[4096];
    name_file(path, c, "job", name, ".job");
    if (mdot_job_read_bytes(model->data, model->size, name, NULL, &job, NULL) != MDOT_OK) return;
    if (mdot_job_save(job, path, NULL) != MDOT_OK) c->failed = 1;
    mdot_job_destroy(job);
}

static void save_graph(corpus *c, const char *name, const pb_buffer *model)
{
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = NULL;
    char path[4096];
    name_file(path, c, "graph", name, ".txt");
    if (arena != NULL && fe_import_bytes(model->data, model->size, name, NULL, NULL, arena, &graph, NULL) == MDOT_OK) {
        const char *text = ir_graph_print(graph, arena);
        if (text != NULL) save(c, path, text, strlen(text), NULL, 0);
    }
    ir_arena_destroy(arena);
}

static void save_artefact(corpus *c, const char *name)
{
    static const int64_t buckets[] = {4, 16};
    static const char *const targets[] = {"cpu"};
    char model[4096], path[4096];
    name_file(model, c, "job", name, ".onnx");
    name_file(path, c, "artefact", name, ".mdot");
    const mdotc_entry entry = {sizeof entry, "predict", model};
    const mdotc_options options = {
        .struct_size = sizeof options, .buckets = buckets, .bucket_count = 2, .targets = targets, .target_count = 1};
    (void)mdotc_compile(&entry, 1, path, &options, NULL);
}

/* ---- Tables of examples/scheduler -------------------------------------------------------------------------------- */

static void save_tables(corpus *c)
{
    static const struct {
        const char *target, *name, *text; /* of tables the first byte says which */
    } tables[] = {
        {"trace", "own.csv",
         "job_id,submit_s,gpus,duration_s,spread,deadline_s,weight,group\na,0,2,100,1.5,300,2,u\n"
         "\"b, \"\"c\"\"\",10,4,20,,,,\nd,5,1,50,2,99,1,v\n"},
        {"trace", "kinds.csv", "job_id,submit_s,job_type,steps,scale_factor\n0,0,LM (batch size 5),900,1\n"},
        {"trace", "tasks.csv",
         "b,worker,4,Terminated,100.0,900.0,600.0,29.0,50.0,MISC\n"
         "b,ps,1,Terminated,90.0,950.0,600.0,29.0,,MISC\n"},
        {"trace", "jobs.csv", "job_id,user,num_cpu,num_gpu,submit_time,num_inst,duration\n1,u,6,0.25,30,1,100\n"},
        {"tables", "cluster", "0node,type,gpus,watts\na,V100,4,300\nb,K80,8,149.5\n"},
        {"tables", "factors", "1job_id,factor\na,0.5\nb,1.5\n"},
        {"tables", "idle", "2gpu,from_s,to_s\n0,0,100\n0,100,200\n1,5,7\n"},
        {"tables", "throughputs", "3job_type,gpus,type,steps_per_s,spread\nb,2,V100,3.5,1.25\nb,1,V100,2,\n"},
        {"tables", "gavel", "4{\"v100\": {\"('LM (batch size 5)', 2)\": {\"null\": 79.3}}}"},
    };
    char path[4096];
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        name_file(path, c, tables[i].target, tables[i].name, "");
        save(c, path, tables[i].text, strlen(tables[i].text), NULL, 0);
    }
}

/* As mdot_calibration_save writes it; the reader's own word for it, so that a later format brings a later seed. */
static void save_calibration(corpus *c)
{
    static const char text[] = "mdot-calibration 2\n"
                               "predictor predictor\n"
                               "rows 22\n"
                               "part forward 0.357478253 -0.0193262802\n"
                               "part backward 0.59831405 -0.00958227161\n"
                               "part optimizer 0.0320138065 0.0125965616\n"
                               "part host 0.0120180105 0.0159202444\n"
                               "part communication 0.000175879227 0.000391745846\n"
                               "others 1.01841074 1.58623889\n"
                               "several 12 1.25 1.1\n"
                               "gpu 10 2.35762698 0.728360265 0 1.03180174 1.5859097 K80\n"
                               "gpu 12 1.71284489 0.796294563 0 1.02668418 1.58590858 V100-SXM-16GB\n";
    mdot_calibration *calibration = NULL;
    mdot_error err = {0};
    char path[4096];
    name_file(path, c, "calibration", "site", ".cal");
    if (mdot_calibration_parse(text, strlen(text), &calibration, &err) == MDOT_OK) {
        save(c, path, text, strlen(text), NULL, 0);
    } else {
        fprintf(stderr, "%s\n", err.message);
        c->failed = 1;
    }
    mdot_calibration_destroy(calibration);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        pb_buffer (*make)(void);
    } seeds[] = {{"old_opset", old_opset}, {"new_opset", new_opset}, {"functions", functions},
                 {"tensors", tensors},     {"predictor", predictor}, {"training", training}};
    static const char *const targets[] = {"reader", "job", "graph", "artefact", "calibration", "trace", "tables"};
    if (argc != 2) {
        fprintf(stderr, "usage: make_corpus FOLDER\n");
        return 2;
    }
    corpus c = {.folder = argv[1]};
    (void)mkdir(c.folder, 0777); /* may be there, as those in it */
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char path[4096];
        name_file(path, &c, targets[i], "", "");
        (void)mkdir(path, 0777);
    }
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++) {
        pb_buffer model = seeds[i].make();
        save_model(&c, seeds[i].name, &model);
        save_job(&c, seeds[i].name, &model);
        save_graph(&c, seeds[i].name, &model);
        save_artefact(&c, seeds[i].name);
        pb_free(&model);
    }
    save_calibration(&c);
    save_tables(&c);
    return c.failed;
}
