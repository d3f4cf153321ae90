/* search.c — prices the layouts of a space, and keeps the fastest ones for each GPU model and size.
 *
 * Each thread has a context, a batch of layouts and a table of its own. It takes an item, leaves out the layouts that
 * do not fit, predicts the others together, and enters them into the table. The tables are merged at the end, and the
 * stages of the fastest pipelines are balanced. A layout's place in the space breaks ties, so that the result is
 * independent of the threads. */
#include "runtime/search/search.h"
#include "base/struct_version.h"
#include "runtime/core/core.h"
#include "runtime/perf/analysis.h"
#include "runtime/predict/predict.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { LESS_BLOCKS = 4, PIPELINES = 24, CHUNK = 512, MOST_CONTEXTS = 256, LAYOUTS_TO_A_REPORT = 10000 };

typedef struct kept {
    double ms_per_sample;
    size_t item;
    uint64_t number; /* of the layout in the item */
    mdot_configuration configuration;
    mdot_prediction prediction;
} kept;

/* The fastest layouts of each model and size, ascending by time. */
typedef struct table {
    kept *entries; /* `capacity` for each slot */
    uint32_t *counts;
    uint32_t capacity;
} table;

struct mdot_plan {
    rt_space space;
    mdot_plan_info info;
    table table;
};

typedef struct search {
    const rt_space *space;
    size_t item_count, slot_count;
    atomic_size_t next_item;
    atomic_ullong visited;
    atomic_bool is_cancelled;
    bool (*progress)(void *state, double finished);
    void *progress_state;
} search;

typedef struct worker {
    search *search;
    mdot_context *context;
    table table, pipelines;      /* pipelines: the fastest ones with equal stages */
    mdot_configuration *layouts; /* CHUNK each */
    rt_measured_configuration *measured;
    mdot_prediction *predictions;
    uint64_t *numbers;
    rt_gpu_names names;
    mdot_plan_info counts;
    mdot_configuration exceeding; /* the last layout beyond the memory; struct_size 0: none */
    uint64_t reported;
    mdot_status status;      /* of the first failed chunk */
    mdot_error err, refusal; /* of that chunk, and of the first refused layout */
    pthread_t thread;
    bool is_first, is_started, has_encoded;
} worker;

static const bs_struct_version info_type = BS_SIZED(mdot_plan_info, cancelled);
static const bs_struct_version layout_type = BS_SIZED(mdot_plan_layout, pipeline_share);

static bool is_before(const kept *a, const kept *b)
{
    if (a->ms_per_sample != b->ms_per_sample) return a->ms_per_sample < b->ms_per_sample;
    return a->item != b->item ? a->item < b->item : a->number < b->number;
}

static void enter(table *t, size_t slot, const kept *entry)
{
    kept *entries = &t->entries[slot * t->capacity];
    uint32_t *count = &t->counts[slot], place = *count;
    if (place == t->capacity && !is_before(entry, &entries[place - 1])) return;
    if (place == t->capacity) place--;
    for (; place > 0 && is_before(entry, &entries[place - 1]); place--) entries[place] = entries[place - 1];
    entries[place] = *entry;
    if (*count < t->capacity) ++*count;
}

/* Enters a layout in place of the same layout with equal stages. */
static void replace(table *t, size_t slot, const kept *entry)
{
    kept *entries = &t->entries[slot * t->capacity];
    uint32_t *count = &t->counts[slot], left = 0;
    for (uint32_t i = 0; i < *count; i++)
        if (entries[i].item != entry->item || entries[i].number != entry->number) entries[left++] = entries[i];
    *count = left;
    enter(t, slot, entry);
}

static bool make_table(uint32_t capacity, size_t slot_count, table *out)
{
    out->capacity = capacity;
    out->entries = malloc(slot_count * capacity * sizeof *out->entries);
    out->counts = calloc(slot_count, sizeof *out->counts);
    return out->entries != NULL && out->counts != NULL;
}

static void free_table(table *t)
{
    free(t->entries);
    free(t->counts);
}

/* Resolves a layout; false if the job or the GPU cannot run it. */
static bool resolve(worker *w, const mdot_configuration *layout, rt_resolved_configuration *out)
{
    rt_configuration configuration;
    mdot_error reason;
    const mdot_job *job = w->search->space->job;
    mdot_status status = rt_configuration_read(layout, 0, &w->names, &configuration, &reason);
    if (status == MDOT_OK) status = rt_configuration_check(&configuration, job, &reason);
    if (status == MDOT_OK) rt_resolve(job, &configuration, out);
    if (status != MDOT_OK && w->counts.refused++ == 0) w->refusal = reason;
    return status == MDOT_OK;
}

