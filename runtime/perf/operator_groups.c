/* operator_groups.c — groups of equal operators, by which a sweep reads a long job as a short list. */
#include "runtime/job/job_model.h"
#include "runtime/job/operator_hash.h"
#include "runtime/perf/analysis_parts.h"

#include <stdlib.h>

typedef struct grouping {
    const mdot_job *job;
    const rt_sharding *sharding; /* NULL: operators that shard differently are equal, too */
    const rt_fusing *fusing;
} grouping;

uint64_t rt_hash_operator(const mdot_job_operator *op)
{
    uint64_t hash = RT_HASH_START ^ op->traits.number ^ (uint64_t)op->flags << 32;
    hash = rt_hash(hash, op->setting, sizeof op->setting);
    hash = rt_hash(hash, op->per_sample, sizeof op->per_sample);
    hash = rt_hash(hash, op->per_step, sizeof op->per_step);
    hash = rt_hash(hash, &op->per_square[MDOT_PHASE_FORWARD], sizeof *op->per_square);
    return rt_hash(hash, &op->parameters, sizeof op->parameters);
}

/* Adds the fields that equal_sharding compares. */
static uint64_t hash_sharding(uint64_t hash, const grouping *g, size_t index)
{
    const rt_sharding *s = g->sharding;
    const uint64_t where[] = {s->role[index], s->position[index], s->experts.is_expert[index],
                              g->job->operators[index].block > 0};
    hash = rt_hash(hash, where, sizeof where);
    return rt_hash(hash, &g->fusing[index], sizeof g->fusing[index]);
}

static bool equal_operators(const mdot_job *job, size_t a, size_t b)
{
    const mdot_job_operator *x = &job->operators[a], *y = &job->operators[b];
    return x->traits.number == y->traits.number && memcmp(x->setting, y->setting, sizeof x->setting) == 0 &&
           memcmp(x->per_sample, y->per_sample, sizeof x->per_sample) == 0 &&
           memcmp(x->per_step, y->per_step, sizeof x->per_step) == 0 &&
           memcmp(x->per_square, y->per_square, sizeof x->per_square) == 0 && x->batch_settings == y->batch_settings &&
           x->parameters == y->parameters && x->flags == y->flags;
}

static bool equal_fusing(const rt_fusing *a, const rt_fusing *b)
{
    return a->saved == b->saved && a->forward == b->forward && a->backward == b->backward;
}

static bool equal_sharding(const grouping *g, size_t a, size_t b)
{
    const rt_sharding *s = g->sharding;
    return s->role[a] == s->role[b] && s->position[a] == s->position[b] &&
           s->experts.is_expert[a] == s->experts.is_expert[b] && equal_fusing(&g->fusing[a], &g->fusing[b]) &&
           (g->job->operators[a].block > 0) == (g->job->operators[b].block > 0);
}

/* Slots hold a group's index plus one. An operator that finds no equal one within RT_MOST_PROBES slots starts a new
 * group. */
static void collect_groups(const grouping *g, rt_operator_groups *groups, uint32_t *slots, size_t slot_count)
{
    bool by_sharding = g->sharding != NULL;
    for (size_t i = 0; i < g->job->info.operator_count; i++) {
        uint64_t hash = rt_hash_operator(&g->job->operators[i]);
        if (by_sharding) hash = hash_sharding(hash, g, i);
        size_t slot = hash & (slot_count - 1);
        int left = RT_MOST_PROBES;
        for (; slots[slot] != 0 && left > 0; slot = (slot + 1) & (slot_count - 1), left--) {
            size_t first = groups->items[slots[slot] - 1].first;
            if (equal_operators(g->job, first, i) && (!by_sharding || equal_sharding(g, first, i))) break;
        }
        bool is_new = slots[slot] == 0 || left == 0;
        if (is_new) groups->items[groups->count++] = (rt_operator_group){.first = (uint32_t)i};
        if (slots[slot] == 0) slots[slot] = (uint32_t)groups->count;
        groups->of[i] = (is_new ? (uint32_t)groups->count : slots[slot]) - 1;
        groups->items[groups->of[i]].count++;
    }
}

bool rt_group_operators(const mdot_job *job, const rt_sharding *sharding, const rt_fusing *fusing,
                        rt_operator_groups *out_groups)
{
    const grouping g = {job, sharding, fusing};
    size_t count = job->info.operator_count, slot_count = rt_hash_slots(count);
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    out_groups->count = 0;
    out_groups->items = calloc(count, sizeof *out_groups->items);
    out_groups->of = calloc(count, sizeof *out_groups->of);
    bool allocated = slots != NULL && out_groups->items != NULL && out_groups->of != NULL;
    if (allocated) collect_groups(&g, out_groups, slots, slot_count);
    free(slots);
    return allocated;
}

void rt_free_operator_groups(rt_operator_groups *groups)
{
    free(groups->items);
    free(groups->of);
}
