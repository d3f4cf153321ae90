/* make_corpus.c — writes seeds for the fuzz targets, one folder per target: small models for the reader (after the byte
 * that chooses options) and as jobs, the same jobs as `.job` files, graphs as text, artefacts, a cubin, a calibration,
 * command lines, the simulator's tables, jobs to predict, and a store with tables.
 *
 *     make_corpus FOLDER */
#include "base/file.h"
#include "frontend/onnx/onnx.h"
#include "ir/graph_text.h"
#include "mdot/mdotc.h"
#ifdef MDOT_HAVE_STORE
#include "mdot/mdot_store.h"
#endif
#include "mdot/mdotjob.h"
#include "tests/fuzz/hostile_job.h"
#include "tests/fuzz/seeds.h"
#include "tests/support/cubin_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
                   (second_bytes == 0 || fwrite(second, 1, second_bytes, file) == second_bytes);
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

/* Behind the bytes that draw configurations (fuzz_predict.c): defaults, and two random draws. */
static void save_prediction(corpus *c, const char *name, const pb_buffer *model)
{
    char path[4096], suffix[] = "_0";
    unsigned char drawn[HOSTILE_DRAWN_BYTES] = {0};
    unsigned random = 1;
    for (; suffix[1] < '3'; suffix[1]++) {
        name_file(path, c, "predict", name, suffix);
        save(c, path, drawn, sizeof drawn, model->data, model->size);
        for (size_t i = 0; i < sizeof drawn; i++)
            drawn[i] = (unsigned char)((random = random * 1664525 + 1013904223) >> 24);
    }
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

#ifdef MDOT_HAVE_STORE
static const char store_steps[] = "job,gpu,batch,dim,gpus,parallel,precision,ms,gib,note,digest\n"
                                  "job.onnx,A100,32,seq=128,,,amp,161.5,1000.25,,DIGEST\n"
                                  "job.onnx,V100,1,,8,\"dp=4,tp=2\",,0.1,,\"a \"\"note\"\"\",DIGEST\n";
static const char store_accounting[] =
    "JobID|JobName|State|Cluster|User|Partition|Submit|Start|End|Elapsed|Timelimit|ExitCode|AllocTRES|ReqTRES\n"
    "12|train|COMPLETED|c|u|gpu|2026-01-02T03:04:05|2026-01-02T03:05:05|2026-01-02T04:05:05|01:00:00|1-00:00:00|0:0|"
    "cpu=4,gres/gpu:a100=2|gres/gpu=2\n"
    "12.batch|batch|COMPLETED|c||||||||||\n"
    "13_[1-5]|array|PENDING|c|u|gpu|2026-01-02T03:04:05|Unknown|Unknown|00:00:00|UNLIMITED|0:0||\n"
    "14|x|CANCELLED by 5|c|u|gpu|2026-01-02T03:04:05|None|None|00:00:07|30|0:15||gres/gpu=1\n";

static void replace_digest(char *text, size_t capacity, const char *digest)
{
    size_t used = 0;
    for (const char *at = store_steps; *at != '\0' && used + MDOT_STORE_DIGEST_BYTES < capacity;) {
        bool is_name = strncmp(at, "DIGEST", 6) == 0;
        used += (size_t)snprintf(text + used, capacity - used, "%.*s", is_name ? 32 : 1, is_name ? digest : at);
        at += is_name ? 6 : 1;
    }
}

/* The first byte selects the use (fuzz_store.c): a store's file with rows, outcomes and groups; a table; accounting. */
static void save_store(corpus *c)
{
    char path[4096], text[1024] = "", digest[MDOT_STORE_DIGEST_BYTES];
    name_file(path, c, "store", "steps.csv", "");
    save(c, path, "1", 1, store_steps, sizeof store_steps - 1);
    name_file(path, c, "store", "sacct.txt", "");
    save(c, path, "2", 1, store_accounting, sizeof store_accounting - 1);
    const mdot_job_operator operator= {.struct_size = sizeof operator, .type = "Relu", .known = true, .parameters = 1};
    const mdot_job_description d = {.struct_size = sizeof d, .operators = &operator, .operator_count = 1, .batch = 1};
    mdot_job *job = NULL;
    mdot_store *store = NULL;
    mdot_store_import counts = MDOT_INIT(mdot_store_import);
    mdot_store_refresh_report report = MDOT_INIT(mdot_store_refresh_report);
    const mdot_store_accounting accounting = {.struct_size = sizeof accounting, .name = "sacct"};
    name_file(path, c, "store", "made.db", "");
    remove(path);
    mdot_status status = mdot_job_create(&d, &job, NULL);
    if (status == MDOT_OK) status = mdot_store_open(path, NULL, &store, NULL);
    if (status == MDOT_OK) status = mdot_store_add_job(store, job, "job.onnx", digest, NULL);
    if (status == MDOT_OK) {
        replace_digest(text, sizeof text, digest);
        status = mdot_store_import_csv(store, text, strlen(text), "t.csv", NULL, 0, &counts, NULL);
    }
    if (status == MDOT_OK)
        status =
            mdot_store_import_sacct(store, store_accounting, sizeof store_accounting - 1, &accounting, &counts, NULL);
    if (status == MDOT_OK) status = mdot_store_refresh(store, &report, NULL);
    mdot_store_close(store);
    mdot_job_destroy(job);
    unsigned char *bytes = NULL;
    size_t size = 0;
    if (status == MDOT_OK) status = bs_read_file(path, &bytes, &size, NULL);
    remove(path);
    if (status == MDOT_OK) {
        name_file(path, c, "store", "rows.db", "");
        save(c, path, "0", 1, bytes, size);
    } else {
        fprintf(stderr, "a store cannot be made\n");
        c->failed = 1;
    }
    free(bytes);
}
#endif

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
        "extract\njob.onnx\n-o\nout.job\n--dim\nN=4",
        "inspect\npredictor.mdot\n--kernels",
        "verify\npredictor.mdot\nmodel.onnx",
        "check\n.",
        "check\nheck\n..",
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
    static const char *const targets[] = {"reader", "job",   "graph",  "artefact", "calibration", "command",
                                          "cubin",  "trace", "tables", "predict",  "store"};
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
        save_prediction(&c, seed->name, &model);
        save_graph(&c, seed->name, &model);
        save_artefact(&c, seed->name);
        pb_free(&model);
    }
    save_calibration(&c);
    save_cubin(&c);
    save_commands(&c);
    save_tables(&c);
#ifdef MDOT_HAVE_STORE
    save_store(&c);
#endif
    return c.failed;
}