/* Measures a layout. Returns the upper bound of its memory; UINT64_MAX if it exceeds the GPU. */
static uint64_t measure(worker *w, rt_measured_configuration *layout)
{
    const mdot_job *job = w->search->space->job;
    layout->memory = rt_measure_stages(job, &layout->resolved);
    const rt_memory *memory = &layout->memory.largest;
    rt_reserved reserved = rt_reserve_memory(job, &layout->resolved, memory);
    uint64_t above = rt_memory_within(job, memory).upper_bytes - rt_sum_memory(memory);
    uint64_t bytes = rt_sum_reserved(memory, &reserved) + above;
    if (bytes <= rt_usable_memory(&layout->resolved.configuration.gpu)) return bytes;
    w->counts.too_large++;
    return UINT64_MAX;
}

/* Whether the layout is one beyond the memory with more samples. Batches are the fastest varying axis. */
static bool exceeds(worker *w, const mdot_configuration *layout)
{
    mdot_configuration smaller = *layout;
    smaller.batch = w->exceeding.batch;
    bool is_larger = layout->batch > smaller.batch && memcmp(&smaller, &w->exceeding, sizeof smaller) == 0;
    w->counts.too_large += is_larger;
    return is_larger;
}

/* Whether the memory's upper bound is usable. */
static bool is_within(const mdot_prediction *p)
{
    return p->reserved_bytes + (p->memory_upper_bytes - p->peak_memory_bytes) <= p->usable_bytes;
}

/* Predicts the worker's layouts, and corrects the predictions by the space's calibration. */
static mdot_status predict(worker *w, size_t count, mdot_error *err)
{
    const rt_space *space = w->search->space;
    for (size_t i = 0; i < count; i++) w->predictions[i].struct_size = sizeof *w->predictions;
    mdot_status status =
        rt_sweep_measured(w->context, space->job, !w->has_encoded, w->measured, count, w->predictions, err);
    w->has_encoded = true;
    for (size_t i = 0; space->calibration != NULL && i < count; i++)
        if (w->predictions[i].status == MDOT_OK)
            w->predictions[i].status =
                mdot_calibration_apply_to_job(space->calibration, space->job, &w->layouts[i], &w->predictions[i], err);
    return status;
}

static void price(worker *w, size_t item_index, const rt_search_item *item, size_t count)
{
    const rt_space *space = w->search->space;
    mdot_error err;
    mdot_status status = predict(w, count, &err);
    if (status == MDOT_INCOMPATIBLE || status == MDOT_MALFORMED) {
        if (w->status == MDOT_OK) w->err = err;
        w->status = status;
    }
    for (size_t i = 0; i < count; i++) {
        if (w->predictions[i].status != MDOT_OK || w->predictions[i].step_ms <= 0) {
            w->counts.refused++;
            continue;
        }
        if (space->calibration != NULL && !is_within(&w->predictions[i])) {
            w->counts.too_large++;
            continue;
        }
        const kept entry = {.ms_per_sample = w->predictions[i].step_ms / rt_samples_of_step(&w->layouts[i]),
                            .item = item_index,
                            .number = w->numbers[i],
                            .configuration = w->layouts[i],
                            .prediction = w->predictions[i]};
        size_t slot = item->gpu_model * space->size_count + item->size;
        w->counts.priced++;
        enter(&w->table, slot, &entry);
        if (item->pipeline > 1 && w->layouts[i].virtual_stages <= 1) enter(&w->pipelines, slot, &entry);
    }
}

/* The work of a pipeline's slowest stage, the micro-steps, and the launches of the slowest host in a step. */
typedef struct split {
    double of[RT_PIPELINE_POSITIONS + 2];
} split;

static split split_of(const mdot_job *job, const rt_resolved_configuration *resolved)
{
    split s = {{[RT_PIPELINE_POSITIONS] = resolved->micro_steps}};
    for (int i = 0; i < RT_PIPELINE_POSITIONS; i++) {
        s.of[i] = resolved->shard.of[i];
        s.of[RT_PIPELINE_POSITIONS + 1] +=
            resolved->slowest_host * resolved->micro_steps * s.of[i] * job->analysis->sharding.launches[i];
    }
    return s;
}

