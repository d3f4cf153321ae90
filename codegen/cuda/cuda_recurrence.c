/* cuda_recurrence.c — recurrences: block 0 runs a step's kernels in order, once per step.
 *
 * Every kernel of a step is a function as elsewhere. The generator prints the loop around their calls, with the block
 * barriers that they need (memory_placement.h). One block suffices for the small batches of predictors, and a grid
 * barrier per kernel and step would take longer than the work of most steps. */
#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/memory_placement.h"

/* Adds an inner step's access to the recurrence's. */
static void add_access(cu_step *whole, const cu_access *inner)
{
    for (int k = 0; k < whole->access_count; k++)
        if (whole->accesses[k].buffer == inner->buffer && whole->accesses[k].is_written == inner->is_written) return;
    whole->accesses[whole->access_count++] = (cu_access){inner->buffer, inner->is_written, true};
}

static bool find_steps(cu_step_finder *f, const pl_kernel *kernel)
{
    const pl_recurrence *k = &kernel->recurrence;
    int64_t max_length = f->stages->plan->max_length;
    cu_stages inside = *f->stages; /* the same plan with the inner steps only */
    inside.step_count = 0;
    inside.steps = IR_NEW_ARRAY(f->arena, cu_step, 2 * k->kernel_count + 1);
    cu_step_finder finder = {.stages = &inside,
                             .arena = f->arena,
                             .buffers = f->buffers,
                             .is_one_block = true,
                             .max_steps = cu_extent_range(k->steps, max_length).high + 1};
    cu_step *whole = cu_add_step(f, kernel, CU_WHOLE);
    if (whole == NULL || inside.steps == NULL) return false;
    for (int i = 0; i < k->kernel_count; i++) {
        const pl_kernel *inner = &k->kernels[i];
        if (!f->stages->schedule->kinds[inner->kind]->find_steps(&finder, inner)) return false;
    }
    whole->inner = inside.steps;
    whole->inner_count = inside.step_count;
    whole->accesses = IR_NEW_ARRAY(f->arena, cu_access, 2 * f->stages->plan->buffer_count + 1);
    if (whole->accesses == NULL) return false;
    for (int s = 0; s < whole->inner_count; s++)
        for (int i = 0; i < whole->inner[s].access_count; i++) add_access(whole, &whole->inner[s].accesses[i]);
    return true;
}

static size_t work_bytes(const cu_step *step, const cu_layout *layout)
{
    size_t maximum = 0;
    for (int s = 0; s < step->inner_count; s++) {
        const cu_step *inner = &step->inner[s];
        size_t bytes = inner->kind->work_bytes != NULL ? inner->kind->work_bytes(inner, layout) : 0;
        if (bytes > maximum) maximum = bytes;
    }
    return maximum;
}

const cu_step_kind cu_recurrence_kind = {
    .find_steps = find_steps,
    .work_bytes = work_bytes,
};
