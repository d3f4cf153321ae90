/* make_corpus.c — writes seeds for the fuzz targets, one folder per target: small models for the reader (after the
 * byte that chooses its options) and as jobs, the same jobs as `.job` files, graphs as text, artefacts, a cubin, a
 * calibration, command lines, and the simulator's tables.
 *
 *     make_corpus FOLDER
 */
#include "frontend/onnx/onnx.h"
#include "ir/text.h"
#include "mdot/mdotc.h"
#include "mdot/mdotjob.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/cubin_fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

/* Some seeds are invalid as jobs, and some are graphs that fail to compile. */
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

/* Appends the compiler's log in NVRTC's format. */
static void save_cubin(corpus *c)
{
    static const char log[] = "\0ptxas info    : Function properties for scale\n"
                              "    16 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n";
    ir_arena *arena = ir_arena_create(0);
    size_t size = 0;
    const unsigned char *bytes = arena != NULL ? cubin_by_hand(arena, &size) : NULL;
    char path[4096];
    name_file(path, c, "cubin", "scale.cubin", "");
    if (bytes != NULL) save(c, path, bytes, size, log, sizeof log - 1);
    ir_arena_destroy(arena);
}

/* ---- Tables of simulator -------------------------------------------------------------------------------- */

static void save_tables(corpus *c)
{
    static const struct {
        const char *target, *name, *text; /* for tables, the first byte of text selects the format */
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

/* ---- Command lines ----------------------------------------------------------------------------------------------- */

/* One argument per line, for the folder that fuzz_command.c makes. */
static void save_commands(corpus *c)
{
    static const char *const lines[] = {
        "predict\njob.job\n--model\npredictor.mdot\n--gpu\nA100,T4\n--batch\n8..32\n--precision\namp\n--json",
        "predict\njob.onnx\n-m\npredictor.mdot\n--gpu=H100\n--parallel\ndp=2,tp=2\n--nodes\n2\n--explain",
        "predict\n--calibration\nsite.cal\njob.job\n-m\npredictor.mdot\n--gpu\nV100\n--gpus\n4\n--optimizer\nadam",
        "report\njob.job\n-m\npredictor.mdot\n--gpu\nA100\n-o\nout.html",
        "calibrate\nsteps.csv\n-m\npredictor.mdot\n-o\nout.cal",
        "compile\nmodel.onnx\n-o\nout.mdot\n--buckets\n8,16\n--target\ncpu\n--dump\nplan",
        "tokens\njob.onnx\n-o\nout.job\n--dim\nN=4",
        "inspect\npredictor.mdot\n--kernels",
        "verify\npredictor.mdot\nmodel.onnx",
        "check\n.",
        "gpus\n--json",
        "help\npredict",
    };
    char path[4096], name[16];
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        snprintf(name, sizeof name, "%zu", i);
        name_file(path, c, "command", name, "");
        save(c, path, lines[i], strlen(lines[i]), NULL, 0);
    }
}

/* ---- Calibrations ------------------------------------------------------------------------------------------------ */

/* A calibration as mdot_calibration_save writes it. The reader's own constant is used, so that a later format gives a
 * new seed. */
static void save_calibration(corpus *c)
{
    mdot_calibration *calibration = NULL;
    mdot_error err = {0};
    char path[4096];
    name_file(path, c, "calibration", "site", ".cal");
    if (mdot_calibration_parse(seed_calibration, strlen(seed_calibration), &calibration, &err) == MDOT_OK) {
        save(c, path, seed_calibration, strlen(seed_calibration), NULL, 0);
    } else {
        fprintf(stderr, "%s\n", err.message);
        c->failed = 1;
    }
    mdot_calibration_destroy(calibration);
}

int main(int argc, char **argv)
{
    static const char *const targets[] = {"reader",  "job",   "graph", "artefact", "calibration",
                                          "command", "cubin", "trace", "tables"};
    if (argc != 2) {
        fprintf(stderr, "usage: make_corpus FOLDER\n");
        return 2;
    }
    corpus c = {.folder = argv[1]};
    (void)mkdir(c.folder, 0777); /* the folder and its subfolders may exist already */
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        char path[4096];
        name_file(path, &c, targets[i], "", "");
        (void)mkdir(path, 0777);
    }
    for (const seed_model *seed = seed_models; seed->name != NULL; seed++) {
        pb_buffer model = seed->make();
        save_model(&c, seed->name, &model);
        save_job(&c, seed->name, &model);
        save_graph(&c, seed->name, &model);
        save_artefact(&c, seed->name);
        pb_free(&model);
    }
    save_calibration(&c);
    save_cubin(&c);
    save_commands(&c);
    save_tables(&c);
    return c.failed;
}