/* Whether `a` does no more work than `b` in any part. */
static bool covers(const split *a, const split *b)
{
    bool is_less = true;
    for (int i = 0; i < RT_PIPELINE_POSITIONS + 2; i++) is_less = is_less && a->of[i] <= b->of[i];
    return is_less;
}

/* Lists splits of a pipeline, from LESS_BLOCKS less at the ends than an equal share, that fit. The slowest stage
 * decides the time. Therefore a split is left out if that of another has less work, or as much with less memory. */
static size_t list_splits(worker *w, const mdot_configuration *even)
{
    enum { FEW = 64 };
    split splits[FEW];
    uint64_t bytes[FEW];
    size_t count = 0;
    int share = (int)(w->search->space->job->info.block_count / even->pipeline_parallel);
    int most = even->pipeline_parallel > 2 ? share + 1 : share + LESS_BLOCKS;
    int least = share > LESS_BLOCKS ? share - LESS_BLOCKS : 1, ends = most - least + 1;
    for (int i = 0; i < ends * ends && count < FEW; i++) {
        rt_measured_configuration measured;
        mdot_configuration c = *even;
        c.first_stage_blocks = (uint32_t)(least + i / ends);
        c.last_stage_blocks = (uint32_t)(least + i % ends);
        if (!resolve(w, &c, &measured.resolved)) continue;
        split own = split_of(w->search->space->job, &measured.resolved);
        bool is_beaten = false;
        size_t same = count;
        for (size_t k = 0; k < count; k++) {
            bool is_covered = covers(&splits[k], &own);
            if (is_covered && covers(&own, &splits[k])) same = k;
            is_beaten = is_beaten || (is_covered && same != k);
        }
        uint64_t needed = is_beaten ? UINT64_MAX : measure(w, &measured);
        if (needed == UINT64_MAX || (same < count && needed >= bytes[same])) continue;
        w->layouts[same] = c;
        w->measured[same] = measured;
        splits[same] = own;
        bytes[same] = needed;
        count += same == count;
    }
    return count;
}

/* Makes the stages of a pipeline uneven if that is faster, or as fast with less memory, because the embedding and the
 * head take time and memory, too. Returns whether they changed. */
static bool balance(worker *w, kept *entry)
{
    const mdot_configuration even = entry->configuration;
    const mdot_plan_info counts = w->counts; /* count each layout once */
    bool is_set = even.first_stage_blocks > 0 || even.last_stage_blocks > 0;
    size_t count = is_set ? 0 : list_splits(w, &even);
    w->counts = counts;
    predict(w, count, NULL);
    for (size_t i = 0; i < count; i++) {
        const mdot_prediction *p = &w->predictions[i], *best = &entry->prediction;
        if (p->status != MDOT_OK || p->step_ms <= 0 || p->step_ms > best->step_ms || !is_within(p)) continue;
        if (p->step_ms == best->step_ms && p->reserved_bytes >= best->reserved_bytes) continue;
        entry->configuration = w->layouts[i];
        entry->prediction = *p;
    }
    entry->ms_per_sample = entry->prediction.step_ms / rt_samples_of_step(&even);
    return !is_set && entry->configuration.first_stage_blocks > 0;
}

static void report(worker *w, uint64_t visited)
{
    search *s = w->search;
    uint64_t all = atomic_fetch_add(&s->visited, visited) + visited;
    if (!w->is_first || s->progress == NULL || all - w->reported < LAYOUTS_TO_A_REPORT) return;
    w->reported = all;
    size_t item = atomic_load(&s->next_item);
    double finished = (double)(item < s->item_count ? item : s->item_count) / (double)s->item_count;
    if (!s->progress(s->progress_state, finished)) atomic_store(&s->is_cancelled, true);
}

