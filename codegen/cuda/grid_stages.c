/* grid_stages.c — finds a plan's steps, the units accessed by each, and the necessary barriers (see cuda_stages.h).
 *
 * Stages are levels in the dependence graph, so their number is minimal. A step that fits several stages goes to the
 * last, next to its readers, so data between them stays in shared memory. */
#include "codegen/cuda/cuda_stages.h"

#include "plan/kernel_kind.h"

#include <limits.h>
#include <stdlib.h>

/* A kernel, or one within a recurrence, whose kind the schedule lacks. NULL: there is none. */
static const pl_kernel *find_unsupported(const cu_schedule *schedule, const pl_kernel *kernel)
{
    if (schedule->kinds[kernel->kind] == NULL) return kernel;
    int count = kernel->kind == PL_RECURRENCE ? kernel->recurrence.kernel_count : 0;
    for (int k = 0; k < count; k++)
        if (schedule->kinds[kernel->recurrence.kernels[k].kind] == NULL) return &kernel->recurrence.kernels[k];
    return NULL;
}

static mdot_status add_kernel(cu_step_finder *f, const pl_kernel *kernel, mdot_error *err)
{
    const cu_schedule *schedule = f->stages->schedule;
    const pl_kernel *unsupported = find_unsupported(schedule, kernel);
    if (unsupported != NULL)
        return mdot_fail(err, MDOT_UNSUPPORTED, "kernel %s (%s): kernels of the kind %s have no CUDA code",
                         unsupported->name, unsupported->origin, pl_kind_name(unsupported->kind));
    bool has_memory = schedule->kinds[kernel->kind]->find_steps(f, kernel);
    return has_memory ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
}

/* The largest buffer for which `after` must wait until all blocks have finished `before`; -1 if there is none.
 * `related`: both access a common buffer and at least one writes it, so their order matters. */
static int conflict(const cu_stages *stages, const cu_step *before, const cu_step *after, bool *related)
{
    int found = -1;
    int64_t maximum = -1;
    *related = false;
    for (int i = 0; i < before->access_count; i++) {
        const cu_access *a = &before->accesses[i];
        for (int j = 0; j < after->access_count; j++) {
            const cu_access *b = &after->accesses[j];
            if (a->buffer != b->buffer || (!a->is_written && !b->is_written)) continue;
            *related = true;
            bool crosses = before->distribution != after->distribution || !a->is_local || !b->is_local;
            int64_t size = pl_unit_elements(&stages->buffers[a->buffer].type, 0);
            if (!crosses || size <= maximum) continue;
            found = a->buffer;
            maximum = size;
        }
    }
    return found;
}

static void rise(cu_stages *stages)
{
    for (int j = 0; j < stages->step_count; j++) {
        cu_step *after = &stages->steps[j];
        for (int i = 0; i < j; i++) {
            bool related;
            int earliest = stages->steps[i].stage + (conflict(stages, &stages->steps[i], after, &related) >= 0);
            if (related && earliest > after->stage) after->stage = earliest;
        }
        if (after->stage >= stages->stage_count) stages->stage_count = after->stage + 1;
    }
}

static void sink(cu_stages *stages)
{
    for (int i = stages->step_count - 1; i >= 0; i--) {
        cu_step *before = &stages->steps[i];
        int latest = INT_MAX;
        for (int j = i + 1; j < stages->step_count; j++) {
            bool related;
            int limit = stages->steps[j].stage - (conflict(stages, before, &stages->steps[j], &related) >= 0);
            if (related && limit < latest) latest = limit;
        }
        if (latest != INT_MAX) before->stage = latest;
    }
}

static int compare_steps(const void *left, const void *right)
{
    const cu_step *a = left, *b = right;
    if (a->stage != b->stage) return a->stage < b->stage ? -1 : 1;
    if (a->distribution != b->distribution) return a->distribution < b->distribution ? -1 : 1;
    if (a->kernel != b->kernel) return a->kernel < b->kernel ? -1 : 1;
    return a->part < b->part ? -1 : a->part > b->part;
}

/* Of several reasons for a barrier, records the one with the most data. */
static void explain_barriers(cu_stages *stages)
{
    for (int j = 0; j < stages->step_count; j++) {
        const cu_step *after = &stages->steps[j];
        cu_barrier *barrier = &stages->barriers[after->stage];
        for (int i = 0; i < j; i++) {
            bool related;
            int buffer = conflict(stages, &stages->steps[i], after, &related);
            if (stages->steps[i].stage != after->stage - 1 || buffer < 0) continue;
            if (barrier->before != NULL && pl_unit_elements(&stages->buffers[buffer].type, 0) <=
                                               pl_unit_elements(&stages->buffers[barrier->buffer].type, 0))
                continue;
            *barrier = (cu_barrier){&stages->steps[i], after, buffer};
        }
    }
    for (int j = 0; j < stages->step_count; j++) {
        const cu_step *s = &stages->steps[j];
        for (int k = 0; k < s->access_count; k++) {
            const cu_access *a = &s->accesses[k];
            bool is_output = stages->buffers[a->buffer].kind == PL_OUTPUT && a->is_written;
            if (is_output && s->distribution != CU_SINGLE && s->stage == stages->stage_count - 1)
                stages->barrier_at_end = true;
        }
    }
}

mdot_status cu_find_stages(const pl_plan *plan, const cu_schedule *schedule, ir_arena *arena, cu_stages *out_stages,
                           mdot_error *err)
{
    cu_stages stages = {.plan = plan, .schedule = schedule, .buffer_count = plan->buffer_count, .stage_count = 1};
    cu_step_finder f = {.stages = &stages, .arena = arena};
    f.buffers = IR_NEW_ARRAY(arena, pl_buffer, plan->buffer_count + plan->kernel_count + 1);
    stages.buffers = f.buffers;
    stages.steps = IR_NEW_ARRAY(arena, cu_step, 2 * plan->kernel_count + 1);
    if (f.buffers == NULL || stages.steps == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (int k = 0; k < plan->buffer_count; k++) f.buffers[k] = plan->buffers[k];
    for (int k = 0; k < plan->kernel_count; k++) BS_TRY(add_kernel(&f, &plan->kernels[k], err));
    rise(&stages);
    sink(&stages);
    qsort(stages.steps, (size_t)stages.step_count, sizeof *stages.steps, compare_steps);
    stages.barriers = IR_NEW_ARRAY(arena, cu_barrier, stages.stage_count + 1);
    if (stages.barriers == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    explain_barriers(&stages);
    *out_stages = stages;
    return MDOT_OK;
}
