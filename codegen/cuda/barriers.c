/* barriers.c — the memory of a block that steps access, and the steps that must therefore wait for all threads (see
 * memory_placement.h).
 *
 * A step with an internal barrier (to stage rows, to combine slices) has two phases. Accesses of the first phase are
 * complete when the step ends.
 */
#include "codegen/cuda/memory_placement.h"

#include <string.h>

typedef struct region {
    cu_memory_space kind;
    size_t begin, end;
    bool is_written;
    bool crosses; /* written for or by other blocks of the cluster */
} region;

enum { MAX_REGIONS = 3 * 64 };

typedef struct phase {
    int count;
    bool is_full; /* further accesses were dropped: assume a conflict with everything */
    region regions[MAX_REGIONS];
} phase;

typedef struct step_phases {
    bool has_barrier; /* there is a block barrier between first and last */
    phase first, last;
} step_phases;

typedef struct open_accesses { /* since the last barrier, and since the last one of the cluster */
    phase block, cluster;
} open_accesses;

static void add(phase *p, region added)
{
    if (added.kind != CU_SHARED && added.kind != CU_SCRATCH) return;
    for (int k = 0; k < p->count; k++) {
        const region *r = &p->regions[k];
        if (r->kind == added.kind && r->begin == added.begin && r->is_written == added.is_written &&
            r->crosses == added.crosses)
            return;
    }
    if (p->count < MAX_REGIONS)
        p->regions[p->count++] = added;
    else
        p->is_full = true;
}

static void add_bytes(phase *p, cu_memory_space kind, size_t begin, size_t size_bytes, bool is_written, bool crosses)
{
    add(p, (region){kind, begin, begin + size_bytes, is_written, crosses});
}

/* A split step writes the shared memory of all blocks. Scratch memory is the blocks' own in common. */
static void add_placement(phase *p, const cu_layout *layout, const cu_step *step, const cu_access *a)
{
    const cu_placement *placement = &layout->placements[a->buffer];
    const cu_location *locations[] = {&placement->plain, &placement->half};
    for (int k = 0; k < 2; k++) {
        int blocks =
            locations[k]->kind == CU_SHARED ? cu_split(layout, step) : cu_blocks_of(layout->stages->schedule, step);
        add_bytes(p, locations[k]->kind, locations[k]->offset_bytes, locations[k]->size_bytes, a->is_written,
                  a->is_written && blocks > 1);
    }
}

static void merge(phase *into, const phase *source)
{
    into->is_full = into->is_full || source->is_full;
    for (int k = 0; k < source->count; k++) add(into, source->regions[k]);
}

/* `number` is the step's, or the enclosing recurrence's, whose memory the step uses. */
static void describe_step(const cu_layout *layout, const cu_step *step, int number, step_phases *out)
{
    memset(out, 0, sizeof *out);
    const cu_step_kind *kind = step->kind;
    size_t work_bytes = kind->work_bytes != NULL ? kind->work_bytes(step, layout) : 0;
    out->has_barrier = work_bytes > 0;
    for (int k = 0; k < step->access_count; k++) {
        const cu_access *a = &step->accesses[k];
        unsigned read_phases = out->has_barrier && !a->is_written ? kind->reads(step, a->buffer) : CU_AFTER_BARRIER;
        if (read_phases & CU_BEFORE_BARRIER) add_placement(&out->first, layout, step, a);
        if (read_phases & CU_AFTER_BARRIER) add_placement(&out->last, layout, step, a);
    }
    if (!out->has_barrier) return;
    add_bytes(&out->first, CU_SHARED, layout->work_offset[number], work_bytes, true, false);
    add_bytes(&out->last, CU_SHARED, layout->work_offset[number], work_bytes, false, false);
}

static bool conflicts(const phase *a, const phase *b, bool only_crossing)
{
    if (a->is_full || b->is_full) return true;
    for (int i = 0; i < a->count; i++) {
        for (int j = 0; j < b->count; j++) {
            const region *x = &a->regions[i], *y = &b->regions[j];
            bool overlap = x->kind == y->kind && x->begin < y->end && y->begin < x->end;
            bool counts = only_crossing ? x->crosses || y->crosses : x->is_written || y->is_written;
            if (overlap && counts) return true;
        }
    }
    return false;
}

/* The barrier that must precede a step after other accesses. Its own barrier does not separate the cluster's blocks. */
static cu_wait wait_after(const open_accesses *open, const step_phases *step, bool has_clusters)
{
    if (has_clusters && (conflicts(&open->cluster, &step->first, true) || conflicts(&open->cluster, &step->last, true)))
        return CU_CLUSTER_WAIT;
    return conflicts(&open->block, step->has_barrier ? &step->first : &step->last, false) ? CU_BLOCK_WAIT : CU_NO_WAIT;
}

static void pass(open_accesses *open, cu_wait wait)
{
    if (wait != CU_NO_WAIT) open->block = (phase){.count = 0};
    if (wait == CU_CLUSTER_WAIT) open->cluster = (phase){.count = 0};
}

/* A recurrence is described without barriers: as if one phase did all steps. */
static void describe(const cu_layout *layout, int number, step_phases *out)
{
    const cu_step *step = &layout->stages->steps[number];
    if (step->inner_count == 0) {
        describe_step(layout, step, number, out);
        return;
    }
    memset(out, 0, sizeof *out);
    for (int k = 0; k < step->inner_count; k++) {
        step_phases inner;
        describe_step(layout, &step->inner[k], number, &inner);
        merge(&out->last, &inner.first);
        merge(&out->last, &inner.last);
    }
}