static void search_item(worker *w, size_t index, const rt_search_item *item)
{
    search *s = w->search;
    rt_layouts layouts;
    uint64_t number = 0;
    size_t count = 0;
    rt_layouts_begin(&layouts, s->space, item);
    while (!atomic_load_explicit(&s->is_cancelled, memory_order_relaxed) &&
           rt_layouts_next(&layouts, &w->layouts[count])) {
        w->numbers[count] = number++;
        rt_measured_configuration *measured = &w->measured[count];
        bool can_fit = resolve(w, &w->layouts[count], &measured->resolved) && !exceeds(w, &w->layouts[count]);
        if (can_fit && measure(w, measured) != UINT64_MAX)
            count++;
        else if (can_fit)
            w->exceeding = w->layouts[count];
        if (count == CHUNK) {
            price(w, index, item, count);
            count = 0;
        }
        if (number % CHUNK == 0) report(w, CHUNK);
    }
    if (count > 0) price(w, index, item, count);
    w->counts.indivisible += layouts.indivisible;
    report(w, number % CHUNK);
}

static void *work(void *argument)
{
    worker *w = argument;
    search *s = w->search;
    rt_search_item item;
    for (;;) {
        size_t index = atomic_fetch_add(&s->next_item, 1);
        if (index >= s->item_count || atomic_load(&s->is_cancelled)) return NULL;
        if (rt_item_at(s->space, index, &item)) search_item(w, index, &item);
    }
}

static bool make_worker(worker *w, search *s, mdot_context *context, bool is_first)
{
    *w = (worker){.search = s, .context = context, .is_first = is_first};
    w->layouts = malloc(CHUNK * sizeof *w->layouts);
    w->measured = malloc(CHUNK * sizeof *w->measured);
    w->predictions = malloc(CHUNK * sizeof *w->predictions);
    w->numbers = malloc(CHUNK * sizeof *w->numbers);
    return make_table(s->space->kept, s->slot_count, &w->table) &&
           make_table(PIPELINES, s->slot_count, &w->pipelines) && w->layouts != NULL && w->measured != NULL &&
           w->predictions != NULL && w->numbers != NULL;
}

static void free_worker(worker *w)
{
    free_table(&w->table);
    free_table(&w->pipelines);
    free(w->layouts);
    free(w->measured);
    free(w->predictions);
    free(w->numbers);
}

static void merge_table(table *all, const table *part, size_t slot_count)
{
    for (size_t slot = 0; slot < slot_count; slot++)
        for (uint32_t i = 0; i < part->counts[slot]; i++) enter(all, slot, &part->entries[slot * part->capacity + i]);
}

/* Adds a worker's counts and layouts to the plan, and its pipelines to those of the first. */
static void merge(mdot_plan *plan, const worker *w, worker *first, size_t slot_count)
{
    plan->info.priced += w->counts.priced;
    plan->info.too_large += w->counts.too_large;
    plan->info.indivisible += w->counts.indivisible;
    plan->info.refused += w->counts.refused;
    merge_table(&plan->table, &w->table, slot_count);
    if (w != first) merge_table(&first->pipelines, &w->pipelines, slot_count);
}

static void balance_pipelines(mdot_plan *plan, worker *w, size_t slot_count)
{
    for (size_t slot = 0; slot < slot_count; slot++)
        for (uint32_t i = 0; i < w->pipelines.counts[slot]; i++) {
            kept entry = w->pipelines.entries[slot * PIPELINES + i];
            if (balance(w, &entry)) replace(&plan->table, slot, &entry);
        }
}

static mdot_status run_workers(mdot_plan *plan, search *s, worker *workers, size_t count, mdot_error *err)
{
    mdot_status status = MDOT_OK;
    for (size_t i = 1; i < count; i++)
        workers[i].is_started = pthread_create(&workers[i].thread, NULL, work, &workers[i]) == 0;
    work(&workers[0]);
    for (size_t i = 0; i < count; i++) {
        if (workers[i].is_started) pthread_join(workers[i].thread, NULL);
        merge(plan, &workers[i], &workers[0], s->slot_count);
        if (status == MDOT_OK && workers[i].status != MDOT_OK)
            status = mdot_fail(err, workers[i].status, "%s", workers[i].err.message);
    }
    plan->info.cancelled = atomic_load(&s->is_cancelled);
    if (plan->info.cancelled == 0) balance_pipelines(plan, &workers[0], s->slot_count);
    bool can_run = plan->info.priced + plan->info.too_large + plan->info.indivisible > 0 || plan->info.cancelled != 0;
    if (status != MDOT_OK || can_run) return status;
    for (size_t i = 0; i < count; i++)
        if (workers[i].refusal.message[0] != '\0')
            return BS_INVALID(err, "no layout can run: %s", workers[i].refusal.message);
    return BS_INVALID(err, "no layout can run: the degrees of --parallel divide none of the numbers of GPUs");
}

