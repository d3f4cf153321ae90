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
} region;

enum { MAX_REGIONS = 3 * 64 };

typedef struct phase {
    int count;
    bool is_full; /* further accesses were dropped: assume a conflict with everything */
    region regions[MAX_REGIONS];
} phase;

typedef struct step_phases {
    bool has_barrier; /* there is a barrier between first and last */
    phase first, last;
} step_phases;

static void add(phase *p, cu_memory_space kind, size_t begin, size_t size_bytes, bool is_written)
{
    if (kind != CU_SHARED && kind != CU_SCRATCH) return;
    for (int k = 0; k < p->count; k++)
        if (p->regions[k].kind == kind && p->regions[k].begin == begin && p->regions[k].is_written == is_written)
            return;
    if (p->count < MAX_REGIONS)
        p->regions[p->count++] = (region){kind, begin, begin + size_bytes, is_written};
    else
        p->is_full = true;
}

static void add_placement(phase *p, const cu_placement *placement, bool is_written)
{
    const cu_location *locations[] = {&placement->plain, &placement->half};
    for (int k = 0; k < 2; k++)
        add(p, locations[k]->kind, locations[k]->offset_bytes, locations[k]->size_bytes, is_written);
}

static void merge(phase *into, const phase *source)
{
    into->is_full = into->is_full || source->is_full;
    for (int k = 0; k < source->count; k++) {
        const region *t = &source->regions[k];
        add(into, t->kind, t->begin, t->end - t->begin, t->is_written);
    }
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
        const cu_placement *placement = &layout->placements[a->buffer];
        unsigned read_phases = out->has_barrier && !a->is_written ? kind->reads(step, a->buffer) : CU_AFTER_BARRIER;
        if (read_phases & CU_BEFORE_BARRIER) add_placement(&out->first, placement, false);
        if (read_phases & CU_AFTER_BARRIER) add_placement(&out->last, placement, a->is_written);
    }
    if (!out->has_barrier) return;
    add(&out->first, CU_SHARED, layout->work_offset[number], work_bytes, true);
    add(&out->last, CU_SHARED, layout->work_offset[number], work_bytes, false);
}

static bool conflicts(const phase *a, const phase *b)
{
    if (a->is_full || b->is_full) return true;
    for (int i = 0; i < a->count; i++) {
        for (int j = 0; j < b->count; j++) {
            const region *x = &a->regions[i], *y = &b->regions[j];
            bool overlap = x->kind == y->kind && x->begin < y->end && y->begin < x->end;
            if (overlap && (x->is_written || y->is_written)) return true;
        }
    }
    return false;
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

/* `open` holds the accesses since the last barrier; the function updates it for the step. Returns true if a barrier
 * must precede the step. */
static bool follow(const step_phases *step, phase *open)
{
    bool needs_barrier = conflicts(open, step->has_barrier ? &step->first : &step->last);
    if (needs_barrier || step->has_barrier) *open = (phase){.count = 0};
    merge(open, &step->last);
    return needs_barrier;
}

mdot_status cu_find_inner_barriers(const cu_layout *layout, int number, ir_arena *arena, bool **out_before,
                                   mdot_error *err)
{
    enum { ROUNDS = 2 }; /* the second one begins with the accesses of the first */
    const cu_step *step = &layout->stages->steps[number];
    bool *before = IR_NEW_ARRAY(arena, bool, step->inner_count + 1);
    if (before == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    phase open = {0};
    for (int k = 0; k < ROUNDS * step->inner_count; k++) {
        step_phases inner;
        int index = k % step->inner_count;
        if (before[index]) open = (phase){.count = 0};
        describe_step(layout, &step->inner[index], number, &inner);
        before[index] = follow(&inner, &open) || before[index];
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

/* True if the second iteration of a loop's steps accesses data of the first before the next barrier. Tiles are
 * separate in scratch memory, so only shared memory counts. */
static bool needs_barrier_again(const step_phases *phases, const bool *before, int first, int end, const phase *pending)
{
    phase shared = {.is_full = pending->is_full};
    for (int k = 0; k < pending->count; k++)
        if (pending->regions[k].kind == CU_SHARED) shared.regions[shared.count++] = pending->regions[k];
    for (int s = first; s < end; s++) {
        if (before[s] && s > first) return false; /* the first step's barrier precedes the loop */
        if (conflicts(&shared, phases[s].has_barrier ? &phases[s].first : &phases[s].last)) return true;
        if (phases[s].has_barrier) return false;
    }
    return false;
}

mdot_status cu_find_barriers(const cu_layout *layout, ir_arena *arena, bool **out_before, bool **out_again,
                             mdot_error *err)
{
    const cu_stages *stages = layout->stages;
    bool *before = IR_NEW_ARRAY(arena, bool, stages->step_count + 1);
    bool *again = IR_NEW_ARRAY(arena, bool, stages->step_count + 1);
    step_phases *phases = IR_NEW_ARRAY(arena, step_phases, stages->step_count + 1);
    if (before == NULL || again == NULL || phases == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (int s = 0; s < stages->step_count; s++) describe(layout, s, &phases[s]);
    phase open = {0};
    for (int first = 0, end; first < stages->step_count; first = end) {
        end = cu_loop_end(stages, first);
        bool is_new_stage = first == 0 || stages->steps[first].stage != stages->steps[first - 1].stage;
        if (is_new_stage) open = (phase){.count = 0}; /* the grid barrier */
        for (int s = first; s < end; s++) before[s] = follow(&phases[s], &open);
        again[end - 1] = may_repeat(&stages->steps[first]) && needs_barrier_again(phases, before, first, end, &open);
    }
    *out_before = before;
    *out_again = again;
    return MDOT_OK;
}
