/* classes.c — what predictions need of a job and no configuration changes: which operators are equal, and which are
 * expensive. mdot_job_create works it out, so that a prediction allocates nothing and a sweep reads a long job as a
 * short list.
 */
#include "runtime/job/job_model.h"

#include <stdlib.h>

/* ---- Costs ------------------------------------------------------------------------------------------------------- */

/* Bytes moved in a step of COST_BATCH samples, and as many more as the GPU could have moved while it computed: GPUs of
 * gpus.def do 12 to 82 fp32 operations in the time of a byte. It decides which neighbours are merged, never a time. */
enum { COST_BATCH = 64, FLOPS_PER_BYTE = 32 };

static double cost_of_load(const mdot_load *load)
{
    return load->bytes_read + load->bytes_written + load->flops / FLOPS_PER_BYTE;
}

static double cost_of(const mdot_job_operator *op)
{
    double cost = 0;
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
        cost += COST_BATCH * cost_of_load(&op->per_sample[phase]) + cost_of_load(&op->per_step[phase]);
    return cost;
}

/* ---- Classes ----------------------------------------------------------------------------------------------------- */

static uint64_t hash_of(const mdot_job *job, size_t index)
{
    const mdot_job_operator *op = &job->operators[index];
    uint64_t hash = RT_HASH_START ^ op->facts.number;
    hash = rt_hash(hash, op->setting, sizeof op->setting);
    hash = rt_hash(hash, op->per_sample, sizeof op->per_sample);
    hash = rt_hash(hash, op->per_step, sizeof op->per_step);
    return rt_hash(hash, &op->parameters, sizeof op->parameters);
}

static bool equal_operators(const mdot_job *job, size_t a, size_t b)
{
    const mdot_job_operator *x = &job->operators[a], *y = &job->operators[b];
    return x->facts.number == y->facts.number && memcmp(x->setting, y->setting, sizeof x->setting) == 0 &&
           memcmp(x->per_sample, y->per_sample, sizeof x->per_sample) == 0 &&
           memcmp(x->per_step, y->per_step, sizeof x->per_step) == 0 && x->parameters == y->parameters;
}

/* Slots hold a class's number plus one; there are at least twice as many as operators, and a power of two. */
static void collect_classes(mdot_job *job, uint32_t *slots, size_t slot_count)
{
    for (size_t i = 0; i < job->info.operator_count; i++) {
        size_t slot = hash_of(job, i) & (slot_count - 1);
        while (slots[slot] != 0 && !equal_operators(job, job->classes[slots[slot] - 1].first, i))
            slot = (slot + 1) & (slot_count - 1);
        if (slots[slot] == 0) {
            job->classes[job->class_count++] = (rt_class){.first = (uint32_t)i};
            slots[slot] = (uint32_t)job->class_count;
        }
        job->classes[slots[slot] - 1].count++;
    }
}

bool rt_job_classify(mdot_job *job)
{
    size_t count = job->info.operator_count, slot_count = 2;
    while (slot_count < 2 * count) slot_count *= 2;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    job->costs = calloc(count, sizeof *job->costs);
    job->classes = calloc(count, sizeof *job->classes);
    bool allocated = slots != NULL && job->costs != NULL && job->classes != NULL;
    if (allocated) {
        for (size_t i = 0; i < count; i++) {
            uint32_t number = job->operators[i].facts.number;
            job->has_unnumbered = job->has_unnumbered || number == 0;
            if (number > job->highest_number) job->highest_number = number;
            job->costs[i] = cost_of(&job->operators[i]);
        }
        collect_classes(job, slots, slot_count);
    }
    free(slots);
    return allocated;
}