static mdot_status search_space(mdot_plan *plan, mdot_context *const *contexts, size_t context_count,
                                const mdot_plan_space *source, mdot_error *err)
{
    search s = {.space = &plan->space,
                .item_count = rt_item_count(&plan->space),
                .slot_count = plan->space.gpu_model_count * plan->space.size_count,
                .progress = source->progress,
                .progress_state = source->progress_state};
    worker *workers = calloc(context_count, sizeof *workers);
    bool has_memory = workers != NULL && make_table(plan->space.kept, s.slot_count, &plan->table);
    for (size_t i = 0; has_memory && i < context_count; i++)
        has_memory = make_worker(&workers[i], &s, contexts[i], i == 0);
    mdot_status status = MDOT_OUT_OF_MEMORY;
    if (has_memory) status = run_workers(plan, &s, workers, context_count, err);
    for (size_t i = 0; status == MDOT_OK && i < s.slot_count; i++) plan->info.layout_count += plan->table.counts[i];
    for (size_t i = 0; workers != NULL && i < context_count; i++) free_worker(&workers[i]);
    free(workers);
    return status == MDOT_OUT_OF_MEMORY ? mdot_fail(err, status, NULL) : status;
}

mdot_status mdot_plan_create(mdot_context *const *contexts, size_t context_count, const mdot_job *job,
                             const mdot_plan_space *space, mdot_plan **out_plan, mdot_error *err)
{
    if (contexts == NULL || job == NULL || space == NULL || out_plan == NULL)
        return BS_INVALID(err, "mdot_plan_create: contexts, job, space or out_plan is NULL");
    if (context_count == 0 || context_count > MOST_CONTEXTS)
        return BS_INVALID(err, "context_count is %zu; accepted: 1 to %d", context_count, MOST_CONTEXTS);
    BS_TRY(rt_handle_check(job, RT_JOB, __func__, err));
    for (size_t i = 0; i < context_count; i++) {
        if (contexts[i] == NULL) return BS_INVALID(err, "context %zu is NULL", i);
        BS_TRY(rt_handle_enter(contexts[i], __func__, err));
        rt_handle_leave(contexts[i]); /* each prediction enters it again */
    }
    mdot_plan *plan = calloc(1, sizeof *plan);
    if (plan == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    rt_handle_register(plan, RT_PLAN);
    mdot_status status = rt_space_read(space, job, &plan->space, err);
    if (status == MDOT_OK) status = search_space(plan, contexts, context_count, space, err);
    if (status != MDOT_OK) {
        mdot_plan_destroy(plan);
        return status;
    }
    plan->space.job = NULL; /* the caller may destroy it */
    *out_plan = plan;
    return MDOT_OK;
}

void mdot_plan_destroy(mdot_plan *plan)
{
    if (plan == NULL || !rt_handle_unregister(plan, RT_PLAN, __func__)) return;
    free_table(&plan->table);
    if (!rt_validates_handles()) free(plan);
}

mdot_status mdot_plan_get_info(const mdot_plan *plan, mdot_plan_info *out_info)
{
    if (plan == NULL || out_info == NULL || !rt_handle_is_live(plan, RT_PLAN, __func__)) return MDOT_INVALID_ARGUMENT;
    return bs_fill_struct(&info_type, &plan->info, out_info, NULL);
}

mdot_status mdot_plan_get_layout(const mdot_plan *plan, size_t index, mdot_plan_layout *out_layout)
{
    if (plan == NULL || out_layout == NULL || !rt_handle_is_live(plan, RT_PLAN, __func__)) return MDOT_INVALID_ARGUMENT;
    if (index >= plan->info.layout_count) return MDOT_OUT_OF_RANGE;
    size_t slot = 0;
    while (index >= plan->table.counts[slot]) index -= plan->table.counts[slot++];
    const kept *entry = &plan->table.entries[slot * plan->table.capacity + index];
    const mdot_configuration *c = &entry->configuration;
    double waiting = rt_waiting_steps(c);
    mdot_plan_layout layout = {.configuration = *c,
                               .prediction = entry->prediction,
                               .gpu_model = (size_t)(c->gpu_spec - plan->space.gpus),
                               .samples = rt_samples_of_step(c),
                               .pipeline_share = waiting / (waiting + c->micro_batches)};
    return bs_fill_struct(&layout_type, &layout, out_layout, NULL);
}