/* Returns the barrier that must precede the step, and updates `open` for both. */
static cu_wait follow(const step_phases *step, open_accesses *open, bool has_clusters)
{
    cu_wait wait = wait_after(open, step, has_clusters);
    pass(open, wait == CU_NO_WAIT && step->has_barrier ? CU_BLOCK_WAIT : wait);
    merge(&open->block, &step->last);
    if (has_clusters) merge(&open->cluster, &step->first);
    if (has_clusters) merge(&open->cluster, &step->last);
    return wait;
}

mdot_status cu_find_inner_barriers(const cu_layout *layout, int number, ir_arena *arena, cu_wait **out_before,
                                   mdot_error *err)
{
    enum { ROUNDS = 2 }; /* the second one begins with the accesses of the first */
    const cu_step *step = &layout->stages->steps[number];
    cu_wait *before = IR_NEW_ARRAY(arena, cu_wait, step->inner_count + 1);
    if (before == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    open_accesses open = {0};
    for (int k = 0; k < ROUNDS * step->inner_count; k++) {
        step_phases inner;
        int index = k % step->inner_count;
        pass(&open, before[index]);
        describe_step(layout, &step->inner[index], number, &inner);
        if (follow(&inner, &open, false) != CU_NO_WAIT) before[index] = CU_BLOCK_WAIT;
    }
    *out_before = before;
    return MDOT_OK;
}

int cu_loop_end(const cu_stages *stages, int first)
{
    const cu_step *begin = &stages->steps[first];
    int end = first + 1;
    if (begin->distribution == CU_FREE) return end;
    while (end < stages->step_count && stages->steps[end].stage == begin->stage &&
           stages->steps[end].distribution == begin->distribution)
        end++;
    return end;
}

/* True if a block may take several of a step's tiles. Steps that run once or distribute points are excluded. */
static bool may_repeat(const cu_step *step) { return step->distribution != CU_SINGLE && !cu_distributes_points(step); }

/* The part of accesses that another tile's can meet: tiles are separate in scratch memory. */
static phase shared_part(const phase *open)
{
    phase shared = {.is_full = open->is_full};
    for (int k = 0; k < open->count; k++)
        if (open->regions[k].kind == CU_SHARED) shared.regions[shared.count++] = open->regions[k];
    return shared;
}

/* The barrier that a loop's steps need between two tiles: after the first tile's accesses, before any other barrier. */
static cu_wait wait_for_next_tile(const step_phases *phases, const cu_wait *before, int first, int end,
                                  const open_accesses *open, bool has_clusters)
{
    open_accesses shared = {shared_part(&open->block), shared_part(&open->cluster)};
    cu_wait wait = CU_NO_WAIT;
    for (int s = first; s < end && wait != CU_CLUSTER_WAIT; s++) {
        if (s > first) pass(&shared, before[s]); /* the first step's barrier precedes the loop */
        cu_wait found = wait_after(&shared, &phases[s], has_clusters);
        if (found > wait) wait = found;
        if (phases[s].has_barrier) pass(&shared, CU_BLOCK_WAIT);
    }
    return wait;
}

/* Steps of one block cannot wait for the cluster, so the wait precedes their loop. */
static cu_wait wait_for_loop(const step_phases *phases, int first, int end, const open_accesses *open)
{
    for (int s = first; s < end; s++)
        if (wait_after(open, &phases[s], true) == CU_CLUSTER_WAIT) return CU_CLUSTER_WAIT;
    return CU_NO_WAIT;
}

mdot_status cu_find_barriers(const cu_layout *layout, ir_arena *arena, cu_wait **out_before, cu_wait **out_again,
                             mdot_error *err)
{
    const cu_stages *stages = layout->stages;
    bool has_clusters = stages->schedule->blocks_per_tile > 1;
    cu_wait *before = IR_NEW_ARRAY(arena, cu_wait, stages->step_count + 1);
    cu_wait *again = IR_NEW_ARRAY(arena, cu_wait, stages->step_count + 1);
    step_phases *phases = IR_NEW_ARRAY(arena, step_phases, stages->step_count + 1);
    if (before == NULL || again == NULL || phases == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (int s = 0; s < stages->step_count; s++) describe(layout, s, &phases[s]);
    open_accesses open = {0};
    for (int first = 0, end; first < stages->step_count; first = end) {
        end = cu_loop_end(stages, first);
        const cu_step *begin = &stages->steps[first];
        bool is_new_stage = first == 0 || begin->stage != stages->steps[first - 1].stage;
        if (is_new_stage) open = (open_accesses){0}; /* the grid barrier */
        cu_wait at_loop = CU_NO_WAIT;
        if (has_clusters && begin->distribution != CU_TILED) at_loop = wait_for_loop(phases, first, end, &open);
        pass(&open, at_loop);
        for (int s = first; s < end; s++) before[s] = follow(&phases[s], &open, has_clusters);
        if (at_loop > before[first]) before[first] = at_loop;
        if (may_repeat(begin)) again[end - 1] = wait_for_next_tile(phases, before, first, end, &open, has_clusters);
    }
    *out_before = before;
    *out_again = again;
    return MDOT_OK;
}
