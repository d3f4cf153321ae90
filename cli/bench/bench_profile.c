/* bench_profile.c — `mdot bench --profile`: the time of each kernel of a bucket, or of a step of kernels that run
 * together.
 *
 * Every turn is a whole call, followed by the same call step by step. Printing the sum of the steps beside the whole
 * call shows the overhead of reading the clock. The core's peak is measured in between, as for whole calls
 * (measure.c).
 */
#include "cli/bench/bench.h"

#include <stdlib.h>

#define SLICE_SECONDS 0.020
#define PEAK_SECONDS 0.002
enum { MAX_TURNS = 4096, LEAST_TURNS = 3 };

typedef struct profiler {
    const bench_profile_task *task;
    const char *level;
    mdot_context *context;
    bench_tensors tensors;
    const void **inputs;
    void **outputs;
    bench_step *steps;
    size_t step_count;
    float *us; /* times by turn and step; the whole call comes last */
    float *peak_gflops;
    size_t turns, slices;
} profiler;

static float *times_of(const profiler *p, size_t step) { return p->us + step * MAX_TURNS; }

/* Lists the steps with their kernels and FLOPs. */
static mdot_status find_steps(profiler *p, mdot_error *err)
{
    const bench_profile_task *task = p->task;
    mdot_bucket_info bucket = MDOT_INIT(mdot_bucket_info);
    mdot_predictor_get_bucket(task->predictor, task->entry, task->bucket, &bucket);
    p->steps = calloc(bucket.kernel_count + 1, sizeof *p->steps);
    if (p->steps == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < bucket.kernel_count; i++) {
        mdot_kernel_info kernel = MDOT_INIT(mdot_kernel_info);
        mdot_predictor_get_kernel(task->predictor, task->entry, task->bucket, i, &kernel);
        bench_step *step = &p->steps[kernel.step];
        if (step->kernel_count++ == 0) step->first_kernel = i;
        step->flops += task->length == bucket.max_length ? kernel.flops : 0;
        p->step_count = kernel.step + 1;
    }
    return MDOT_OK;
}

static mdot_status make_room(profiler *p, mdot_error *err)
{
    const bench_tensors *t = &p->tensors;
    p->us = bench_allocate((p->step_count + 1) * MAX_TURNS * sizeof *p->us);
    p->peak_gflops = bench_allocate(MAX_TURNS * sizeof *p->peak_gflops);
    p->inputs = calloc(t->input_count + 1, sizeof *p->inputs);
    p->outputs = calloc(t->output_count + 1, sizeof *p->outputs);
    if (p->us == NULL || p->peak_gflops == NULL || p->inputs == NULL || p->outputs == NULL)
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; i < t->input_count; i++) p->inputs[i] = t->inputs[i].data;
    for (size_t i = 0; i < t->output_count; i++) p->outputs[i] = t->outputs[i].data;
    return mdot_context_create(p->task->predictor, &p->context, err);
}

static mdot_status run_turn(profiler *p, mdot_error *err)
{
    const bench_profile_task *task = p->task;
    double begin = bench_now();
    mdot_status status = mdot_run_ordered(p->context, task->entry, task->length, p->inputs, p->outputs, err);
    double now = bench_now();
    times_of(p, p->step_count)[p->turns] = (float)((now - begin) * 1e6);
    for (size_t i = 0; status == MDOT_OK && i < p->step_count; i++) {
        begin = now;
        status = mdot_run_step(p->context, task->entry, task->length, p->inputs, p->outputs, i, err);
        now = bench_now();
        times_of(p, i)[p->turns] = (float)((now - begin) * 1e6);
    }
    p->turns++;
    return status;
}

static mdot_status run_turns(profiler *p, mdot_error *err)
{
    mdot_status status = run_turn(p, err); /* warm-up with cold caches; excluded from the results */
    p->turns = 0;
    double end = bench_now() + p->task->seconds;
    while (status == MDOT_OK && p->turns < MAX_TURNS && (p->turns < LEAST_TURNS || bench_now() < end)) {
        double slice = bench_now() + SLICE_SECONDS;
        do {
            status = run_turn(p, err);
        } while (status == MDOT_OK && p->turns < MAX_TURNS && bench_now() < slice);
        p->peak_gflops[p->slices++] = (float)bench_peak_gflops(p->level, PEAK_SECONDS);
    }
    return status;
}

mdot_status bench_measure_profile(const bench_profile_task *task, bench_profile *out_profile, mdot_error *err)
{
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(task->predictor, &info);
    profiler p = {.task = task, .level = info.cpu_isa};
    mdot_status status = bench_make_tensors(task->predictor, task->entry, task->length, &p.tensors, err);
    if (status == MDOT_OK) status = find_steps(&p, err);
    if (status == MDOT_OK) status = make_room(&p, err);
    if (status == MDOT_OK) status = run_turns(&p, err);
    if (status == MDOT_OK) {
        bench_profile profile = {.steps = p.steps, .step_count = p.step_count, .turns = p.turns};
        for (size_t i = 0; i < p.step_count; i++)
            profile.steps_us += p.steps[i].p50_us = bench_median(times_of(&p, i), p.turns);
        profile.call_us = bench_median(times_of(&p, p.step_count), p.turns);
        profile.peak_gflops = bench_median(p.peak_gflops, p.slices);
        p.steps = NULL; /* owned by the caller now */
        *out_profile = profile;
    }
    bench_free_tensors(&p.tensors);
    mdot_context_destroy(p.context);
    free(p.inputs);
    free(p.outputs);
    free(p.steps);
    free(p.us);
    free(p.peak_gflops);
    return status;
}
