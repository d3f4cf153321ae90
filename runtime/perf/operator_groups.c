/* operator_groups.c — properties of a job that are independent of the configuration: groups of equal operators, and operator
 * costs. mdot_job_create computes them once, so that a prediction allocates no memory and a sweep reads a long job as
 * a short list. */
#include "runtime/job/job_model.h"

#include <stdlib.h>

/* ---- Costs ------------------------------------------------------------------------------------------------------- */

/* Cost in bytes: bytes moved in a step of COST_BATCH samples, plus the bytes that the GPU could have moved while it
 * computed. GPUs of gpus.def do 12 to 82 fp32 operations per byte moved. The cost selects the neighbours that are
 * merged; it is never used as a time. */
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

/* ---- Fusing ------------------------------------------------------------------------------------------------------ */

/* Can graph compilers fuse the operator with its neighbours? */
static bool can_fuse(const mdot_job_operator *op)
{
    return op->known && !rt_uses_tensor_cores(op) && (op->traits.traits & MDOT_TRAIT_PICKS) == 0;
}

static void measure_fusing(mdot_job *job)
{
    for (size_t i = 0; i < job->info.operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        for (size_t k = 0; k < op->input_count && can_fuse(op); k++) {
            const mdot_job_operator *operand = &job->operators[op->inputs[k]];
            if (!can_fuse(operand) || operand->out_degree > 1) continue;
            job->fused_bytes[op->inputs[k]] = 2 * operand->per_sample[MDOT_PHASE_FORWARD].bytes_written;
        }
    }
}

bool rt_job_measure_costs(mdot_job *job)
{
    size_t count = job->info.operator_count;
    job->costs = calloc(count, sizeof *job->costs);
    job->fused_bytes = calloc(count, sizeof *job->fused_bytes);
    if (job->costs == NULL || job->fused_bytes == NULL) return false;
    double convolutions = 0, products = 0;
    for (size_t i = 0; i < count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        double flops = rt_uses_tensor_cores(op) ? op->per_sample[MDOT_PHASE_FORWARD].flops : 0;
        products += flops;
        if (op->setting[MDOT_SETTING_KERNEL_W] > 0) convolutions += flops;
        job->attends = job->attends || rt_score_bytes(op) > 0;
        uint32_t number = op->traits.number;
        job->has_unnumbered = job->has_unnumbered || number == 0;
        if (number > job->highest_number) job->highest_number = number;
        job->costs[i] = cost_of(&job->operators[i]);
    }
    job->convolves_mostly = convolutions > products / 2;
    measure_fusing(job);
    return true;
}

/* ---- Classes ----------------------------------------------------------------------------------------------------- */

uint64_t rt_job_hash_operator(const mdot_job_operator *op)
{
    uint64_t hash = RT_HASH_START ^ op->traits.number;
    hash = rt_hash(hash, op->setting, sizeof op->setting);
    hash = rt_hash(hash, op->per_sample, sizeof op->per_sample);
    hash = rt_hash(hash, op->per_step, sizeof op->per_step);
    return rt_hash(hash, &op->parameters, sizeof op->parameters);
}

/* Adds the fields that equal_divisions compares. */
static uint64_t hash_division(uint64_t hash, const mdot_job *job, size_t index)
{
    const rt_sharding *d = &job->division;
    uint64_t where = d->role[index] | (uint64_t)d->place[index] << 8 | (uint64_t)d->is_expert[index] << 16 |
                     (uint64_t)(job->operators[index].block > 0) << 24;
    hash = rt_hash(hash, &where, sizeof where);
    return rt_hash(hash, &job->fused_bytes[index], sizeof job->fused_bytes[index]);
}

static bool equal_operators(const mdot_job *job, size_t a, size_t b)
{
    const mdot_job_operator *x = &job->operators[a], *y = &job->operators[b];
    return x->traits.number == y->traits.number && memcmp(x->setting, y->setting, sizeof x->setting) == 0 &&
           memcmp(x->per_sample, y->per_sample, sizeof x->per_sample) == 0 &&
           memcmp(x->per_step, y->per_step, sizeof x->per_step) == 0 && x->parameters == y->parameters;
}

static bool equal_divisions(const mdot_job *job, size_t a, size_t b)
{
    const rt_sharding *d = &job->division;
    return d->role[a] == d->role[b] && d->place[a] == d->place[b] && d->is_expert[a] == d->is_expert[b] &&
           job->fused_bytes[a] == job->fused_bytes[b] && (job->operators[a].block > 0) == (job->operators[b].block > 0);
}

/* Slots hold a class index plus one. An operator that finds no equal one within RT_MOST_PROBES slots starts a new
 * class. */
static void collect_classes(const mdot_job *job, bool by_division, rt_operator_groups *classes, uint32_t *slots,
                            size_t slot_count)
{
    for (size_t i = 0; i < job->info.operator_count; i++) {
        uint64_t hash = rt_job_hash_operator(&job->operators[i]);
        if (by_division) hash = hash_division(hash, job, i);
        size_t slot = hash & (slot_count - 1);
        int left = RT_MOST_PROBES;
        for (; slots[slot] != 0 && left > 0; slot = (slot + 1) & (slot_count - 1), left--) {
            size_t first = classes->items[slots[slot] - 1].first;
            if (equal_operators(job, first, i) && (!by_division || equal_divisions(job, first, i))) break;
        }
        bool is_new = slots[slot] == 0 || left == 0;
        if (is_new) classes->items[classes->count++] = (rt_operator_group){.first = (uint32_t)i};
        if (slots[slot] == 0) slots[slot] = (uint32_t)classes->count;
        classes->of[i] = (is_new ? (uint32_t)classes->count : slots[slot]) - 1;
        classes->items[classes->of[i]].count++;
    }
}

static bool classify(const mdot_job *job, bool by_division, rt_operator_groups *out_classes)
{
    size_t count = job->info.operator_count, slot_count = rt_hash_slots(count);
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    out_classes->items = calloc(count, sizeof *out_classes->items);
    out_classes->of = calloc(count, sizeof *out_classes->of);
    bool allocated = slots != NULL && out_classes->items != NULL && out_classes->of != NULL;
    if (allocated) collect_classes(job, by_division, out_classes, slots, slot_count);
    free(slots);
    return allocated;
}

bool rt_job_group_operators(mdot_job *job)
{
    return classify(job, false, &job->classes) && classify(job, true, &job->sharded_groups);
}
