/* growth_bench.c — the time and memory for reading, planning and generating code as models grow. test_growth checks
 * the same with counts.
 *
 *     growth_bench [NODES … [MODEL]]      prints seconds and megabytes. Those of code generation are the maximum since
 *                                         the start. Default: 1000, 10000 and 100000 nodes of every model
 *     growth_bench --save NODES MODEL     writes the model to standard output, for `mdot compile` and others
 *
 * Models are those of growth_models.c: chain, readers, far, …
 */
#include "codegen/cpu/cpu_images.h"
#include "compiler/compiler.h"
#include "frontend/onnx/onnx.h"
#include "mdot/mdotjob.h"
#include "tests/growth/growth_models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MAX_SIZES = 8, LENGTH = 32 };

static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void show(const char *what, double begin_s, mdot_status status, const mdot_error *err)
{
    printf("  %s %7.3f s", what, cpu_s() - begin_s);
    if (status != MDOT_OK) printf(" (%s)", err->message);
    fflush(stdout);
}

static void read_job(const growth_model *model, const pb_buffer *bytes)
{
    const mdot_dim_binding length = {.name = "N", .value = LENGTH};
    mdot_job_options options = MDOT_INIT(mdot_job_options);
    options.dims = &length;
    options.dim_count = strcmp(model->name, "encoder") == 0;
    mdot_error err = {0};
    mdot_job *job = NULL;
    double begin_s = cpu_s();
    mdot_status status = mdot_job_read_bytes(bytes->data, bytes->size, model->name, &options, &job, &err);
    show("job", begin_s, status, &err);
    mdot_job_destroy(job);
}

/* Generates in this process, because its time and memory are measured. */
static mdot_status generate(const cg_entry *entry, ir_arena *arena, mdot_error *err)
{
    const cg_cpu_target *target = cg_cpu_target_find(MDOT_CPU_X86_64_V3, CG_FP32);
    const cg_options options = {.predictor_name = "growth", .in_process = true};
    cg_cpu_images images;
    mdot_status status = cg_cpu_make_images_for(&target, 1, entry, 1, &options, arena, &images, err);
    cg_cpu_images_done(&images);
    return status;
}

static double most_mb(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return 1e-3 * (double)used.ru_maxrss;
}

static void compile(const growth_model *model, const pb_buffer *bytes)
{
    const int64_t bucket = LENGTH;
    mdot_error err = {0};
    ir_graph *graph = NULL;
    cg_entry entry;
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) abort();
    double begin_s = cpu_s();
    mdot_status status =
        fe_import_bytes(bytes->data, bytes->size, model->name, NULL, &(fe_options){0}, arena, &graph, &err);
    show("import", begin_s, status, &err);
    if (status == MDOT_OK) {
        begin_s = cpu_s();
        status = co_plan_entry("run", graph, &bucket, 1, false, &(co_hooks){0}, arena, &entry, &err);
        show("plan", begin_s, status, &err);
    }
    printf("  %6.1f MB", 1e-6 * (double)arena->used_bytes);
    if (status == MDOT_OK) {
        begin_s = cpu_s();
        status = generate(&entry, arena, &err);
        show("code", begin_s, status, &err);
        printf("  %6.1f MB", most_mb());
    }
    printf("\n");
    ir_arena_destroy(arena);
}

static int save(int nodes, const char *name)
{
    for (int m = 0; m < growth_model_count; m++) {
        if (strcmp(name, growth_models[m].name) != 0) continue;
        pb_buffer bytes = growth_models[m].build(nodes);
        bool written = fwrite(bytes.data, 1, bytes.size, stdout) == bytes.size && fflush(stdout) == 0;
        pb_free(&bytes);
        return written ? 0 : 1;
    }
    fprintf(stderr, "growth_bench: there is no model \"%s\"\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    int sizes[MAX_SIZES] = {1000, 10000, 100000}, given = 0, count = 3;
    const char *only = NULL;
    if (argc == 4 && strcmp(argv[1], "--save") == 0) return save(atoi(argv[2]), argv[3]);
    for (int i = 1; i < argc; i++) {
        if (atoi(argv[i]) > 0 && given < MAX_SIZES)
            sizes[given++] = atoi(argv[i]);
        else
            only = argv[i];
    }
    if (given > 0) count = given;
    for (int m = 0; m < growth_model_count; m++) {
        const growth_model *model = &growth_models[m];
        for (int s = 0; s < count; s++) {
            if (only != NULL && strcmp(only, model->name) != 0) continue;
            pb_buffer bytes = model->build(sizes[s]);
            printf("%-9s %6d nodes", model->name, sizes[s]);
            read_job(model, &bytes);
            compile(model, &bytes);
            pb_free(&bytes);
        }
    }
    return 0;
}
